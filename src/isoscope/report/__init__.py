"""A space on one page, and the figures of it.

report(X)           one self-contained HTML file: words, numbers, pictures, what-if sliders -> Report
plot_spectrum(X)    and the other plots for papers: each takes matplotlib Axes and returns them
"""

from __future__ import annotations

from isoscope.report.document import Report, report
from isoscope.report.figures_labels import plot_frontier, plot_scatter, plot_silhouette
from isoscope.report.figures_run import plot_trajectory
from isoscope.report.figures_space import plot_cosines, plot_dimensions, plot_spectrum

__all__ = [
    "Report",
    "plot_cosines",
    "plot_dimensions",
    "plot_frontier",
    "plot_scatter",
    "plot_silhouette",
    "plot_spectrum",
    "plot_trajectory",
    "report",
]
