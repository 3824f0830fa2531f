"""Moments of rows with weights."""

from __future__ import annotations

from functools import reduce

from torch import Tensor

from isoscope.arrays import block_rows, check_finite
from isoscope.kernels.precision import full_precision, two_sum
from isoscope.kernels.products import sum_of_squares, symmetric_product
from isoscope.space import whole
from isoscope.statistics.moments import Moments


def of_weighted(matrix: Tensor, weights: Tensor) -> Moments:
    """Return the moments of rows that count as often as their weights say."""
    check_finite(matrix)
    parts = []
    n_rows = block_rows(matrix.shape[1], matrix.device)
    for rows, w in zip(matrix.split(n_rows), weights.split(n_rows), strict=True):
        counting = w > 0
        if bool(counting.any()):
            parts.append(_of_weighted_block(rows[counting].double(), w[counting]))
    return reduce(Moments.merge, parts)


@full_precision
def _of_weighted_block(block: Tensor, w: Tensor) -> Moments:
    """Return sums over √w·u in float64; equal rows have no spread, despite rounding."""
    count = w.sum()
    shift = block[0].detach()
    U = block - shift
    step = w @ U / count
    U = U * 0 if bool((block == block[0]).all()) else U - step
    mean, rest = two_sum(shift, step)
    V = U * w.sqrt()[:, None]
    squares = sum_of_squares(U)
    scatter, factor = (None, V) if len(block) < block.shape[1] else (symmetric_product(V), None)
    weighed = w * squares
    sums = weighed @ U, weighed @ squares
    return Moments(whole(float(count)), mean, scatter, factor, *sums, rest, len(block))
