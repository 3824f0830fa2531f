"""A space on one page, and the figures of it.

report(X)           one self-contained HTML file: words, numbers, pictures, what-if sliders -> Report
plot_spectrum(X)    and the other plots for papers: each takes matplotlib Axes and returns them
projection(X)       vectors in the plane by UMAP or PaCMAP, where installed
"""

from __future__ import annotations

from isoscope.report.document import Report, report
from isoscope.report.plots import (
    plot_cosines,
    plot_dimensions,
    plot_frontier,
    plot_scatter,
    plot_silhouette,
    plot_spectrum,
    plot_trajectory,
)
from isoscope.report.projections import installed_projections, projection

__all__ = [
    "Report",
    "installed_projections",
    "plot_cosines",
    "plot_dimensions",
    "plot_frontier",
    "plot_scatter",
    "plot_silhouette",
    "plot_spectrum",
    "plot_trajectory",
    "projection",
    "report",
]
