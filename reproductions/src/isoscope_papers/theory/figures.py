"""The figures of the theory: the paper's figure 1, networks and trade-offs under the frontier, triplets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isoscope.figures import INK, PALETTE
from isoscope.plots import plot_against_frontier
from isoscope.training import TradeOff
from isoscope_papers.figures import Drawing
from isoscope_papers.theory.deep import DeepRun
from isoscope_papers.theory.run import Followed


def chord_figure() -> Drawing:
    """Return the paper's figure 1 beside the relation it stands for."""
    caption = "Chord and angle: the point with the shorter chord has the smaller angle"
    return Drawing(caption, "theory-chord", (6.2, 2.7), _chord, dpi=200)


def deep_figure(runs: Sequence[DeepRun]) -> Drawing:
    """Return the paths of networks on one data set, a panel a width."""
    data, widths = runs[0].data, len({run.width for run in runs})
    caption = f"{data}: the last hidden layer under the frontier, from start (open) to end, by depth"
    stem = f"theory-deep-{_stem(data)}"
    return Drawing(caption, stem, (3.5 * widths, 2.9), partial(_deep, runs), dpi=200)


def trade_figure(name: str, trade: TradeOff) -> Drawing:
    """Return what was reached for each weight; the trade-off draws a figure of its own."""
    caption = f"{name}: what was reached for each weight, under the exact frontier"
    return Drawing(caption, f"theory-trade-{_stem(name)}", (7.0, 2.9), lambda _: trade.figure(), dpi=200)


def followed_figure(runs: Sequence[Followed]) -> Drawing:
    """Return IsoScore and silhouette along training."""
    caption = "Vectors trained with a triplet loss and with a classifier, mean of the seeds"
    return Drawing(caption, "theory-triplet", (6.2, 2.4), partial(_followed, runs), dpi=200)


def _chord(figure: Figure) -> None:
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
    relation.set(xlabel="angle α, degrees", ylabel="chord, 2 sin(α/2)", xticks=range(0, 181, 45))
    relation.legend(fontsize=7, loc="lower right")


def _deep(runs: Sequence[DeepRun], figure: Figure) -> None:
    widths = list(dict.fromkeys(run.width for run in runs))
    for panel, width in zip(figure.subplots(1, len(widths), squeeze=False)[0], widths, strict=True):
        own = [run for run in runs if run.width == width]
        plot_against_frontier(n_labels=own[0].n_labels, n_dims=width, ax=panel)
        for run, color in zip(own, PALETTE, strict=False):
            line = (run.between_share, run.isoscore)
            panel.plot(*line, color=color, linewidth=1, label=f"depth {run.depth}")
            for place, face in ((0, "white"), (-1, color)):
                x, y = (values[place] for values in line)
                panel.plot(x, y, "o", color=color, markersize=4, markerfacecolor=face)
        panel.set_title(f"{width} dimensions", loc="center")
        panel.legend(fontsize=7)


def _followed(runs: Sequence[Followed], figure: Figure) -> None:
    panels: Any = figure.subplots(1, 2)
    for panel, label in zip(panels, ("IsoScore", "silhouette"), strict=True):
        for run, color in zip(runs, PALETTE, strict=False):
            panel.plot(run.steps, run.mean(label.lower()), color=color, label=run.objective)
        panel.set(xlabel="updates", ylabel=label)
        panel.margins(x=0)
    panels[0].legend(fontsize=7)


def _stem(name: str) -> str:
    """Return a name as part of a file's: letters and digits, dashes between.

    >>> _stem("5 supersenses, GloVe: cross_entropy")
    '5-supersenses-glove-cross-entropy'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
