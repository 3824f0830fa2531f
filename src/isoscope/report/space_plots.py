"""Plots of the intrinsic dimension over scales, and of similarities between spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.comparison.similarity import MEASURES, SimilarityMatrix
from isoscope.figures import PALETTE, axes_for, figure_of
from isoscope.metrics.scales import DimensionScales, dimension_scales
from isoscope.printable import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TICKS = 13  # on an axis
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


def plot_similarity(matrix: SimilarityMatrix, *, ax: Axes | None = None) -> Axes:
    """Plot a similarity matrix as a heat map, the first space at the bottom left.

    Args:
        matrix: what `similarity_matrix` or `layer_similarity` returned.
        ax: the Axes to draw on; by default those of a new figure.

    >>> from isoscope.comparison import similarity_matrix
    >>> import numpy as np
    >>> spaces = np.random.default_rng(0).normal(size=(3, 20, 4))
    >>> ax = plot_similarity(similarity_matrix(dict(zip("abc", spaces))))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['a', 'b', 'c']
    """
    ax = axes_for(ax)
    values = np.array([[np.nan if value is None else value for value in row] for row in matrix.values])
    low, high = MEASURES[matrix.measure][0]
    image = ax.imshow(values, origin="lower", cmap="viridis", vmin=max(low, 0.0), vmax=high)
    for axis, names in ((ax.xaxis, matrix.columns), (ax.yaxis, matrix.rows)):
        step = -(-len(names) // _MOST_TICKS)
        axis.set_ticks(range(0, len(names), step), [shortened(name, 16) for name in names[::step]])
    bar = figure_of(ax).colorbar(image, ax=ax, shrink=0.8)
    bar.set_label(matrix.measure, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return ax
