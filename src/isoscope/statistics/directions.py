"""`Directions`: sums of unit vectors and of lengths, from which every mean cosine follows exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import ShapeError, UndefinedError
from isoscope.space import as_weights
from isoscope.statistics.moments import whole

_CHUNK_BYTES = 2**20  # of float64: rows lifted, squared and added up while they are in cache
_PLAIN_NORMS = (1e-140, 1e140)  # lengths whose squares float64 holds


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

    Zero vectors have no direction: they are counted apart and enter only the lengths. A weight for each
    vector counts it so often in every sum.

    Attributes:
        count: vectors with a direction, or the sum of their weights; an int where that is whole.
        n_zero: vectors without one, likewise.
        unit_sum: (d,) Σ u.
        unit_square_sum: (d,) Σ u_j², the diagonal part of each dimension's share.
        norm_sum, norm_square_sum: Σ ‖x‖ and Σ ‖x‖² over all vectors.
        norm_min, norm_max: over all vectors.

    >>> Directions.of([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]]).n_zero
    1
    """

    count: Any  # an int, or a float where weights do not add up to one
    n_zero: Any
    unit_sum: Tensor
    unit_square_sum: Tensor
    norm_sum: Tensor
    norm_square_sum: Tensor
    norm_min: Tensor
    norm_max: Tensor

    @classmethod
    def of(cls, X: Any, *, weights: Any = None) -> Directions:
        """The direction sums of any array; Directions pass through unchanged."""
        if isinstance(X, Directions):
            return X
        directions: Directions | None = None
        matrix = as_matrix(X)
        w = None if weights is None else as_weights(weights, n=len(matrix)).to(matrix.device)
        if w is not None:
            matrix, w = matrix[w > 0], w[w > 0]
        start = 0
        for block in blocks(matrix):
            part = _of_block(block, None if w is None else w[start : start + len(block)])
            start += len(block)
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
                f"there are {self.count:g}, and {self.n_zero:g} zero vectors"
            )


def _of_block(block: Tensor, weights: Tensor | None) -> Directions:
    if block.requires_grad or block.is_cuda:
        return _of_rows(block, weights)
    n_rows = max(64, _CHUNK_BYTES // (8 * block.shape[1]))
    parts = []
    for start in range(0, len(block), n_rows):
        rows = slice(start, start + n_rows)
        w = None if weights is None else weights[rows]
        parts.append(_of_plain_rows(block[rows], w) or _of_rows(block[rows], w))
    directions = parts[0]
    for part in parts[1:]:
        directions = directions.merge(part)
    return directions


def _of_plain_rows(rows: Tensor, weights: Tensor | None) -> Directions | None:
    """The sums as products with 1/‖x‖, in four passes; None where a square could over- or underflow."""
    wide = rows.double()
    norms = torch.linalg.vector_norm(wide, dim=1)
    least, most = norms.aminmax()
    if not _PLAIN_NORMS[0] < float(least) <= float(most) < _PLAIN_NORMS[1]:
        return None
    w = torch.ones_like(norms) if weights is None else weights
    shares = w / norms
    unit_sum = shares @ wide
    squares = wide.square() if rows.dtype == torch.float64 else wide.square_()
    unit_square_sum = (shares / norms) @ squares
    count = len(rows) if weights is None else whole(float(w.sum()))
    weighed = w * norms
    return Directions(count, 0, unit_sum, unit_square_sum, weighed.sum(), weighed @ norms, least, most)


def _of_rows(block: Tensor, weights: Tensor | None) -> Directions:
    units, norms = unit_rows(block)
    w = torch.ones_like(norms) if weights is None else weights
    n_zero = whole(float(w[norms == 0].sum()))
    return Directions(
        whole(float(w.sum())) - n_zero,
        n_zero,
        (units * w[:, None]).sum(dim=0),
        (units * units * w[:, None]).sum(dim=0),
        (w * norms).sum(),
        (w * norms * norms).sum(),
        norms.min(),
        norms.max(),
    )
