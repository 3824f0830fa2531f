"""The figures of the contrastive paper's geometry in its arrangement, published points over our lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.figures import INK, PALETTE, new_figure, save_figure
from isoscope.metrics.contextual_change import RunningCorrelation
from isoscope_papers.contrastive.comparison import (
    adjusted,
    change_correlation,
    setup_of,
    token_correlation,
    token_values,
    word,
)
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import REMOVED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = (  # the paper's figures 2 to 7
    ("self_similarity", "self-similarity"),
    ("intra_similarity", "intra-sentence similarity"),
    ("anisotropy", "anisotropy"),
    ("norm", "mean norm"),
    ("adjusted_self_similarity", "adjusted self-similarity"),
    ("adjusted_intra_similarity", "adjusted intra-sentence similarity"),
)
_CIRCLES: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 3.6,
    "fillstyle": "none",
    "markeredgewidth": 0.8,
}
_N_NAMED = 26  # tokens whose names are written


def draw_figures(runs: Sequence[Geometry], folder: Path) -> dict[str, dict[str, Path]]:
    """Write the figures the runs allow, as .png and .pdf: where each .png lies, by part and caption."""
    encoders = [found for found in runs if not found.without_sinks]
    causal = [found for found in runs if found.without_sinks]
    drawn: dict[str, dict[str, Path]] = {}
    if encoders:
        caption = (
            "Every layer: lines are ours by the paper's protocol, circles published, dotted lines ours by "
            "clean definitions (the paper's figures 2 to 7)"
        )
        drawn["layers"] = {caption: _layers(encoders, folder / "contrastive-layers")}
    caption = (
        "The last layer. (a) r² of the cosines of all pairs with and without the top k dimensions: line "
        "and band are mean and standard deviation over the seeds, circles published, dotted without "
        "special tokens. (b) How much of the self-similarity the top dimensions make; the circle is the "
        "published count for half"
    )
    drawn["dimensions"] = {caption: _dimensions(runs, folder / "contrastive-dimensions")}
    if causal:
        drawn["sinks"] = {
            f"{setup_of(found).title}: every layer with its attention sinks and without them": _sinks(
                found, folder / f"contrastive-sinks-{found.setup}"
            )
            for found in causal
        }
    pair = _first_pair(encoders)
    if pair is not None:
        caption = (
            "Adjusted self-similarity in the last layer by token, one model against the other, and the "
            "correlation of the two over the n most frequent tokens"
        )
        drawn["tokens"] = {caption: _tokens(*pair, folder / "contrastive-tokens")}
    changed = [found for found in runs if found.change]
    if len(changed) > 1 and (curve := change_correlation(*changed[:2])) is not None:
        caption = "The correlation of two models' self-similarity changes over the n most frequent tokens"
        drawn["change"] = {caption: _change(curve, folder / "contrastive-change")}
    return drawn


def _layers(runs: Sequence[Geometry], stem: Path) -> Path:
    with new_figure((7.0, 4.1)) as figure:
        panels = list(figure.subplots(2, 3).flat)
        for place, (panel, (name, label)) in enumerate(zip(panels, _PANELS, strict=True)):
            for found, color in zip(runs, PALETTE, strict=False):
                _layer_lines(panel, found, name, color)
            panel.set_title(f"({'abcdef'[place]}) {label}", loc="left", color=INK)
            panel.set_ylim(bottom=0)
            panel.xaxis.get_major_locator().set_params(integer=True)
            if place > 2:
                panel.set_xlabel("layer")
        _legend(figure, runs)
        return _save(figure, stem)


def _layer_lines(panel: Axes, found: Geometry, name: str, color: str) -> None:
    layers = range(len(found.paper))
    panel.plot(layers, [adjusted(reading)[name] for reading in found.paper], color=color, linewidth=1.2)
    clean = [adjusted(reading)[name] for reading in found.clean]
    panel.plot(layers, clean, color=color, linewidth=0.9, linestyle=(0, (1, 1.4)))
    published = getattr(setup_of(found).published, name)
    panel.plot(range(len(published)), published, **_CIRCLES, color=color)


def _legend(figure: Figure, runs: Sequence[Geometry]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=color, linewidth=1.2, label=setup_of(found).title)
        for found, color in zip(runs, PALETTE, strict=False)
    ]
    handles.append(Line2D([], [], **_CIRCLES, color=INK, label="published"))
    handles.append(
        Line2D([], [], color=INK, linewidth=0.9, linestyle=(0, (1, 1.4)), label="clean definition")
    )
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=7.5
    )


def _dimensions(runs: Sequence[Geometry], stem: Path) -> Path:
    with new_figure((7.0, 2.7)) as figure:
        left, right = figure.subplots(1, 2)
        for found, color in zip(runs, PALETTE, strict=False):
            _informativity(left, found, color)
            _shares(right, found, color)
        left.set_xscale("log")
        left.xaxis.set_major_formatter("{x:g}")
        left.set_xlabel("top dimensions removed, k")
        left.set_ylabel("$r^2$")
        left.set_ylim(0, 1.04)
        right.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=0.8, zorder=0)
        right.annotate("all alike", (0.8, 0.76), color="#888888", fontsize=7)
        right.set_xlabel("share of dimensions, the strongest first")
        right.set_ylabel("share of the self-similarity")
        right.set_xlim(0, 1)
        right.set_ylim(0, 1.02)
        left.set_title("(a) informativity", loc="left", color=INK)
        right.set_title("(b) dominance", loc="left", color=INK)
        right.legend(frameon=False, fontsize=7.5, loc="lower right")
        return _save(figure, stem)


def _informativity(panel: Axes, found: Geometry, color: str) -> None:
    k = found.informativity["k"]
    mean, sd = (np.array(found.informativity["paper"][name]) for name in ("mean", "sd"))
    panel.fill_between(k, mean - sd, mean + sd, color=color, alpha=0.2, linewidth=0)
    panel.plot(k, mean, color=color, linewidth=1.2)
    panel.plot(k, found.informativity["clean"]["mean"], color=color, linewidth=0.9, linestyle=(0, (1, 1.4)))
    published = setup_of(found).published.informativity
    theirs = dict(zip(REMOVED, published, strict=False))
    panel.plot(list(theirs), list(theirs.values()), **_CIRCLES, color=color)


def _shares(panel: Axes, found: Geometry, color: str) -> None:
    d = found.n_dims
    reached = np.concatenate([[0.0], np.cumsum(found.shares["paper"])])
    setup = setup_of(found)
    panel.plot(np.arange(d + 1) / d, reached, color=color, linewidth=1.2, label=setup.title)
    half = setup.published.dimensions_for_half
    if half is not None:
        panel.plot([half / d], [0.5], **_CIRCLES, color=color)


def _sinks(found: Geometry, stem: Path) -> Path:
    layers = range(len(found.clean))
    whole, without = ([adjusted(one) for one in view] for view in (found.clean, found.without_sinks))
    names = (
        ("anisotropy", "(b) mean cosine"),
        ("adjusted_intra_similarity", "(c) adjusted intra-sentence"),
        ("isoscore", "(d) IsoScore"),
    )
    with new_figure((7.0, 2.1)) as figure:
        panels = figure.subplots(1, 4)
        panels[0].plot(layers, found.sinks["norm"], color=PALETTE[1], linewidth=1.2)
        panels[0].plot(layers, found.sinks["median"], color=INK, linewidth=1.2)
        panels[0].set_yscale("log")
        panels[0].set_title("(a) norm", loc="left", color=INK)
        middle = len(layers) // 2
        panels[0].annotate(
            "sinks", (middle, found.sinks["norm"][middle] * 0.35), color=PALETTE[1], fontsize=7
        )
        panels[0].annotate("median", (middle, found.sinks["median"][middle] * 0.25), color=INK, fontsize=7)
        for panel, (name, label) in zip(panels[1:], names, strict=True):
            panel.plot(layers, [one[name] for one in whole], color=PALETTE[1], linewidth=1.2)
            panel.plot(layers, [one[name] for one in without], color=PALETTE[0], linewidth=1.2)
            panel.set_title(label, loc="left", color=INK)
            panel.axhline(0, color="#bbbbbb", linewidth=0.6, zorder=0)
        for words, height, color in (("without sinks", 0.83, PALETTE[0]), ("with", 0.1, PALETTE[1])):
            panels[2].annotate(words, (0.4, height), xycoords="axes fraction", color=color, fontsize=7)
        for panel in panels:
            panel.set_xlabel("layer")
        return _save(figure, stem)


def _first_pair(runs: Sequence[Geometry]) -> tuple[Geometry, Geometry, RunningCorrelation] | None:
    """Two models that share their tokens, with their correlation."""
    for place, first in enumerate(runs):
        for second in runs[place + 1 :]:
            curve = token_correlation(first, second)
            if curve is not None:
                return first, second, curve
    return None


def _tokens(first: Geometry, second: Geometry, curve: RunningCorrelation, stem: Path) -> Path:
    a, b = token_values(first), token_values(second)
    x, y = (np.array([values[name] for name in curve.names]) for values in (a, b))
    with new_figure((7.0, 3.2)) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        counts = dict(zip(first.tokens["name"], first.tokens["count"], strict=True))
        sizes = np.array([counts[name] for name in curve.names], dtype=float)
        left.scatter(x, y, s=3 + 1.2 * np.sqrt(sizes), color=PALETTE[0], alpha=0.45, linewidths=0)
        for place in _worth_naming(x, y, sizes):
            left.annotate(
                word(curve.names[place]), (x[place], y[place]), xytext=(3, 2), textcoords="offset points",
                fontsize=6.5, color=INK,
            )  # fmt: skip
        left.set_title("(a) adjusted self-similarity by token", loc="left", color=INK)
        left.set_xlabel(setup_of(first).title)
        left.set_ylabel(setup_of(second).title)
        right.set_title("(b) correlation over the most frequent", loc="left", color=INK)
        _correlation(right, curve)
        return _save(figure, stem)


def _worth_naming(x: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Those at the ends and the most frequent ones, as far apart as their names are wide."""
    ends = (np.argsort(x + y)[:3], np.argsort(-(x + y))[:3])
    taken: list[int] = []
    width, height = max(float(np.ptp(x)), 1e-9), max(float(np.ptp(y)), 1e-9)
    for place in map(int, np.concatenate([*ends, np.argsort(-sizes, kind="stable")])):
        near = any(
            abs(x[place] - x[other]) < 0.15 * width and abs(y[place] - y[other]) < 0.055 * height
            for other in taken
        )
        if not near and len(taken) < _N_NAMED:
            taken.append(place)
    return taken


def _correlation(panel: Axes, curve: RunningCorrelation) -> None:
    known = [(n, value) for n, value in enumerate(curve.values, 1) if value is not None and n >= 20]
    n, r = curve.highest()
    panel.plot(*zip(*known, strict=True), color=PALETTE[0], linewidth=1.2)
    panel.plot([n], [r], marker="o", markersize=3.5, color=INK)
    panel.annotate(
        f"{r:.3f} at {n}", (n, r), xytext=(4, 5), textcoords="offset points", fontsize=7, color=INK
    )
    panel.set_xlabel("n most frequent tokens")
    panel.set_ylabel("$r$")
    panel.margins(x=0.02, y=0.12)


def _change(curve: RunningCorrelation, stem: Path) -> Path:
    with new_figure((3.4, 2.4)) as figure:
        _correlation(figure.subplots(), curve)
        return _save(figure, stem)


def _save(figure: Figure, stem: Path) -> Path:
    """Write stem.pdf for a paper and stem.png for a page; where the latter lies."""
    for suffix in (".pdf", ".png"):
        path = save_figure(figure, stem.with_name(stem.name + suffix))
    return path
