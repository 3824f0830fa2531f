"""The gap between two sides of a shared space, such as images and their captions."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from isoscope.arrays import scalar
from isoscope.errors import ShapeError, UndefinedError
from isoscope.metrics.registry import metric
from isoscope.statistics.cross import CrossMoments


@metric(
    family="correspondence",
    needs=("cross_moments",),
    range=(-1.0, 1.0),
    high="the two sides lie apart",
    paper="Liang et al. 2022, Mind the gap",
    sentence="{value:.0%} of the variance of both sides together is the distance between their means",
    error=lambda shelf: modality_gap_error(shelf.cross_moments),
)
def modality_gap(X: Any, Y: Any = None) -> float:
    """Compute the share of the variance of two sides together that lies between their means, without bias.

        D/(D + 2 (tr S_x + tr S_y)),   D = ‖x̄ − ȳ‖² − tr Cov(x − y)/n

    with S the covariances. Subtracting the variance of x̄ − ȳ leaves 0 on average where both sides have one
    mean. Range [−1/(n − 1), 1]; high means that the sides lie apart, and 1 that nothing else varies. A side
    whose points are all equal is taken as it is.
    Invariant to one rotation, translation and scale of both sides; Liang et al. use vectors of length 1.
    Paper: Liang et al. 2022.

    Args:
        X, Y: (n, d) vectors of both sides, row i of X with row i of Y; or CrossMoments.

    >>> modality_gap([[0.0, 1.0], [0.0, -1.0]], [[4.0, 1.0], [4.0, -1.0]])
    0.6666666666666666
    """
    sums = CrossMoments.of(X, Y)
    squared_distance, variance = _parts(sums)
    return float(scalar(squared_distance / (squared_distance + 2 * variance)))


def modality_gap_error(sums: CrossMoments) -> float:
    """Return the standard error of `modality_gap`, by the delta method."""
    squared_distance, variance = _parts(sums)
    assert sums.cubics is not None  # of all rows
    n, step = sums.count, sums.left_mean - sums.right_mean
    whole = squared_distance + 2 * variance
    by_distance, by_variance = 2 * variance / whole**2, -2 * squared_distance / whole**2
    pu, qv, pv, qu = sums.cubics
    spread = sums.left + sums.right - sums.cross - sums.cross.T
    squares = sums.left_quartic + sums.right_quartic + 2 * sums.cross_quartic
    total = sums.left.trace() + sums.right.trace()
    in_distance = 4 * step @ spread @ step
    in_both = 2 * step @ (pu + qu - pv - qv)
    in_variance = squares - total**2 / n
    sums_of_squares = (
        by_distance**2 * in_distance + 2 * by_distance * by_variance * in_both + by_variance**2 * in_variance
    )
    return float(sums_of_squares.clamp(min=0).sqrt() / n)


def _parts(sums: CrossMoments) -> tuple[Tensor, Tensor]:
    """Return the unbiased squared distance of the means, and the variances of both sides."""
    if len(sums.left_mean) != len(sums.right_mean):
        raise ShapeError(
            f"has {len(sums.right_mean)} dimensions",
            argument="Y",
            wanted=f"{len(sums.left_mean)}, as `X` has: both sides are in one space",
        )
    sums.need_rows("modality_gap")
    n, step = sums.count, sums.left_mean - sums.right_mean
    total = sums.left.trace() + sums.right.trace()
    if not bool(total > 0) and not bool(step.any()):
        raise UndefinedError(f"modality_gap is undefined: all {n} points of both sides are equal")
    return step @ step - (total - 2 * sums.cross.trace()) / (n * (n - 1)), total / (n - 1)
