"""Figures of labelled spaces for papers: points, silhouettes, the frontier. Axes in, Axes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, check_seed
from isoscope.figures import INK, PALETTE
from isoscope.labels import as_clusters
from isoscope.metrics.frontier import ScatterDecomposition, isotropy_ceiling, scatter_decomposition
from isoscope.printable import shortened
from isoscope.report.axes import axes_for
from isoscope.report.clusters import Silhouettes
from isoscope.space import Space, known_rows
from isoscope.statistics.principal import Principal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^DPv"
_COLORS = PALETTE[:7]
_MOST_NAMED = 12  # labels in a legend
_MOST_ROWS = 60  # labels in the silhouette plot


def plot_scatter(
    X: Any,
    labels: Any = None,
    *,
    components: tuple[int, int] = (1, 2),
    n_points: int = 3000,
    seed: int = 0,
    ax: Axes | None = None,
    principal: Principal | None = None,
) -> Axes:
    """Points along two principal directions; colour and shape by label.

    Args:
        X: (n, d) vectors in any array, or a Space.
        labels: one label a row; those of a Space are taken.
        components: which two directions, counted from 1.
        n_points: how many to draw, at random.
        seed: of the choice.
        ax: where to draw; by default new Axes.
        principal: the directions, where they are at hand.

    >>> ax = plot_scatter([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [0, 0, 1, 1])
    >>> len(ax.collections)
    2
    """
    check_seed(seed)
    matrix = as_matrix(X).detach()
    principal = principal or Principal.of(matrix)
    if not all(1 <= one <= principal.rank for one in components):
        raise InputError(f"components is {components}; wanted two of 1 to {principal.rank}, the rank")
    rows = torch.randperm(len(matrix), generator=torch.Generator().manual_seed(seed))[:n_points]
    places = principal.coordinates(matrix[rows.to(matrix.device)]).cpu().numpy()
    xy = places[:, [one - 1 for one in components]]
    known = X.labels if labels is None and isinstance(X, Space) else labels
    ax = axes_for(ax, inches=(3.4, 3.0))
    if known is None:
        ax.scatter(xy[:, 0], xy[:, 1], s=4, color=PALETTE[0], alpha=0.6, linewidths=0, rasterized=True)
    else:
        _by_label(ax, xy, as_clusters(known, n=len(matrix)), rows)
    ax.set_xlabel(f"principal direction {components[0]}")
    ax.set_ylabel(f"principal direction {components[1]}")
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def _by_label(ax: Axes, xy: np.ndarray, labels: Any, rows: torch.Tensor) -> None:
    codes = labels.codes.cpu()[rows].numpy()
    for code in np.unique(codes):
        here = codes == code
        ax.scatter(
            xy[here, 0],
            xy[here, 1],
            s=5,
            color=_COLORS[code % len(_COLORS)],
            marker=_MARKERS[code % len(_MARKERS)],  # 6 shapes, 7 colours: 42 labels differ
            alpha=0.65,
            linewidths=0,
            label=_plain(labels.names[code]),
            rasterized=True,
        )
    if labels.n_labels <= _MOST_NAMED:
        ax.legend(
            frameon=False,
            fontsize=6,
            markerscale=1.6,
            handletextpad=0.1,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),  # beside the points, over none of them
        )


def plot_silhouette(X: Any, labels: Any = None, *, seed: int = 0, ax: Axes | None = None) -> Axes:
    """The silhouette of each label: its mean, half of its points, and eight in ten of them.

    Args:
        X: (n, d) vectors in any array, a Space, or Silhouettes.
        labels: one label a row; those of a Space are taken.
        seed: of what is sampled, beyond 20,000 points.
        ax: where to draw; by default new Axes.

    >>> X = [[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]]
    >>> [text.get_text() for text in plot_silhouette(X, ["a", "a", "b", "b"]).get_yticklabels()]
    ['a', 'b']
    """
    found = X if isinstance(X, Silhouettes) else _silhouettes(X, labels, seed)
    ranked = sorted(found.labels, key=lambda label: -label.mean)
    half = _MOST_ROWS // 2
    shown = ranked if len(ranked) <= _MOST_ROWS else ranked[:half] + ranked[-half:]
    ax = axes_for(ax, inches=(3.4, max(1.2, 0.14 * len(shown) + 0.6)))
    places = np.arange(len(shown))
    quantiles = np.array([label.quantiles for label in shown])
    colors = [PALETTE[0] if label.mean >= 0 else PALETTE[1] for label in shown]
    ax.hlines(places, quantiles[:, 0], quantiles[:, 4], colors=colors, linewidth=0.6)
    ax.hlines(places, quantiles[:, 1], quantiles[:, 3], colors=colors, linewidth=3, alpha=0.4)
    ax.scatter([label.mean for label in shown], places, s=9, c=colors, zorder=3)
    ax.axvline(0, color=INK, linewidth=0.6)
    ax.set_yticks(places, [_plain(label.name) for label in shown], fontsize=6)
    ax.invert_yaxis()
    ax.set_xlabel("silhouette")
    return ax


def _silhouettes(X: Any, labels: Any, seed: int) -> Silhouettes:
    matrix = as_matrix(X)
    coded = as_clusters(known_rows(X, labels, "labels"), n=len(matrix))
    return Silhouettes.of(matrix, coded, rows=torch.arange(0), seed=seed)


def plot_frontier(X: Any, labels: Any = None, *, ax: Axes | None = None) -> Axes:
    """The largest IsoScore that labels allow, by the share of the variance between them; and the space.

    Args:
        X: (n, d) vectors in any array, a Space, or a ScatterDecomposition.
        labels: one label a row; those of a Space are taken.
        ax: where to draw; by default new Axes.

    >>> X = [[1.0, 0.1], [1.0, -0.1], [-1.0, 0.1], [-1.0, -0.1]]
    >>> plot_frontier(X, ["a", "a", "b", "b"]).get_ylabel()
    'IsoScore'
    """
    split = X if isinstance(X, ScatterDecomposition) else scatter_decomposition(X, labels)
    shares = np.linspace(0, 1, 401)
    top = [isotropy_ceiling(split.n_labels, split.n_dims, between=float(share)) for share in shares]
    ax = axes_for(ax)
    ax.fill_between(shares, top, 1, color="#eef1f4", linewidth=0)
    ax.plot(shares, top, color=INK, linewidth=1)
    ax.vlines(
        split.between_share, split.isoscore, split.ceiling, colors=PALETTE[0], linewidth=0.8, linestyle=":"
    )
    ax.plot(split.between_share, split.isoscore, "o", color=PALETTE[0], markersize=4)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("share of the variance between labels")
    ax.set_ylabel("IsoScore")
    return ax


def _plain(name: Any) -> str:
    """A label as text that matplotlib takes as it is: no mathematics, no hidden legend entry."""
    text = " ".join(str(name).split())
    text = shortened(text, 28).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
