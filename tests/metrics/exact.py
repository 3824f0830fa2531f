"""Metrics in decimal arithmetic of 120 digits: the oracle for spaces where float64 sums would lose digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cached_property, wraps
from typing import Any

import mpmath
import numpy as np

_DIGITS = 120
_root = np.frompyfunc(Decimal.sqrt, 1, 1)


def _in_decimals(function: Callable[[Exact], Any]) -> Callable[[Exact], Any]:
    @wraps(function)
    def exactly(self: Exact) -> Any:
        with localcontext() as context:
            context.prec = _DIGITS
            return function(self)

    return exactly


class Exact:
    """One space, every operation to 120 digits; a metric's value by its name."""

    def __init__(self, X: np.ndarray, labels: Sequence[int]) -> None:
        self.n, self.d = X.shape
        self.X = np.frompyfunc(Decimal, 1, 1)(X.astype(np.float64).astype(object))
        self.labels = np.asarray(labels)
        self.names = np.unique(self.labels)

    def __getitem__(self, name: str) -> float:
        return float(getattr(self, name))

    @cached_property
    @_in_decimals
    def _centred(self) -> np.ndarray:
        return self.X - self.X.sum(axis=0) / self.n

    @cached_property
    @_in_decimals
    def _scatter(self) -> np.ndarray:
        return self._centred.T.dot(self._centred)

    @cached_property
    @_in_decimals
    def participation_ratio(self) -> Decimal:
        return self._scatter.trace() ** 2 / (self._scatter * self._scatter).sum()

    @cached_property
    @_in_decimals
    def isoscore(self) -> Decimal:
        return (self.participation_ratio - 1) / (self.d - 1)

    @cached_property
    @_in_decimals
    def isotropy_defect(self) -> Decimal:
        root = Decimal(self.d).sqrt()
        return ((1 - self.participation_ratio.sqrt() / root) / (1 - 1 / root)).sqrt()

    @cached_property
    @_in_decimals
    def isoscore_debiased(self) -> Decimal:
        """Himeno and Yamada's estimates, from S = A/(n − 1) and Q = Σ‖u‖⁴/(n − 1)."""
        n, S = Decimal(self.n), self._scatter / (self.n - 1)
        trace, square = S.trace(), (S * S).sum()
        Q = ((self._centred * self._centred).sum(axis=1) ** 2).sum() / (n - 1)
        common = (n - 1) / (n * (n - 2) * (n - 3))
        of_square = common * ((n - 1) * (n - 2) * square + trace**2 - n * Q)
        squared = common * (2 * square + (n * n - 3 * n + 1) * trace**2 - n * Q)
        return (squared / of_square - 1) / (self.d - 1)

    @cached_property
    def _eigenvalues(self) -> list[Any]:
        with mpmath.workdps(50):
            values = mpmath.eigsy(mpmath.matrix([[str(x) for x in row] for row in self._scatter]), True)
            return [max(value, mpmath.mpf(0)) for value in values]

    @cached_property
    def effective_rank(self) -> float:
        with mpmath.workdps(50):
            total = mpmath.fsum(self._eigenvalues)
            shares = [value / total for value in self._eigenvalues if value > total * mpmath.mpf("1e-45")]
            return float(mpmath.exp(-mpmath.fsum(p * mpmath.log(p) for p in shares)))

    @cached_property
    def stable_rank(self) -> float:
        return float(mpmath.fsum(self._eigenvalues) / max(self._eigenvalues))

    @cached_property
    @_in_decimals
    def _norms(self) -> np.ndarray:
        return _root((self.X * self.X).sum(axis=1))

    @cached_property
    @_in_decimals
    def _units(self) -> np.ndarray:
        return self.X / self._norms[:, None]

    @cached_property
    @_in_decimals
    def mean_norm(self) -> Decimal:
        return self._norms.sum() / self.n

    @cached_property
    @_in_decimals
    def norm_variation(self) -> Decimal:
        gaps = self._norms - self.mean_norm
        return ((gaps * gaps).sum() / self.n).sqrt() / self.mean_norm

    @cached_property
    @_in_decimals
    def mean_cosine(self) -> Decimal:
        return _pair_cosine(self._units)

    @cached_property
    @_in_decimals
    def top_dimension_share(self) -> Decimal:
        total = self._units.sum(axis=0)
        parts = np.abs(total * total - (self._units * self._units).sum(axis=0))
        return parts.max() / parts.sum()

    @cached_property
    @_in_decimals
    def self_similarity(self) -> Decimal:
        return sum(_pair_cosine(self._units[rows]) for rows in self._groups) / len(self.names)

    @cached_property
    @_in_decimals
    def s_inter(self) -> Decimal:
        means = np.array([self._units[rows].sum(axis=0) / rows.sum() for rows in self._groups])
        K, total = len(means), means.sum(axis=0)
        return (total.dot(total) - (means * means).sum()) / (K * (K - 1))

    @cached_property
    def _groups(self) -> list[np.ndarray]:
        return [self.labels == name for name in self.names]

    @cached_property
    @_in_decimals
    def _means(self) -> np.ndarray:
        return np.array([self.X[rows].sum(axis=0) / int(rows.sum()) for rows in self._groups])

    @cached_property
    @_in_decimals
    def _within(self) -> np.ndarray:
        """(n,) squared distances to the mean of the label."""
        steps = self.X - self._means[np.searchsorted(self.names, self.labels)]
        return (steps * steps).sum(axis=1)

    @cached_property
    @_in_decimals
    def between_share(self) -> Decimal:
        return 1 - self._within.sum() / self._scatter.trace()

    @cached_property
    @_in_decimals
    def calinski_harabasz(self) -> Decimal:
        K, within = len(self.names), self._within.sum()
        return (self._scatter.trace() - within) / (K - 1) / (within / (self.n - K))

    @cached_property
    @_in_decimals
    def davies_bouldin(self) -> Decimal:
        spreads = [_root(self._within[rows]).sum() / int(rows.sum()) for rows in self._groups]
        gaps = _root(_squares(self._means))
        K = range(len(self.names))
        return sum(max((spreads[k] + spreads[m]) / gaps[k, m] for m in K if m != k) for k in K) / len(K)

    @cached_property
    @_in_decimals
    def _pair_squares(self) -> np.ndarray:
        return _squares(self.X)

    @cached_property
    @_in_decimals
    def dunn_index(self) -> Decimal:
        same = self.labels[:, None] == self.labels
        return (self._pair_squares[~same].min() / self._pair_squares[same].max()).sqrt()

    @cached_property
    @_in_decimals
    def silhouette(self) -> Decimal:
        return self._silhouettes(_root(self._pair_squares)).sum() / self.n

    @cached_property
    @_in_decimals
    def silhouette_macro(self) -> Decimal:
        scores = self._silhouettes(_root(self._pair_squares))
        return sum(scores[rows].sum() / int(rows.sum()) for rows in self._groups) / len(self.names)

    @cached_property
    @_in_decimals
    def silhouette_squared(self) -> Decimal:
        return self._silhouettes(self._pair_squares).sum() / self.n

    @cached_property
    @_in_decimals
    def silhouette_cosine(self) -> Decimal:
        return self._silhouettes(_squares(self._units)).sum() / self.n

    def _silhouettes(self, distances: np.ndarray) -> np.ndarray:
        sums = np.array([distances[:, rows].sum(axis=1) for rows in self._groups])
        counts = [int(rows.sum()) for rows in self._groups]
        scores = np.full(self.n, Decimal(0))
        for i, own in enumerate(np.searchsorted(self.names, self.labels)):
            if counts[own] > 1:
                a = sums[own, i] / (counts[own] - 1)
                b = min(sums[k, i] / counts[k] for k in range(len(counts)) if k != own)
                scores[i] = (b - a) / max(a, b) if max(a, b) > 0 else Decimal(0)
        return scores


def _pair_cosine(units: np.ndarray) -> Decimal:
    n, total = len(units), units.sum(axis=0)
    return (total.dot(total) - n) / (n * (n - 1))


def _squares(X: np.ndarray) -> np.ndarray:
    steps = X[:, None] - X
    return (steps * steps).sum(axis=2)


def error(value: float, wanted: float) -> float:
    """Return how far a value is off, relative to what is wanted or, where that is under 1, absolutely."""
    return abs(value - wanted) / max(1.0, abs(wanted)) if math.isfinite(value) else math.inf
