"""What comes out of *Should I whiten?*: the answer, tables, the figure, JSON and the page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isoscope.advice.candidates import DESCRIPTIONS
from isoscope.advice.outcomes import LEAVE
from isoscope.io.atomic import write_atomically
from isoscope_papers.claims import Claim, Holding, claims_table
from isoscope_papers.corrections.answer import answer
from isoscope_papers.corrections.claims import (
    GROUPS,
    WHITEN,
    Tally,
    all_claims,
    best_of,
    corrections_of,
    tally,
)
from isoscope_papers.corrections.figures import draw_figures
from isoscope_papers.corrections.run import Outcome
from isoscope_papers.corrections.setups import LABELS
from isoscope_papers.pages import Section, as_markdown, in_folder, write_pages

TITLE = "Should I whiten?"
STEM = "should-i-whiten"
_METHOD = (
    "Every correction of isoscope by cross-validation: fitted without labels or scores on training folds, "
    "and scored on what is held out. Scored pairs of sentences or words are graded tasks, ranked by cosine "
    "(Spearman's ρ); labels make a linear probe, 5 nearest neighbours, k-means (V-measure) and retrieval "
    "(mean average precision). A correction helps or hurts where its gain over none is significant at 5 % "
    "after Holm's adjustment over the corrections of a task, with an error that allows for folds sharing "
    "rows (Nadeau and Bengio 2003)."
)


def sections(outcomes: Sequence[Outcome], folder: Path | None = None) -> list[Section]:
    """What to do, the claims, what each correction gains, the scores of every data set, how it was done."""
    drawn, undrawn = in_folder(lambda place: draw_figures(outcomes, place), folder)
    claims = all_claims(outcomes)
    heads, cells = claims_table(claims)
    text = (
        "The papers say that graded similarity gains from isotropy and that labels lose by it. Intervals are "
        "over the data sets of a kind, which are few and not drawn at random. IsoScore is that of the data "
        "set's vectors under each correction."
    )
    found = [
        _advised(outcomes, drawn, undrawn),
        Section("Do the papers' claims hold?", text, _counted(claims), heads, cells, {}),
    ]
    for one in outcomes:
        found += [_gains(one), _scores(one)]
    found.append(_about())
    return found


def _advised(outcomes: Sequence[Outcome], drawn: dict[str, Path], undrawn: tuple[str, ...]) -> Section:
    heads = ("encoder", *GROUPS)
    cells = tuple((one.title, *(_advice(one, group) for group in GROUPS)) for one in outcomes)
    text = (
        "For each encoder and kind of task: of the corrections that help on some data set and hurt "
        f"on none, the one with the largest mean gain; where there is none, {LEAVE}. It is the best of ten "
        "on these very sets, so its gain is a little flattered."
    )
    return Section("What to do", text, undrawn, heads, cells, drawn)


def _advice(found: Outcome, group: str) -> str:
    if not any(tally(found, group, name).n for name in corrections_of(found)):
        return "—"
    best = best_of(found, group)
    if best is None:
        return LEAVE
    name, one = best
    return f"{name} {_signed(one.mean)} (helps on {one.n_helps} of {one.n})"


def _counted(claims: Sequence[Claim]) -> tuple[str, ...]:
    """How the claims fared, in a line each."""
    lines = []
    for claim in dict.fromkeys(one.claim for one in claims):
        same = [one for one in claims if one.claim == claim]
        parts = [
            f"{holding}: {', '.join(one.subject for one in same if one.holding is holding)}"
            for holding in Holding
            if any(one.holding is holding for one in same)
        ]
        lines.append(f"{claim[0].upper()}{claim[1:]} — {'; '.join(parts)}")
    return tuple(lines)


def _gains(found: Outcome) -> Section:
    heads = ("correction", "IsoScore", "mean cosine", *GROUPS)
    cells = tuple(
        (
            name,
            _mean_figure(found, name, "isoscore"),
            _mean_figure(found, name, "mean_cosine"),
            *("" if name == "none" else _counts(tally(found, group, name)) for group in GROUPS),
        )
        for name in ("none", *corrections_of(found))
    )
    about = found.about
    text = (
        "Mean gain over the data sets, and on how many the correction helps ▲ and hurts ▼; IsoScore and mean "
        f"cosine are means over the data sets. {found.setup.model}: {found.setup.note or 'own model'}; at "
        f"most {about['max_pairs']:,} pairs and {about['max_rows']:,} labelled texts of each set, "
        f"{about['folds']} folds × {about['repeats']} repeats, seed {about['seed']}."
    )
    return Section(f"{found.title}: gains", text, _left_out(found), heads, cells, {})


def _left_out(found: Outcome) -> tuple[str, ...]:
    lost = [f"{one.n_left} of {one.dataset.title}" for one in found.results if one.n_left]
    return (f"Left out, since no word of theirs is in the table: {', '.join(lost)}",) if lost else ()


def _scores(found: Outcome) -> Section:
    heads = ("data set", "task", "items", "none", f"gain of {WHITEN}", "best that helps", "hurt by")
    cells = []
    for result in found.results:
        for task in result.tasks:
            whitened = next((one for one in task.outcomes if one.correction == WHITEN), None)
            best = task.best
            cells.append(
                (
                    result.dataset.title,
                    task.task if result.dataset.kind == LABELS else "similarity",
                    f"{task.n_items:,}",
                    f"{task.baseline:.3f}",
                    "—" if whitened is None else _with_interval(whitened.gain, whitened.interval),
                    LEAVE
                    if best is None
                    else f"{best.correction} {_with_interval(best.gain, best.interval)}",
                    f"{len(task.hurting)} of {len(task.outcomes)}",
                )
            )
    text = "Scores without a correction, and gains over it with their 95 % intervals, each by itself."
    return Section(f"{found.title}: every data set", text, (), heads, tuple(cells), {})


def _about() -> Section:
    notes = tuple(f"{name}: {words}" for name, words in DESCRIPTIONS.items())
    text = (
        f"{_METHOD} "
        "Settings: d // 100 directions or dimensions taken out, at least 1; 8 clusters. Where the vectors do "
        "not span all dimensions, as MiniLM's do not, whitening shrinks the covariance (Ledoit and Wolf). "
        "For pairs, corrections are fitted on at most 5,000 of the sentences (or words) of all sets that are "
        "in no held-out pair, and for GloVe's words among its 20,000 most frequent as well; for labels, on "
        "the training folds. The linear probe is scaled by one number and chooses its penalty inside the "
        "training folds, so that a correction gains nothing by the scale of its output."
    )
    return Section("How it was done", text, notes, (), (), {})


def _mean_figure(found: Outcome, name: str, figure: str) -> str:
    values = [value for one in found.results if (value := one.geometry.get(name, {}).get(figure)) is not None]
    return f"{sum(values) / len(values):.3f}".replace("-", "−") if values else "—"


def _counts(one: Tally) -> str:
    if one.mean is None:
        return "—"
    return f"{_signed(one.mean)} ▲{one.n_helps} ▼{one.n_hurts} of {one.n}"


def _with_interval(gain: float | None, interval: tuple[float, float] | None) -> str:
    if gain is None or interval is None:
        return "—"
    return f"{_signed(gain)} ({_signed(interval[0])} … {_signed(interval[1])})"


def _signed(value: float | None) -> str:
    return "—" if value is None else f"{value:+.3f}".replace("-", "−")


def as_dict(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Claims and runs, unrounded, JSON-ready; the runs' own files have every score."""
    return {
        "answer": answer(outcomes),
        "claims": [claim.to_dict() for claim in all_claims(outcomes)],
        "runs": {one.setup.name: dict(one.about) for one in outcomes},
        "best": {
            one.setup.name: {group: (best_of(one, group) or (None,))[0] for group in GROUPS}
            for one in outcomes
        },
    }


def as_text(outcomes: Sequence[Outcome]) -> str:
    """For the terminal: each encoder, its best corrections and its claims."""
    claims = all_claims(outcomes)
    lines = [answer(outcomes), ""]
    for one in outcomes:
        lines.append(one.title)
        lines += [f"  {group}: {said}" for group in GROUPS if (said := _advice(one, group)) != "—"]
        lines += [
            f"  {claim.holding:<13}{claim.claim}: {claim.evidence}"
            for claim in claims
            if claim.subject == one.title
        ]
        lines.append("")
    return "\n".join(lines).rstrip()


def write_report(
    outcomes: Sequence[Outcome], folder: Path, *, command: str, page: Path | None = None
) -> list[Path]:
    """should-i-whiten.json, .md, .html and the figure; the .md elsewhere where `page` says so."""
    parts, intro = sections(outcomes, folder), answer(outcomes)
    written = write_pages(
        folder, STEM, title=TITLE, intro=intro, sections=parts, results=as_dict(outcomes), command=command
    )
    if page is None:
        return written
    text = as_markdown(TITLE, intro, parts, command=command)
    for section in parts:
        for path in section.figures.values():
            beside = Path(os.path.relpath(path, page.parent)).as_posix()
            text = text.replace(f"]({path.name})", f"]({beside})")
    own = folder / f"{STEM}.md"
    own.unlink()
    moved = write_atomically(page, lambda beside: beside.write_text(text, encoding="utf-8"))
    return [moved, *(path for path in written if path != own)]
