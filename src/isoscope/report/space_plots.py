"""Plots of the intrinsic dimension over scales, and of similarities between spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoscope.figures import PALETTE, axes_for
from isoscope.metrics.scales import DimensionScales, dimension_scales

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_METHODS = {"gride": "Gride", "correlation_dimension": "correlation dimension"}


def plot_dimension_scales(X: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the intrinsic dimension against the distance at which it is measured, with standard errors.

    Args:
        X: (n, d) vectors in any array, or what `dimension_scales` returned.
        ax: the Axes to draw on; by default those of a new figure.

    >>> import numpy as np
    >>> ax = plot_dimension_scales(np.random.default_rng(0).uniform(size=(200, 2)))
    >>> ax.get_xlabel(), ax.get_legend_handles_labels()[1]
    ('distance', ['Gride', 'correlation dimension'])
    """
    scales = X if isinstance(X, DimensionScales) else dimension_scales(X)
    ax = axes_for(ax)
    for color, (method, label) in zip(PALETTE, _METHODS.items(), strict=False):
        points = scales.of_method(method)
        if points:
            columns = [(one.distance, one.value, one.standard_error or 0.0) for one in points]
            distances, values, errors = zip(*columns, strict=True)
            ax.errorbar(distances, values, yerr=errors, color=color, label=label, linewidth=1, marker=".")
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("distance")
    ax.set_ylabel("intrinsic dimension")
    ax.legend(frameon=False)
    return ax
