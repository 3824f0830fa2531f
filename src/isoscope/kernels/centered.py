"""Sums about a point near the mean, and how they are moved to the mean."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import block_rows
from isoscope.kernels.precision import two_sum
from isoscope.kernels.products import sum_of_squares, symmetric_product, weighted_sums
from isoscope.kernels.recorded import MOST_NUMBERS, replayed

_BLOCKS_AT_ONCE = 4  # rows between two merges in float64, each of which costs several passes over (d, d)
Sums = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]


def rows_at_once(n_dims: int) -> int:
    """Return how many rows are added up in float32 before float64."""
    return _BLOCKS_AT_ONCE * block_rows(n_dims)


def moved_quartic(n: Any, trace: Any, quartic: Any, mAm: Any, cubic_m: Any, square: Any, sum_m: Any) -> Any:
    """Return Σ‖u − m‖⁴ from Σ‖u‖², Σ‖u‖⁴, mᵀ(Σuuᵀ)m, (Σ‖u‖²u)·m, ‖m‖² and (Σu)·m."""
    return quartic + 4 * mAm + n * square**2 - 4 * cubic_m + 2 * trace * square - 4 * square * sum_m


def moved_to_mean(
    n: int, about: Tensor, total: Tensor, A: Tensor, cubic: Tensor | None, quartic: Tensor | None
) -> Sums:
    """Return the mean, what rounding left of it, and the sums about it.

    Args:
        n: number of rows x; v = x − about.
        about: (d,) a point that misses the mean by m.
        total: (d,) Σv = n·m.
        A: (d, d) Σvvᵀ.
        cubic, quartic: Σ‖v‖²v and Σ‖v‖⁴, or None.
    """
    m = total / n
    square = m @ m
    mean, rest = two_sum(about.double(), m)
    scatter = torch.addr(A, m, m, alpha=-n)
    if cubic is None or quartic is None:
        return mean, rest, scatter, None, None
    Am, trace = A @ m, A.trace()
    quartic = moved_quartic(n, trace, quartic, m @ Am, cubic @ m, square, n * square)
    return mean, rest, scatter, cubic - m * trace - 2 * Am + 2 * n * square * m, quartic


def device_sums(block: Tensor, *, fourth: bool) -> Sums:
    """Return what `moved_to_mean` gives for rows on CUDA, of few numbers in one launch.

    Nothing waits for the device.
    """
    n_rows = rows_at_once(block.shape[1])
    if block.numel() <= MOST_NUMBERS:
        sums = replayed(block_sums, block, fourth=fourth, n_rows=n_rows)
    else:
        sums = block_sums(block, fourth=fourth, n_rows=n_rows)
    mean, rest, scatter, *fourths = sums
    cubic, quartic = fourths if fourth else (None, None)
    return mean, rest, scatter, cubic, quartic


def spread_sums(block: Tensor, *, n_rows: int) -> Tensor:
    """Return (4,) (tr A)²/‖A‖², tr A, ‖mean‖² and about Σ‖v‖⁴ of rows, with A their scatter about the mean.

    The last is about a point that misses the mean by rounding. Nothing waits for the device.
    """
    n = len(block)
    about, V, scatter = _near_mean(block, n_rows)
    m = weighted_sums(block.new_ones(1, n), V)[0] / n
    scatter = torch.addr(scatter, m, m, alpha=-n)
    squares = sum_of_squares(V).double()
    trace, mean = scatter.trace(), about.double() + m
    shares = (scatter / trace).flatten()
    return torch.stack([(1 / (shares @ shares)).clamp(min=1), trace, mean @ mean, squares @ squares])


def _near_mean(block: Tensor, n_rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a point near the mean, the rows about it, and their scatter in float64."""
    about = (weighted_sums(block.new_ones(1, len(block)), block)[0] / len(block)).to(block.dtype)
    V = block - about
    return about, V, reduce(torch.add, [symmetric_product(part).double() for part in V.split(n_rows)])


def block_sums(block: Tensor, *, fourth: bool, n_rows: int) -> tuple[Tensor, ...]:
    """Return what `device_sums` does, without those that are None.

    float32 adds up the products of `n_rows` rows at most.
    """
    n = len(block)
    about, V, scatter = _near_mean(block, n_rows)
    weights = block.new_ones(2 if fourth else 1, n)
    quartic: Tensor | None = None
    if fourth:
        squares = sum_of_squares(V)
        weights[1] = squares
        wide = squares.double()
        quartic = wide @ wide
    total, *cubic = weighted_sums(weights, V)
    sums = moved_to_mean(n, about, total, scatter, cubic[0] if fourth else None, quartic)
    return tuple(tensor for tensor in sums if tensor is not None)
