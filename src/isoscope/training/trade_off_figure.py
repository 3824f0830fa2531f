"""The figure of a trade-off: points under the exact frontier, and one objective against the other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from isoscope.figures import INK, PALETTE, figure_of, panels
from isoscope.training.frontier_figure import draw_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    from isoscope.training.trade_off_result import TradeOff

_SHOWN = {
    "isoscore": "IsoScore",
    "between_share": "ρ, share of variance between labels",
    "cross_entropy": "cross-entropy",
}


def draw(
    found: TradeOff,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    dpi: int = 200,
    axes: Any = None,
) -> Figure:
    """Two panels: where the points lie under the frontier, and what the second objective has at an IsoScore.

    Coloured by the weight of the first objective. The square is the vectors as they came. In the second panel
    the line is of spaces built on the frontier.

    Args:
        found: the trade-off.
        path: where to write it (.png, .pdf, .svg, …); only returned where not given.
        title: above the panels.
        dpi: of a .png.
        axes: two Axes to draw on; those of a new figure where not given.
    """
    with panels(1, 2, (7.0, 2.9), axes=axes, path=path, title=title, dpi=dpi) as (left, right):
        draw_curve(left, found.n_labels, found.n_dims, n_points=found.n)
        _points(left, found, "between_share", "isoscore")
        across, up = _pair(found)
        right.plot(
            found.frontier[across], found.frontier[up], color=INK, linewidth=1.0, label="on the frontier"
        )
        points = _points(right, found, across, up)
        right.set_xlabel(_SHOWN.get(across, across))
        right.set_ylabel(_SHOWN.get(up, up))
        right.legend(frameon=False, fontsize=7, loc="best")
        bar = figure_of(left).colorbar(points, ax=[left, right], pad=0.01, aspect=30)
        bar.set_label(f"weight of {_SHOWN.get(found.objectives[0], found.objectives[0])}")
        bar.outline.set_visible(False)
    return figure_of(left)


def _pair(found: TradeOff) -> tuple[str, str]:
    """What goes across and up in the second panel: IsoScore up, where it is one of the two."""
    first, second = found.objectives
    return (second, first) if second != "isoscore" else (first, second)


def _points(axes: Axes, found: TradeOff, across: str, up: str) -> PathCollection:
    x, y = ([getattr(point, name) for point in found.points] for name in (across, up))
    axes.plot(
        getattr(found.start, across), getattr(found.start, up), "s", color=PALETTE[1], markersize=5, zorder=4,
        label="as they came",
    )  # fmt: skip
    weights = [float(point.weight or 0) for point in found.points]
    return axes.scatter(x, y, c=weights, cmap="viridis", vmin=0, vmax=1, s=16, linewidths=0, zorder=3)
