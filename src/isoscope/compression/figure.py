"""The figure of a `Compression`: recall against bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from isoscope.figures import INK, PALETTE, axes_for, figure_of, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isoscope.compression.result import Compressed, Compression

_INCHES = (5.2, 3.3)
_GREY = "#9a9a9a"
_MARKERS = "osD^v"
_SCALAR = {"float32", "float16", "int8", "int4"}


def plot_compression(compression: Compression, *, rescored: bool = False, ax: Axes | None = None) -> Axes:
    """Plot the recall of each method against the bytes of a vector, with intervals and the Pareto front.

    Methods of one kind have one colour. The names are those of the methods on the front.

    Args:
        compression: the result of `compress`.
        rescored: plot the recall with rescoring.
        ax: Axes to draw on; by default those of a new figure.
    """
    ax = axes_for(ax, _INCHES)
    which = "rescored" if rescored else "recall"
    front = compression.front_of(which)
    steps = [(one.n_bytes, getattr(one, which).mean) for one in front]
    if steps:
        ax.step(*zip(*steps, strict=True), where="post", color=_GREY, linewidth=0.8, zorder=1)
    kinds = list(dict.fromkeys(_kind(one) for one in compression.methods if one.n_bytes is not None))
    for place, kind in enumerate(kinds):
        colour, marker = PALETTE[place % len(PALETTE)], _MARKERS[place // len(PALETTE) % len(_MARKERS)]
        for one in compression.methods:
            if one.n_bytes is None or _kind(one) != kind:
                continue
            share = getattr(one, which)
            ax.plot([one.n_bytes] * 2, share.interval, color=colour, linewidth=1.0, zorder=2)
            ax.plot(
                [one.n_bytes],
                [share.mean],
                marker,
                color=colour if one in front else "white",
                markeredgecolor=colour,
                markersize=4,
                zorder=3,
            )
        ax.plot([], [], marker, color=colour, markersize=4, label=kind)
    for one in front:
        ax.annotate(
            one.method,
            (one.n_bytes, getattr(one, which).mean),
            xytext=(-3, 4),
            textcoords="offset points",
            ha="right",
            fontsize=6,
            color=INK,
        )
    ax.axhline(compression.target, color=INK, linewidth=0.5, linestyle=":", zorder=0)
    _axis(ax, compression)
    return ax


def draw_compression(compression: Compression, path: str | os.PathLike[str]) -> Path:
    """Draw the figure without rescoring and with it, side by side, and write it."""
    with new_figure((2 * _INCHES[0] - 2.6, _INCHES[1])) as figure:
        left, right = figure.subplots(1, 2)
        plot_compression(compression, ax=left).set_title("search in the codes", loc="left")
        plot_compression(compression, rescored=True, ax=right).set_title(
            f"{compression.oversample * compression.k} returned rows rescored", loc="left"
        )
        right.set_ylabel("")
        handles, names = left.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=6)
        return save_figure(figure_of(left), Path(path))


def _kind(one: Compressed) -> str:
    """Return the kind of a method: its name without numbers."""
    if one.method in _SCALAR:
        return "scalar"
    return "+".join(step.partition(":")[0] for step in one.method.split("+"))


def _axis(ax: Axes, compression: Compression) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    sizes = sorted({one.n_bytes for one in compression.methods if one.n_bytes is not None})
    shown: list[int] = []
    for size in reversed(sizes):
        if not shown or size < 0.75 * shown[-1]:
            shown.append(size)
    ax.set_xscale("log")
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.margins(x=0.12)
    low, high = ax.get_ylim()
    ax.set_ylim(low, max(high, 1 + 0.05 * (1 - low)))
    ax.set_xlabel("bytes a vector")
    ax.set_ylabel(f"recall@{compression.k}")
    if low < compression.target:
        ax.text(
            1.01, compression.target, f"{compression.target:g}", transform=ax.get_yaxis_transform(),
            ha="left", va="center", fontsize=6, color=INK,
        )  # fmt: skip
