"""`Directions`: sums of unit vectors and of lengths, from which every mean cosine follows exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import ShapeError, UndefinedError


def unit_rows(block: Tensor) -> tuple[Tensor, Tensor]:
    """(n, d) unit vectors and (n,) lengths in float64; a zero vector keeps the direction zero.

    Each row is divided by its largest coordinate first, so lengths of 1e-200 or 1e200 are still right.
    """
    wide = block.double()
    largest = wide.detach().abs().amax(dim=1, keepdim=True)
    scale = torch.where(largest > 0, largest, 1.0)
    scaled = wide / scale
    lengths = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    units = scaled / torch.where(lengths > 0, lengths, 1.0)
    return units, (lengths * scale).squeeze(1)


@dataclass(frozen=True, eq=False)
class Directions:
    """Sums over the unit vectors u = x/‖x‖ and over the lengths ‖x‖, in float64.

    Zero vectors have no direction: they are counted apart and enter only the lengths.

    Attributes:
        count: vectors with a direction.
        n_zero: vectors without one.
        unit_sum: (d,) Σ u.
        unit_square_sum: (d,) Σ u_j², the diagonal part of each dimension's share.
        norm_sum, norm_square_sum: Σ ‖x‖ and Σ ‖x‖² over all vectors.
        norm_min, norm_max: over all vectors.

    >>> Directions.of([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]]).n_zero
    1
    """

    count: int
    n_zero: int
    unit_sum: Tensor
    unit_square_sum: Tensor
    norm_sum: Tensor
    norm_square_sum: Tensor
    norm_min: Tensor
    norm_max: Tensor

    @classmethod
    def of(cls, X: Any) -> Directions:
        """The direction sums of any array; Directions pass through unchanged."""
        if isinstance(X, Directions):
            return X
        directions: Directions | None = None
        for block in blocks(as_matrix(X)):
            part = _of_block(block)
            directions = part if directions is None else directions.merge(part)
        assert directions is not None
        return directions

    def update(self, block: Any) -> Directions:
        """These sums with one more block of vectors."""
        return self.merge(Directions.of(block))

    def merge(self, other: Directions) -> Directions:
        """The sums of both sets of vectors together."""
        if other.n_dims != self.n_dims:
            raise ShapeError(f"blocks have {self.n_dims} and {other.n_dims} dimensions; wanted the same")
        return Directions(
            self.count + other.count,
            self.n_zero + other.n_zero,
            self.unit_sum + other.unit_sum,
            self.unit_square_sum + other.unit_square_sum,
            self.norm_sum + other.norm_sum,
            self.norm_square_sum + other.norm_square_sum,
            torch.minimum(self.norm_min, other.norm_min),
            torch.maximum(self.norm_max, other.norm_max),
        )

    @property
    def n_dims(self) -> int:
        """d, the number of dimensions."""
        return int(self.unit_sum.shape[0])

    def need_pairs(self, what: str) -> None:
        """Raise UndefinedError unless two vectors have a direction."""
        if self.count < 2:
            raise UndefinedError(
                f"{what} needs two vectors with a direction; "
                f"there are {self.count}, and {self.n_zero} zero vectors"
            )


def _of_block(block: Tensor) -> Directions:
    units, norms = unit_rows(block)
    n_zero = int((norms == 0).sum())
    return Directions(
        len(norms) - n_zero,
        n_zero,
        units.sum(dim=0),
        (units * units).sum(dim=0),
        norms.sum(),
        (norms * norms).sum(),
        norms.min(),
        norms.max(),
    )
