# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""The checksum of a matrix on CUDA in one read of it: see `isoscope.engine.checksums`."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.triton_residuals import kernel, tl, triton

_ROWS, _COLUMNS = 32, 128  # of a tile


def checksum_of_bits(bits: Tensor) -> Tensor:
    """Return Σ rᵢ cⱼ xᵢⱼ modulo 2⁶⁴ of (n, d) whole numbers x; nothing waits for the device."""
    bits = bits.contiguous()
    n, d = bits.shape
    total = bits.new_zeros(1, dtype=torch.int64)
    add_weighted_bits[(triton.cdiv(n, _ROWS),)](bits, total, n, d, ROWS=_ROWS, COLS=_COLUMNS)
    return total


@kernel
def _odd(place):
    """Return odd 64-bit numbers for places, mixed as in SplitMix64."""
    mixed = place.to(tl.int64) * -7046029254386353131
    mixed = (mixed ^ (mixed >> 30)) * -4658895280553007687
    mixed = (mixed ^ (mixed >> 27)) * -7723592293110705685
    return (mixed ^ (mixed >> 31)) | 1


@kernel
def add_weighted_bits(bits, total, n, d, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Add the weighted numbers of a tile of rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    of_rows = tl.zeros([ROWS], tl.int64)
    for first in range(0, d, COLS):
        columns = first + tl.arange(0, COLS)
        place = rows.to(tl.int64)[:, None] * d + columns[None, :]
        x = tl.load(bits + place, mask=(rows < n)[:, None] & (columns < d)[None, :], other=0).to(tl.int64)
        of_rows += tl.sum(x * _odd(columns - d)[None, :], 1)
    tl.atomic_add(total, tl.sum(of_rows * _odd(rows), 0), sem="relaxed")
