"""Every plot of a report as PDF and PNG."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from isoscope.figures import new_figure, save_figure
from isoscope.report.evidence import Evidence
from isoscope.report.plots import (
    plot_cosines,
    plot_dimensions,
    plot_frontier,
    plot_scatter,
    plot_silhouette,
    plot_spectrum,
    plot_trajectory,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = ("pdf", "png")


def write_figures(evidence: Evidence, folder: Path) -> list[Path]:
    """The files written, two a plot: spectrum.pdf, spectrum.png, …"""
    written = []
    for name, plot in _plots(evidence).items():
        with new_figure((1.0, 1.0)):  # for the style, while it is drawn and saved
            figure = cast("Figure", plot().figure)
            written += [save_figure(figure, folder / f"{name}.{kind}") for kind in _KINDS]
    return written


def _plots(e: Evidence) -> dict[str, Callable[[], Axes]]:
    plots: dict[str, Callable[[], Axes]] = {"spectrum": partial(plot_spectrum, e.principal)}
    if e.cosines is not None:
        plots["cosines"] = partial(plot_cosines, e.cosines)
        plots["dimensions"] = partial(plot_dimensions, e.shelf.directions)
    if e.principal.rank > 1:
        plots["scatter"] = partial(plot_scatter, e.space, principal=e.principal, seed=e.seed)
    if e.silhouettes is not None and e.split is not None:
        plots["silhouette"] = partial(plot_silhouette, e.silhouettes)
        plots["frontier"] = partial(plot_frontier, e.split)
    if e.run is not None:
        for metric in ("loss", *e.run.metrics):
            plots[f"trajectory-{metric.replace('@', '-')}"] = partial(plot_trajectory, e.run, metric=metric)
    return plots
