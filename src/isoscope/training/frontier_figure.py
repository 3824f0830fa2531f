"""Figures of spaces, training runs and trade-offs under the frontier, which no space can pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import InputError
from isoscope.figures import INK, PALETTE, figure_of, panels
from isoscope.metrics.frontier import frontier_curve, isotropy_ceiling
from isoscope.metrics.frontier_position import FrontierPosition
from isoscope.tracking.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    from isoscope.training.trade_off import TradeOff

RECORDED = ("between_share", "isoscore")  # the columns of a run that are drawn
_AXES = {
    "isoscore": "IsoScore",
    "between_share": "ρ, share of variance between labels",
    "cross_entropy": "cross-entropy",
}


def plot_against_frontier(
    positions: FrontierPosition | Sequence[FrontierPosition] | Mapping[str, FrontierPosition] = (),
    *,
    runs: Mapping[str, Trajectory] | None = None,
    n_labels: int | None = None,
    n_dims: int | None = None,
    ax: Axes | None = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    dpi: int = 200,
) -> Axes:
    """Draw the exact frontier with spaces and training runs under it.

    The horizontal axis is ρ, the share of the variance between labels; the vertical axis is IsoScore. No
    space can reach the shaded region. A debiased position has 95 % intervals, and a dashed line from it to
    the frontier. A run is drawn as the mean over its seeds, from an open circle to a filled one.

    Args:
        positions: one or several results of `frontier_position`; a mapping gives them names.
        runs: trajectories of `train_embeddings` that recorded between_share and isoscore, by name.
        n_labels, n_dims: K and d of the curve; by default those of the first position or run. Positions
            and runs with another K or d get a thin curve of their own.
        ax: axes to draw on; by default those of a new figure.
        path: file to write the figure to (.png, .pdf, .svg).
        title: title of the axes.
        dpi: resolution of a .png.

    >>> axes = plot_against_frontier(n_labels=10, n_dims=100)
    >>> axes.get_ylabel()
    'IsoScore'
    """
    placed = _named(positions)
    followed = {name: checked_run(run, name) for name, run in (runs or {}).items()}
    sizes = [(one.n_labels, one.n_dims) for one in placed.values()] + [
        _size(run) for run in followed.values()
    ]
    if n_labels is not None and n_dims is not None:
        sizes.insert(0, (n_labels, n_dims))
    if not sizes:
        raise InputError("there is nothing to draw; pass positions, runs, or n_labels and n_dims")
    with panels(1, 1, (4.2, 3.2), axes=ax, path=path, dpi=dpi) as (axes,):
        draw_curve(axes, *sizes[0])
        for size in dict.fromkeys(sizes[1:]):
            if size != sizes[0]:
                axes.plot(*frontier_curve(*size), color="#999999", linewidth=0.7, linestyle=":")
        colors = iter(PALETTE * (1 + len(sizes) // len(PALETTE)))
        for name, one in placed.items():
            _point(axes, one, name, next(colors))
        for name, run in followed.items():
            _run(axes, run, name, next(colors))
        if any(not label.startswith("_") for label in axes.get_legend_handles_labels()[1]):
            axes.legend(frameon=False, fontsize=7, loc="best")
        if title:
            axes.set_title(title)
    return axes


def draw_curve(axes: Axes, n_labels: int, n_dims: int, *, n_points: int | None = None) -> None:
    """Draw the frontier of K labels in d dimensions, shaded above; that of n points is dashed."""
    shares, ceilings = frontier_curve(n_labels, n_dims)
    axes.fill_between(shares, ceilings, 1.04, color="#e8e8e8", linewidth=0)
    axes.plot(shares, ceilings, color=INK, linewidth=1.2)
    if n_points is not None:
        fewer, lower = frontier_curve(n_labels, n_dims, n_points=n_points)
        if (lower < [isotropy_ceiling(n_labels, n_dims, between=share) - 1e-3 for share in fewer]).any():
            axes.plot(fewer, lower, color=INK, linewidth=0.8, linestyle="--")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.04)
    axes.set_xlabel(f"ρ, share of variance between {n_labels} labels ({n_dims} dimensions)")
    axes.set_ylabel("IsoScore")


def checked_run(run: Trajectory, name: str) -> Trajectory:
    """Return the run if the columns to draw were recorded, on the items it was trained on; else raise."""
    missing = [column for column in RECORDED if column not in run.columns]
    if missing:
        raise InputError(
            f"run {name} did not record {' and '.join(missing)}; train with "
            "metrics=('isoscore', 'silhouette', 'between_share') (isoscope train -m "
            "isoscore,silhouette,between_share)"
        )
    if run.configuration.get("n_columns", 1) > 1:
        raise InputError(
            f"run {name} trained pairs of vectors; the frontier is of labels on the vectors themselves"
        )
    return run


def _named(positions: Any) -> dict[str, FrontierPosition]:
    if isinstance(positions, FrontierPosition):
        return {"": positions}
    if isinstance(positions, Mapping):
        return dict(positions)
    listed = list(positions)
    return {f"space {place + 1}" if len(listed) > 1 else "": one for place, one in enumerate(listed)}


def _size(run: Trajectory) -> tuple[int, int]:
    return int(run.configuration["n_clusters"]), int(run.configuration["d"])


def _point(axes: Axes, one: FrontierPosition, name: str, color: str) -> None:
    share, score = one.between_share, one.isoscore
    errors = [None if se is None else 1.96 * se for se in (one.between_share_se, one.isoscore_se)]
    axes.plot([share, share], [score, one.ceiling], color=color, linewidth=0.7, linestyle="--", zorder=2)
    axes.errorbar(
        share, score, xerr=errors[0], yerr=errors[1], fmt="o" if one.debiased else "s", color=color,
        markersize=4, linewidth=0.8, capsize=1.5, zorder=3, label=name or None,
    )  # fmt: skip
    axes.set_xlim(min(axes.get_xlim()[0], share - 0.02), axes.get_xlim()[1])
    axes.set_ylim(axes.get_ylim()[0], max(axes.get_ylim()[1], score + 0.04))


def _run(axes: Axes, run: Trajectory, name: str, color: str) -> None:
    shares, scores = (run.curves(column).mean(axis=0) for column in RECORDED)
    known = ~(np.isnan(shares) | np.isnan(scores))
    shares, scores = shares[known], scores[known]
    axes.plot(shares, scores, color=color, linewidth=1.0, zorder=2, label=name)
    axes.plot(shares[:1], scores[:1], "o", color=color, markerfacecolor="white", markersize=4, zorder=3)
    axes.plot(shares[-1:], scores[-1:], "o", color=color, markersize=4, zorder=3)


def draw_trade_off(
    found: TradeOff,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    dpi: int = 200,
    axes: Any = None,
) -> Figure:
    """Draw the points under the frontier, and the two objectives against each other, in two panels.

    The colour is the weight of the first objective. The square is the original vectors. The line in the
    second panel is of spaces constructed on the frontier.

    Args:
        found: the trade-off.
        path: file to write the figure to (.png, .pdf, .svg, …).
        title: title above the panels.
        dpi: resolution of a .png.
        axes: two Axes to draw on; by default those of a new figure.
    """
    with panels(1, 2, (7.0, 2.9), axes=axes, path=path, title=title, dpi=dpi) as (left, right):
        draw_curve(left, found.n_labels, found.n_dims, n_points=found.n)
        _trade_off_points(left, found, "between_share", "isoscore")
        across, up = _pair(found)
        right.plot(
            found.frontier[across], found.frontier[up], color=INK, linewidth=1.0, label="on the frontier"
        )
        points = _trade_off_points(right, found, across, up)
        right.set_xlabel(_AXES.get(across, across))
        right.set_ylabel(_AXES.get(up, up))
        right.legend(frameon=False, fontsize=7, loc="best")
        bar = figure_of(left).colorbar(points, ax=[left, right], pad=0.01, aspect=30)
        bar.set_label(f"weight of {_AXES.get(found.objectives[0], found.objectives[0])}")
        bar.outline.set_visible(False)
    return figure_of(left)


def _pair(found: TradeOff) -> tuple[str, str]:
    """Return the objectives on the horizontal and the vertical axis; IsoScore is vertical."""
    first, second = found.objectives
    return (second, first) if second != "isoscore" else (first, second)


def _trade_off_points(axes: Axes, found: TradeOff, across: str, up: str) -> PathCollection:
    x, y = ([getattr(point, name) for point in found.points] for name in (across, up))
    axes.plot(
        getattr(found.start, across), getattr(found.start, up), "s", color=PALETTE[1], markersize=5, zorder=4,
        label="original vectors",
    )  # fmt: skip
    weights = [float(point.weight or 0) for point in found.points]
    return axes.scatter(x, y, c=weights, cmap="viridis", vmin=0, vmax=1, s=16, linewidths=0, zorder=3)
