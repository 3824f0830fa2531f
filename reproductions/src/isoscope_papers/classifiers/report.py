"""What comes out of the classifier experiments: a table for the terminal, figures, JSON, and pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isoscope_papers.classifiers.figures import beside_the_rule, draw_figures
from isoscope_papers.classifiers.run import Outcome
from isoscope_papers.pages import Section, in_folder, make_folder, table, write_pages
from isoscope_papers.verdicts import Verdict

TITLE = "Isotropy, Clusters, and Classifiers: reproduced"
_INTRO = (
    "Vectors and a linear classifier are trained together, full batch, while IsoScore and silhouette are "
    "taken (Mickus, Grönroos and Attieh 2024: at every update, with five seeds). Each cell is our figure, "
    "and the paper's in brackets: "
    "✓ reproduced (r within 0.003; ρ on the stated side of its bound; counts equal), ✗ not, ≠ other data, "
    "vectors or protocol than the paper's, so not comparable. Correlations are those of the curves averaged "
    "over the seeds, with the plain IsoScore."
)
_PARTS = {
    "main": ("Section 3: four setups", ""),
    "exception": (
        "The exception: more labels than dimensions",
        "Collapsed labels leave IsoScore at most the ceiling (K − 2)/(d − 1), or 1 from K = d + 1 labels on: "
        "there, clusters and isotropy can be had together, and r need not be negative. The same words with "
        "one label each stay under a low ceiling.",
    ),
    "glue": (
        "Appendix A: GLUE",
        "Sets over 20,000 items are measured on a fresh sample at each update. What is "
        "published of those fits only where the start, before the first update, is left out of the "
        "correlation; the paper does not say so. Another column has r with the start.",
    ),
}


_FIGURES = {"main": ("figure-2", "figure-3"), "exception": ("figure-exception",), "glue": ("figure-4",)}


def sections(outcomes: Sequence[Outcome], folder: Path | None = None) -> list[Section]:
    """One section a part of the paper, with its figures where a folder is given."""
    drawn, undrawn = in_folder(lambda place: draw_figures(outcomes, place), folder)
    found = []
    for part, (title, text) in _PARTS.items():
        of_part = [outcome for outcome in outcomes if outcome.setup.part == part]
        some = beside_the_rule(outcomes) if part == "exception" else of_part
        if not some:
            continue
        heads, cells = _ceilings(some) if part == "exception" else table([r for o in some for r in o.rows()])
        figures = {caption: path for caption, path in drawn.items() if path.name.startswith(_FIGURES[part])}
        text = " ".join(part for part in (_protocol(some), text) if part)
        found.append(Section(title, text, (*_notes(some), *undrawn), heads, cells, figures))
    return found


def _protocol(outcomes: Sequence[Outcome]) -> str:
    """How the runs of a section were made, from the runs themselves."""
    settings = [outcome.trajectory.configuration for outcome in outcomes]
    updates, every = ({found[key] for found in settings} for key in ("steps", "every"))
    seeds = {len(found["seeds"]) for found in settings}
    devices = {str(found["device"]).partition(":")[0] for found in settings}
    measured = "every update" if every == {1} else f"every {_listed(every)} updates"
    return (
        f"{_listed(updates)} updates, {_listed(seeds)} seeds, measured at {measured}, on {_listed(devices)}; "
        "seconds, where noted, are of all seeds, metrics included."
    )


def _listed(values: set[Any]) -> str:
    return " or ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in sorted(values))


def _notes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Where the texts came from, and what departs from the paper."""
    return tuple(
        dict.fromkeys(
            f"{o.setup.title}: {o.source}" + (f"; {o.setup.note}" if o.setup.note else "") for o in outcomes
        )
    )


def _ceilings(outcomes: Sequence[Outcome]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Labels, dimensions, ceiling and correlation: why the sign turns."""
    cells = []
    for outcome in outcomes:
        K, d, ceiling = outcome.ceiling()
        values = {row.quantity: row.ours_shown for row in outcome.rows()}
        ends = (
            f"{values[f'{name}, start']} → {values[f'{name}, end']}" for name in ("silhouette", "isoscore")
        )
        cells.append((outcome.title, f"{K:,}", str(d), f"{ceiling:.3f}", values["r"], *ends))
    heads = ("setup", "label sets K", "dimensions d", "ceiling of IsoScore", "r", "silhouette", "IsoScore")
    return heads, tuple(cells)


def as_dict(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, unrounded, JSON-ready."""
    return {
        "rows": [row.to_dict() for outcome in outcomes for row in outcome.rows()],
        "runs": {
            outcome.title: {
                "source": outcome.source,
                "configuration": dict(outcome.trajectory.configuration),
            }
            for outcome in outcomes
        },
    }


def as_text(outcomes: Sequence[Outcome]) -> str:
    """A line a quantity that the paper reports, for the terminal."""
    lines = []
    for outcome in outcomes:
        lines.append(f"{outcome.title}  ({outcome.source})")
        if outcome.sampled:
            lines.append(f"  sampled: {outcome.sampled}")
        for row in outcome.rows():
            theirs = "" if row.verdict is Verdict.UNPUBLISHED else f"paper {row.published_shown:>12}"
            verdict = "" if row.verdict is Verdict.UNPUBLISHED else str(row.verdict)
            lines.append(f"  {row.quantity:<20}{row.ours_shown:>12}   {theirs:<20}{verdict}".rstrip())
        lines.append("")
    return "\n".join(lines).rstrip()


def write_report(outcomes: Sequence[Outcome], folder: Path, *, command: str) -> list[Path]:
    """classifiers.json, classifiers.md, classifiers.html and the figures."""
    make_folder(folder)
    found = sections(outcomes, folder)
    return write_pages(
        folder, "classifiers", title=TITLE, intro=_INTRO, sections=found, results=as_dict(outcomes),
        command=command,
    )  # fmt: skip
