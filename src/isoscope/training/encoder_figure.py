"""Figures of a model's training: losses, scores, and the geometry by layer or along the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.figures import INK, PALETTE, figure_of, panels
from isoscope.training.state_geometry import ALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from isoscope.training.contrast import Contrasted
    from isoscope.training.finetune import FineTuned

_N_MEANS = 50  # points that a curve of losses is averaged to


def draw_finetuned(
    runs: Sequence[FineTuned], path: str | os.PathLike[str] | None = None, *, axes: Any = None
) -> Figure:
    """Draw the loss by update, the score by epoch and IsoScore* by layer, with one colour per run."""
    with panels(1, 3, (7.0, 2.35), axes=axes, path=path) as (loss, score, layers):
        from matplotlib.ticker import (
            MaxNLocator,
        )  # after `panels`, which raises a clear error without matplotlib

        for run, color in zip(runs, _colors(len(runs)), strict=True):
            steps, means = smoothed(run.loss)
            loss.plot(steps, means, color=color, lw=1, label=f"seed {run.configuration['seed']}")
            epochs = [row["epoch"] for row in run.epochs]
            score.plot(epochs, [row[run.metric] for row in run.epochs], "o-", color=color, lw=1, ms=3)
            rows = [row for row in run.geometry if row["layer"] != ALL]
            layers.plot(
                [r["layer"] for r in rows], [r["isoscore_star"] for r in rows], "o-", color=color, lw=1, ms=3
            )
        _name(loss, "update", "loss")
        for panel in (score, layers):
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        _name(score, "epoch", f"{runs[0].metric}, test texts")
        _name(layers, "layer", "IsoScore*, test states")
        if len(runs) > 1:
            loss.legend(frameon=False, fontsize=6)
    return figure_of(loss)


def draw_contrasted(
    run: Contrasted, path: str | os.PathLike[str] | None = None, *, axes: Any = None
) -> Figure:
    """Draw the loss and each recorded metric by update, four panels in a row."""
    names = [name for name in run.trajectory.metrics if name != "epoch"]
    n_columns = min(4, len(names) + 1)
    n_rows = -(-(len(names) + 1) // n_columns)
    with panels(n_rows, n_columns, (7.0, 1.9 * n_rows), axes=axes, path=path) as drawn:
        drawn[0].plot(*smoothed(run.loss), color=INK, lw=1)
        _name(drawn[0], "update", "loss")
        for panel, name, color in zip(drawn[1:], names, _colors(len(names)), strict=False):
            panel.plot(run.trajectory["step"], run.trajectory[name], color=color, lw=1)
            _name(panel, "update", name.replace("_", " "))
        for panel in drawn[len(names) + 1 :]:
            panel.set_axis_off()
    return figure_of(drawn[0])


def smoothed(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean updates and mean losses of about fifty segments of a curve.

    >>> smoothed(np.arange(4.0))
    (array([1., 2., 3., 4.]), array([0., 1., 2., 3.]))
    """
    parts = np.array_split(np.asarray(losses), min(_N_MEANS, len(losses)))
    steps = np.array_split(np.arange(1, len(losses) + 1), len(parts))
    return np.array([part.mean() for part in steps]), np.array([part.mean() for part in parts])


def _colors(n: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(n)]


def _name(panel: Axes, x: str, y: str) -> None:
    panel.set_xlabel(x)
    panel.set_ylabel(y)
