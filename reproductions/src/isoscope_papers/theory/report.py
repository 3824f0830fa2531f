"""What the experiments on the theory come to: text for the terminal, figures, JSON and pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isoscope.figures import INK, PALETTE, new_figure, save_figure
from isoscope.training.frontier_figure import draw_curve
from isoscope_papers.claims import Claim, claims_table
from isoscope_papers.pages import Section, in_folder, write_pages
from isoscope_papers.theory.deep_classifiers import DeepRun, deep_claims
from isoscope_papers.theory.equations import STATEMENTS
from isoscope_papers.theory.run import N_CASES, Findings

TITLE = "Isotropy, clusters and classifiers: the theory, tested"
_INTRO = (
    "Every statement of Mickus, Grönroos and Attieh 2024 checked on random cases, their conjecture on deep "
    "classifiers put to the test, and what isotropy and clusters can have at once on real embeddings. The "
    "statements, verdicts and proofs are on the page on theory."
)


def sections(found: Findings, folder: Path | None = None) -> list[Section]:
    """Statements, networks, trade-offs; with figures in a folder."""
    drawn, undrawn = in_folder(lambda place: draw_figures(found, place), folder)
    deep = {caption: path for caption, path in drawn.items() if path.name.startswith("theory-deep")}
    parts = [
        _statement_section(found),
        _claim_section(deep_claims(found.deep), (*found.notes, *undrawn), deep),
        _deep_section(found.deep),
    ]
    for name, one in found.trades.items():
        heads, cells = one.table()
        text = (
            f"{one.n} vectors, {one.n_labels} labels, {one.n_dims} dimensions, moved for {one.objectives[0]} "
            f"and {one.objectives[1]} at once ({one.configuration['scalarization']}, "
            f"{one.configuration['steps']} steps). No point can pass the frontier of so many points; "
            "`distance` says how near it came."
        )
        figures = {caption: path for caption, path in drawn.items() if caption.startswith(f"{name}:")}
        parts.append(Section(f"Traded: {name}", text, (), heads, cells, figures))
    return parts


def _statement_section(found: Findings) -> Section:
    cells = tuple(
        (one.key, one.where, str(one.truth), f"{found.held[one.key]} of {N_CASES}") for one in STATEMENTS
    )
    text = "Random cases in which what the verdict says was so; what is false has its counterexample too."
    return Section("The statements", text, (), ("statement", "where", "verdict", "cases"), cells, {})


def _claim_section(claims: Sequence[Claim], notes: tuple[str, ...], figures: dict[str, Path]) -> Section:
    heads, cells = claims_table(claims)
    text = (
        "Networks of 1 to 5 hidden layers of ReLU units, trained full batch by Adam on fixed vectors; means "
        "over seeds, which are no spaces themselves: the frontier is not concave, and a mean may lie above "
        "it. With fewer dimensions than labels (d ≤ K − 1) the frontier asks for no anisotropy."
    )
    return Section("Deep classifiers", text, notes, heads, cells, figures)


def _deep_section(runs: Sequence[DeepRun]) -> Section:
    heads = (
        "on",
        "width",
        "depth",
        "accuracy",
        "ρ",
        "IsoScore, start",
        "end",
        "ceiling at ρ",
        "simplex",
        "scores",
    )
    cells = tuple(
        (
            run.data, str(run.width), str(run.depth), f"{run.accuracy[-1]:.3f}",
            f"{run.between_share[-1]:.3f}", f"{run.isoscore[0]:.3f}", f"{run.isoscore[-1]:.3f}",
            f"{run.ceiling:.3f}", f"{run.simplex:.3f}", f"{run.score_isoscore[-1]:.3f}",
        )
        for run in runs
    )  # fmt: skip
    text = (
        "The last hidden layer at the end of training. The ceiling is the largest IsoScore at its ρ, the "
        "simplex that of collapsed labels; the last column is the IsoScore of the K scores."
    )
    return Section("The last hidden layer", text, (), heads, cells, {})


def draw_figures(found: Findings, folder: Path) -> dict[str, Path]:
    """By caption: networks of each kind under the frontier, and a figure for each trade-off."""
    drawn = {}
    for data in dict.fromkeys(run.data for run in found.deep):
        own = [run for run in found.deep if run.data == data]
        path = _draw_deep(own, folder / f"theory-deep-{_stem(data)}.png")
        drawn[f"{data}: the last hidden layer under the frontier, from start (open) to end, by depth"] = path
    for name, one in found.trades.items():
        path = folder / f"theory-trade-{_stem(name)}.png"
        one.figure(path)
        drawn[f"{name}: what was reached for each weight, under the exact frontier"] = path
    return drawn


def _draw_deep(runs: Sequence[DeepRun], path: Path) -> Path:
    widths = list(dict.fromkeys(run.width for run in runs))
    with new_figure((3.5 * len(widths), 2.9)) as figure:
        for panel, width in zip(figure.subplots(1, len(widths), squeeze=False)[0], widths, strict=True):
            own = [run for run in runs if run.width == width]
            draw_curve(panel, own[0].n_labels, width)
            for run, color in zip(own, PALETTE, strict=False):
                panel.plot(
                    run.between_share, run.isoscore, color=color, linewidth=1, label=f"depth {run.depth}"
                )
                panel.plot(
                    run.between_share[0],
                    run.isoscore[0],
                    "o",
                    color=color,
                    markersize=4,
                    markerfacecolor="white",
                )
                panel.plot(run.between_share[-1], run.isoscore[-1], "o", color=color, markersize=4)
            panel.set_title(f"{width} dimensions", color=INK)
            panel.legend(frameon=False, fontsize=7)
        return save_figure(figure, path, dpi=200)


def _stem(name: str) -> str:
    """A name as part of a file's: letters and digits, dashes between.

    >>> _stem("5 supersenses, GloVe: cross_entropy")
    '5-supersenses-glove-cross-entropy'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def as_text(found: Findings) -> str:
    """A few lines for the terminal."""
    short = [one.key for one in STATEMENTS if found.held[one.key] < N_CASES]
    lines = [
        f"statements: {len(STATEMENTS) - len(short)} of {len(STATEMENTS)} held in all {N_CASES} random cases"
    ]
    lines += [
        f"  {claim.shown}: {claim.claim} ({claim.subject}): {claim.evidence}"
        for claim in deep_claims(found.deep)
    ]
    for name, one in found.trades.items():
        lines += ["", name, one.summary()]
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes)])


def write_report(found: Findings, folder: Path, *, command: str) -> list[Path]:
    """theory.json, theory.md, theory.html and their figures."""
    return write_pages(
        folder, "theory", title=TITLE, intro=_INTRO, sections=sections(found, folder),
        results=found.to_dict(), command=command,
    )  # fmt: skip
