"""The figure of a training run for papers: one column across updates. Axes in, Axes out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from isoscope.errors import InputError
from isoscope.figures import PALETTE
from isoscope.report.axes import axes_for
from isoscope.report.runs import load_run
from isoscope.tracking.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trajectory(
    run: str | os.PathLike[str] | Trajectory, *, metric: str = "isoscore", ax: Axes | None = None
) -> Axes:
    """One column of a run across its updates: the mean over seeds, from the lowest seed to the highest.

    Args:
        run: a Trajectory, or the folder of a run.
        metric: which column: a metric, "loss" or "accuracy".
        ax: where to draw; by default new Axes.

    >>> import numpy as np
    >>> columns = {"seed": np.array([0, 0]), "step": np.array([0, 1]), "loss": np.array([2.0, 1.0])}
    >>> plot_trajectory(Trajectory(columns, {}, 4), metric="loss").get_ylabel()
    'loss'
    """
    followed = load_run(run)
    if metric not in followed.columns:
        raise InputError(f"metric is {metric!r}; wanted one of {', '.join(followed.columns)}")
    values = followed.curves(metric)
    ax = axes_for(ax)
    if len(values) > 1:
        ax.fill_between(
            followed.steps, values.min(axis=0), values.max(axis=0), color=PALETTE[0], alpha=0.25, linewidth=0
        )
    ax.plot(followed.steps, values.mean(axis=0), color=PALETTE[0], linewidth=1.1)
    ax.set_xlabel("updates")
    ax.set_ylabel(metric.replace("_", " "))
    return ax
