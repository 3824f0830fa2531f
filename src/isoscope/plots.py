"""Plots for papers: each draws on the matplotlib Axes it is given, or on new ones, and returns them."""

from isoscope.compression.figure import plot_compression
from isoscope.models.layers.layer_figure import plot_layers
from isoscope.report.plots import (
    plot_cosines,
    plot_dimensions,
    plot_frontier,
    plot_scatter,
    plot_silhouette,
    plot_spectrum,
    plot_trajectory,
)
from isoscope.report.space_plots import plot_dimension_scales, plot_similarity
from isoscope.training.frontier_figure import plot_against_frontier

__all__ = [
    "plot_against_frontier",
    "plot_compression",
    "plot_cosines",
    "plot_dimension_scales",
    "plot_dimensions",
    "plot_frontier",
    "plot_layers",
    "plot_scatter",
    "plot_silhouette",
    "plot_similarity",
    "plot_spectrum",
    "plot_trajectory",
]
