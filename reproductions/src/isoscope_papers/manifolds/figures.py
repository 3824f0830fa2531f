"""The figures of *Clusters and Manifolds* in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle
from operator import attrgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from isoscope.figures import INK, PALETTE
from isoscope_papers.figures import DASHED, Drawing
from isoscope_papers.manifolds.findings import early_layer, told_by
from isoscope_papers.manifolds.run import Outcome
from isoscope_papers.manifolds.setups import CONTEXTUAL, PUBLISHED
from isoscope_papers.words import number

_COSINES = (
    (r"$S_\mathrm{inter}$, different types", "s_inter"),
    (r"$S_\mathrm{intra}$, the same type", "s_intra"),
)


def figures(outcomes: Sequence[Outcome]) -> Iterator[Drawing]:
    """Yield the figures that the outcomes allow."""
    models = [one for one in outcomes if one.layers]
    shown = [one for one in models if one.shown is not None]
    if models:
        yield Drawing(
            "Mean cosines by layer, before and after every cluster is centred on its own mean; without "
            "attention sinks",
            "manifolds-cosines", (7.0, 2.7), partial(_cosines, models),
        )  # fmt: skip
        yield Drawing(
            "Local intrinsic dimension by layer (the paper's figure 9), and as in its table 3; dashed: "
            "static vectors; at the edge: the paper's means of its own models",
            "manifolds-dimension", (7.0, 2.7), partial(_dimensions, outcomes),
        )  # fmt: skip
    if shown:
        yield Drawing(
            "Clusters on the first two principal components, in the layer with the highest silhouette",
            "manifolds-clusters", (2.35 * len(shown), 2.4), partial(_clusters, shown),
        )  # fmt: skip
        yield Drawing(
            "An early layer on its first three principal components, by word frequency and by position in "
            "the window; R² is that of the tokens shown, by the mean of the 20 nearest there",
            "manifolds-axes", (2.2 * len(shown) + 0.6, 4.3), partial(_manifolds, shown),
        )  # fmt: skip


def _cosines(models: Sequence[Outcome], figure: Figure) -> None:
    """Draw one panel for each cosine, a colour a model; full lines before, dashed after."""
    panels = figure.subplots(1, 2, sharey=True)
    for letter, panel, (title, name) in zip("ab", panels, _COSINES, strict=True):
        for color, model in zip(cycle(PALETTE), models, strict=False):
            _line(panel, model, f"cosines.{name}", color=color, label=model.title)
            _line(panel, model, f"adjusted.{name}", color=color, linestyle=DASHED)
        panel.axhline(0, color=INK, linewidth=0.5)
        panel.set_title(f"({letter}) {title}")
        panel.set_ylim(top=1.02)
    panels[0].set_ylabel("mean cosine")
    lines, labels = panels[0].get_legend_handles_labels()
    lines += [Line2D([], [], color=INK, linestyle=style) for style in ("-", DASHED)]
    figure.legend(lines, [*labels, "as it is", "clusters centred"], loc="outside right center")


def _dimensions(outcomes: Sequence[Outcome], figure: Figure) -> None:
    """Draw Euclidean beside what the paper's table takes; static tables as level lines."""
    panels = figure.subplots(1, 2)
    kinds = (("(a) Euclidean distances", "lid"), ("(b) 1 − cos for a distance", "lid_cosine"))
    for panel, (title, name) in zip(panels, kinds, strict=True):
        colors = cycle(PALETTE)
        for color, model in zip(colors, [one for one in outcomes if one.layers], strict=False):
            # the paper's layers begin with the first block; in the embedding layer tokens coincide
            _line(panel, model, name, first=1, color=color, label=model.title)
        for color, table in zip(colors, [one for one in outcomes if one.static], strict=False):
            if (level := getattr(table.static, name)) is not None:
                label = f"{table.title} (static)"
                panel.axhline(level, color=color, linestyle=DASHED, label=label)
        panel.set(title=title, xlim=(-0.03, 1.03))
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("local intrinsic dimension")
    _published_ticks(panels[1])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")


def _line(panel: Axes, model: Outcome, name: str, *, first: int = 0, **look: Any) -> None:
    """Draw a figure of every layer, none where it is undefined, over the depth."""
    numbers = np.array(model.about["layers"], dtype=float)
    found = [attrgetter(name)(one) for one in model.plain_layers]
    values = np.array([np.nan if value is None else value for value in found])
    few = len(model.layers) <= 14
    kept = numbers >= first
    panel.plot(
        numbers[kept] / max(numbers.max(), 1.0), values[kept], marker="o" if few else None, markersize=2.2,
        **look,
    )  # fmt: skip
    panel.set_xlabel("layer, share of the depth")


def _published_ticks(panel: Axes) -> None:
    """Write the means the paper gives of its contextual models at the right edge."""
    found = [PUBLISHED[name] for name in CONTEXTUAL]
    panel.set_ylim(top=max(panel.get_ylim()[1], 1.1 * max(one.lid for one in found)))
    low, high = panel.get_ylim()
    for lid, place, title in spread(
        sorted((one.lid, one.title) for one in found), apart=(high - low) * 0.062
    ):
        panel.annotate(
            title, (1.0, lid), xytext=(1.05, place), xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"), fontsize=6, color=INK, va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": INK, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def spread(found: Sequence[tuple[float, str]], apart: float) -> Iterator[tuple[float, float, str]]:
    """Yield places for names beside their values, none over another, each run of them about its own mean."""
    runs: list[list[float]] = []  # values less the room of the names before: level within a run
    for place, (value, _) in enumerate(found):
        runs.append([value - place * apart])
        while len(runs) > 1 and np.mean(runs[-2]) > np.mean(runs[-1]):
            runs[-2:] = [runs[-2] + runs[-1]]
    level = [float(np.mean(run)) for run in runs for _ in run]
    for place, ((value, title), start) in enumerate(zip(found, level, strict=True)):
        yield value, start + place * apart, title


def _clusters(models: Sequence[Outcome], figure: Figure) -> None:
    """Draw one panel a model, in the layer with the highest silhouette."""
    for panel, model in zip(figure.subplots(1, len(models), squeeze=False).flat, models, strict=True):
        assert model.shown is not None
        blocks = model.blocks() or dict(zip(model.about["layers"], model.plain_layers, strict=True))
        layer, best = max(blocks.items(), key=lambda one: one[1].silhouette or -1.0)
        points, codes = model.shown.at(layer)
        for color, code in zip(cycle(PALETTE), np.unique(codes), strict=False):
            x, y = points[codes == code, :2].T
            panel.scatter(x, y, s=3, color=color, linewidths=0, alpha=0.7, rasterized=True)
        silhouette = f"silhouette {best.silhouette or -1.0:.2f}"
        title = f"{model.title}, layer {layer}\n$K$ = {best.n_clusters}, {silhouette}"
        panel.set_title(title, loc="center")
        panel.set(xlabel="component 1", ylabel="component 2", xticks=[], yticks=[])


def _manifolds(models: Sequence[Outcome], figure: Figure) -> None:
    """Draw a column a model: by frequency above, by position below."""
    panels = figure.subplots(2, len(models), squeeze=False, subplot_kw={"projection": "3d"})
    kinds = (("log_frequencies", "log₁₀ frequency", "viridis"), ("positions", "position", "plasma"))
    for row, (name, label, cmap) in enumerate(kinds):
        most = max(float(getattr(model.shown, name).max()) for model in models)
        for panel, model in zip(panels[row], models, strict=True):
            points = _manifold_panel(panel, model, name, with_title=row == 0)
            points.set(cmap=cmap, clim=(0, most))
        bar = figure.colorbar(points, ax=list(panels[row]), shrink=0.7, pad=0.02, aspect=25)
        bar.set_label(label)
        bar.outline.set_linewidth(0.4)


def _manifold_panel(panel: Any, model: Outcome, name: str, *, with_title: bool) -> Any:
    assert model.shown is not None
    layer = early_layer(model)
    points = panel.scatter(
        *model.shown.at(layer)[0].T, c=getattr(model.shown, name), s=2.5, linewidths=0, alpha=0.8,
        rasterized=True,
    )  # fmt: skip
    told = told_by(model, layer, name)
    lines = [f"{model.title}, layer {layer}"] if with_title else []
    lines += [f"$R^2$ = {number(round(told.nearby, 2) + 0.0, 2)}" if told else ""]
    panel.set_title("\n".join(lines), loc="center", pad=0)
    for axis in (panel.xaxis, panel.yaxis, panel.zaxis):
        axis.set_ticklabels([])
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.line.set_linewidth(0.5)
        axis._axinfo["grid"].update(linewidth=0.3, color="#dddddd")
    panel.set_box_aspect((1, 1, 0.85), zoom=1.1)
    return points
