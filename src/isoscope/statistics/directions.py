"""`Directions`: sums of unit vectors and of lengths, from which every mean cosine follows exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import HALVES, as_matrix, blocks, check_finite
from isoscope.errors import ShapeError, UndefinedError
from isoscope.kernels.at_hand import fields_at_hand
from isoscope.kernels.products import weighted_sums
from isoscope.printable import counted
from isoscope.space import as_weights, whole
from isoscope.statistics.chunks import chunks
from isoscope.statistics.declared import declare, declare_together
from isoscope.statistics.fused import can_launch
from isoscope.statistics.moments import Moments

_WIDE_BYTES = 2**20  # of float64: rows lifted, squared and added up while they are in cache
_CONE_ROWS = 256  # looked at for whether all rows point one way
CONE = 0.99  # a mean direction longer than this: cosines that differ from 1 by little
_NEAR_AXIS = 0.5  # the cosine of rows that are taken as steps from an axis
# lengths whose squares and their inverses a type holds
_PLAIN_NORMS = {torch.float32: (1e-15, 1e15), torch.float64: (1e-140, 1e140)}


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


def pair_cosine(n: Tensor | int, squared_sum: Tensor) -> Tensor:
    """Return the mean cosine of all pairs of n unit vectors, from the square of their sum's length."""
    return (squared_sum - n) / (n * (n - 1))


def has_direction(X: Tensor) -> Tensor:
    """Return for (n, d) vectors which are not zero, (n,)."""
    return torch.cat([(block != 0).any(dim=1) for block in blocks(X)])


def cone_axis(X: Tensor) -> Tensor | None:
    """Return a (d,) unit vector that nearly all rows are parallel to; None where there is none."""
    units, _ = unit_rows(X[:: max(1, len(X) // _CONE_ROWS)].detach())
    mean = units.mean(dim=0)
    length = torch.linalg.vector_norm(mean)
    return mean / length if float(length) > CONE else None


def unit_steps(block: Tensor, axis: Tensor) -> Tensor:
    """Return the (n, d) unit vectors of rows less the axis, without loss where rows are nearly parallel.

    A row is x = α(m + ε) for m the axis, any α near x·m and ε = x/α − m, exactly: the product of α and m
    is split in two. With a = ‖m‖ and g = ‖m + ε‖ − a, the difference of directions is (ε − m·g/a)/(a + g).
    """
    units, _ = unit_rows(block)
    wide = block.double()
    largest = wide.abs().amax(dim=1, keepdim=True)
    scaled = wide / torch.exp2(torch.frexp(largest)[1].double())  # a power of two: nothing is rounded
    alpha = scaled @ axis
    near = alpha > _NEAR_AXIS * torch.linalg.vector_norm(scaled, dim=1)
    slope = torch.where(near, alpha, 1.0)[:, None]
    product, rest = _two_product(slope, axis)
    steps = ((scaled - product) - rest) / slope
    a = torch.linalg.vector_norm(axis)
    grown = 2 * (steps @ axis) + (steps * steps).sum(dim=1)
    g = (grown / (a + (a * a + grown).clamp(min=0).sqrt()))[:, None]
    return torch.where(near[:, None], (steps - axis * (g / a)) / (a + g), units - axis / a)


def _two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return a·b, rounded, and exactly what rounding left of it (Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return two numbers of 26 digits each that add up to a, in float64."""
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


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
        """Return the direction sums of any array; Directions are returned unchanged."""
        if isinstance(X, Directions):
            return X
        unchecked = weights is None and can_launch(X)  # there the sums tell what is not finite
        matrix = as_matrix(X, finite=not unchecked)
        if weights is None and (fused := _on_kernels(matrix)) is not None:
            return fused
        if unchecked:
            check_finite(matrix)
        w = None if weights is None else as_weights(weights, n=len(matrix)).to(matrix.device)
        if w is not None:
            matrix, w = matrix[w > 0], w[w > 0]
        # weights may lie beyond float32, or too far apart for it
        sums = DirectionSums(matrix.shape[1], matrix.dtype if w is None else torch.float64)
        whole_blocks = matrix.requires_grad or matrix.is_cuda
        start = 0
        for rows in blocks(matrix) if whole_blocks else chunks(matrix):
            n = rows.shape[0]
            sums.add(rows, None if w is None else w[start : start + n])
            start += n
        return sums.total()

    def update(self, block: Any) -> Directions:
        """Return these sums with one more block of vectors."""
        return self.merge(Directions.of(block))

    def merge(self, other: Directions) -> Directions:
        """Return the sums of both sets of vectors together."""
        if other.n_dims != self.n_dims:
            raise ShapeError(
                f"Blocks have {self.n_dims} and {other.n_dims} dimensions", wanted="the same number in each"
            )
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

    @property
    def at_hand(self) -> Directions:
        """These sums where formulas take the least time: of a device, on the CPU."""
        return fields_at_hand(self) if self.unit_sum.is_cuda else self

    def need_pairs(self, what: str) -> None:
        """Raise UndefinedError unless two vectors have a direction."""
        if self.count < 2:
            raise UndefinedError(
                f"{what} needs two vectors with a direction; "
                f"there are {self.count:g}, and {counted(self.n_zero, 'zero vector')}"
            )


class DirectionSums:
    """Directions added up chunk by chunk.

    Rows stored in half precision are known to three digits: products with them are taken in float32, with
    all others in float64.
    """

    def __init__(self, n_dims: int, stored: torch.dtype) -> None:
        dtype = torch.float32 if stored in HALVES else torch.float64
        self._room = torch.empty(0, n_dims, dtype=dtype)
        self._units = torch.zeros(2, n_dims, dtype=torch.float64)
        self._norms = torch.zeros(2, dtype=torch.float64)
        self._count = 0.0
        self._least, self._most = math.inf, 0.0
        self._others: Directions | None = None

    def add(self, rows: Tensor, weights: Tensor | None = None) -> None:
        """One more chunk, in float32 or float64."""
        if rows.requires_grad or rows.is_cuda:
            self._add_others(rows, weights)
            return
        wide = self._room.dtype == torch.float64
        n, d = rows.shape
        n_rows = max(64, _WIDE_BYTES // (8 * d)) if wide else n
        for start in range(0, n, n_rows):
            part = slice(start, start + n_rows)
            here = rows[part], None if weights is None else weights[part]
            if not self._add_plain(*here):
                self._add_others(*here)

    def total(self) -> Directions:
        """Return the directions of all rows."""
        if not self._count:
            assert self._others is not None, "no rows were added"
            return self._others
        (units, squares), (norms, square_norms) = self._units, self._norms
        least, most = self._norms.new_tensor([self._least, self._most])
        plain = Directions(whole(self._count), 0, units, squares, norms, square_norms, least, most)
        return plain if self._others is None else plain.merge(self._others)

    def _add_others(self, rows: Tensor, weights: Tensor | None) -> None:
        part = _of_rows(rows, weights)
        self._others = part if self._others is None else self._others.merge(part)

    def _add_plain(self, rows: Tensor, weights: Tensor | None) -> bool:
        """Add the sums as products with 1/‖x‖; return False and add nothing if a square is out of range."""
        n = rows.shape[0]
        if self._room.shape[0] < n:
            self._room = torch.empty_like(rows, dtype=self._room.dtype)
        room = self._room[:n]
        X = rows if rows.dtype == room.dtype else room.copy_(rows)
        norms = torch.linalg.vector_norm(X, dim=1)
        least, most = torch.stack(norms.aminmax()).tolist()
        low, high = _PLAIN_NORMS[X.dtype]
        if not low < least <= most < high:
            return False
        wide = norms.double()
        shares = 1 / norms if weights is None else weights.to(X.dtype) / norms
        self._units[:1] += weighted_sums(shares[None], X)
        self._units[1:] += weighted_sums((shares / norms)[None], torch.mul(X, X, out=room))
        weighed = wide if weights is None else weights * wide
        self._norms += torch.stack([weighed.sum(), weighed @ wide])
        self._count += n if weights is None else float(weights.sum())
        self._least, self._most = min(self._least, least), max(self._most, most)
        return True


def moments_and_directions(X: Any) -> tuple[Moments, Directions]:
    """Both in one pass: a chunk of rows is lifted once, and used for both while it is in cache."""
    matrix = as_matrix(X, finite=False)
    if (fused := _on_kernels(matrix)) is not None:
        return Moments.of(matrix), fused
    sums = DirectionSums(matrix.shape[1], matrix.dtype)
    moments = Moments.of(matrix, also=sums.add)
    return moments, sums.total()


def _on_kernels(matrix: Tensor) -> Directions | None:
    """Return the sums of rows on CUDA in one launch; None without Triton, with a gradient, NaN or Inf."""
    if not can_launch(matrix) or matrix.requires_grad:
        return None
    from isoscope.kernels.triton_directions import MOST_DIMS, direction_sums

    if matrix.shape[1] > MOST_DIMS:
        return None
    units, norms = direction_sums(matrix)
    *totals, n_zeros = norms.tolist()
    if not all(map(math.isfinite, totals)):
        return None
    n_zero = int(n_zeros)
    return Directions(len(matrix) - n_zero, n_zero, *units, *norms[:4])


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


declare(
    "directions",
    Directions,
    lambda space, _: Directions.of(space, weights=space.weights),
    weighted=True,
    operations=lambda d: 8 * d,
    bytes_held=lambda _n, d, _k: 16 * d,
)
declare_together(("moments", "directions"), moments_and_directions)
