"""Figures of drift: over time, and cluster by cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from isoscope.figures import INK, PALETTE, panels
from isoscope.printable import printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isoscope.drift.over_time import DriftOverTime
    from isoscope.drift.result import Drift

_COLORS = {"above": PALETTE[1], "within": PALETTE[2], "unclear": PALETTE[7]}
_WORDS = {"above": "above what is tolerated", "within": "tolerated", "unclear": "not clear"}
_MOST_DATES = 12
_MOST_CLUSTERS = 12


def draw_over_time(
    found: DriftOverTime, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the drift of each window with its interval, and what is tolerated."""
    with panels(1, 1, (5.2, 2.6), axes=None if ax is None else [ax], path=path) as (ax,):
        _over_time(found, ax)
    return ax


def _over_time(found: DriftOverTime, ax: Axes) -> None:
    places = range(len(found.drifts))
    tolerate = 100 * found.drifts[0].tolerate
    ax.axhspan(0, tolerate, color=INK, alpha=0.08, linewidth=0)
    values = [100 * max(one.drift, 0.0) for one in found.drifts]
    ax.plot(places, values, color=INK, linewidth=0.6, alpha=0.5, zorder=1)
    for verdict, color in _COLORS.items():
        some = [place for place in places if found.drifts[place].verdict == verdict]
        if not some:
            continue
        ends = [found.drifts[place].interval for place in some]
        low = [values[place] - 100 * max(end[0], 0.0) for place, end in zip(some, ends, strict=True)]
        high = [100 * max(end[1], 0.0) - values[place] for place, end in zip(some, ends, strict=True)]
        ax.errorbar(
            some, [values[place] for place in some], yerr=[low, high], fmt="o", markersize=3.5, color=color,
            elinewidth=1.0, capsize=2, label=_WORDS[verdict], zorder=2,
        )  # fmt: skip
    step = -(-len(found.drifts) // _MOST_DATES)
    ax.set_xticks(list(places)[::step], [one.name_b for one in found.drifts][::step], rotation=35, ha="right")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("rows that differ, at least (%)")
    ax.set_title(f"drift by {found.every}, against the {found.against}", loc="left", color=INK)
    ax.legend(frameon=False, fontsize=7, loc="upper left")
    ax.margins(y=0.15)


def draw_clusters(
    found: Drift, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the share of each cluster in A and in B, the largest change at the top."""
    size = (5.2, 0.7 + 0.2 * max(len(found.clusters[:_MOST_CLUSTERS]), 4))
    with panels(1, 1, size, axes=None if ax is None else [ax], path=path) as (ax,):
        _clusters(found, ax)
    return ax


def _clusters(found: Drift, ax: Axes) -> None:
    clusters = found.clusters[:_MOST_CLUSTERS]
    for place, one in enumerate(clusters[::-1]):
        color = INK if one.changed else PALETTE[7]
        ends = [100 * one.share_a, 100 * one.share_b]
        ax.plot(ends, [place, place], color=color, linewidth=1.0, alpha=0.6, zorder=1)
    places = list(range(len(clusters)))[::-1]
    for side, color, share in (("A", PALETTE[0], "share_a"), ("B", PALETTE[1], "share_b")):
        name = found.name_a if side == "A" else found.name_b
        label = side if name == side else f"{side}: {printable(shortened(name, 24))}"
        ax.scatter([100 * getattr(one, share) for one in clusters], places, s=18, color=color, label=label)
    labels = [f"{'* ' if one.changed else ''}{_name(one.texts, one.cluster)}" for one in clusters]
    ax.set_yticks(places, labels)
    ax.set_xlim(left=0)
    ax.set_xlabel("share of the rows (%)   * changed, adjusted p < 0.05")
    ax.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _name(texts: tuple[str, ...], cluster: int) -> str:
    # a dollar sign would begin a formula
    return printable(shortened(texts[0], 40)).replace("$", r"\$") if texts else f"cluster {cluster}"
