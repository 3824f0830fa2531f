"""Figures of a trajectory: one column against the step; two metrics, also against each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import InputError, UndefinedError
from isoscope.figures import INK, PALETTE, axes_for, figure_of, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from isoscope.tracking.trajectory import Trajectory

_FIRST, _SECOND = PALETTE[:2]


def draw(
    run: Trajectory,
    path: str | os.PathLike[str] | None = None,
    *,
    first: str | None = None,
    second: str | None = None,
    log: bool = True,
    title: str | None = None,
    dpi: int = 300,
    axes: Any = None,
) -> Figure:
    """Draw three panels: the second metric and the first one against the step, and against each other.

    Curves are means over the seeds; bands are the range over the seeds. In the third panel each point is a
    step, coloured by its number, and r and ρ are the correlations of the averaged curves.

    Args:
        run: the trajectory.
        path: the file to write (.png, .pdf, .svg, …); by default the figure is only returned.
        first, second: the columns to draw; by default isoscore and silhouette, or the first two metrics.
        log: use a logarithmic scale for the first column if all its values are positive.
        title: the title of the figure.
        dpi: the resolution of a .png file.
        axes: three Axes to draw on; by default those of a new figure.
    """
    default = run.main_pair or ("isoscore", "silhouette")
    first = _column(run, first or default[0], "first")
    second = _column(run, second or default[1], "second")
    with panels(1, 3, (7.0, 2.35), axes=axes, path=path, title=title, dpi=dpi) as drawn:
        _curve(drawn[0], run, second, _SECOND, log=False)
        _curve(drawn[1], run, first, _FIRST, log=log)
        _relation(drawn[2], run, first, second, log=log)
        for letter, panel in zip("abc", drawn, strict=True):
            panel.set_title(f"({letter})", loc="left", fontweight="bold", color=INK)
    return figure_of(drawn[0])


def draw_curve(run: Trajectory, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw one column against the step; see `Trajectory.plot`."""
    name = _column(run, metric or next(iter(run.metrics), "loss"), "metric")
    ax = axes_for(ax)
    _curve(ax, run, name, _FIRST, log=False)
    return ax


def _column(run: Trajectory, name: str, argument: str) -> str:
    if name not in run.columns:
        raise InputError(argument=argument, got=name, wanted=f"one of {', '.join(run.columns)}")
    return name


def _curve(panel: Axes, run: Trajectory, name: str, color: str, *, log: bool) -> None:
    curves = run.curves(name)
    steps, mean = run.steps, curves.mean(axis=0)
    if len(curves) > 1:
        panel.fill_between(steps, curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.3, linewidth=0)
    if f"{name}_low" in run.columns:
        low, high = run.curves(f"{name}_low").mean(axis=0), run.curves(f"{name}_high").mean(axis=0)
        panel.fill_between(steps, low, high, color=INK, alpha=0.2, linewidth=0)
    panel.plot(steps, mean, color=color, linewidth=1.0, solid_capstyle="round")
    panel.set_xlabel("updates")
    panel.set_ylabel(_label(name))
    panel.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
    panel.margins(y=0.06)
    if log and _positive(curves):
        _log_axis(panel)


def _relation(panel: Axes, run: Trajectory, first: str, second: str, *, log: bool) -> None:
    from matplotlib.colors import PowerNorm  # most of the change is in the first updates

    x, y = run.curves(first).mean(axis=0), run.curves(second).mean(axis=0)
    panel.plot(x, y, color="#bbbbbb", linewidth=0.6, zorder=1)
    points = panel.scatter(
        x, y, c=run.steps, cmap="viridis", norm=PowerNorm(0.5), s=5, linewidths=0, zorder=2, rasterized=True
    )
    bar = figure_of(panel).colorbar(points, ax=panel, pad=0.02, aspect=30)
    bar.set_label("updates")
    bar.outline.set_visible(False)
    panel.set_xlabel(_label(first))
    panel.set_ylabel(_label(second))
    if log and _positive(x):
        _log_axis(panel, x=True)
    try:
        found = run.correlation(first, second)
    except UndefinedError:
        return
    text = f"$r$ {_equals(found.r)}\n$\\rho$ {_equals(found.rho)}"
    corner = (0.96, 0.95, "right") if found.rho < 0 else (0.05, 0.95, "left")
    panel.text(*corner[:2], text, transform=panel.transAxes, ha=corner[2], va="top", fontsize=7.5, color=INK)


def _log_axis(panel: Axes, *, x: bool = False) -> None:
    """Set a logarithmic axis; with less than two decades, label ticks at 1, 2 and 5 without exponents."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    (panel.set_xscale if x else panel.set_yscale)("log")
    axis = panel.xaxis if x else panel.yaxis
    low, high = panel.get_xlim() if x else panel.get_ylim()
    if high / low < 4:  # too short for ticks at 1, 2 and 5
        axis.set_major_locator(MaxNLocator(3 if x else 5))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif high / low < 100:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(f"{axis.get_label_text()} (log scale)")


def _positive(values: np.ndarray) -> bool:
    return bool((values > 0).all())


def _equals(value: float) -> str:
    """Return a correlation with three decimals; one that would round to ±1 as a bound."""
    if abs(value) < 0.9995 or abs(value) == 1:
        return f"= {value:.3f}".replace("-", "−")
    return "> 0.999" if value > 0 else "< −0.999"


def _label(name: str) -> str:
    known = {"isoscore": "IsoScore", "silhouette": "silhouette"}
    layer, _, metric = name.partition("_") if name.startswith("hidden") else ("", "", name)
    shown = known.get(metric, metric.replace("_", " "))
    return f"{shown}, hidden layer {layer.removeprefix('hidden')}" if layer else shown
