"""Intrinsic dimension over scales: Gride and the correlation dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, UndefinedError, check_whole
from isoscope.metrics.manifold import distinct_neighbors
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.metrics.thresholds import local_directions
from isoscope.results import Result
from isoscope.statistics.close_pairs import CLOSE_NEIGHBORS, ClosePairs, median_radii
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.neighbors import Neighbors, distinct_rows

_GRIDE_NEIGHBORS = 16
_MAX_STEPS = 100  # of Newton's method
_PRECISION = 1e-13
_Z95 = 1.959964  # two-sided 95 % point of the normal distribution
_MAX_K = 64

_metric = family(
    "manifold",
    range=(0.0, math.inf),
    high="high-dimensional manifold",
    invariances=ALL_INVARIANCES,
    default=False,
    biased_by_rows=True,
)


@_metric(
    needs=("distinct_neighbors",),
    call=lambda metric, shelf: metric(_of_rank(distinct_neighbors(shelf), 2 * _GRIDE_NEIGHBORS)),
    paper="Denti, Doimo, Laio, Mira 2022, The generalized ratios intrinsic dimension estimator",
    sentence=lambda value: f"{local_directions(value)}, by the 16th and the 32nd neighbours",
    error=lambda shelf: gride_error(shelf.distinct_neighbors, _GRIDE_NEIGHBORS),
)
def gride(X: Any, *, k: int = _GRIDE_NEIGHBORS) -> float:
    """Compute the intrinsic dimension from the ratio of the 2k-th to the k-th neighbour's distance.

        the d that maximises Σ_i log f(μ_i),   μ = r_2k/r_k,   f(μ) ∝ d (μ^d − 1)^(k−1) / μ^((2k−1)d + 1)

    k sets the scale: k = 1 is the maximum-likelihood form of TwoNN, and a larger k looks farther from each
    point and is less affected by noise. Rows that equal each other count as one, and zero vectors are left
    out. Range [0, ∞); high means a high-dimensional manifold. Invariant to rotation, translation and scale.
    Paper: Denti et al. 2022.

    Args:
        X: (n, d) vectors in any array, or Neighbors, of which points with r_k = 0 are dropped.
        k: the rank of the nearer neighbour; there must be more than 2k different points.

    >>> import numpy as np
    >>> bool(abs(gride(np.random.default_rng(0).uniform(size=(2000, 2)) @ np.ones((2, 5))) - 1) < 0.1)
    True
    """
    k = check_whole("k", k)
    distances = Neighbors.of_distinct(X, k=2 * k, metric="euclidean").distances
    return _most_likely(_log_ratios(distances[:, k - 1], distances[:, -1]), k)


def gride_error(neighbors: Neighbors, k: int) -> float:
    """Return the standard error of `gride`, with ψ_i the influence of point i on the estimate:

        1/n √(Σ_i ψ_i² + Σ_i Σ_{j among the 2k nearest of i} ψ_i ψ_j)

    Points share neighbours, so the second sum is needed: the inverse Fisher information alone is too small.
    """
    near, far = neighbors.distances[:, k - 1], neighbors.distances[:, 2 * k - 1]
    present = near > 0
    logs = torch.where(present, (far / near).log(), 0.0)
    d = _most_likely(logs[present], k)
    slopes, bends = _derivatives(logs, d, k)
    influence = torch.where(present, slopes / bends[present].mean(), 0.0)
    shared = influence @ influence[neighbors.indices[:, : 2 * k]].sum(dim=1)
    own = influence @ influence
    return float((own + shared.clamp(min=0)).sqrt() / int(present.sum()))


def _of_rank(neighbors: Neighbors, rank: int) -> Neighbors:
    if neighbors.k < rank:
        raise UndefinedError(f"gride needs more than {rank} points; there are {neighbors.k + 1}")
    return neighbors


def _log_ratios(near: Tensor, far: Tensor) -> Tensor:
    present = near > 0
    return (far[present] / near[present]).log()


def _most_likely(logs: Tensor, k: int) -> float:
    """Return the root of the derivative of the log-likelihood, which falls in d, by Newton's method."""
    n, total = len(logs), float(logs.sum())
    if not total > 0:
        raise UndefinedError(f"gride is undefined: no point has neighbours {k} and {2 * k} at two distances")
    d = n * math.fsum(1 / rank for rank in range(k, 2 * k)) / total  # the expected ratio fits the mean
    if k == 1:
        return d
    for _ in range(_MAX_STEPS):
        slopes, bends = _derivatives(logs, d, k)
        step = max(float(slopes.sum() / bends.sum()), -d / 2)
        d += step
        if abs(step) <= _PRECISION * d:
            break
    return d


def _derivatives(logs: Tensor, d: float, k: int) -> tuple[Tensor, Tensor]:
    """Return each point's first derivative of the log-likelihood in d, and minus its second."""
    decay = torch.expm1(-d * logs).neg_()
    share = torch.where(decay > 0, logs / decay, 1 / d)  # 1/d is the limit for equal distances
    return 1 / d + (k - 1) * share - (2 * k - 1) * logs, 1 / d**2 + (k - 1) * share.square() * (1 - decay)


@_metric(
    needs=("close_pairs",),
    call=lambda _metric, shelf: _slope(_noted(shelf).close_pairs, 0),
    paper="Grassberger, Procaccia 1983, Measuring the strangeness of strange attractors",
    sentence=lambda value: f"{local_directions(value)}, by the growth of close pairs with the distance",
    error=lambda shelf: _slope_error(shelf.close_pairs, 0),
)
def correlation_dimension(X: Any, *, k: int = CLOSE_NEIGHBORS) -> float:
    """Compute the exponent with which the number of pairs grows with their distance.

        (log C(r₂) − log C(r₁)) / (log r₂ − log r₁),   C(r) the share of pairs closer than r

    over all pairs, with r₁ and r₂ the median distances to the k-th and the 2k-th neighbour. Rows that equal
    each other count as one, and zero vectors are left out. Range [0, ∞); high means a high-dimensional
    manifold. Invariant to rotation, translation and scale. Paper: Grassberger and Procaccia 1983.

    Args:
        X: (n, d) vectors in any array.
        k: sets the scale; there must be more than 2k different points.

    >>> import numpy as np
    >>> bool(abs(correlation_dimension(np.random.default_rng(0).uniform(size=(1000, 2))) - 2) < 0.2)
    True
    """
    k = check_whole("k", k)
    points = _distinct(X)
    neighbors = Neighbors.of(points, k=2 * k)
    return _slope(ClosePairs.of(points, median_radii(neighbors, (k, 2 * k))), 0)


def _noted(shelf: Statistics) -> Statistics:
    distinct_neighbors(shelf)
    return shelf


def _distinct(X: Any) -> Tensor:
    points = as_matrix(X).detach()
    return points[distinct_rows(points)]


def _slope(pairs: ClosePairs, column: int) -> float:
    """Return the growth of the number of pairs from the radius of a column to the next."""
    near, far = pairs.radii[column : column + 2].tolist()
    counts = pairs.counts[:, column : column + 2].double().sum(dim=0)
    if not (0 < near < far and bool(counts[0] > 0)):
        raise UndefinedError(
            f"correlation_dimension is undefined: the radii are {near:.4g} and {far:.4g}, and "
            f"{int(counts[0]) // 2:,} pairs are closer than the first"
        )
    return float((counts[1] / counts[0]).log()) / math.log(far / near)


def _slope_error(pairs: ClosePairs, column: int) -> float:
    """Return the standard error of `_slope`: both counts are means over pairs (Hoeffding 1948).

    The radii count as known: where the growth is a power of the distance, it does not depend on them.
    """
    near, far = pairs.radii[column : column + 2].tolist()
    counts = pairs.counts[:, column : column + 2].double()
    shares = counts / counts.mean(dim=0)
    influence = 2 * (shares[:, 1] - shares[:, 0]) / math.log(far / near)
    return float(influence.std() / math.sqrt(len(influence)))


@dataclass(frozen=True)
class DimensionAtScale:
    """The intrinsic dimension at one scale.

    Attributes:
        method: "gride" or "correlation_dimension".
        k: the rank of the nearer neighbour.
        distance: the mean of the mean (of the correlation dimension: median) distances to the k-th and the
            2k-th neighbour.
        value: the dimension; None where it is undefined.
        standard_error: of the value.
    """

    method: str
    k: int
    distance: float
    value: float | None
    standard_error: float | None

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95 % interval."""
        if self.value is None or self.standard_error is None:
            return None, None
        half = _Z95 * self.standard_error
        return max(self.value - half, 0.0), self.value + half


@dataclass(frozen=True, repr=False)
class DimensionScales(Result):
    """The intrinsic dimension over scales, as `dimension_scales` returns it.

    Attributes:
        n: the number of points.
        rows: the dimension at each scale, by one method after the other.
    """

    n: int
    rows: Sequence[DimensionAtScale]

    @property
    def title(self) -> str:
        """What was measured."""
        return f"intrinsic dimension of {self.n:,} points over scales"

    def of_method(self, method: str) -> list[DimensionAtScale]:
        """Return the scales at which a method has a value."""
        return [row for row in self.rows if row.method == method and row.value is not None]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        names = [field.name for field in fields(DimensionAtScale)]
        columns = {name: [getattr(row, name) for row in self.rows] for name in names}
        low, high = zip(*(row.interval for row in self.rows), strict=True)
        return {**columns, "low": low, "high": high}


def dimension_scales(X: Any, *, max_k: int = _MAX_K) -> DimensionScales:
    """Compute Gride and the correlation dimension at k = 1, 2, 4, …, with standard errors.

    A dimension that stays the same over several scales is that of a manifold. One that falls with the
    distance shows noise at small scales; one that rises, clusters or a curved manifold. Rows that equal each
    other count as one, and zero vectors are left out.

    Args:
        X: (n, d) vectors in any array.
        max_k: the largest k; also limited by 2k < n.

    >>> import numpy as np
    >>> scales = dimension_scales(np.random.default_rng(0).uniform(size=(500, 2)), max_k=4)
    >>> [(row.k, round(row.value)) for row in scales.of_method("gride")]
    [(1, 2), (2, 2), (4, 2)]
    """
    max_k = check_whole("max_k", max_k)
    points = _distinct(X)
    n = len(points)
    ranks = [2**power for power in range(max_k.bit_length()) if 2 ** (power + 1) < n]
    if not ranks:
        raise InputError(f"has {n} rows", argument="X", wanted="at least 3")
    most = 2 * ranks[-1]
    neighbors = Neighbors.of(points, k=most)
    radii = median_radii(neighbors, [*ranks, most])
    pairs = ClosePairs.of(points, radii)
    rows = []
    for k in ranks:
        distance = float(neighbors.distances[:, [k - 1, 2 * k - 1]].mean())
        figures = _defined(lambda k: (gride(neighbors, k=k), gride_error(neighbors, k)), k)
        rows.append(DimensionAtScale("gride", k, distance, *figures))
    for column, k in enumerate(ranks):
        distance = float(radii[column : column + 2].mean())
        figures = _defined(lambda column: (_slope(pairs, column), _slope_error(pairs, column)), column)
        rows.append(DimensionAtScale("correlation_dimension", k, distance, *figures))
    return DimensionScales(n, rows)


def _defined(
    compute: Callable[[int], tuple[float, float]], scale: int
) -> tuple[float, float] | tuple[None, None]:
    try:
        return compute(scale)
    except UndefinedError:
        return None, None
