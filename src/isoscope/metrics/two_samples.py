"""How two samples of different items differ: in their means, their total variance, their covariances.

Each is a formula over the `Moments` of both samples, which merge: no vector is needed again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isoscope.errors import ShapeError, UndefinedError
from isoscope.statistics.intervals import Z95
from isoscope.statistics.moments import Moments

_FEWEST = 4  # rows of a sample: an unbiased tr Σ² needs quadruples


class Estimate(NamedTuple):
    """A value and its standard error."""

    value: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by the normal distribution."""
        half = Z95 * self.standard_error
        return self.value - half, self.value + half


def mean_shift(X: Any, Y: Any) -> Estimate:
    """Compute the share of the variance of two samples together that lies between their means, without bias.

        D/(D + 2 (tr S + tr T)),   D = ‖x̄ − ȳ‖² − tr S/n − tr T/m

    with S, T the covariances. `modality_gap` is the same number of pairs. Range about [−1/(n + m), 1]: 0 on
    average where the means are equal, 1 where nothing else varies. Invariant to one rotation, translation and
    scale of both samples. The standard error is that of the delta method.

    Args:
        X, Y: (n, d) and (m, d) vectors, or their Moments.

    >>> round(mean_shift([[0.0, 1.0], [0.0, -1.0]], [[4.0, 1.0], [4.0, -1.0]]).value, 6)
    0.636364
    """
    first, second = _both(X, Y, "mean_shift", 2)
    n, m = first.count, second.count
    S, T = first.trace / (n - 1), second.trace / (m - 1)
    step = first.mean - second.mean
    squared_distance = step @ step - S / n - T / m
    variance = S + T
    whole = squared_distance + 2 * variance
    by_distance, by_variance = 2 * variance / whole**2, -2 * squared_distance / whole**2
    along = 4 * (step @ first.times(step) / n**2 + step @ second.times(step) / m**2)
    noise = 2 * _squared_noise(first, second)  # of D where the means are equal; `along` has it twice
    of_distance = torch.maximum(along - noise, noise)
    both = 2 * step @ (first.cubic / n**2 - second.cubic / m**2)
    of_variance = _trace_variance(first) + _trace_variance(second)
    squared = (
        by_distance**2 * of_distance + 2 * by_distance * by_variance * both + by_variance**2 * of_variance
    )
    return Estimate(float(squared_distance / whole), math.sqrt(max(float(squared), 0.0)))


def spread_change(X: Any, Y: Any) -> Estimate:
    """Compute how much larger the total variance of Y is than that of X, as a share of the latter.

        tr T/tr S − 1

    Range [−1, ∞): 0 for equal variances, 0.1 for 10 % more. Invariant to rotation, translation, and one scale
    of both samples. The standard error is that of the delta method.

    Args:
        X, Y: (n, d) and (m, d) vectors, or their Moments.

    >>> spread_change([[-1.0], [1.0]], [[-2.0], [2.0]]).value
    3.0
    """
    first, second = _both(X, Y, "spread_change", 2)
    S, T = first.trace / (first.count - 1), second.trace / (second.count - 1)
    squared = _trace_variance(second) / T**2 + _trace_variance(first) / S**2
    ratio = float(T / S)
    return Estimate(ratio - 1, ratio * math.sqrt(max(float(squared), 0.0)))


def covariance_change(X: Any, Y: Any) -> float:
    """Compute how far the covariances of two samples differ, as a share of their squared size, without bias.

        ‖Σ − Τ‖²_F/(‖Σ‖²_F + ‖Τ‖²_F)

    with unbiased estimates of the norms (Himeno and Yamada 2014) and of the product. Range [0, 1], and a
    little below 0 by chance; 0 for equal covariances, 1 where the samples vary in directions that have
    nothing in common. Invariant to one rotation and scale of both samples, and to translation of either.

    Args:
        X, Y: (n, d) and (m, d) vectors, or their Moments.

    >>> X = [[-1.0, 0.0], [1.0, 0.0], [-3.0, 0.0], [3.0, 0.0]]
    >>> covariance_change(X, [[y, x] for x, y in X])
    1.0
    """
    first, second = _both(X, Y, "covariance_change", _FEWEST)
    squares = _squared_covariance(first) + _squared_covariance(second)
    product = (first.scatter * second.scatter).sum() / ((first.count - 1) * (second.count - 1))
    if not squares > 0:
        raise UndefinedError("covariance_change is undefined: the rows are too few to tell a covariance")
    return float(1 - 2 * product / squares)


def _both(X: Any, Y: Any, what: str, fewest: int) -> tuple[Moments, Moments]:
    first, second = Moments.of(X), Moments.of(Y)
    if first.n_dims != second.n_dims:
        raise ShapeError(
            f"has {second.n_dims} dimensions",
            argument="Y",
            wanted=f"{first.n_dims}, as `X` has: both samples are in one space",
        )
    for moments in (first, second):
        moments.need_spread(what)
        if moments.count < fewest:
            raise UndefinedError(
                f"{what} needs at least {fewest} vectors a sample; there are {moments.count}"
            )
    return first, second


def _trace_variance(moments: Moments) -> Tensor:
    """Return the variance of tr S, from Σ‖u‖⁴."""
    n = moments.count
    return (moments.quartic / n - (moments.trace / n) ** 2).clamp(min=0) / n


def _squared_noise(first: Moments, second: Moments) -> Tensor:
    """Return tr (S/n + T/m)², the squares without bias where there are rows enough."""
    n, m = first.count, second.count
    squares = [
        (_squared_covariance(one) if one.count >= _FEWEST else one.squared_frobenius / one.count**2)
        / one.count**2
        for one in (first, second)
    ]
    return sum(squares, 2 * (first.scatter * second.scatter).sum() / (n * m) ** 2).clamp(min=0)


def _squared_covariance(moments: Moments) -> Tensor:
    """Return the unbiased ‖Σ‖²_F of Himeno and Yamada (2014)."""
    n = moments.count
    f, t, q = moments.squared_frobenius, moments.trace, moments.quartic
    bracket = (n - 1) * (n - 2) * f + t * t - n * (n - 1) * q
    return bracket / (n * (n - 1) * (n - 2) * (n - 3))
