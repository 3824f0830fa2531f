"""The study of IsoScore* and I-STAR: how it is run and read, and its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from isoscope.errors import InputError
from isoscope.terminal import say
from isoscope_papers.istar.comparison import sweeps_of
from isoscope_papers.istar.estimators import BATCH, FILE, Estimates, read_estimates, run_estimators
from isoscope_papers.istar.findings import by_model, findings, mean_fall, rho_by_task
from isoscope_papers.istar.options import Options
from isoscope_papers.istar.populations import spectra, state_populations
from isoscope_papers.istar.setups import ESTIMATORS, SETUPS, Point, Settings, Setup, chosen_strengths, points
from isoscope_papers.istar.sweep import SweepRun, run_sweep
from isoscope_papers.istar.tables import (
    QUANTITIES,
    batch_section,
    csv_of,
    estimate_rows,
    strength_rows,
    stretch_section,
    sweep_section,
)
from isoscope_papers.options import seed_list
from isoscope_papers.page import Section
from isoscope_papers.runs import keep, read
from isoscope_papers.study import Place, Study, chosen_setups
from isoscope_papers.verdict import Verdict

Run = SweepRun | Estimates
_POINT = ("task", "regularizer", "strength", "seed")
_INTRO = (
    "Isotropy estimated from mini-batches, and as a penalty in fine-tuning (Rudman and Eickhoff 2024, "
    "poster). The paper adds λ·(1 − IsoScore*) of a model's token states to the loss of its task; IsoScore* "
    "is the IsoScore of a batch's covariance shrunk by ζ towards a C₀ of many vectors. Its models are BERT, "
    "DistilBERT and ALBERT. Ours is a small encoder unless another is named: the claims are tested in "
    "direction."
)


def _planned(setup: Setup, options: Options) -> tuple[list[Point], Settings]:
    """Return the runs of a task, and how they are trained."""
    settings = Settings(
        options.model, options.epochs, options.batch_size, options.learning_rate, options.max_length,
        max_train=options.max_train if options.max_train is not None else setup.max_train,
    )  # fmt: skip
    strengths = chosen_strengths(options.regularizers, options.strengths)
    return points(setup.name, strengths, seed_list(options.seeds)), settings


def _choose(names: Sequence[str], options: Options) -> list[Setup]:
    """Return the setups; wrong options are told before the estimators take their minutes."""
    setups = chosen_setups(SETUPS, names)
    for setup in setups:
        _planned(setup, options)
    return setups


def _run(setup: Setup, options: Options, place: Place) -> Sequence[Run]:
    if setup.name != ESTIMATORS:
        return run_sweep(*_planned(setup, options), place, say=lambda line: say(line, err=True))
    states = state_populations(place.data, place.download, place.device)
    estimates = run_estimators(chain(spectra(), states), device=place.device)
    if place.runs is not None:
        keep(estimates, place.runs / FILE)
    return [estimates]


def _read(folder: Path) -> list[Run]:
    """Return the runs a folder keeps, by task, regulariser, strength and seed, and the estimates."""
    runs = [read(path, SweepRun) for path in sorted(folder.glob("istar-*.json")) if path.name != FILE]
    estimates = read_estimates(folder)
    if not runs and not estimates:
        raise InputError(f"{folder} has no runs of istar", wanted="istar-….json, as --output writes them")
    runs.sort(key=lambda run: (run.settings.title, run.task, run.regularizer, run.strength, run.seed))
    return [*runs, *estimates]


def intro(runs: Sequence[Run]) -> str:
    """Return what the study is about and its first result."""
    sweeps = sweeps_of(runs)
    headlines = (
        f"On the paper's own λ, Spearman's ρ of score and IsoScore* is not negative as claimed: {one.ours} "
        f"({subject}; {rho_by_task(sweeps)}): {one.verdict}. Equal means share their average rank; a ρ "
        "that breaks such ties differs where several λ end at the same score. At such λ, of either sign, a "
        "small encoder loses most of what it learns: see the notes on each task."
        for own, subject in by_model(sweeps)
        for one in mean_fall(own)
        if one.verdict is not Verdict.HELD
    )
    return " ".join([_INTRO, *headlines])


def sections(runs: Sequence[Run]) -> list[Section]:
    """Return the sweep and the estimators."""
    sweeps = sweeps_of(runs)
    result = [sweep_section(sweeps)] if sweeps else []
    for one in runs:
        if isinstance(one, Estimates):
            result += [section for section in (batch_section(one), stretch_section(one)) if section.cells]
    return result


def _tables(runs: Sequence[Run]) -> dict[str, str]:
    """Return all numbers of the sweeps and the estimators, as CSV."""
    rows = {
        "istar-strengths.csv": [row for sweep in sweeps_of(runs) for row in strength_rows(sweep)],
        "istar-estimators.csv": [
            row for one in runs if isinstance(one, Estimates) for row in estimate_rows(one)
        ],
    }
    return {name: csv_of(own) for name, own in rows.items() if own}


def _results(runs: Sequence[Run]) -> dict[str, Any]:
    """Return every run of every task, and the estimators at the batch size of the claims; unrounded."""
    result: dict[str, Any] = {}
    if sweeps := sweeps_of(runs):
        result["sweeps"] = {
            sweep.subject: {
                "settings": asdict(sweep.settings),
                "metric": sweep.runs[0].metric,
                "runs": [{name: run.value(name) for name in (*_POINT, *QUANTITIES)} for run in sweep.runs],
            }
            for sweep in sweeps
        }
    for one in runs:
        if isinstance(one, Estimates):
            result["estimators"] = {
                "about": one.about,
                "populations": [asdict(known) for known in one.populations],
                f"n = {BATCH}": [row for row in estimate_rows(one) if row["n"] == BATCH],
            }
    return result


def _lines(runs: Sequence[Run]) -> list[str]:
    """Return score and IsoScore* by λ for the terminal."""
    lines = []
    for sweep in sweeps_of(runs):
        lines.append(f"{sweep.subject}: {sweep.metric} and IsoScore* by λ")
        for strength, values in sweep.curve("istar", "score", "isoscore_star").items():
            score, isotropy = values.mean(axis=1)
            lines.append(f"  {strength:>+6g}  {score:.4f}  {isotropy:.4f}  ({values.shape[1]} seeds)")
    return lines


STUDY: Study[Setup, Run] = Study(
    name="istar",
    title="Stable Anisotropic Regularization: reproduced",
    intro=intro,
    setups=SETUPS,
    choose=_choose,
    run=_run,
    load=_read,
    findings=findings,
    sections=sections,
    results=_results,
    tables=_tables,
    notes=_lines,
)
