# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""Sums over unit vectors and lengths of many rows on CUDA, in float64 and one read of the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.triton_residuals import kernel, tl, triton

MOST_DIMS = 4096  # of a row that one program holds
_TILE = 4096  # numbers that one program looks at at a time
_PROGRAMS = 1056  # eight for each of an H200's multiprocessors


def direction_sums(X: Tensor) -> tuple[Tensor, Tensor]:
    """Return (2, d) Σ u and Σ u², and (5,) Σ ‖x‖, Σ ‖x‖², least and largest ‖x‖, zero vectors; float64.

    Each row is divided by its largest coordinate first, so that no length is too long or short. Zero
    vectors have no direction. Nothing waits for the device.
    """
    X = X if X.stride(1) == 1 else X.contiguous()
    n, d = X.shape
    width = triton.next_power_of_2(d)
    rows = max(1, _TILE // width)
    n_programs = min(_PROGRAMS, triton.cdiv(n, rows))
    units = X.new_empty(n_programs, 2, d, dtype=torch.float64)
    norms = X.new_empty(5, n_programs, dtype=torch.float64)
    walk_rows[(n_programs,)](X, units, norms, n_programs, n, d, X.stride(0), ROWS=rows, COLS=width)
    least, most = norms[2].min(), norms[3].max()
    total, squares, _, _, n_zero = norms.sum(dim=1)
    return units.sum(dim=0), torch.stack([total, squares, least, most, n_zero])


@kernel
def walk_rows(X, units, norms, n_programs, n, d, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Every `n_programs`-th tile of rows, added up by one program in order."""
    program = tl.program_id(0)
    columns = tl.arange(0, COLS)
    sums = tl.zeros([COLS], tl.float64)
    squares = tl.zeros([COLS], tl.float64)
    length_sum = tl.zeros([ROWS], tl.float64)
    square_sum = tl.zeros([ROWS], tl.float64)
    least = tl.full([ROWS], float("inf"), tl.float64)
    most = tl.zeros([ROWS], tl.float64)
    zeros = tl.zeros([ROWS], tl.float64)
    for first in range(program * ROWS, n, n_programs * ROWS):
        rows = first + tl.arange(0, ROWS)
        live = rows < n
        place = rows.to(tl.int64)[:, None] * stride + columns[None, :]
        x = tl.load(X + place, mask=live[:, None] & (columns < d)[None, :], other=0.0).to(tl.float64)
        peak = tl.max(tl.abs(x), 1)
        scaled = x * (1.0 / tl.where(peak > 0, peak, 1.0))[:, None]  # a division costs ten products
        norm = tl.sqrt(tl.sum(scaled * scaled, 1))
        u = scaled * (1.0 / tl.where(norm > 0, norm, 1.0))[:, None]
        sums += tl.sum(u, 0)
        squares += tl.sum(u * u, 0)
        length = norm * peak
        length_sum += length
        square_sum += length * length
        least = tl.where(live, tl.minimum(least, length), least)
        most = tl.maximum(most, length)
        zeros += tl.where(live & (peak == 0), 1.0, 0.0)
    tl.store(units + program * 2 * d + columns, sums, mask=columns < d)
    tl.store(units + (program * 2 + 1) * d + columns, squares, mask=columns < d)
    tl.store(norms + program, tl.sum(length_sum, 0))
    tl.store(norms + n_programs + program, tl.sum(square_sum, 0))
    tl.store(norms + 2 * n_programs + program, tl.min(least, 0))
    tl.store(norms + 3 * n_programs + program, tl.max(most, 0))
    tl.store(norms + 4 * n_programs + program, tl.sum(zeros, 0))
