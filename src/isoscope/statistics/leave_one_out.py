"""What the sums become with one vector left out: the jackknife, exactly, for every vector at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.kernels.centered import moved_quartic
from isoscope.statistics.chunks import pieces
from isoscope.statistics.declared import declare
from isoscope.statistics.directions import Directions, unit_rows
from isoscope.statistics.moments import Moments


@dataclass(frozen=True, eq=False)
class LeftOutMoments:
    """For each vector i the trace, ‖A‖_F² and Σ‖u‖⁴ of the other n − 1, about their own mean.

    A second pass, given the moments of all: with h = x_i − mean and c = n/(n−1), leaving i out turns
    A into A − c·h hᵀ, so three numbers a vector suffice: ‖h‖², hᵀAh and h·Σ‖u‖²u.

    Attributes:
        trace, squared_frobenius, quartic: (m,) float64 for the m vectors seen so far.
    """

    trace: Tensor
    squared_frobenius: Tensor
    quartic: Tensor

    @classmethod
    def of(cls, X: Any, moments: Moments) -> LeftOutMoments:
        """One pass over any array that is part of what `moments` was taken over."""
        few = moments.hangs_on_few  # what is left without one of them is a small difference of large sums
        parts = [_left_out_block(block.double() if few else block, moments) for block in blocks(as_matrix(X))]
        return cls(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def merge(self, other: LeftOutMoments) -> LeftOutMoments:
        """Return the vectors of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return LeftOutMoments(*(torch.cat(pair) for pair in pairs))


@dataclass(frozen=True, eq=False)
class LeftOutCosines:
    """For each vector with a direction, u_i · Σ_j u_j: what leaving it out takes from the mean cosine.

    Attributes:
        projections: (m,) float64 for the m vectors seen so far.
    """

    projections: Tensor

    @classmethod
    def of(cls, X: Any, directions: Directions) -> LeftOutCosines:
        """One pass over any array that is part of what `directions` was taken over."""
        parts = []
        for rows in pieces(as_matrix(X)):
            units, norms = unit_rows(rows)
            parts.append((units @ directions.unit_sum)[norms > 0])
        return cls(torch.cat(parts))

    def merge(self, other: LeftOutCosines) -> LeftOutCosines:
        """Return the vectors of both."""
        return LeftOutCosines(torch.cat([self.projections, other.projections]))


def jackknife(whole: Tensor, left_out: Tensor, n: int) -> tuple[float, float]:
    """Return the standard error and bias of a statistic from its leave-one-out values.

    left_out: (m,) of all n vectors, or of a sample of them.
    """
    mean = left_out.mean()
    spread = left_out - mean
    error = ((n - 1) / left_out.shape[0] * (spread @ spread)).sqrt()
    return float(error), float((n - 1) * (mean - whole))


def _left_out_block(block: Tensor, moments: Moments) -> tuple[Tensor, Tensor, Tensor]:
    n = moments.count
    # unit of length: a coordinate's root mean square, so that float32 products neither over- nor underflow
    unit = (moments.trace / (n * moments.n_dims)).sqrt()
    area = unit**2
    h = ((block - moments.mean) / unit).to(block.dtype)
    r = torch.linalg.vector_norm(h, dim=1).double().square() * area
    if moments.factor is None:
        half = h @ (moments.scatter / area).to(h.dtype)
        hAh = torch.linalg.vecdot(half, h).double() * area * area
    else:
        hAh = (h @ moments.factor.T.to(h.dtype)).double().square().sum(dim=1) * area
    k = (h @ (moments.cubic / unit**3).to(h.dtype)).double() * unit**4
    c = n / (n - 1)
    trace = moments.trace - c * r
    squared_frobenius = moments.squared_frobenius - 2 * c * hAh + (c * r) ** 2
    squared = r**2
    a = -1 / (n - 1)  # m = a·h is the mean of the others, over which Σu = −h
    others = moments.trace - r, moments.quartic - squared
    quartic = moved_quartic(n - 1, *others, a * a * (hAh - squared), a * (k - squared), a * a * r, -a * r)
    return trace, squared_frobenius, quartic


declare(
    "left_out_moments",
    LeftOutMoments,
    lambda space, shelf: LeftOutMoments.of(space, shelf.moments),
    builds_on="moments",
    by_row=True,
    operations=lambda d: 2 * d * d + 6 * d,
    bytes_held=lambda n, _d, _k: 24 * n,
)
declare(
    "left_out_cosines",
    LeftOutCosines,
    lambda space, shelf: LeftOutCosines.of(space, shelf.directions),
    builds_on="directions",
    by_row=True,
    operations=lambda d: 6 * d,
    bytes_held=lambda n, _d, _k: 8 * n,
)
