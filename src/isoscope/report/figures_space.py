"""Figures of any space for papers: spectrum, cosines of pairs, dimensions. Axes in, Axes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import InputError
from isoscope.figures import INK, PALETTE
from isoscope.metrics.dimensions import contributions_of
from isoscope.report.axes import axes_for
from isoscope.report.pair_cosines import PairCosines
from isoscope.space import Space
from isoscope.statistics.directions import Directions
from isoscope.statistics.principal import Principal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY = "#8a949e"
_BINS = 100


def plot_spectrum(X: Any, *, ax: Axes | None = None) -> Axes:
    """The share of the variance along each principal direction, both axes logarithmic.

    Args:
        X: (n, d) vectors in any array, or a Space.
        ax: where to draw; by default new Axes in a figure of their own.

    >>> ax = plot_spectrum([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> [round(share, 3) for share in ax.lines[0].get_ydata().tolist()]
    [0.9, 0.1]
    """
    principal = Principal.of(X)
    shares = (principal.eigenvalues / principal.eigenvalues.sum()).cpu().numpy()
    ax = axes_for(ax)
    ranks = np.arange(1, len(shares) + 1)
    ax.loglog(ranks, shares, color=PALETTE[0], linewidth=1.2, marker="." if len(ranks) <= 30 else None)
    ax.axhline(1 / principal.n_dims, color=_GREY, linewidth=0.7, linestyle=":")
    ax.annotate(
        "even",
        (1, 1 / principal.n_dims),
        xytext=(2, 2),
        textcoords="offset points",
        fontsize=7,
        color=_GREY,
    )
    ax.set_xlabel("principal direction")
    ax.set_ylabel("share of the variance")
    return ax


def plot_cosines(X: Any, labels: Any = None, *, ax: Axes | None = None, seed: int = 0) -> Axes:
    """How alike random pairs are, and with labels, pairs of one label and of two.

    Args:
        X: (n, d) vectors in any array, a Space, or PairCosines.
        labels: one label a row; those of a Space are taken.
        ax: where to draw; by default new Axes.
        seed: of the pairs, where there are more than 200,000.

    >>> ax = plot_cosines([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> ax.get_xlabel()
    'cosine of two vectors'
    """
    known = X.labels if labels is None and isinstance(X, Space) else labels
    cosines = PairCosines.of(X, known, seed=seed)
    kinds = {"random pairs": cosines.random, "same label": cosines.same, "other labels": cosines.other}
    given = {name: values.numpy() for name, values in kinds.items() if values is not None}
    low, high = min(v[0] for v in given.values()), max(v[-1] for v in given.values())
    edges = np.linspace(low, high + 1e-9, _BINS + 1).tolist()
    ax = axes_for(ax)
    ax.hist(given.pop("random pairs"), edges, density=True, color=_GREY, alpha=0.35, label="random pairs")
    for (name, values), color, style in zip(given.items(), PALETTE, ("-", "--"), strict=False):
        ax.hist(
            values,
            edges,
            density=True,
            histtype="step",
            color=color,
            linestyle=style,
            linewidth=1.1,
            label=name,
        )
    if cosines.knows(0.01):
        _one_percent(ax, cosines.threshold(0.01))
    ax.set_xlabel("cosine of two vectors")
    ax.set_ylabel("density")
    if given:
        ax.legend(
            frameon=False,
            fontsize=6.5,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
            handlelength=1.4,
            columnspacing=1.0,
        )
    return ax


def _one_percent(ax: Axes, cut: float) -> None:
    """Mark the cosine that one random pair in a hundred exceeds."""
    ax.axvline(cut, color=INK, linewidth=0.7, linestyle=":")
    top = 1.1 * ax.get_ylim()[1]  # room for the words over the curves
    ax.set_ylim(top=top)
    ax.annotate(
        f"1 % above {cut:.2f}",
        (cut, top),
        xytext=(-2, -1),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=6,
    )


def plot_dimensions(X: Any, *, n_dims: int = 20, ax: Axes | None = None) -> Axes:
    """The dimensions that add most to the mean cosine, as shares of all contributions.

    Args:
        X: (n, d) vectors in any array, a Space, or Directions.
        n_dims: how many, the strongest first.
        ax: where to draw; by default new Axes.

    >>> ax = plot_dimensions([[2.0, 0.0], [1.0, 0.0], [3.0, 0.1]], n_dims=1)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['0']
    """
    if n_dims < 1:
        raise InputError(f"n_dims is {n_dims}; wanted at least 1")
    contributions = contributions_of(Directions.of(X)).detach().cpu()
    shares = (contributions / contributions.abs().sum()).numpy()
    order = np.argsort(-np.abs(shares), kind="stable")[:n_dims]
    ax = axes_for(ax)
    colors = [PALETTE[0] if shares[j] >= 0 else PALETTE[1] for j in order]
    ax.bar(np.arange(len(order)), shares[order], color=colors, width=0.75)
    ax.axhline(1 / len(shares), color=_GREY, linewidth=0.7, linestyle=":")
    ax.set_xticks(np.arange(len(order)), [str(j) for j in order], rotation=90 if len(order) > 8 else 0)
    ax.set_xlabel("dimension")
    ax.set_ylabel("share of the contributions\nto the mean cosine")
    return ax
