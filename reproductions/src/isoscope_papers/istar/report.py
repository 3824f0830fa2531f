"""What comes out of *Stable Anisotropic Regularization*: lines for the terminal, tables, figures, pages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import InputError
from isoscope_papers.claims import Claim, Holding, claims_table
from isoscope_papers.istar.claims import estimator_claims, signed, subject_of, sweep_claims
from isoscope_papers.istar.comparison import QUANTITIES, Sweep, difference, sweeps_of
from isoscope_papers.istar.estimators import BATCH, Study, read_study
from isoscope_papers.istar.figures import draw_study, draw_sweeps
from isoscope_papers.istar.notes import beyond, sweep_notes, tasks_not_run
from isoscope_papers.istar.setups import NONE
from isoscope_papers.istar.sweep import SweepRun, read_runs
from isoscope_papers.istar.tables import TABLE, estimator_sections, table_rows, write_table
from isoscope_papers.pages import Section, in_folder, write_pages

TITLE = "Stable Anisotropic Regularization: reproduced"
_INTRO = (
    "Isotropy estimated from mini-batches, and as a penalty in fine-tuning (Rudman and Eickhoff 2024). The "
    "paper adds λ·(1 − IsoScore*) of a model's token states to the loss of its task; IsoScore* is the "
    "IsoScore of a batch's covariance shrunk by ζ towards a C₀ of many vectors. The paper's models were "
    "BERT, DistilBERT and ALBERT; those below are others unless they bear these names, so its claims are "
    "tested in direction, by the bounds stated. Where seeds differ by more than what is claimed, it depends."
)
_TESTED = (
    "Trends are Spearman's ρ over λ of the means over seeds, with a 95 % interval from drawing the seeds "
    "anew, which few seeds make too narrow, and p from permuting λ; both have to tell, and p has to be under "
    "0.05 over the number of tasks. A ρ sees what rises or falls throughout, not a score that is highest in "
    "the middle. Differences are in pairs by seed, with a 95 % interval by Student's t, widened where the "
    "best of several λ was chosen, and by the number of tasks; seeds that happen to agree are taken to "
    "differ by one text of the dev set. The mean of tasks takes one λ for all."
)
_BOUNDED = (
    "A bias counts as within the bound, or beyond it, where 1.96 standard errors do not change that. The "
    "bound is absolute: where the truth is hardly larger, keeping to it says little. ζ = 1, which does not "
    "look at the batch, is left out of the choice."
)
_SWEEP_HEADS = (
    "regulariser", "λ", "seeds", "score", "less λ = 0 [95 %]", "IsoScore*", "debiased", "mean cosine",
    "TwoNN, tokens", "TwoNN, sentences",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Found:
    """What a folder holds of both parts."""

    study: Study | None
    runs: tuple[SweepRun, ...]

    @property
    def sweeps(self) -> list[Sweep]:
        """The runs by task and settings."""
        return sweeps_of(self.runs)

    def claims(self) -> list[Claim]:
        """All of them."""
        return sweep_claims(self.sweeps) + ([] if self.study is None else estimator_claims(self.study))


def read_found(folder: str | os.PathLike[str]) -> Found:
    """What a folder of runs keeps."""
    study, runs = read_study(Path(folder)), read_runs(folder)
    if study is None and not runs:
        raise InputError(f"{folder} holds no runs of istar; wanted istar-….json, as --output keeps them")
    return Found(study, tuple(runs))


def sections(found: Found, folder: Path | None = None) -> list[Section]:
    """Claims, the sweep task by task, the estimators; with figures in a folder."""
    sweeps = found.sweeps
    titles = [subject_of(one, sweeps) for one in sweeps]
    drawn, undrawn = in_folder(lambda place: draw_sweeps(sweeps, titles, place), folder)
    result = []
    if sweeps:
        notes = (*tasks_not_run(sweeps), *undrawn)
        claims = sweep_claims(sweeps)
        result.append(_claims_section("The claims on fine-tuning", _TESTED, claims, notes, drawn))
    result += [_sweep_section(one, title) for one, title in zip(sweeps, titles, strict=True)]
    if found.study is not None:
        study = found.study
        drawn, undrawn = in_folder(lambda place: draw_study(study, place), folder)
        claims = estimator_claims(study)
        result += [
            _claims_section("The claims on estimates", _BOUNDED, claims, beyond(claims), {}),
            *estimator_sections(study, undrawn, drawn),
        ]
    return result


def _claims_section(
    title: str, text: str, claims: Sequence[Claim], notes: tuple[str, ...], figures: dict[str, Path]
) -> Section:
    heads, cells = claims_table(claims)
    return Section(title, text, (*_tallies(claims), *notes), heads, cells, figures)


def _tallies(claims: Sequence[Claim]) -> tuple[str, ...]:
    found = []
    for claim in dict.fromkeys(one.claim for one in claims):
        own = [one.holding for one in claims if one.claim == claim]
        parts = [f"{own.count(kind)} {kind}" for kind in Holding if kind in own]
        found.append(f"{claim}: {', '.join(parts)} (of {len(own)})")
    return tuple(found)


def _sweep_section(sweep: Sweep, title: str) -> Section:
    cells = []
    for kind in (NONE, "istar", "istar-debiased", "cosreg"):
        for strength in sweep.strengths(kind):
            if (strength == 0) == (kind == NONE):
                cells.append(_sweep_cells(sweep, kind, strength))
    return Section(f"{title}, λ by λ", _about(sweep), sweep_notes(sweep), _SWEEP_HEADS, tuple(cells), {})


def _sweep_cells(sweep: Sweep, kind: str, strength: float) -> tuple[str, ...]:
    scores, base = sweep.by_seed(kind, strength), sweep.by_seed(kind, 0.0)
    apart = difference(scores, base, step=sweep.step) if strength else None
    shown = "" if apart is None else f"{signed(apart.mean)} [{signed(apart.low)}, {signed(apart.high)}]"
    quantities = (
        _mean_sd(sweep.by_seed(kind, strength, name), 1 if "twonn" in name else 4) for name in QUANTITIES
    )
    named = "—" if kind == NONE else kind
    where = "0" if strength == 0 else signed(strength, None)
    return (named, where, str(len(scores)), _mean_sd(scores, 4), shown or "—", *quantities)


def _mean_sd(values: dict[int, float], digits: int) -> str:
    if not values:
        return "—"
    found = np.array(list(values.values()))
    mean = f"{found.mean():.{digits}f}".replace("-", "−")
    return mean if len(found) < 2 else f"{mean} ± {found.std(ddof=1):.{digits}f}"


def _about(sweep: Sweep) -> str:
    s, about = sweep.settings, sweep.runs[0].about
    metric = "Matthews' correlation" if sweep.metric == "matthews" else sweep.metric
    seconds = [run.about["seconds"] for run in sweep.runs]
    return (
        f"{s.title}: {about['n_train']:,} texts or pairs to train on, {metric} on {about['n_test']:,} of the "
        f"dev set after {s.epochs} epochs; batches of {s.batch_size}, AdamW with a constant learning rate of "
        f"{s.learning_rate:g} (the paper: 1e-5 for BERT), ζ = {s.zeta:g}, a head of its own for each seed. "
        f"{about['n_cut']:,} texts or pairs are longer than {s.max_length} tokens and were cut. Mean ± "
        f"standard deviation over seeds; IsoScore*, TwoNN of tokens and mean cosine are of all layers above "
        f"the embedding layer. Each interval is taken by itself: of twenty, one leaves out 0 by chance. On "
        f"{about['device']}, {np.median(seconds):,.0f} s a run (median)."
    )


def as_dict(found: Found) -> dict[str, Any]:
    """The claims, every λ of every task, and the estimators at the batch the claims are about; unrounded."""
    sweeps = found.sweeps
    result: dict[str, Any] = {"claims": [claim.to_dict() for claim in found.claims()]}
    if sweeps:
        result["sweeps"] = {subject_of(one, sweeps): _sweep_dict(one) for one in sweeps}
    if found.study is not None:
        result["estimators"] = {
            "about": dict(found.study.about),
            "populations": [asdict(known) for known in found.study.populations],
            f"n = {BATCH}": [row for row in table_rows(found.study) if row["n"] == BATCH],
        }
    return result


def _sweep_dict(sweep: Sweep) -> dict[str, Any]:
    runs = [
        asdict(run.point)
        | {"score": run.score, "sentence_twonn": run.sentence_twonn}
        | {name: run.whole(name) for name in QUANTITIES if name != "sentence_twonn"}
        for run in sweep.runs
    ]
    return {"settings": asdict(sweep.settings), "metric": sweep.metric, "runs": runs}


def as_text(found: Found) -> str:
    """For the terminal: the claims, one after another."""
    claims = found.claims()
    lines: list[str] = []
    for words in dict.fromkeys(one.claim for one in claims):
        own = [one for one in claims if one.claim == words]
        lines += ["", words, *(f"  {one.holding:<13}{one.subject}: {one.evidence}" for one in own)]
    for sweep in found.sweeps:
        star = sweep.curve("istar", "score", "isoscore_star")
        lines += ["", f"{subject_of(sweep, found.sweeps)}: {sweep.metric} and IsoScore* by λ"]
        for strength, values in star.items():
            score, isotropy = values.mean(axis=1)
            lines.append(f"  {strength:>+6g}  {score:.4f}  {isotropy:.4f}  ({values.shape[1]} seeds)")
    return "\n".join(lines).strip()


def write_report(found: Found, folder: Path, *, command: str) -> list[Path]:
    """istar.json, istar.md, istar.html, the figures, and the table of all estimates."""
    written = write_pages(
        folder,
        "istar",
        title=TITLE,
        intro=_INTRO,
        sections=sections(found, folder),
        results=as_dict(found),
        command=command,
    )
    if found.study is not None:
        written.append(write_table(found.study, folder / TABLE))
    return written
