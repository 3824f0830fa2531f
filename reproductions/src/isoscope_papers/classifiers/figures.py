"""The figures of the classifier experiments in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from isoscope.figures import INK, PALETTE
from isoscope_papers.classifiers.run import Outcome
from isoscope_papers.figures import Drawing

_MOST_POINTS = 400  # along a curve; more are not seen
_KINDS = (("(a)", "silhouette", "silhouette"), ("(b)", "isoscore", "log₁₀ IsoScore"))


def main_figures(outcomes: Sequence[Outcome]) -> tuple[Drawing, ...]:
    """Return the paper's figures 2 and 3."""
    caption = "Silhouette and IsoScore across training, mean of the seeds (the paper's figure 2)"
    return (
        Drawing(caption, "figure-2", (7.0, 2.6), partial(_curves, outcomes)),
        _relations(
            "Silhouette against IsoScore, mean of the seeds (the paper's figure 3)", "figure-3", outcomes
        ),
    )


def exception_figures(outcomes: Sequence[Outcome]) -> tuple[Drawing, ...]:
    """Return the setups in which r is positive, and those that show why."""
    caption = (
        "The same words as they are, at mean length 1, and with one label each: silhouette against "
        "IsoScore, mean of the seeds"
    )
    return (_relations(caption, "figure-exception", outcomes),)


def glue_figures(outcomes: Sequence[Outcome]) -> tuple[Drawing, ...]:
    """Return the paper's figure 4, one for each encoder."""
    return tuple(
        Drawing(
            f"GLUE with {encoder}: silhouette and IsoScore across training (the paper's figure 4)",
            f"figure-4-{encoder}",
            (7.0, 2.6),
            partial(_curves, [one for one in outcomes if one.encoder == encoder]),
        )
        for encoder in dict.fromkeys(one.encoder for one in outcomes)
    )


def _curves(outcomes: Sequence[Outcome], figure: Figure) -> None:
    """Draw (a) the silhouette and (b) the logarithm of IsoScore, one line a setup."""
    panels = figure.subplots(1, 2)
    for panel, (title, name, label) in zip(panels, _KINDS, strict=True):
        for outcome, color in zip(outcomes, cycle(PALETTE), strict=False):
            _curve(panel, outcome, name, color)
        panel.set(xlabel="updates", ylabel=label)
        panel.set_title(title, fontweight="bold")
        panel.margins(x=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")


def _curve(panel: Axes, outcome: Outcome, name: str, color: str) -> None:
    run = outcome.trajectory
    curves = np.log10(run.curves(name)) if name == "isoscore" else run.curves(name)
    if len(curves) > 1:
        panel.fill_between(
            run.steps, curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.25, linewidth=0
        )
    if f"{name}_low" in run.columns:
        low, high = (run.curves(f"{name}_{end}").mean(axis=0) for end in ("low", "high"))
        panel.fill_between(run.steps, low, high, color=INK, alpha=0.2, linewidth=0)
    panel.plot(run.steps, curves.mean(axis=0), color=color, label=outcome.setup.title)


def _relations(caption: str, stem: str, outcomes: Sequence[Outcome]) -> Drawing:
    """Return one panel a setup, four in a row: each point an update, its colour how early it is."""
    n_columns = min(len(outcomes), 4)
    n_rows = -(-len(outcomes) // n_columns)

    def draw(figure: Figure) -> None:
        panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
        for panel, outcome in zip(panels, outcomes, strict=False):
            _relation(panel, outcome)
        for panel in panels[len(outcomes) :]:
            panel.set_visible(False)

    return Drawing(caption, stem, ((1.75 if n_columns == 4 else 2.3) * n_columns, 2.1 * n_rows), draw)


def _relation(panel: Axes, outcome: Outcome) -> None:
    mean = outcome.trajectory.mean()
    some = np.unique(np.linspace(0, len(mean["step"]) - 1, _MOST_POINTS).astype(int))
    x, y, steps = (mean[name][some] for name in ("isoscore", "silhouette", "step"))
    panel.scatter(x, y, c=steps, cmap="viridis", norm=PowerNorm(0.5), s=6, linewidths=0, rasterized=True)
    r = next(row for row in outcome.rows() if row.quantity == "r").ours
    panel.set_title(outcome.setup.title + ("" if r is None else f"\n$r$ = {r:.3f}"), loc="center")
    panel.set(xlabel="IsoScore", ylabel="silhouette")
    panel.locator_params(nbins=3)
