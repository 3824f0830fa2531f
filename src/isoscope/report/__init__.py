"""Reports about a space, and projections of it. Plots are in `isoscope.plots`.

report(X)           one self-contained HTML page: text, numbers, charts, sliders for corrections -> Report
widget(X)           the sliders and points of the page in a notebook -> ReportWidget
projection(X)       a projection to two dimensions by UMAP or PaCMAP, where installed
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
