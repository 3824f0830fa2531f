"""The figures of *Clusters and Manifolds* in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.figures import INK, PALETTE, new_figure, save_figure
from isoscope_papers.manifolds.layers import LayerFigures
from isoscope_papers.manifolds.run import Outcome, Shown
from isoscope_papers.manifolds.setups import CONTEXTUAL, PUBLISHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Value = Callable[[LayerFigures], float | None]
_COSINES: tuple[tuple[str, Value, Value], ...] = (
    (
        r"$S_\mathrm{inter}$, different types",
        lambda one: one.cosines.s_inter,
        lambda one: one.adjusted.s_inter,
    ),
    (r"$S_\mathrm{intra}$, the same type", lambda one: one.cosines.s_intra, lambda one: one.adjusted.s_intra),
)


def draw_figures(outcomes: Sequence[Outcome], folder: Path) -> dict[str, Path]:
    """Write the figures the outcomes allow, as .png and .pdf: where each .png lies, by its caption."""
    models = [one for one in outcomes if one.layers]
    drawn = {}
    if models:
        caption = (
            "Mean cosines by layer, before and after every cluster is centred on its own mean; without "
            "attention sinks"
        )
        drawn[caption] = _cosines(models, folder / "manifolds-cosines")
        caption = (
            "Local intrinsic dimension by layer (the paper's figure 9), and as in its table 3; dashed: "
            "static vectors; at the edge: the paper's means of its own models"
        )
        drawn[caption] = _dimensions(outcomes, folder / "manifolds-dimension")
    shown = [one for one in models if one.shown is not None]
    if shown:
        caption = "Clusters on the first two principal components, in the layer with the highest silhouette"
        drawn[caption] = _clusters(shown, folder / "manifolds-clusters")
        caption = (
            "An early layer on its first three principal components, by word frequency and by position in "
            "the window; R² of the 20 nearest there"
        )
        drawn[caption] = _manifolds(shown, folder / "manifolds-axes")
    return drawn


def _cosines(models: Sequence[Outcome], stem: Path) -> Path:
    """One panel for each cosine, a colour a model; full lines before, dashed after."""
    from matplotlib.lines import Line2D

    with new_figure((7.0, 2.7)) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for letter, panel, (title, before, after) in zip("ab", panels, _COSINES, strict=True):
            for color, model in zip(_colors(), models, strict=False):
                depth = _depths(model)
                panel.plot(depth, _values(model, before), color=color, label=model.title, **_line(model))
                panel.plot(depth, _values(model, after), color=color, linestyle=(0, (3, 1.5)), **_line(model))
            panel.axhline(0, color=INK, linewidth=0.5)
            panel.set_title(f"({letter}) {title}", loc="left", color=INK)
            panel.set_xlabel("layer, share of the depth")
            panel.set_ylim(top=1.02)
        panels[0].set_ylabel("mean cosine")
        lines, labels = panels[0].get_legend_handles_labels()
        styles = [
            Line2D([], [], color=INK, linewidth=1.2),
            Line2D([], [], color=INK, linewidth=1.2, linestyle=(0, (3, 1.5))),
        ]
        figure.legend(
            [*lines, *styles],
            [*labels, "as it is", "clusters centred"],
            loc="outside right center",
            frameon=False,
            fontsize=7.5,
        )
        return _save(figure, stem)


def _dimensions(outcomes: Sequence[Outcome], stem: Path) -> Path:
    """Euclidean beside what the paper's table takes; static tables as level lines."""
    models, tables = [one for one in outcomes if one.layers], [one for one in outcomes if one.static]
    with new_figure((7.0, 2.7)) as figure:
        panels = figure.subplots(1, 2)
        kinds = (("(a) Euclidean distances", "lid"), ("(b) 1 − cos for a distance", "lid_cosine"))
        for panel, (title, name) in zip(panels, kinds, strict=True):
            colors = _colors()
            for color, model in zip(colors, models, strict=False):
                # the paper's layers begin with the first block; in the embedding layer tokens coincide
                blocks = np.array(model.about["layers"]) > 0
                values = _values(model, attrgetter(name))[blocks]
                panel.plot(_depths(model)[blocks], values, color=color, label=model.title, **_line(model))
            for color, table in zip(colors, tables, strict=False):
                level = getattr(table.static, name)
                if level is not None:
                    label = f"{table.title} (static)"
                    panel.axhline(level, color=color, linewidth=1.2, linestyle=(0, (3, 1.5)), label=label)
            panel.set_title(title, loc="left", color=INK)
            panel.set_xlabel("layer, share of the depth")
            panel.set_ylim(bottom=0)
            panel.set_xlim(-0.03, 1.03)
        panels[0].set_ylabel("local intrinsic dimension")
        _published_ticks(panels[1])
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside right center", frameon=False, fontsize=7.5)
        return _save(figure, stem)


def _published_ticks(panel: Axes) -> None:
    """The means the paper gives of its contextual models, at the right edge."""
    found = [PUBLISHED[name] for name in CONTEXTUAL]
    panel.set_ylim(top=max(panel.get_ylim()[1], 1.1 * max(one.lid for one in found)))
    places = _spread(sorted((one.lid, one.title) for one in found), apart=_unit_of(panel) * 0.062)
    for lid, place, title in places:
        panel.annotate(
            title,
            (1.0, lid),
            xytext=(1.05, place),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            fontsize=6,
            color=INK,
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": INK, "shrinkA": 0, "shrinkB": 0},
        )


def _unit_of(panel: Axes) -> float:
    low, high = panel.get_ylim()
    return float(high - low)


def _spread(found: Sequence[tuple[float, str]], apart: float) -> Iterator[tuple[float, float, str]]:
    """Places for names beside their values, none over another, each run of them about its own mean."""
    runs: list[list[float]] = []  # values less the room of the names before: level within a run
    for place, (value, _) in enumerate(found):
        runs.append([value - place * apart])
        while len(runs) > 1 and np.mean(runs[-2]) > np.mean(runs[-1]):
            runs[-2:] = [runs[-2] + runs[-1]]
    level = [float(np.mean(run)) for run in runs for _ in run]
    for place, ((value, title), start) in enumerate(zip(found, level, strict=True)):
        yield value, start + place * apart, title


def _clusters(models: Sequence[Outcome], stem: Path) -> Path:
    """One panel a model."""
    with new_figure((2.35 * len(models), 2.4)) as figure:
        for panel, model in zip(figure.subplots(1, len(models), squeeze=False).flat, models, strict=True):
            _cluster_panel(panel, model)
        return _save(figure, stem)


def _cluster_panel(panel: Axes, model: Outcome) -> None:
    shown = _points(model)
    numbers = model.about["layers"]
    blocks = [
        (-1.0 if one.silhouette is None else one.silhouette, number, one)
        for number, one in zip(numbers, model.plain_layers, strict=True)
    ]
    blocks = [found for found in blocks if found[1] > 0] or blocks
    silhouette, layer, figures = max(blocks, key=lambda found: found[0])
    points, codes = shown.axes[layer].astype(float), shown.clusters[layer]
    for place, code in enumerate(np.unique(codes)):
        inside = codes == code
        color = PALETTE[place % len(PALETTE)]
        x, y = points[inside, :2].T
        panel.scatter(x, y, s=3, color=color, linewidths=0, alpha=0.7, rasterized=True)
    panel.set_title(f"{model.title}, layer {layer}\n$K$ = {figures.n_clusters}, silhouette {silhouette:.2f}")
    panel.set_xlabel("component 1")
    panel.set_ylabel("component 2")
    panel.set_xticks([])
    panel.set_yticks([])


def _manifolds(models: Sequence[Outcome], stem: Path) -> Path:
    """A column a model: by frequency above, by position below."""
    with new_figure((2.2 * len(models) + 0.6, 4.3)) as figure:
        panels = figure.subplots(2, len(models), squeeze=False, subplot_kw={"projection": "3d"})
        kinds = (("log_frequencies", "log₁₀ frequency", "viridis"), ("positions", "position", "plasma"))
        for row, (name, label, cmap) in enumerate(kinds):
            drawn: Any = None
            most = max(float(getattr(_points(model), name).max()) for model in models)
            for panel, model in zip(panels[row], models, strict=True):
                drawn = _manifold_panel(panel, model, name, with_title=row == 0)
                drawn.set(cmap=cmap, clim=(0, most))
            bar = figure.colorbar(drawn, ax=list(panels[row]), shrink=0.7, pad=0.02, aspect=25)
            bar.set_label(label)
            bar.outline.set_linewidth(0.4)
        return _save(figure, stem)


def _manifold_panel(panel: Any, model: Outcome, name: str, *, with_title: bool) -> Any:
    shown = _points(model)
    layer = early_layer(model)
    points = shown.axes[layer].astype(float)
    drawn = panel.scatter(*points.T, c=getattr(shown, name), s=2.5, linewidths=0, alpha=0.8, rasterized=True)
    figures = dict(zip(model.about["layers"], model.plain_layers, strict=True))[layer]
    told = figures.log_frequency if name == "log_frequencies" else figures.position
    lines = [f"{model.title}, layer {layer}"] if with_title else []
    panel.set_title("\n".join([*lines, f"$R^2$ = {told.nearby:.2f}" if told else ""]), pad=0)
    for axis in (panel.xaxis, panel.yaxis, panel.zaxis):
        axis.set_ticklabels([])
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.line.set_linewidth(0.5)
        axis._axinfo["grid"].update(linewidth=0.3, color="#dddddd")
    panel.set_box_aspect((1, 1, 0.85), zoom=1.1)
    return drawn


def early_layer(model: Outcome) -> int:
    """The second block, as the paper shows, or the last layer there is before it."""
    numbers = model.about["layers"]
    return int(max((number for number in numbers if number <= 2), default=numbers[0]))


def _points(model: Outcome) -> Shown:
    assert model.shown is not None
    return model.shown


def _colors() -> Iterator[str]:
    while True:
        yield from PALETTE


def _depths(model: Outcome) -> np.ndarray:
    numbers = np.array(model.about["layers"], dtype=float)
    return numbers / max(numbers.max(), 1.0)


def _values(model: Outcome, value: Value) -> np.ndarray:
    return np.array([np.nan if (found := value(one)) is None else found for one in model.plain_layers])


def _line(model: Outcome) -> dict[str, Any]:
    few = len(model.layers) <= 14
    return {"linewidth": 1.2, "marker": "o" if few else None, "markersize": 2.2}


def _save(figure: Figure, stem: Path) -> Path:
    for suffix in (".pdf", ".png"):
        path = save_figure(figure, stem.with_name(stem.name + suffix))
    return path
