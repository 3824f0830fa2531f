"""Plots of a space, its labels and its training run, for papers. Each takes Axes and returns them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, check_seed
from isoscope.figures import INK, ONE_COLUMN, PALETTE, axes_for, figure_of, new_figure, save_figure
from isoscope.labels import as_clusters
from isoscope.matching.pair_cosines import PairCosines
from isoscope.metrics.dimensions import contributions_of
from isoscope.metrics.frontier import ScatterDecomposition, frontier_curve, scatter_decomposition
from isoscope.printable import shortened
from isoscope.report.clusters import Silhouettes
from isoscope.report.evidence import Evidence
from isoscope.report.runs import load_run
from isoscope.space import Space, known_rows
from isoscope.statistics.directions import Directions
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.principal import Principal
from isoscope.tracking.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY = "#8a949e"
_BINS = 100
_MARKERS = "os^DPv"
_COLORS = PALETTE[:7]
_MOST_NAMED = 12  # labels in a legend
_MOST_ROWS = 60  # labels in the silhouette plot


def plot_spectrum(X: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the share of the variance along each principal direction, with logarithmic axes.

    Args:
        X: (n, d) vectors in any array, or a Space.
        ax: the Axes to draw on; by default those of a new figure.

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
        "equal variances",
        (1, 1 / principal.n_dims),
        (2, 2),
        textcoords="offset points",
        fontsize=7,
        color=_GREY,
    )
    ax.set_xlabel("principal direction")
    ax.set_ylabel("share of the variance")
    return ax


def plot_cosines(X: Any, labels: Any = None, *, ax: Axes | None = None, seed: int = 0) -> Axes:
    """Plot histograms of the cosines of random pairs, and of pairs with the same and with different labels.

    Args:
        X: (n, d) vectors in any array, a Space, or PairCosines.
        labels: one label for each row; by default those of the Space.
        ax: the Axes to draw on; by default those of a new figure.
        seed: the seed of the sample, where there are more than 200,000 pairs.

    >>> ax = plot_cosines([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> ax.get_xlabel()
    'cosine of two vectors'
    """
    known = X.labels if labels is None and isinstance(X, Space) else labels
    cosines = PairCosines.of(X, known, seed=seed)
    kinds = {"random pairs": cosines.random, "same label": cosines.same, "different labels": cosines.other}
    present = {name: values.numpy() for name, values in kinds.items() if values is not None}
    low, high = min(v[0] for v in present.values()), max(v[-1] for v in present.values())
    edges = np.linspace(low, high + 1e-9, _BINS + 1).tolist()
    ax = axes_for(ax)
    ax.hist(present.pop("random pairs"), edges, density=True, color=_GREY, alpha=0.35, label="random pairs")
    for (name, values), color, style in zip(present.items(), PALETTE, ("-", "--"), strict=False):
        line: dict[str, Any] = {"histtype": "step", "color": color, "linestyle": style, "linewidth": 1.1}
        ax.hist(values, edges, density=True, label=name, **line)
    if cosines.knows(0.01):
        _mark_one_percent(ax, cosines.threshold(0.01))
    ax.set_xlabel("cosine of two vectors")
    ax.set_ylabel("density")
    if present:
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
        ax.legend(frameon=False, fontsize=6.5, handlelength=1.4, columnspacing=1.0, **above)
    return ax


def _mark_one_percent(ax: Axes, threshold: float) -> None:
    """Mark the cosine that 1 % of random pairs exceed."""
    ax.axvline(threshold, color=INK, linewidth=0.7, linestyle=":")
    top = 1.1 * ax.get_ylim()[1]  # room for the text above the curves
    ax.set_ylim(top=top)
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "top"}
    ax.annotate(f"1 % above {threshold:.2f}", (threshold, top), (-2, -1), fontsize=6, **place)


def plot_dimensions(X: Any, *, n_dims: int = 20, ax: Axes | None = None) -> Axes:
    """Plot the dimensions that contribute most to the mean cosine.

    Args:
        X: (n, d) vectors in any array, a Space, or Directions.
        n_dims: the number of dimensions to plot, strongest first.
        ax: the Axes to draw on; by default those of a new figure.

    >>> ax = plot_dimensions([[2.0, 0.0], [1.0, 0.0], [3.0, 0.1]], n_dims=1)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['0']
    """
    if n_dims < 1:
        raise InputError(argument="n_dims", got=n_dims, wanted="at least 1")
    contributions = contributions_of(Directions.of(X)).detach().cpu()
    shares = (contributions / contributions.abs().sum()).numpy()
    order = np.argsort(-np.abs(shares), kind="stable")[:n_dims]
    ax = axes_for(ax)
    colors = [PALETTE[0] if shares[j] >= 0 else PALETTE[1] for j in order]
    ax.bar(np.arange(len(order)), shares[order], color=colors, width=0.75)
    ax.axhline(1 / len(shares), color=_GREY, linewidth=0.7, linestyle=":")
    ax.set_xticks(np.arange(len(order)), [str(j) for j in order], rotation=90 if len(order) > 8 else 0)
    ax.set_xlabel("dimension")
    ax.set_ylabel("share of all contributions\nto the mean cosine")
    return ax


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
    """Plot points along two principal directions, coloured by label.

    Args:
        X: (n, d) vectors in any array, or a Space.
        labels: one label for each row; by default those of the Space.
        components: the two directions, counted from 1.
        n_points: the number of points to draw, chosen at random.
        seed: the seed of the choice.
        ax: the Axes to draw on; by default those of a new figure.
        principal: the principal directions, if they are known already.

    >>> ax = plot_scatter([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [0, 0, 1, 1])
    >>> len(ax.collections)
    2
    """
    check_seed(seed)
    matrix = as_matrix(X).detach()
    principal = principal or Principal.of(matrix)
    if not all(1 <= one <= principal.rank for one in components):
        wanted = f"two of 1 to {principal.rank}, the rank"
        raise InputError(argument="components", got=components, wanted=wanted)
    rows = torch.randperm(len(matrix), generator=torch.Generator().manual_seed(seed))[:n_points]
    places = principal.coordinates(matrix[rows.to(matrix.device)]).cpu().numpy()
    xy = places[:, [one - 1 for one in components]]
    known = X.labels if labels is None and isinstance(X, Space) else labels
    ax = axes_for(ax, (3.4, 3.0))
    dots: dict[str, Any] = {"linewidths": 0, "rasterized": True, "s": 5, "alpha": 0.65}
    if known is None:
        ax.scatter(xy[:, 0], xy[:, 1], color=PALETTE[0], **dots | {"s": 4, "alpha": 0.6})
    else:
        coded = as_clusters(known, n=len(matrix))
        codes = coded.codes.cpu()[rows].numpy()
        for code in np.unique(codes):  # 6 shapes and 7 colours distinguish 42 labels
            x, y = xy[codes == code].T
            color, marker = _COLORS[code % len(_COLORS)], _MARKERS[code % len(_MARKERS)]
            ax.scatter(x, y, color=color, marker=marker, label=_plain(coded.names[code]), **dots)
        if coded.n_labels <= _MOST_NAMED:
            beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
            ax.legend(frameon=False, fontsize=6, markerscale=1.6, handletextpad=0.1, **beside)
    ax.set_xlabel(f"principal direction {components[0]}")
    ax.set_ylabel(f"principal direction {components[1]}")
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def plot_silhouette(X: Any, labels: Any = None, *, seed: int = 0, ax: Axes | None = None) -> Axes:
    """Plot the silhouette of each label: its mean, and the middle 50 % and 80 % of its points.

    Args:
        X: (n, d) vectors in any array, a Space, or Silhouettes.
        labels: one label for each row; by default those of the Space.
        seed: the seed of the sample, where silhouettes are estimated.
        ax: the Axes to draw on; by default those of a new figure.

    >>> X = [[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]]
    >>> [text.get_text() for text in plot_silhouette(X, ["a", "a", "b", "b"]).get_yticklabels()]
    ['a', 'b']
    """
    if isinstance(X, Silhouettes):
        silhouettes = X
    else:
        space = Space(as_matrix(X), labels=known_rows(X, labels, "labels"))
        silhouettes = Silhouettes.of(Statistics(space, seed=seed), rows=torch.arange(0))
    ranked = sorted(silhouettes.labels, key=lambda label: -label.mean)
    half = _MOST_ROWS // 2
    shown = ranked if len(ranked) <= _MOST_ROWS else ranked[:half] + ranked[-half:]
    ax = axes_for(ax, (3.4, max(1.2, 0.14 * len(shown) + 0.6)))
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


def plot_frontier(X: Any, labels: Any = None, *, ax: Axes | None = None) -> Axes:
    """Plot a space below the highest IsoScore that is possible for each share of variance between labels.

    Args:
        X: (n, d) vectors in any array, a Space, or a ScatterDecomposition.
        labels: one label for each row; by default those of the Space.
        ax: the Axes to draw on; by default those of a new figure.

    >>> X = [[1.0, 0.1], [1.0, -0.1], [-1.0, 0.1], [-1.0, -0.1]]
    >>> plot_frontier(X, ["a", "a", "b", "b"]).get_ylabel()
    'IsoScore'
    """
    split = X if isinstance(X, ScatterDecomposition) else scatter_decomposition(X, labels)
    shares, top = frontier_curve(split.n_labels, split.n_dims)
    ax = axes_for(ax)
    ax.fill_between(shares, top, 1, color="#eef1f4", linewidth=0)
    ax.plot(shares, top, color=INK, linewidth=1)
    room = split.between_share, split.isoscore, split.ceiling
    ax.vlines(*room, colors=PALETTE[0], linewidth=0.8, linestyle=":")
    ax.plot(split.between_share, split.isoscore, "o", color=PALETTE[0], markersize=4)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("share of the variance between labels")
    ax.set_ylabel("IsoScore")
    return ax


def _plain(name: Any) -> str:
    """Return a label as text for matplotlib: `$` starts no formula, and `_` hides no legend entry."""
    text = " ".join(str(name).split())
    text = shortened(text, 28).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def plot_trajectory(
    run: str | os.PathLike[str] | Trajectory, *, metric: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot one column of a training run against the updates: the mean and the range over seeds.

    Args:
        run: a Trajectory, or the folder of a training run.
        metric: the column to plot: a metric, "loss" or "accuracy"; by default the first metric.
        ax: the Axes to draw on; by default those of a new figure.

    >>> import numpy as np
    >>> columns = {"seed": np.array([0, 0]), "step": np.array([0, 1]), "loss": np.array([2.0, 1.0])}
    >>> plot_trajectory(Trajectory(columns, {}, 4), metric="loss").get_ylabel()
    'loss'
    """
    return load_run(run).plot(metric, ax=ax)


def write_figures(evidence: Evidence, folder: Path) -> Iterator[Path]:
    """Write every plot of a report as PDF and PNG, and yield the paths of the files."""
    e = evidence
    plots: dict[str, Callable[[], Axes]] = {"spectrum": lambda: plot_spectrum(e.principal)}
    if e.cosines is not None:
        plots["cosines"] = lambda: plot_cosines(e.cosines)
        plots["dimensions"] = lambda: plot_dimensions(e.shelf.directions)
    if e.principal.rank > 1:
        plots["scatter"] = lambda: plot_scatter(e.space, principal=e.principal, seed=e.seed)
    if e.silhouettes is not None:
        plots["silhouette"] = lambda: plot_silhouette(e.silhouettes)
        plots["frontier"] = lambda: plot_frontier(e.split)
    if e.run is not None:
        for metric in ("loss", *e.run.metrics):
            plots[f"trajectory-{metric.replace('@', '-')}"] = partial(plot_trajectory, e.run, metric=metric)
    for name, plot in plots.items():
        with new_figure(ONE_COLUMN):  # the style applies while the plot is drawn and saved
            figure = figure_of(plot())
            for kind in ("pdf", "png"):
                yield save_figure(figure, folder / f"{name}.{kind}")
