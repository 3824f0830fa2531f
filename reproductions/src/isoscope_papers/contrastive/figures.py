"""The figures of the contrastive paper's geometry in its arrangement, published points over our lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from isoscope.figures import INK, PALETTE
from isoscope.metrics import RunningCorrelation
from isoscope_papers.contrastive.findings import READINGS
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import REMOVED
from isoscope_papers.contrastive.tokens import agreement, word
from isoscope_papers.figures import Drawing

_CLEAN: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (1, 1.4))}
_CIRCLES: dict[str, Any] = {
    "linestyle": "none", "marker": "o", "markersize": 3.6, "fillstyle": "none", "markeredgewidth": 0.8,
}  # fmt: skip
_N_NAMED = 26  # tokens whose names are written


def layers_figure(runs: Sequence[Geometry]) -> Drawing:
    """Return the paper's figures 2 to 7."""
    caption = (
        "Every layer: lines are ours by the paper's protocol, circles published, dotted lines ours by "
        "clean definitions (the paper's figures 2 to 7)"
    )
    return Drawing(caption, "contrastive-layers", (7.0, 4.1), partial(_layers, runs))


def dimensions_figure(runs: Sequence[Geometry]) -> Drawing:
    """Return informativity and dominance in the last layer."""
    caption = (
        "The last layer. (a) r² of the cosines of all pairs with and without the top k dimensions: line "
        "and band are mean and standard deviation over the seeds, circles published, dotted without "
        "special tokens. (b) How much of the self-similarity the top dimensions make; the circle is the "
        "published count for half"
    )
    return Drawing(caption, "contrastive-dimensions", (7.0, 2.7), partial(_dimensions, runs))


def sinks_figure(run: Geometry) -> Drawing:
    """Return every layer of a model with and without its attention sinks."""
    caption = f"{run.title}: every layer with its attention sinks and without them"
    return Drawing(caption, f"contrastive-sinks-{run.setup}", (7.0, 2.1), partial(_sinks, run))


def tokens_figure(runs: Sequence[Geometry]) -> Iterator[Drawing]:
    """Yield the tokens of the first two models that share some."""
    for pair in combinations(runs, 2):
        if (curve := agreement(*(run.token_values for run in pair))) is not None:
            caption = (
                "Adjusted self-similarity in the last layer by token, one model against the other, and the "
                "correlation of the two over the n most frequent tokens"
            )
            yield Drawing(caption, "contrastive-tokens", (7.0, 3.2), partial(_tokens, *pair, curve))
            return


def _layers(runs: Sequence[Geometry], figure: Figure) -> None:
    colors = dict(zip((run.setup for run in runs), PALETTE, strict=False))
    panels = figure.subplots(2, 3).flat
    for letter, panel, (words, name) in zip("abcdef", panels, READINGS.items(), strict=True):
        for run in runs:
            color, published = colors[run.setup], getattr(run.declared.published, name)
            panel.plot([reading[name] for reading in run.layers()], color=color)
            panel.plot([reading[name] for reading in run.layers("clean")], color=color, **_CLEAN)
            panel.plot(published, color=color, **_CIRCLES)
        label = words.replace("intra-sentence", "intra-sentence similarity").replace("norm", "mean norm")
        panel.set_title(f"({letter}) {label}")
        panel.set_ylim(bottom=0)
        panel.xaxis.get_major_locator().set_params(integer=True)
        if letter in "def":
            panel.set_xlabel("layer")
    handles = [Line2D([], [], color=colors[run.setup], label=run.title) for run in runs]
    handles.append(Line2D([], [], **_CIRCLES, color=INK, label="published"))
    handles.append(Line2D([], [], **_CLEAN, color=INK, label="clean definition"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))


def _dimensions(runs: Sequence[Geometry], figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for run, color in zip(runs, PALETTE, strict=False):
        k, published = run.informativity["k"], run.declared.published
        mean, sd = (np.array(run.informativity["paper"][name]) for name in ("mean", "sd"))
        left.fill_between(k, mean - sd, mean + sd, color=color, alpha=0.2, linewidth=0)
        left.plot(k, mean, color=color)
        left.plot(k, run.informativity["clean"]["mean"], color=color, **_CLEAN)
        theirs = dict(zip(REMOVED, published.informativity, strict=False))
        left.plot(list(theirs), list(theirs.values()), **_CIRCLES, color=color)
        reached = np.concatenate([[0.0], np.cumsum(run.shares["paper"])])
        right.plot(np.arange(run.n_dims + 1) / run.n_dims, reached, color=color, label=run.title)
        if published.dimensions_for_half is not None:
            right.plot([published.dimensions_for_half / run.n_dims], [0.5], **_CIRCLES, color=color)
    left.set(
        xscale="log", xlabel="top dimensions removed, k", ylabel="$r^2$", ylim=(0, 1.04),
        title="(a) informativity",
    )  # fmt: skip
    left.xaxis.set_major_formatter("{x:g}")
    right.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=0.8, zorder=0)
    right.annotate("all alike", (0.8, 0.76), color="#888888", fontsize=7)
    right.set(
        xlabel="share of dimensions, the strongest first", ylabel="share of the self-similarity",
        xlim=(0, 1), ylim=(0, 1.02), title="(b) dominance",
    )  # fmt: skip
    right.legend(loc="lower right")


def _sinks(run: Geometry, figure: Figure) -> None:
    names = (
        ("anisotropy", "(b) mean cosine"),
        ("adjusted_intra_similarity", "(c) adjusted intra-sentence"),
        ("isoscore", "(d) IsoScore"),
    )
    norms, *panels = figure.subplots(1, 4)
    middle = len(run.clean) // 2
    both = (("norm", "sinks", PALETTE[1], 0.35), ("median", "median", INK, 0.25))
    for name, words, color, lower in both:
        norms.plot(run.sinks[name], color=color)
        norms.annotate(words, (middle, run.sinks[name][middle] * lower), color=color, fontsize=7)
    norms.set(yscale="log", title="(a) norm", xlabel="layer")
    for panel, (name, label) in zip(panels, names, strict=True):
        for view, color in (("clean", PALETTE[1]), ("without_sinks", PALETTE[0])):
            panel.plot([reading[name] for reading in run.layers(view)], color=color)
        panel.set(title=label, xlabel="layer")
        panel.axhline(0, color="#bbbbbb", linewidth=0.6, zorder=0)
    for words, height, color in (("without sinks", 0.83, PALETTE[0]), ("with", 0.1, PALETTE[1])):
        panels[1].annotate(words, (0.4, height), xycoords="axes fraction", color=color, fontsize=7)


def _tokens(first: Geometry, second: Geometry, curve: RunningCorrelation, figure: Figure) -> None:
    x, y = (np.array([run.token_values[name] for name in curve.names]) for run in (first, second))
    counts = dict(zip(first.tokens["name"], first.tokens["count"], strict=True))
    sizes = np.array([counts[name] for name in curve.names], dtype=float)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    left.scatter(x, y, s=3 + 1.2 * np.sqrt(sizes), color=PALETTE[0], alpha=0.45, linewidths=0)
    for place in _worth_naming(x, y, sizes):
        left.annotate(
            word(curve.names[place]), (x[place], y[place]), xytext=(3, 2), textcoords="offset points",
            fontsize=6.5, color=INK,
        )  # fmt: skip
    left.set(xlabel=first.title, ylabel=second.title, title="(a) adjusted self-similarity by token")
    known = [(n, value) for n, value in enumerate(curve.values, 1) if value is not None and n >= 20]
    n, r = curve.highest()
    right.plot(*zip(*known, strict=True), color=PALETTE[0])
    right.plot([n], [r], marker="o", markersize=3.5, color=INK)
    right.annotate(
        f"{r:.3f} at {n}", (n, r), xytext=(4, 5), textcoords="offset points", fontsize=7, color=INK
    )
    right.set(xlabel="n most frequent tokens", ylabel="$r$", title="(b) correlation over the most frequent")
    right.margins(x=0.02, y=0.12)


def _worth_naming(x: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Return those at the ends and the most frequent ones, as far apart as their names are wide."""
    taken: list[int] = []
    width, height = max(float(np.ptp(x)), 1e-9), max(float(np.ptp(y)), 1e-9)
    ends = np.argsort(x + y)
    for place in map(int, np.concatenate([ends[:3], ends[::-1][:3], np.argsort(-sizes, kind="stable")])):
        near = any(
            abs(x[place] - x[other]) < 0.15 * width and abs(y[place] - y[other]) < 0.055 * height
            for other in taken
        )
        if not near and len(taken) < _N_NAMED:
            taken.append(place)
    return taken
