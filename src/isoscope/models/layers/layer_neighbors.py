"""The nearest neighbours in the samples of all layers at once, on CUDA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from isoscope.kernels.precision import NEAR, direct_squares
from isoscope.statistics.neighbors import Neighbors

_MOST_PAIRS = 2**27  # whose distances are held at a time: 1 GB
_MOST_CLOSE = 2**22  # pairs of a group that are taken again by difference; with more, one space at a time


def neighbors_in_each(spaces: Sequence[Tensor], k: int) -> list[Neighbors | None]:
    """Return `Neighbors.of_distinct(space, k=k, metric="euclidean")` for each of B spaces of one shape.

    Products are in float64, and pairs too close for them are taken by difference. None for a space with equal
    rows or zero vectors, and for the spaces of a group in which too many pairs are close.
    """
    n = len(spaces[0])
    at_once = max(1, _MOST_PAIRS // n**2)
    found: list[Neighbors | None] = []
    if k >= n:
        return [None] * len(spaces)
    for start in range(0, len(spaces), at_once):
        some = torch.stack(list(spaces[start : start + at_once])).double()
        found += _of_group(some, k) or [None] * len(some)
    return found


def unit_neighbors_in_each(spaces: Sequence[Tensor], k: int) -> list[Neighbors | None]:
    """Return the same for the vectors at length 1."""
    norms = torch.linalg.vector_norm(torch.stack(list(spaces)), dim=2, dtype=torch.float64)
    whole = (norms > 0).all(dim=1).tolist()
    units = [
        (space.double() / lengths[:, None]).float()
        for space, lengths, sound in zip(spaces, norms, whole, strict=True)
        if sound
    ]
    of_units: Iterator[Neighbors | None] = iter(neighbors_in_each(units, k) if units else [])
    return [next(of_units) if sound else None for sound in whole]


def _of_group(points: Tensor, k: int) -> list[Neighbors | None] | None:
    """Return the neighbours in each of (B, n, d) spaces; None instead of all if too many pairs are close."""
    n = points.shape[1]
    rows = points - points.mean(dim=1, keepdim=True)
    squares = rows.square().sum(dim=2)
    terms = squares[:, :, None] + squares[:, None]
    squared = torch.baddbmm(terms, rows, rows.mT, alpha=-2)
    squared.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    b, i, j = (squared < NEAR[torch.float64] * terms).nonzero(as_tuple=True)
    if len(b) > _MOST_CLOSE:
        return None
    if len(b):
        flat = points.flatten(0, 1)
        squared[b, i, j] = direct_squares(flat, b * n + i, flat, b * n + j, 1.0)
    nearest = squared.topk(k, dim=2, largest=False)
    distances = nearest.values.clamp_(min=0).sqrt_()
    differ = (distances[:, :, 0] > 0).all(dim=1) & (points != 0).any(dim=2).all(dim=1)
    return [
        Neighbors(*both) if sound else None
        for *both, sound in zip(distances, nearest.indices, differ.tolist(), strict=True)
    ]
