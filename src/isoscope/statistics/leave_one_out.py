"""What the sums become with one vector left out: the jackknife, exactly, for every vector at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.kernels.at_hand import fields_at_hand
from isoscope.kernels.centered import moved_quartic
from isoscope.kernels.recorded import replayed_if_few
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

    @property
    def at_hand(self) -> LeftOutMoments:
        """The same where formulas take the least time: of a device, on the CPU, if they are few."""
        return fields_at_hand(self) if self.trace.is_cuda else self

    @classmethod
    def of(cls, X: Any, moments: Moments) -> LeftOutMoments:
        """One pass over any array that is part of what `moments` was taken over."""
        few = moments.hangs_on_few  # what is left without one of them is a small difference of large sums
        parts = [_left_out_block(block.double() if few else block, moments) for block in blocks(as_matrix(X))]
        columns = parts[0] if len(parts) == 1 else map(torch.cat, zip(*parts, strict=True))
        return cls(*columns)

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
        matrix, parts = as_matrix(X), []
        for rows in pieces(matrix):
            products, has_direction = replayed_if_few(_projections, rows, directions.unit_sum)
            parts.append(products[has_direction] if directions.n_zero else products)
        return cls(torch.cat(parts) if len(parts) > 1 else parts[0])

    def merge(self, other: LeftOutCosines) -> LeftOutCosines:
        """Return the vectors of both."""
        return LeftOutCosines(torch.cat([self.projections, other.projections]))


def jackknife(whole: Tensor, left_out: Tensor, n: int) -> tuple[float, float]:
    """Return the standard error and bias of a statistic from its leave-one-out values.

    left_out: (m,) of all n vectors, or of a sample of them.
    """
    mean = left_out.mean()
    spread = left_out - mean
    mean_value, squares = torch.stack([mean, spread @ spread]).tolist()
    error = math.sqrt((n - 1) / left_out.shape[0] * squares)
    return error, (n - 1) * (mean_value - float(whole))


def _left_out_block(block: Tensor, moments: Moments) -> tuple[Tensor, ...]:
    root = moments.scatter if moments.factor is None else moments.factor
    sums = torch.stack([moments.trace, moments.squared_frobenius, moments.quartic])
    inputs = block, moments.mean, root, moments.cubic, sums
    return replayed_if_few(_left_out, *inputs, n=moments.count, has_factor=moments.factor is not None)


def _left_out(
    block: Tensor, mean: Tensor, root: Tensor, cubic: Tensor, sums: Tensor, n: float, has_factor: bool
) -> tuple[Tensor, ...]:
    """Return trace, ‖A‖_F² and Σ‖u‖⁴ without each row of a block; nothing waits for the device.

    Args:
        block: (m, d) rows.
        mean: (d,) of all n rows.
        root: (d, d) their scatter A, or (r, d) its factor.
        cubic: (d,) Σ‖u‖²u.
        sums: (3,) tr A, ‖A‖_F² and Σ‖u‖⁴ of all rows.
        n: how many rows there are in all.
        has_factor: what `root` is.
    """
    trace, squared_frobenius, quartic = sums
    # unit of length: a coordinate's root mean square, so that float32 products neither over- nor underflow
    unit = (trace / (n * len(mean))).sqrt()
    area = unit**2
    h = ((block - mean) / unit).to(block.dtype)
    r = torch.linalg.vector_norm(h, dim=1).double().square() * area
    if has_factor:
        hAh = (h @ root.T.to(h.dtype)).double().square().sum(dim=1) * area
    else:
        half = h @ (root / area).to(h.dtype)
        hAh = torch.linalg.vecdot(half, h).double() * area * area
    k = (h @ (cubic / unit**3).to(h.dtype)).double() * unit**4
    c = n / (n - 1)
    squared = r**2
    a = -1 / (n - 1)  # m = a·h is the mean of the others, over which Σu = −h
    others = trace - r, quartic - squared
    left_quartic = moved_quartic(
        n - 1, *others, a * a * (hAh - squared), a * (k - squared), a * a * r, -a * r
    )
    return trace - c * r, squared_frobenius - 2 * c * hAh + (c * r) ** 2, left_quartic


def _projections(rows: Tensor, unit_sum: Tensor) -> tuple[Tensor, Tensor]:
    """Return u_i · Σ_j u_j of rows, and which rows have a direction."""
    units, norms = unit_rows(rows)
    return units @ unit_sum, norms > 0


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
