"""Moments on CUDA whose checks are read back together: for many blocks at once, or with the one value asked.

`Moments.of` asks the device after each block whether float32 was enough. Where many blocks come one after
another, as the layers of a model do, each question would wait for everything launched before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.kernels.centered import rows_at_once, spread_sums
from isoscope.kernels.precision import float32_suits, full_precision, is_flat
from isoscope.kernels.recorded import replayed
from isoscope.statistics.chunks import sums_dtype
from isoscope.statistics.moments import Moments, of_whole_block

_MOST_NUMBERS = 2**26  # of rows that are recorded whole: 256 MB


@dataclass(frozen=True, eq=False)
class Unchecked:
    """The moments of a block, and the block itself, which is needed again if they cannot be trusted."""

    moments: Moments
    rows: Tensor


def can_defer(rows: Tensor) -> bool:
    """Whether moments of these rows can be taken before they are checked."""
    return (
        rows.is_cuda and not rows.requires_grad and rows.dtype == torch.float32 and len(rows) >= rows.shape[1]
    )


@full_precision
def unchecked(rows: Tensor, *, rounded: bool = False) -> Unchecked:
    """Launch the sums of a block; nothing waits for the device. `rounded` rows were in half precision."""
    return Unchecked(of_whole_block(rows, rounded=rounded), rows)


def quick_participation(X: Any) -> float | None:
    """Return (tr A)²/‖A‖² of rows on CUDA by one recording; None where the plain way has to compute it."""
    if not isinstance(X, Tensor) or X.ndim != 2 or X.numel() > _MOST_NUMBERS or not can_defer(X):
        return None
    if sums_dtype(X) != torch.float32:
        return None
    n, d = X.shape
    values = replayed(_participation, X, n_rows=rows_at_once(d))[0].tolist()
    participation, spread, mean_square, quartic = map(float, values)
    trusted = float32_suits(spread, quartic, n, d) and not is_flat(spread, mean_square, n)
    return participation if trusted else None


@full_precision
def _participation(rows: Tensor, n_rows: int) -> tuple[Tensor]:
    return (spread_sums(rows, n_rows=n_rows),)


def checked(blocks: Sequence[Unchecked]) -> list[Moments]:
    """Return the moments of all blocks, after one wait for the device; what lost digits is taken again."""
    numbers = torch.stack([block.moments.numbers for block in blocks]).tolist()
    moments_of_blocks = []
    for block, block_numbers in zip(blocks, numbers, strict=True):
        moments = block.moments
        vars(moments)["_numbers"] = tuple(block_numbers)  # read: asking again would wait again
        moments_of_blocks.append(
            moments if moments.suits_float32 and not moments.is_flat else Moments.of(block.rows)
        )
    return moments_of_blocks
