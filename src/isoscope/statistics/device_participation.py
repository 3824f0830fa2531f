"""The participation ratio of rows on CUDA in one recording, with one wait for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isoscope.kernels.centered import rows_at_once, spread_sums
from isoscope.kernels.precision import float32_suits, full_precision, is_flat
from isoscope.kernels.recorded import replayed
from isoscope.statistics.chunks import sums_dtype

_MOST_NUMBERS = 2**26  # of rows that are recorded whole: 256 MB


def quick_participation(X: Any) -> float | None:
    """Return (tr A)²/‖A‖² of rows on CUDA by one recording; None where the plain way has to compute it."""
    if not isinstance(X, Tensor) or X.ndim != 2 or not X.is_cuda or X.requires_grad:
        return None
    n, d = X.shape
    if X.dtype != torch.float32 or sums_dtype(X) != torch.float32 or n < d or X.numel() > _MOST_NUMBERS:
        return None
    values = replayed(_participation, X, n_rows=rows_at_once(d))[0].tolist()
    participation, spread, mean_square, quartic = map(float, values)
    trusted = float32_suits(spread, quartic, n, d) and not is_flat(spread, mean_square, n)
    return participation if trusted else None


@full_precision
def _participation(rows: Tensor, n_rows: int) -> tuple[Tensor]:
    return (spread_sums(rows, n_rows=n_rows),)
