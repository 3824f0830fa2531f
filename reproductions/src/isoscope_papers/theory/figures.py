"""The figures of the theory: the paper's figure 1, networks and trade-offs under the frontier, triplets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope import TradeOff, plot_against_frontier
from isoscope.figures import INK, PALETTE, new_figure, save_figure
from isoscope_papers.theory.deep import DeepRun
from isoscope_papers.theory.run import Followed, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_figures(runs: Sequence[Run], folder: Path) -> dict[str, Path]:
    """Write the figures that the runs allow, and return their paths by caption."""
    drawn = {}
    for run in runs:
        if "figure_chord" in run.held:
            drawn["Chord and angle: the point with the shorter chord has the smaller angle"] = _chord(
                folder / "theory-chord.png"
            )
        if run.deep:
            data = run.deep[0].data
            caption = f"{data}: the last hidden layer under the frontier, from start (open) to end, by depth"
            drawn[caption] = _deep(run.deep, folder / f"theory-deep-{_stem(data)}.png")
        for name, trade in run.trades.items():
            path = folder / f"theory-trade-{_stem(name)}.png"
            TradeOff.from_dict(trade).figure(path)
            drawn[f"{name}: what was reached for each weight, under the exact frontier"] = path
        if run.followed:
            caption = "Vectors trained with a triplet loss and with a classifier, mean of the seeds"
            drawn[caption] = _followed(run.followed, folder / "theory-triplet.png")
    return drawn


def _chord(path: Path) -> Path:
    """Draw the paper's figure 1 beside the relation it stands for."""
    with new_figure((6.2, 2.7)) as figure:
        circle, relation = figure.subplots(1, 2)
        turns = np.linspace(0, 2 * math.pi, 200)
        circle.plot(np.cos(turns), np.sin(turns), color="#999999", linewidth=0.8)
        circle.plot([0, 1], [0, 0], color=INK, linewidth=0.8)
        circle.plot(1, 0, "o", color=INK, markersize=4)
        circle.annotate("1", (1, 0), (5, -2), textcoords="offset points")
        angles = np.linspace(0, math.pi, 100)
        relation.plot(np.degrees(angles), 2 * np.sin(angles / 2), color=INK, linewidth=1)
        for name, degrees, radius, color in (("A", 35, 0.28, PALETTE[0]), ("B", 80, 0.18, PALETTE[1])):
            angle = math.radians(degrees)
            x, y, chord = math.cos(angle), math.sin(angle), 2 * math.sin(angle / 2)
            circle.plot([0, x], [0, y], color=color, linewidth=0.8)
            circle.plot([1, x], [0, y], color=color, linewidth=1.6)
            circle.plot(x, y, "o", color=color, markersize=4)
            circle.annotate(name, (x, y), (4, 4), textcoords="offset points", color=color)
            arc = np.linspace(0, angle, 50)
            circle.plot(radius * np.cos(arc), radius * np.sin(arc), color=color, linewidth=0.8)
            label = f"{name}: angle {degrees}°, chord {chord:.2f}"
            relation.plot(degrees, chord, "o", color=color, markersize=4, label=label)
        circle.set_aspect("equal")
        circle.axis("off")
        relation.set_xlabel("angle α, degrees")
        relation.set_ylabel("chord, 2 sin(α/2)")
        relation.set_xticks(range(0, 181, 45))
        relation.legend(frameon=False, fontsize=7, loc="lower right")
        save_figure(figure, path.with_suffix(".pdf"))
        return save_figure(figure, path, dpi=200)


def _deep(runs: Sequence[DeepRun], path: Path) -> Path:
    widths = list(dict.fromkeys(run.width for run in runs))
    with new_figure((3.5 * len(widths), 2.9)) as figure:
        for panel, width in zip(figure.subplots(1, len(widths), squeeze=False)[0], widths, strict=True):
            own = [run for run in runs if run.width == width]
            plot_against_frontier(n_labels=own[0].n_labels, n_dims=width, ax=panel)
            for run, color in zip(own, PALETTE, strict=False):
                line = (run.between_share, run.isoscore)
                panel.plot(*line, color=color, linewidth=1, label=f"depth {run.depth}")
                for place, face in ((0, "white"), (-1, color)):
                    x, y = (values[place] for values in line)
                    panel.plot(x, y, "o", color=color, markersize=4, markerfacecolor=face)
            panel.set_title(f"{width} dimensions", color=INK)
            panel.legend(frameon=False, fontsize=7)
        return save_figure(figure, path, dpi=200)


def _followed(runs: Sequence[Followed], path: Path) -> Path:
    """Draw IsoScore and silhouette along training."""
    with new_figure((6.2, 2.4)) as figure:
        panels: Sequence[Axes] = figure.subplots(1, 2)
        for panel, name, label in zip(
            panels, ("isoscore", "silhouette"), ("IsoScore", "silhouette"), strict=True
        ):
            for run, color in zip(runs, PALETTE, strict=False):
                panel.plot(run.steps, run.mean(name), color=color, linewidth=1.2, label=run.objective)
            panel.set_xlabel("updates")
            panel.set_ylabel(label)
            panel.margins(x=0)
        panels[0].legend(frameon=False, fontsize=7)
        save_figure(figure, path.with_suffix(".pdf"))
        return save_figure(figure, path, dpi=200)


def _stem(name: str) -> str:
    """Return a name as part of a file's: letters and digits, dashes between.

    >>> _stem("5 supersenses, GloVe: cross_entropy")
    '5-supersenses-glove-cross-entropy'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
