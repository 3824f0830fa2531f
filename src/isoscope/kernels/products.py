"""Symmetric products: UᵀU with little more than half the work of a general product."""

from __future__ import annotations

import torch
from torch import Tensor

_N_PANELS = 4  # measured on two cores: 0.70 of the full product at d = 384 and 768; 8 panels gain 1 % more
_MIN_PANEL = 48  # narrower panels starve the product


def symmetric_product(U: Tensor) -> Tensor:
    """UᵀU for U of shape (n, d): the upper triangle by column panels, mirrored.

    On CUDA, under autograd and for few columns one general product is faster or required.
    """
    d = U.shape[1]
    width = -(-d // _N_PANELS)
    if U.is_cuda or U.requires_grad or width < _MIN_PANEL:
        return U.T @ U
    product = U.new_empty(d, d)
    for start in range(0, d, width):
        stop = min(start + width, d)
        panel = U[:, start:stop].T @ U[:, start:]
        product[start:stop, start:] = panel
        product[stop:, start:stop] = panel[:, stop - start :].T
    return product


def sum_of_squares(X: Tensor) -> Tensor:
    """(n,) squared length of every row, without a squared copy of X where no gradient is asked."""
    if X.requires_grad:
        return (X * X).sum(dim=1)
    return torch.linalg.vector_norm(X, dim=1).square()
