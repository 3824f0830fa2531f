"""Axes to draw on: the caller's, or new ones in isoscope's style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoscope.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SINGLE = (3.4, 2.5)  # inches: one column of a paper


def axes_for(ax: Axes | None, *, inches: tuple[float, float] = SINGLE) -> Axes:
    """The caller's Axes, or those of a new figure (`ax.figure`)."""
    if ax is not None:
        return ax
    with new_figure(inches) as figure:
        return figure.subplots()
