"""The figure of the frontier: spaces and training runs under the curve that none can pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import InputError
from isoscope.figures import INK, PALETTE, panels
from isoscope.metrics.frontier import frontier_curve, isotropy_ceiling
from isoscope.metrics.frontier_position import FrontierPosition
from isoscope.tracking.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLLOWED = ("between_share", "isoscore")  # of a run, to be drawn


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

    Across: ρ, the share of the variance between labels. Up: IsoScore. The shaded part cannot be reached by
    any space. A debiased position has its 95 % intervals; a dashed line goes up to what it could reach. A
    run is the mean over its seeds, from an open circle to a full one.

    Args:
        positions: of `frontier_position`, one or several, named or not.
        runs: trajectories of `train_embeddings` that followed between_share and isoscore, by name.
        n_labels, n_dims: K and d of the curve; from the first position or run where not given. Where others
            have another K or d, their own curve is drawn thinly.
        ax: axes to draw on; of a new figure where not given.
        path: where to write the figure (.png, .pdf, .svg).
        title: above the axes.
        dpi: of a .png.

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
    """The frontier of K labels in d dimensions, what lies beyond it shaded; of n points, dashed."""
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
    """The run, if it followed what is drawn of it, on the items it was trained on."""
    missing = [column for column in FOLLOWED if column not in run.columns]
    if missing:
        raise InputError(
            f"run {name} did not follow {' and '.join(missing)}; wanted one trained with "
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
    shares, scores = (run.curves(column).mean(axis=0) for column in FOLLOWED)
    known = ~(np.isnan(shares) | np.isnan(scores))
    shares, scores = shares[known], scores[known]
    axes.plot(shares, scores, color=color, linewidth=1.0, zorder=2, label=name)
    axes.plot(shares[:1], scores[:1], "o", color=color, markerfacecolor="white", markersize=4, zorder=3)
    axes.plot(shares[-1:], scores[-1:], "o", color=color, markersize=4, zorder=3)
