"""The figures of the classifier experiments in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope.figures import INK, PALETTE, new_figure, save_figure
from isoscope_papers.classifiers.run import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_POINTS = 400  # along a curve; more are not seen


def draw_figures(outcomes: Sequence[Outcome], folder: Path) -> dict[str, Path]:
    """Write the figures the outcomes allow, as .png and .pdf: where each .png lies, by its caption."""
    drawn = {}
    main = [outcome for outcome in outcomes if outcome.setup.part == "main"]
    if main:
        caption = "Silhouette and IsoScore across training, mean of the seeds (the paper's figure 2)"
        drawn[caption] = _curves(main, folder / "figure-2")
        caption = "Silhouette against IsoScore, mean of the seeds (the paper's figure 3)"
        drawn[caption] = _relations(main, folder / "figure-3")
    exception = beside_the_rule(outcomes)
    if exception:
        caption = (
            "The same words as they are, at mean length 1, and with one label each: silhouette against "
            "IsoScore, mean of the seeds"
        )
        drawn[caption] = _relations(exception, folder / "figure-exception")
    for encoder in dict.fromkeys(outcome.encoder for outcome in outcomes if outcome.setup.part == "glue"):
        glue = [o for o in outcomes if o.setup.part == "glue" and o.encoder == encoder]
        caption = f"GLUE with {encoder}: silhouette and IsoScore across training (the paper's figure 4)"
        drawn[caption] = _curves(glue, folder / f"figure-4-{encoder}")
    return drawn


def beside_the_rule(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The exception with the setup it stands beside; none where it was not run."""
    found = [o for o in outcomes if o.setup.part == "exception" or o.setup.name == "supersense"]
    return found if any(o.setup.part == "exception" for o in found) else []


def _curves(outcomes: Sequence[Outcome], stem: Path) -> Path:
    """(a) the silhouette and (b) the logarithm of IsoScore, one line a setup."""
    with new_figure((7.0, 2.6)) as figure:
        left, right = figure.subplots(1, 2)
        for panel, name, label in ((left, "silhouette", "silhouette"), (right, "isoscore", "log₁₀ IsoScore")):
            for place, outcome in enumerate(outcomes):
                _curve(panel, outcome, name, PALETTE[place % len(PALETTE)])
            panel.set_xlabel("updates")
            panel.set_ylabel(label)
            panel.margins(x=0)
        left.set_title("(a)", loc="left", fontweight="bold", color=INK)
        right.set_title("(b)", loc="left", fontweight="bold", color=INK)
        lines, labels = left.get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside right center", frameon=False, fontsize=7.5)
        return _save(figure, stem)


def _curve(panel: Axes, outcome: Outcome, name: str, color: str) -> None:
    run = outcome.trajectory
    curves = np.log10(run.curves(name)) if name == "isoscore" else run.curves(name)
    if len(curves) > 1:
        panel.fill_between(
            run.steps, curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.25, linewidth=0
        )
    if f"{name}_low" in run.columns:
        low, high = run.curves(f"{name}_low").mean(axis=0), run.curves(f"{name}_high").mean(axis=0)
        panel.fill_between(run.steps, low, high, color=INK, alpha=0.2, linewidth=0)
    panel.plot(run.steps, curves.mean(axis=0), color=color, linewidth=1.2, label=outcome.setup.title)


def _relations(outcomes: Sequence[Outcome], stem: Path) -> Path:
    """One panel a setup: each point an update, its colour how early it is."""
    n_columns = min(len(outcomes), 4)
    n_rows = -(-len(outcomes) // n_columns)
    with new_figure(((1.75 if n_columns == 4 else 2.3) * n_columns, 2.1 * n_rows)) as figure:
        panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
        for panel, outcome in zip(panels, outcomes, strict=False):
            _relation(panel, outcome)
        for panel in panels[len(outcomes) :]:
            panel.set_visible(False)
        return _save(figure, stem)


def _relation(panel: Axes, outcome: Outcome) -> None:
    from matplotlib.colors import PowerNorm

    mean = outcome.trajectory.mean()
    some = np.unique(np.linspace(0, len(mean["step"]) - 1, _MOST_POINTS).astype(int))
    x, y, steps = (mean[name][some] for name in ("isoscore", "silhouette", "step"))
    panel.scatter(x, y, c=steps, cmap="viridis", norm=PowerNorm(0.5), s=6, linewidths=0, rasterized=True)
    r = next(row for row in outcome.rows() if row.quantity == "r")
    panel.set_title(
        f"{outcome.setup.title}\n$r$ = {r.ours:.3f}" if r.ours is not None else outcome.setup.title
    )
    panel.set_xlabel("IsoScore")
    panel.set_ylabel("silhouette")
    panel.locator_params(nbins=3)


def _save(figure: Figure, stem: Path) -> Path:
    """Write stem.pdf for a paper and stem.png for a page; where the latter lies."""
    for suffix in (".pdf", ".png"):
        path = save_figure(figure, stem.with_name(stem.name + suffix))
    return path
