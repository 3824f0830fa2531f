"""The figure of the study: a row for each measure, a column for each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from isoscope.figures import INK, PALETTE
from isoscope_papers.figures import DASHED, Drawing
from isoscope_papers.layers.run import Layers
from isoscope_papers.layers.setups import ROUNDED, SHOWN, TRAINED, Measure

_LOG = ("isoscore_debiased",)  # over two decades
_OF_DIMENSIONS = ("rankme_debiased",)  # shown as a share of them


def figures(runs: Sequence[Layers]) -> Iterator[Drawing]:
    """Yield the figure, if any model was measured."""
    models = [run for run in runs if run.kind != ROUNDED]
    if models:
        yield Drawing(
            "Every layer of each model on the same text: a row for each measure, a column for each model, 0 "
            "the embedding layer and 1 the last; without attention sinks, and dashed with them. The last "
            "column is one model over its training, from dark to light",
            "layers-depth", (1.0 + 1.65 * len(models), 0.7 + 1.05 * len(SHOWN)), partial(_draw, models),
        )  # fmt: skip


def _draw(models: Sequence[Layers], figure: Figure) -> None:
    panels = figure.subplots(len(SHOWN), len(models), sharex=True, sharey="row", squeeze=False)
    for row, measure in zip(panels, SHOWN, strict=True):
        for color, panel, run in zip(PALETTE * len(models), row, models, strict=False):
            _panel(panel, run, measure, color)
        row[0].set_ylabel(measure.title, fontsize=7)
        if measure.name in _LOG:
            row[0].set_yscale("log")
    for panel, run in zip(panels[0], models, strict=True):
        panel.set_title(f"{run.title}\n{run.layers[-1]} × {run.n_dims}", loc="center", fontsize=7.5)
    for panel in panels[-1]:
        panel.set_xlabel("depth")
    figure.align_ylabels(list(panels[:, 0]))
    _legend(figure, models)


def _panel(panel: Axes, run: Layers, measure: Measure, color: Any) -> None:
    n = len(run.profiles)
    for place, profile in enumerate(run.profiles):
        own = colormaps["viridis"](0.9 * place / (n - 1)) if n > 1 else color
        if profile.sinks and run.kind != TRAINED:
            _line(panel, run, profile.values, measure, color=own, linestyle=DASHED, linewidth=0.8)
        few = len(run.layers) <= 14 and n == 1
        _line(panel, run, profile.without_sinks, measure, color=own, marker="o" if few else None,
              markersize=2, linewidth=0.9 if n > 1 else 1.3)  # fmt: skip
    panel.grid(visible=True, linewidth=0.3, color="#e5e5e5")
    panel.tick_params(labelsize=6)
    panel.set_xlim(-0.04, 1.04)


def _line(
    panel: Axes, run: Layers, values: dict[str, list[float | None]], measure: Measure, **look: Any
) -> None:
    scale = run.n_dims if measure.name in _OF_DIMENSIONS else 1
    pairs = zip(run.depths(), values[measure.name], strict=True)
    points = [(depth, value / scale) for depth, value in pairs if value is not None]
    if points:
        panel.plot(*zip(*points, strict=True), **look)


def _legend(figure: Figure, models: Sequence[Layers]) -> None:
    lines = [Line2D([], [], color=INK, linestyle=style) for style in ("-", DASHED)]
    labels = ["without attention sinks", "all tokens"]
    trained = next((run for run in models if run.kind == TRAINED), None)
    steps = [] if trained is None else [0, len(trained.profiles) // 2, len(trained.profiles) - 1]
    for place in steps:
        assert trained is not None
        shade = colormaps["viridis"](0.9 * place / (len(trained.profiles) - 1))
        lines.append(Line2D([], [], color=shade))
        labels.append(f"{trained.profiles[place].name} updates")
    figure.legend(lines, labels, loc="outside lower center", ncols=len(lines), fontsize=7)
