"""`Moments`: count, mean and scatter of a space in one pass, exact under any split into blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, check_finite, working
from isoscope.errors import ShapeError, UndefinedError
from isoscope.kernels.at_hand import numbers_at_hand
from isoscope.kernels.centered import device_sums, moved_quartic, moved_to_mean, rows_at_once
from isoscope.kernels.precision import (
    check_spread,
    float32_suits,
    full_precision,
    hangs_on_few,
    is_flat,
    two_sum,
)
from isoscope.kernels.products import sum_of_squares, symmetric_product
from isoscope.space import as_weights
from isoscope.statistics.chunks import CenteredSums, chunks, near_point, sums_dtype
from isoscope.statistics.declared import declare
from isoscope.statistics.decomposed import begun_or

_OFFSET = 1e7  # squared means of so many variances show the rounding of the mean, at 1e-12 of a deviation
_DEVICE_NUMBERS = 2**28  # on a device, which is waited for after each block
_FAR = 8.0  # sums about a point that misses the mean, squared, by so many variances lose digits
_ULPS = 8.0  # of the mean: missing it by less is rounding, as in a dimension that is constant


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean, scatter about the mean, and the two sums that remove IsoScore's bias.

    With u = x − mean:  scatter A = Σ u uᵀ,  cubic = Σ ‖u‖² u,  quartic = Σ ‖u‖⁴.
    Everything is float64, whatever came in. While there are fewer rows than dimensions the scatter is
    held as a `factor` F with A = FᵀF, so that products run on the smaller, Gram side.

    A weight w for each vector counts it w times: A = Σ w u uᵀ about Σ w x/Σ w, and count = Σ w. Whole
    weights give what repeated rows give; divisors n − 1 become Σ w − 1.

    Attributes:
        count: number of vectors, or the sum of their weights; an int where that is whole.
        mean: (d,).
        mean_rest: (d,) what rounding to float64 left of the mean; it shows at large offsets.
        scatter_matrix: (d, d), or None while the factor is held.
        factor: (r, d) with r < d, or None.
        cubic_sum: (d,), or None where the factor's rows are the vectors themselves, or with fourth=False.
        quartic_sum: scalar tensor, likewise.
        weighted_rows: how many rows of weight above 0 there are; None without weights.

    >>> whole = Moments.of([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> parts = Moments.of([[1.0, 0.0]]).merge(Moments.of([[0.0, 2.0], [3.0, 1.0]]))
    >>> bool(torch.allclose(whole.scatter, parts.scatter))
    True
    """

    count: Any  # an int, or a float where weights do not add up to one
    mean: Tensor
    scatter_matrix: Tensor | None
    factor: Tensor | None
    cubic_sum: Tensor | None
    quartic_sum: Tensor | None
    mean_rest: Tensor | float = 0.0
    weighted_rows: int | None = None

    @classmethod
    def of(
        cls, X: Any, *, weights: Any = None, fourth: bool = True, also: Callable[[Tensor], None] | None = None
    ) -> Moments:
        """Return the moments of any array, taken block by block; Moments pass through unchanged.

        Without `fourth` the cubic and quartic sums are left out, which saves a dozen steps: for losses that
        run them at every update. `also` is shown all rows without weights once, in order and lifted for sums,
        while they are in cache; it may not keep them.
        """
        if isinstance(X, Moments):
            return X
        moments: Moments | None = None
        matrix = as_matrix(X, finite=False)
        if weights is not None:
            from isoscope.statistics.weighted_moments import of_weighted

            return of_weighted(matrix, as_weights(weights, n=len(matrix)).to(matrix.device))
        d = matrix.shape[1]
        at_once = max(1, _DEVICE_NUMBERS // d) if matrix.is_cuda else rows_at_once(d)
        for block in matrix.split(at_once):
            part = _of_block(block, fourth, also)
            if not 0 < part.spread < torch.inf:
                _explain(part, block, matrix)
            moments = part if moments is None else moments.merge(part)
        assert moments is not None  # as_matrix refuses empty input
        return moments

    def update(self, block: Any) -> Moments:
        """Return these moments with one more block of vectors."""
        return self.merge(Moments.of(block))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of vectors together, by centred merging."""
        if other.n_dims != self.n_dims:
            raise ShapeError(
                f"Blocks have {self.n_dims} and {other.n_dims} dimensions", wanted="the same number in each"
            )
        count = self.count + other.count
        step = (other.mean - self.mean) + (other.mean_rest - self.mean_rest)
        share = other.count / count
        mean, rest = two_sum(self.mean, self.mean_rest + step * share)
        scatter, factor = _merge_scatter(self, other, step * (self.count * other.count / count) ** 0.5)
        rows = None if self.weighted_rows is other.weighted_rows is None else self.n_rows + other.n_rows
        if not (self.has_fourth and other.has_fourth):
            return Moments(count, mean, scatter, factor, None, None, rest, rows)
        a, b = self.moved(step * share), other.moved(step * (share - 1))
        return Moments(count, mean, scatter, factor, a[0] + b[0], a[1] + b[1], rest, rows)

    def moved(self, m: Tensor) -> tuple[Tensor, Tensor]:
        """Return cubic and quartic sums about the mean plus m, using Σu = 0."""
        square, Am = m @ m, self.times(m)
        cubic = self.cubic - m * self.trace - 2 * Am - self.count * square * m
        return cubic, moved_quartic(self.count, self.trace, self.quartic, m @ Am, self.cubic @ m, square, 0.0)

    @property
    def has_fourth(self) -> bool:
        """Whether the cubic and quartic sums are there, or can be made."""
        return self.cubic_sum is not None or self.factor is not None

    @property
    def n_dims(self) -> int:
        """The number of dimensions."""
        return int(self.mean.shape[0])

    @property
    def n_rows(self) -> int:
        """How many vectors there are, whatever their weights: they span no more dimensions."""
        return int(self.count) if self.weighted_rows is None else self.weighted_rows

    @cached_property
    def scatter(self) -> Tensor:
        """(d, d) Σ u uᵀ."""
        if self.factor is not None:
            return self.factor.T @ self.factor
        assert self.scatter_matrix is not None
        return self.scatter_matrix

    @property
    def covariance(self) -> Tensor:
        """(d, d) covariance, divisor n − 1."""
        self._need(2, "a covariance")
        return self.scatter / (self.count - 1)

    @cached_property
    def smaller_side(self) -> Tensor:
        """The scatter, or the Gram matrix F Fᵀ where that is smaller: same trace, norm and spectrum."""
        return self.scatter if self.factor is None else self.factor @ self.factor.T

    @cached_property
    def trace(self) -> Tensor:
        """tr A = Σ ‖u‖²."""
        return self.smaller_side.trace()

    @property
    def spread(self) -> float:
        """tr A as a number."""
        return self._numbers[0]

    @property
    def mean_square(self) -> float:
        """‖mean‖² as a number."""
        return self._numbers[1]

    @cached_property
    def _numbers(self) -> tuple[float, float, float]:
        """tr A, ‖mean‖² and Σ‖u‖⁴, or 0, as numbers: one wait for the device, however often asked."""
        return tuple(self.numbers.tolist())

    @property
    def numbers(self) -> Tensor:
        """(3,) tr A, ‖mean‖² and Σ‖u‖⁴, or 0: what tells whether the sums have lost digits."""
        quartic = self.quartic if self.has_fourth else self.trace * 0
        return torch.stack([self.trace, self.mean @ self.mean, quartic]).detach()

    @property
    def hangs_on_few(self) -> bool:
        """Whether a few rows make so much of Σ‖u‖⁴ that what the others add to ‖A‖² needs float64."""
        return hangs_on_few(self.spread, self._numbers[2])

    @property
    def suits_float32(self) -> bool:
        """Whether sums in float32 have kept their digits."""
        return float32_suits(self.spread, self._numbers[2], self.n_rows, self.n_dims)

    @property
    def is_flat(self) -> bool:
        """Whether the spread may be nothing but the rounding of equal rows."""
        return is_flat(self.spread, self._numbers[1], self.n_rows)

    @cached_property
    def cubic(self) -> Tensor:
        """(d,) Σ ‖u‖² u."""
        if self.cubic_sum is not None:
            return self.cubic_sum
        assert self.factor is not None, "taken with fourth=False"
        return self.factor.T @ self.smaller_side.diagonal()

    @cached_property
    def quartic(self) -> Tensor:
        """Σ ‖u‖⁴."""
        if self.quartic_sum is not None:
            return self.quartic_sum
        assert self.factor is not None, "taken with fourth=False"
        squares = self.smaller_side.diagonal()
        return squares @ squares

    @cached_property
    def squared_frobenius(self) -> Tensor:
        """‖A‖_F²."""
        entries = self.smaller_side.flatten()
        return entries @ entries

    @cached_property
    def participation(self) -> Tensor:
        """(tr A)²/‖A‖_F², at least 1; the trace is divided out before squaring, so nothing underflows."""
        shares = (self.smaller_side / self.trace).flatten()
        return (1 / (shares @ shares)).clamp(min=1)

    @property
    def at_hand(self) -> Moments:
        """These moments where formulas take the least time: of a device, their numbers on the CPU."""
        if not self.mean.is_cuda or self.mean.requires_grad:
            return self
        fourth = ["quartic"] if self.has_fourth else []
        return numbers_at_hand(self, ["trace", "squared_frobenius", "participation", *fourth])

    @cached_property
    def eigenvalues(self) -> Tensor:
        """(d,) eigenvalues of the covariance, largest first, none negative."""
        self._need(2, "eigenvalues")
        values = begun_or(self, "eigenvalues", lambda: torch.linalg.eigvalsh(self.smaller_side))
        values = values.flip(0).clamp(min=0) / (self.count - 1)
        n_left = self.n_dims - len(values)
        return torch.cat([values, values.new_zeros(n_left)]) if n_left else values

    @cached_property
    def principal(self) -> tuple[Tensor, Tensor]:
        """(d,) eigenvalues of Σ x xᵀ, uncentred, smallest first, and (d, d) eigenvectors, one a column."""
        return tuple(begun_or(self, "principal", lambda: torch.linalg.eigh(self.second_moment)))

    @cached_property
    def second_moment(self) -> Tensor:
        """(d, d) Σ x xᵀ, uncentred."""
        return self.scatter + self.count * torch.outer(self.mean, self.mean)

    def times(self, vectors: Tensor) -> Tensor:
        """Return A v for (d,) or (d, m) vectors, through the factor if there is one."""
        if self.factor is not None:
            return self.factor.T @ (self.factor @ vectors)
        return self.scatter @ vectors

    def check_scale(self) -> None:
        """Raise InputError where squares leave the range of float64, or keep only some of their digits."""
        differ = not self.spread and self.factor is not None and bool(self.factor.any())
        check_spread(self.spread, differ=differ)

    def _need(self, n: int, what: str) -> None:
        if self.count < n:
            raise UndefinedError(f"{what} needs at least {n} vectors; there is {self.count:g}")
        self.check_scale()

    def need_spread(self, what: str) -> None:
        """Raise UndefinedError unless the points differ, InputError where their squares lose digits."""
        self._need(2, what)
        if not self.spread > 0:
            raise UndefinedError(f"{what} is undefined: all {self.count:g} points are equal")


def _explain(part: Moments, block: Tensor, matrix: Tensor) -> None:
    check_finite(matrix)  # NaN and Inf show in the sums, so they need no pass of their own
    check_spread(part.spread, differ=not bool((block == block[0]).all()))


@full_precision
def _of_block(block: Tensor, fourth: bool, also: Callable[[Tensor], None] | None) -> Moments:
    moments = _sums(block, fourth, also)
    if moments.is_flat and bool((block == block[0]).all()):
        return _of_equal_rows(block)  # what is left of the spread is rounding
    return moments


def _sums(block: Tensor, fourth: bool, also: Callable[[Tensor], None] | None) -> Moments:
    if block.shape[0] < block.shape[1]:
        if also:
            also(working(block))
        return _of_few_rows(block.double())
    moments = _of_many_rows(block, fourth, also)
    if sums_dtype(block) == torch.float64 or moments.suits_float32:
        return moments
    return _of_many_rows(block.double(), fourth)


def _of_equal_rows(block: Tensor) -> Moments:
    n, d = block.shape
    zeros = block.new_zeros(d, dtype=torch.float64)
    factor = block.new_zeros(n, d, dtype=torch.float64) if n < d else None
    scatter = None if n < d else block.new_zeros(d, d, dtype=torch.float64)
    return Moments(n, block[0].double(), scatter, factor, zeros, zeros.sum())


def _of_few_rows(block: Tensor) -> Moments:
    mean = block.mean(dim=0)
    U = block - mean
    moments = Moments(len(block), mean, None, U, None, None)
    spread, length, _ = moments._numbers
    if len(block) * length <= _OFFSET * spread:
        return moments
    step = U.mean(dim=0)  # what rounding the mean left, which shows in the spread
    mean, rest = two_sum(mean, step)
    return Moments(len(block), mean, None, U - step, None, None, rest)


def _of_many_rows(block: Tensor, fourth: bool, also: Callable[[Tensor], None] | None = None) -> Moments:
    if block.requires_grad or block.is_cuda:  # a device has no use for chunks that stay in a cache
        rows = block.to(sums_dtype(block))
        if also:
            also(rows)
        return _of_whole_block(rows, fourth)
    return _of_chunks(block, fourth, also)


def _of_whole_block(block: Tensor, fourth: bool) -> Moments:
    """Return the moments of rows that are centred twice, without waiting."""
    if block.is_cuda and not block.requires_grad:
        mean, rest, scatter, cubic, quartic = device_sums(block, fourth=fourth)
        return Moments(len(block), mean, scatter, None, cubic, quartic, rest)
    shift = block.mean(dim=0)
    U = block - shift
    step = U.mean(dim=0)
    U = U - step
    scatter = symmetric_product(U).double()
    if not fourth:
        return Moments(len(block), shift.double() + step, scatter, None, None, None)
    mean, rest = two_sum(shift.double(), step.double())
    squares = sum_of_squares(U).double()
    return Moments(len(block), mean, scatter, None, squares @ U.double(), squares @ squares, rest)


def _of_chunks(block: Tensor, fourth: bool, also: Callable[[Tensor], None] | None) -> Moments:
    """Chunk by chunk while they are in cache, about a point near the mean, then moved to the mean."""
    sums = CenteredSums(near_point(block), fourth=fourth)
    for rows in chunks(block):
        if also:
            also(rows)
        sums.add(rows)
    moments, missed = _recentred(sums)
    variance = moments.scatter.diagonal() / moments.count
    rounding = _ULPS * torch.finfo(sums.about.dtype).eps * moments.mean
    if (missed.square() > _FAR * variance + rounding.square()).any():  # the first rows were not like the rest
        sums = CenteredSums(moments.mean.to(sums.about.dtype), fourth=fourth)
        for rows in chunks(block):
            sums.add(rows)
        moments, _ = _recentred(sums)
    return moments


def _recentred(sums: CenteredSums) -> tuple[Moments, Tensor]:
    """Return the sums of chunks about the mean, and the error of their point."""
    fourth = (sums.cubic, sums.quartic) if sums.fourth else (None, None)
    n = sums.count
    mean, rest, scatter, cubic, quartic = moved_to_mean(n, sums.about, sums.total, sums.scatter, *fourth)
    return Moments(n, mean, scatter, None, cubic, quartic, rest), sums.total / n


def _merge_scatter(a: Moments, b: Moments, step: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Scatter or factor of the union; the scaled step between the means is one more factor row."""
    if a.factor is not None and b.factor is not None:
        factor = torch.cat([a.factor, b.factor, step[None]])
        return (None, factor) if len(factor) < a.n_dims else (symmetric_product(factor), None)
    return (a.scatter + b.scatter).addr_(step, step), None


declare(  # operations: the upper triangle of uuᵀ, and sums
    "moments", Moments, lambda space, _: Moments.of(space, weights=space.weights), weighted=True,
    operations=lambda d: d * (d + 1) + 8 * d, bytes_held=lambda _n, d, _k: 8 * d * (d + 3),
)  # fmt: skip
