"""Rows that are equal: a fingerprint of each, and the first row that each is equal to."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import blocks


def fingerprints(vectors: Tensor) -> Tensor:
    """Return a 64-bit number for each row that is the same for equal rows; 0 for a zero vector."""
    wide = vectors.double() + 0.0  # minus zero becomes zero
    factors = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, wide.shape[1], dtype=np.int64) | 1
    bits = wide.contiguous().view(torch.int64)
    # the middle bits too: those of float64 that came from float32 end in zeros
    mixed = (bits ^ (bits >> 29)) * torch.from_numpy(factors).to(bits.device)
    return mixed.sum(dim=1)


def first_equal_rows(points: Tensor) -> Tensor:
    """Return (n,) int64, for each row the first row that is equal to it, which may be itself.

    >>> first_equal_rows(torch.tensor([[1.0], [2.0], [1.0]])).tolist()
    [0, 1, 0]
    """
    prints = torch.cat([fingerprints(rows) for rows in blocks(points)])
    ordered, order = prints.sort(stable=True)
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = torch.empty_like(order).scatter_(0, order, order[starts][starts.cumsum(0) - 1])
    copies = (first != torch.arange(len(first), device=first.device)).nonzero().flatten()
    differ = copies[(points[copies] != points[first[copies]]).any(dim=1)]
    first[differ] = differ  # of two different rows with one fingerprint
    return first
