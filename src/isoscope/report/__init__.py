"""A space on one page, and projections of it. Plots are in `isoscope.plots`.

report(X)           one self-contained HTML file: words, numbers, pictures, what-if sliders -> Report
widget(X)           the sliders and points of the page in a notebook -> ReportWidget
projection(X)       vectors in the plane by UMAP or PaCMAP, where installed
"""

from __future__ import annotations

from isoscope.report.document import Report, report, widget
from isoscope.report.projections import installed_projections, projection

__all__ = [
    "Report",
    "installed_projections",
    "projection",
    "report",
    "widget",
]
