"""When float32 algebra can be trusted for squared distances, and what to do when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from isoscope.arrays import blocks

# ‖a‖² + ‖b‖² − 2a·b under this share of its largest term has lost too many digits to cancellation
NEAR = {torch.float32: 1e-3, torch.float64: 1e-8}
_NARROW = 32  # up to here a product is so cheap that float64 costs nothing
_DIRECT_BYTES = 64 * 2**20


_P = ParamSpec("_P")
_R = TypeVar("_R")


def full_precision(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a function's products as written, whatever autocast or TF32 setting surrounds the caller."""

    @wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        tf32 = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
                return function(*args, **kwargs)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = tf32

    return guarded


def pair_dtype(X: Tensor) -> torch.dtype:
    """The type products of rows of X are taken in."""
    return torch.float64 if X.dtype == torch.float64 or X.shape[1] <= _NARROW else torch.float32


def center_and_unit(X: Tensor) -> tuple[Tensor, float]:
    """(d,) the mean in float64, and the root mean square distance to it (1 if all points are equal)."""
    n = X.shape[0]
    center = torch.stack([block.double().sum(dim=0) for block in blocks(X)]).sum(dim=0) / n
    largest = max(float((block.double() - center).abs().max()) for block in blocks(X)) or 1.0
    square = sum(float(((block.double() - center) / largest).square().sum()) for block in blocks(X)) / n
    return center, largest * (square**0.5 or 1.0)


def direct_squares(A: Tensor, i: Tensor, B: Tensor, j: Tensor, unit: float) -> Tensor:
    """(p,) ‖(A[i] − B[j])/unit‖² for p pairs of rows, by direct difference in float64."""
    chunk = max(1, _DIRECT_BYTES // (8 * A.shape[1]))
    parts = [
        ((A[i[start : start + chunk]].double() - B[j[start : start + chunk]].double()) / unit)
        .square()
        .sum(dim=1)
        for start in range(0, len(i), chunk)
    ]
    return torch.cat(parts) if parts else A.new_empty(0, dtype=torch.float64)
