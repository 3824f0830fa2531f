"""Local intrinsic dimension and hubness, from nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, like
from isoscope.errors import InputError, UndefinedError, check_between
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.metrics.thresholds import hubs, local_directions
from isoscope.printable import counted
from isoscope.statistics.directions import has_direction
from isoscope.statistics.equal_rows import first_equal_rows
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.neighbors import Neighbors

_LID_NEIGHBORS = 100
HUB = 5  # times the mean k-occurrence, from which on a row is called a hub
HUBNESS_NEIGHBORS = 10
_DISCARD = 0.1  # share of the largest ratios that TwoNN leaves out
_FEW = 30  # points, whose TwoNN has a relative error of about 1/√30, a fifth
_GROUPS = 25  # of points, left out in turn for a standard error


_metric = family(
    "manifold",
    needs=("distinct_neighbors",),
    range=(0.0, math.inf),
    invariances=ALL_INVARIANCES,
    default=False,
)


def distinct_neighbors(shelf: Statistics) -> Neighbors:
    """Return the neighbours of different rows from a shelf, with a note on the rows that are left out."""
    neighbors = shelf.distinct_neighbors
    n_left_out = len(neighbors.distances) - int(neighbors.has_any.sum())
    if n_left_out and shelf.has_rows:
        n_copies = n_left_out - int((~has_direction(shelf.vectors)).sum())
        note = f"dimensions and hubness leave out {counted(n_copies, 'row')} equal to another"
        if n_copies and note not in shelf.notes:
            shelf.notes.append(note)
    return neighbors


def lid_samples(X: Any, *, k: int = _LID_NEIGHBORS, squared: bool = False) -> Any:
    """Compute the local intrinsic dimension at every point by maximum likelihood over k nearest neighbours.

        LID = −1/mean_{i<k} log(r_i/r_k)

    with r_i the distance to the i-th neighbour (the mean over i = 1 … k−1, so without the term that
    is always 0). Rows that equal each other count as one, and each has its value; a point whose neighbours
    are all equally far has no dimension and reads NaN here, as does a zero vector, which is left out. Range
    [0, ∞). Invariant to rotation, translation and scale. Paper: Levina and Bickel 2004; Amsaleg et al. 2015.

    Args:
        X: (n, d) vectors in any array, or Neighbors, whose distances of 0 are dropped.
        k: how many neighbours.
        squared: feed squared distances, as Cai et al. 2021's released code does; it halves the value.

    >>> import numpy as np
    >>> plane = np.random.default_rng(0).normal(size=(2000, 2)) @ np.ones((2, 5))
    >>> bool(abs(np.nanmean(lid_samples(plane, k=20)) - 1) < 0.2)
    True
    """
    neighbors = Neighbors.of_distinct(X, k=k, metric="euclidean")
    return like(_with_copies(_lid(neighbors.distances, squared), neighbors, X), X)


@_metric(
    call=lambda metric, shelf: metric(distinct_neighbors(shelf), k=shelf.distinct_neighbors.k),
    high="locally high-dimensional",
    paper="Levina, Bickel 2004; Amsaleg et al. 2015; as used by Cai et al. 2021",
    sentence=lambda value: f"{local_directions(value)}, by {_LID_NEIGHBORS} neighbours",
)
def lid(X: Any, *, k: int = _LID_NEIGHBORS, squared: bool = False) -> float:
    """Compute the mean local intrinsic dimension over the points that have one; see `lid_samples`."""
    values = _lid(Neighbors.of_distinct(X, k=k, metric="euclidean").distances, squared)
    defined = values[torch.isfinite(values)]
    if not len(defined):
        raise UndefinedError(
            f"lid is undefined: no point has neighbours at different distances among its {k} nearest"
        )
    return float(defined.mean())


@_metric(
    call=lambda metric, shelf: metric(_noted_if_few(shelf)),
    high="high-dimensional manifold",
    paper="Facco, d'Errico, Rodriguez, Laio 2017, Estimating the intrinsic dimension",
    sentence=lambda value: f"{local_directions(value)}, by the two nearest neighbours",
    error=lambda shelf: _twonn_error(shelf.distinct_neighbors),
    biased_by_rows=True,
)
def twonn(X: Any, *, discard: float = _DISCARD) -> float:
    """Compute the intrinsic dimension from the ratio of the second to the first neighbour's distance.

        log(1 − F(μ)) = −d·log μ,   μ = r₂/r₁

    a line through the origin fitted to all but the largest `discard` share of the ratios, as the
    authors do. Rows that equal each other count as one, and zero vectors are left out. Range [0, ∞).
    Invariant to rotation, translation and scale. Paper: Facco et al. 2017.

    Args:
        X: (n, d) vectors in any array, or Neighbors of rows that differ.
        discard: the share of the largest ratios to leave out, in [0, 1).

    >>> import numpy as np
    >>> bool(abs(twonn(np.random.default_rng(0).normal(size=(2000, 3))) - 3) < 0.3)
    True
    """
    check_between("discard", discard, 0, 1, wanted="a share in [0, 1)", open_at="high")
    neighbors = Neighbors.of_distinct(X, k=2, metric="euclidean", at_most=True)
    if isinstance(X, Neighbors) and bool((neighbors.distances[:, 0] == 0).any()):
        raise InputError(
            "has rows at distance 0", argument="X", wanted="vectors, or Neighbors of rows that differ"
        )
    return _slope(_log_ratios(neighbors.distances)[0], discard)


def _noted_if_few(shelf: Statistics) -> Neighbors:
    neighbors = distinct_neighbors(shelf)
    n = int(neighbors.has_any.sum())
    if n < _FEW:
        note = f"twonn of {counted(n, 'point')} is a guess: its relative error is about 1/√n, {n**-0.5:.0%}"
        if note not in shelf.notes:
            shelf.notes.append(note)
    return neighbors


def _with_copies(values: Tensor, neighbors: Neighbors, X: Any) -> Tensor:
    """Return (n,) values of rows, where one that was left out has that of the first row equal to it."""
    if isinstance(X, Neighbors) or bool(neighbors.has_any.all()):
        return values
    return torch.where(neighbors.has_any, values, values[first_equal_rows(as_matrix(X).detach())])


def _log_ratios(distances: Tensor) -> tuple[Tensor, Tensor]:
    """Return log(r₂/r₁) of the points with r₁ > 0, the smallest first, and which points they are."""
    if distances.shape[1] < 2:
        raise UndefinedError("twonn needs points with two different neighbours; there are 2 points")
    points = (distances[:, 0] > 0).nonzero().flatten()
    distances = distances[points]
    ratios, order = (distances[:, 1] / distances[:, 0]).log().sort()
    return ratios, points[order]


def _slope(ratios: Tensor, discard: float = _DISCARD) -> float:
    n = len(ratios)
    kept = min(int(n * (1 - discard)), n - 1)  # the largest has F = 1, whose logarithm is not finite
    x = ratios[:kept]
    if kept < 2 or not x @ x > 0:
        raise UndefinedError(
            f"twonn needs points with two different neighbours; {n} points have a nearest one"
        )
    ranks = torch.arange(1, kept + 1, dtype=torch.float64, device=x.device)
    y = -torch.log1p(-ranks / n)
    return float((x @ y) / (x @ x))


def _twonn_error(neighbors: Neighbors) -> float:
    distances = neighbors.distances[neighbors.has_any]
    ratios, points = _log_ratios(distances)  # sorted once: what is left without some of them is sorted too
    groups = _groups(distances)[points]
    return _left_out_error([_slope(ratios[groups != group]) for group in range(_n_groups(distances))])


def k_occurrence(X: Any, *, k: int = HUBNESS_NEIGHBORS) -> Any:
    """Count how often each point is among the k nearest neighbours of another; the mean is k.

    Rows that equal each other count as one point, and each has its count. Zero vectors are left out: their
    count is 0.

    Args:
        X: (n, d) vectors in any array, or Neighbors.
        k: how many neighbours.

    >>> k_occurrence([[1.0], [2.0], [4.0]], k=1)
    array([1, 2, 0])
    """
    neighbors = Neighbors.of_distinct(X, k=k)
    return like(_with_copies(_occurrences(neighbors), neighbors, X), X)


@_metric(
    call=lambda metric, shelf: metric(
        distinct_neighbors(shelf), k=min(HUBNESS_NEIGHBORS, shelf.distinct_neighbors.k)
    ),
    range=(-math.inf, math.inf),
    high="a few hubs are everyone's neighbour",
    better="low",
    paper="Radovanović, Nanopoulos, Ivanović 2010, Hubs in space",
    sentence=hubs,
    error=lambda shelf: _hubness_error(
        _searched_occurrences(
            shelf.distinct_neighbors.nearest(min(HUBNESS_NEIGHBORS, shelf.distinct_neighbors.k))
        )
    ),
    biased_by_rows=True,
)
def hubness(X: Any, *, k: int = HUBNESS_NEIGHBORS) -> float:
    """Compute the skewness of the k-occurrence: how unequally points serve as neighbours.

        E[(N_k − mean)³]/sd³

    0 where all serve alike; above 1 a few hubs are everyone's neighbour and many points are nobody's. Rows
    that equal each other count as one: all copies of a row are equally near to a point, so which of them are
    among its k neighbours is chance, and the copies that come first would look like hubs. Zero vectors are
    left out. Unbounded. Invariant to rotation, translation and scale. Paper: Radovanović et al. 2010.

    Args:
        X: (n, d) vectors in any array, or Neighbors.
        k: how many neighbours.

    >>> hubness([[1.0], [2.0], [4.0]], k=1)
    0.0
    """
    return _skewness(_searched_occurrences(Neighbors.of_distinct(X, k=k)))


def hubs_of(counts: Tensor, mean: float) -> Tensor:
    """Return the hubs, the greatest first: rows that are neighbours `HUB` times as often as the mean.

    >>> hubs_of(torch.tensor([1, 9, 0, 2]), mean=1.5).tolist()
    [1]
    """
    order = counts.argsort(descending=True, stable=True)
    return order[: int((counts >= HUB * mean).sum())]


def _skewness(counts: Tensor) -> float:
    counts = counts.double()
    centred = counts - counts.mean()
    deviation = centred.square().mean().sqrt()
    if deviation == 0:
        return 0.0  # every point serves exactly alike
    return float((centred / deviation).pow(3).mean())


def _lid(distances: Tensor, squared: bool) -> Tensor:
    """Return (n,) LID from sorted neighbour distances; NaN where it is undefined."""
    farthest = distances[:, -1:]
    present = distances > 0
    present[:, -1] = False  # log(r_k/r_k) = 0 carries nothing
    logs = torch.where(present, torch.log(distances / farthest), 0.0)
    mean_log = logs.sum(dim=1) / present.sum(dim=1)
    return torch.where(mean_log < 0, -1 / mean_log, torch.nan) / (2 if squared else 1)


def _occurrences(neighbors: Neighbors) -> Tensor:
    indices = neighbors.indices[neighbors.has_any]
    return torch.bincount(indices.flatten(), minlength=neighbors.indices.shape[0])


def _searched_occurrences(neighbors: Neighbors) -> Tensor:
    return _occurrences(neighbors)[neighbors.has_any]


def _hubness_error(counts: Tensor) -> float:
    groups = _groups(counts)
    return _left_out_error([_skewness(counts[groups != group]) for group in range(_n_groups(counts))])


def _n_groups(points: Tensor) -> int:
    return min(_GROUPS, len(points))


def _groups(points: Tensor) -> Tensor:
    """Return (n,) the group of each point in a jackknife."""
    return torch.arange(len(points), device=points.device) % _n_groups(points)


def _left_out_error(values: Sequence[float]) -> float:
    """Return the standard error of a value from those without each group of points, by the jackknife.

    The points count as independent. In simulations on Gaussian data the result is 0.8 to 1.2 times the
    standard deviation over independent samples.
    """
    n_groups = len(values)
    mean = math.fsum(values) / n_groups
    spread = math.fsum((value - mean) ** 2 for value in values)
    return math.sqrt((n_groups - 1) / n_groups * spread)
