"""IsoScore and silhouette of several spaces at once, without waiting for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isoscope.kernels.precision import full_precision
from isoscope.labels import Labels
from isoscope.metrics.silhouettes import silhouettes
from isoscope.statistics.fused import fused_separation
from isoscope.statistics.pairs import Separation

_CHUNK_NUMBERS = 2**26  # numbers that are centred at a time
_PART_ROWS = 1024  # rows that are multiplied at a time


@full_precision
def isoscores(X: Tensor) -> Tensor:
    """Return the (B,) float64 IsoScore of (B, n, d) spaces; NaN where all points are equal.

    This is the closed form of `isoscore`. Products of centred rows have the type of the rows; sums and the
    ratio are in float64.
    """
    n, d = X.shape[1:]
    if n < d:
        U = X.double() - X.double().mean(dim=1, keepdim=True)
        return _score(U @ U.mT, d)
    shift = X.mean(dim=1, keepdim=True)
    n_rows = max(1, _CHUNK_NUMBERS // (X.shape[0] * d))
    scatter = X.new_zeros(X.shape[0], d, d, dtype=torch.float64)
    total = X.new_zeros(X.shape[0], d, dtype=torch.float64)
    for rows in X.split(n_rows, dim=1):
        U = _in_parts(rows, shift)
        total += U.sum(dim=(1, 2), dtype=torch.float64)
        scatter += (U.mT @ U).sum(dim=1, dtype=torch.float64)
    m = total / n  # the rounding error of the mean
    return _score(torch.baddbmm(scatter, m[:, :, None], m[:, None, :], alpha=-n), d)


def _in_parts(rows: Tensor, shift: Tensor) -> Tensor:
    """Return (B, parts, r, d) rows minus the shift, padded with zeros.

    Many short products use a device better than a few long ones.
    """
    B, n, d = rows.shape
    n_parts = -(-n // _PART_ROWS)
    length = -(-n // n_parts)
    U = rows.new_empty(B, n_parts * length, d)
    torch.sub(rows, shift, out=U[:, :n])
    U[:, n:] = 0
    return U.view(B, n_parts, length, d)


def _score(scatter: Tensor, d: int) -> Tensor:
    trace = scatter.diagonal(dim1=1, dim2=2).sum(dim=1)
    shares = scatter / trace[:, None, None]
    return ((1 / shares.square().sum(dim=(1, 2))).clamp(min=1) - 1) / (d - 1)


def mean_silhouettes(X: Tensor, labels: Labels) -> Tensor:
    """Return the (B,) float64 mean silhouette of (B, m, d) spaces with the same labels (at least two)."""
    fields = fused_separation(X, labels)
    if fields is None:
        return torch.stack([silhouettes(Separation.of(own, labels)).mean() for own in X])
    return silhouettes(Separation(*fields, labels)).mean(dim=1)


# metrics that can be computed for several spaces at once: (B, n, d) points and their labels to (B,) values
TOGETHER: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "isoscore": lambda X, _: isoscores(X),
    "silhouette": mean_silhouettes,
}
