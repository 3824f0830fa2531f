"""The figure of the study: where runs ended against where they were predicted to end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from isoscope.figures import INK, PALETTE
from isoscope_papers.collapse.findings import Case
from isoscope_papers.collapse.run import Condition, Space
from isoscope_papers.collapse.setups import COLLAPSED, END_WITHIN, SETUPS
from isoscope_papers.figures import DASHED, Drawing

_BLUE, _RED, _GREEN = PALETTE[:3]
_SOFT = "#9a9a9a"
_KINDS: dict[str, dict[str, Any]] = {
    f"assumptions hold, silhouette ≥ {COLLAPSED}": {"color": _BLUE, "marker": "o", "markersize": 2.6},
    f"assumptions hold, silhouette < {COLLAPSED}": {
        "color": _GREEN, "marker": "o", "markersize": 2.6, "markerfacecolor": "none", "markeredgewidth": 0.6,
    },
    "an assumption fails": {"color": _SOFT, "marker": "x", "markersize": 2.6, "markeredgewidth": 0.6},
    "sets of labels": {
        "color": _RED, "marker": "^", "markersize": 3, "markerfacecolor": "none", "markeredgewidth": 0.6,
    },
}  # fmt: skip
_RATE, _ENCODER = 1e-3, "MiniLM"


def figure(spaces: Sequence[Space]) -> Drawing:
    """Return the figure."""
    return Drawing(
        "(a) The change of IsoScore, predicted before training and seen, a point for each space, mean length "
        "and learning rate (mean of the seeds); in the shaded quarters the sign is right. (b) The predicted "
        "end over the one that came, by how far labels have collapsed; the band is "
        f"± {100 * END_WITHIN:.0f} %. (c) Banking77 in the space of {_ENCODER}: a classifier of the first K "
        f"labels at a learning rate of {_RATE:g} lowers IsoScore if they are few, and raises it if many",
        "collapse-law", (7.0, 2.7), partial(_draw, spaces),
    )  # fmt: skip


def _draw(spaces: Sequence[Space], figure: Figure) -> None:
    changes, errors, labels = figure.subplots(1, 3)
    for kind, look in _KINDS.items():
        own = [
            (one.predicted, _seen(one), float(np.mean([each.silhouette[-1] for each in one.trained])))
            for space in spaces
            for one in space.conditions
            if _kind(space, one) == kind
        ]
        start, predicted, seen, silhouette = (
            np.array([[one.isoscore, one.end, seen, clusters] for one, seen, clusters in own])
            .reshape(-1, 4)
            .T
        )
        changes.plot(predicted / start, seen / start, linestyle="", **look)
        errors.plot(silhouette, predicted / seen, linestyle="", **look)
    _changes(changes)
    _errors(errors)
    _by_labels(labels, spaces)
    lines = [Line2D([], [], linestyle="", label=name, **look) for name, look in _KINDS.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), fontsize=7, handletextpad=0.1)


def _kind(space: Space, condition: Condition) -> str:
    hold_collapsed, hold, fails, sets = _KINDS
    if space.has_sets:
        return sets
    if space.fails(condition):
        return fails
    collapsed = all(Case(space, condition, one).is_collapsed for one in condition.trained)
    return hold_collapsed if collapsed else hold


def _seen(condition: Condition) -> float:
    return float(np.mean([one.end for one in condition.trained]))


def _changes(panel: Axes) -> None:
    panel.set(xscale="log", yscale="log", xlabel="end / start, predicted", ylabel="end / start, seen")
    low = 0.8 * min(panel.get_xlim()[0], panel.get_ylim()[0])
    high = 1.2 * max(panel.get_xlim()[1], panel.get_ylim()[1])
    for first, second in ((low, 1.0), (1.0, high)):
        panel.fill_between([first, second], first, second, color=INK, alpha=0.06, linewidth=0, zorder=0)
    panel.plot([low, high], [low, high], color=INK, linewidth=0.5, zorder=0)
    panel.axhline(1, color=INK, linewidth=0.4, zorder=0)
    panel.axvline(1, color=INK, linewidth=0.4, zorder=0)
    panel.set(xlim=(low, high), ylim=(low, high))
    for x, y, word, side in ((0.8, 0.03, "falls", "right"), (0.835, 0.955, "rises", "left")):
        panel.text(x, y, word, fontsize=6.5, ha=side, transform=panel.transAxes)
    panel.set_title("(a) sign and size of the change")


def _errors(panel: Axes) -> None:
    panel.axhspan(1 - END_WITHIN, 1 + END_WITHIN, color=INK, alpha=0.08, linewidth=0, zorder=0)
    panel.axhline(1, color=INK, linewidth=0.4, zorder=0)
    panel.axvline(COLLAPSED, color=INK, linewidth=0.6, linestyle=DASHED, zorder=0)
    panel.set(xlabel="silhouette at the end", ylabel="IsoScore, predicted / seen")
    panel.set_title("(b) the end")


def _by_labels(panel: Axes, spaces: Sequence[Space]) -> None:
    found = [
        (space.n_labels, condition)
        for space in spaces
        for condition in space.conditions
        if (SETUPS[space.setup].n_labels and space.encoder == _ENCODER)
        and (condition.norm, condition.learning_rate) == (None, _RATE)
    ]
    found.sort(key=lambda one: one[0])
    K = [n_labels for n_labels, _ in found]
    each = [condition for _, condition in found]
    rows: tuple[tuple[str, list[float], dict[str, Any]], ...] = (
        (
            "collapse value",
            [one.predicted.collapse_value for one in each],
            {"color": INK, "linestyle": DASHED},
        ),
        ("start", [one.predicted.isoscore for one in each], {"color": _SOFT, "marker": "s"}),
        ("predicted", [one.predicted.end for one in each], {"color": _RED, "marker": "_", "markersize": 7}),
        ("seen", [_seen(one) for one in each], {"color": _BLUE, "marker": "o"}),
    )
    for name, values, look in rows:
        panel.plot(K, values, label=name, linewidth=0.9, **{"markersize": 3} | look)
    panel.set(
        xlabel="labels K", ylabel="IsoScore", ylim=(0, None), xticks=[n for n in K if n != 5]
    )  # beside 2
    panel.legend(fontsize=6.5, loc="upper left", handlelength=1.6)
    panel.set_title("(c) the number of labels")
