"""Rows a few at a time, so that what is made of them is still in cache for the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from isoscope.arrays import block_rows, working_dtype
from isoscope.kernels.products import (
    add_upper,
    add_upper_product,
    mirrored,
    product_of_runs,
    sum_of_squares,
    weighted_sums,
)

# of float32. Measured, 2 cores, d = 384: smaller ones are cheaper alone (1.5 MB by a twentieth), but many
# short calls wait for each other's turn in Python (1.5 MB lose a tenth); products are the same from 1 to 8 MB
_CHUNK_BYTES = 6 * 2**20
_PIECE_BYTES = 2 * 2**20  # of float64; a block at once takes five times its bytes, and twice as long
_NARROW = 16  # dimensions: rows of fewer are added up in float64, which costs them nothing
# rows whose products are added up in float32, then in float64: libraries differ in how they add up, and the
# worst add row after row, where every row may lose 2⁻²⁴ of the sum so far
_RUN_ROWS = 8192
_FEW = 48  # dimensions: rows of no more are multiplied in shorter runs at no cost
_NEAR_ROWS = 256  # rows that tell about where the mean is
_NEAR_ZERO = 4.0  # a squared mean of so many variances costs float32 sums two bits


def sums_dtype(X: Tensor) -> torch.dtype:
    """Return the type for sums over rows of X: float64 for narrow rows, else their working type.

    >>> sums_dtype(torch.ones(9, 384)), sums_dtype(torch.ones(9, 1))
    (torch.float32, torch.float64)
    """
    return torch.float64 if X.shape[1] < _NARROW else working_dtype(X.dtype)


def chunks(X: Tensor) -> Iterator[Tensor]:
    """Yield the rows of X in the type of their sums; rows of another type are converted in one buffer.

    >>> [len(rows) for rows in chunks(torch.ones(10_000, 384, dtype=torch.float16))]
    [4096, 4096, 1808]
    """
    n, d = X.shape
    dtype = sums_dtype(X)
    n_rows = max(64, _CHUNK_BYTES // (4 * d))
    if X.dtype == dtype:
        yield from _split(X, n_rows)
        return
    room = X.new_empty(min(n_rows, n), d, dtype=dtype)  # fresh memory costs a page fault every 4 kB
    for rows in _split(X, n_rows):
        yield room[: rows.shape[0]].copy_(rows)


def pieces(X: Tensor) -> Iterator[Tensor]:
    """Yield rows of X unchanged, few enough that float64 copies of them take little memory.

    On a device, and where a gradient is wanted, whole blocks: there every step costs the same.

    >>> [len(rows) for rows in pieces(torch.ones(1000, 384))]
    [682, 318]
    """
    if X.requires_grad or X.is_cuda:
        return iter(_split(X, block_rows(X.shape[1], X.device)))
    return iter(_split(X, max(64, _PIECE_BYTES // (8 * X.shape[1]))))


def _split(X: Tensor, n_rows: int) -> Sequence[Tensor]:
    """Return X in parts of at most n_rows; few rows are one part, without the cost of a split."""
    return (X,) if X.shape[0] <= n_rows else X.split(n_rows)


def near_point(X: Tensor) -> Tensor:
    """(d,) a point about which sums lose nothing, in their type, from some rows spread over it.

    The mean of those rows, or zero where that is within two standard deviations in every dimension.
    """
    sampled = X[:: max(1, X.shape[0] // _NEAR_ROWS)].to(sums_dtype(X))
    mean, mean_square = sampled.mean(dim=0), sampled.square().mean(dim=0)
    variance = mean_square - mean.square()
    return torch.zeros_like(mean) if bool((mean.square() <= _NEAR_ZERO * variance).all()) else mean


class CenteredSums:
    """Sums over v = x − about, chunk by chunk, in float64; products are taken in the rows' type.

    Attributes:
        about: (d,) any point near the rows.
        fourth: whether the cubic and quartic sums are taken; they are 0 otherwise.
        count: how many rows.
        quartic: Σ‖v‖⁴.
    """

    def __init__(self, about: Tensor, *, fourth: bool = True) -> None:
        d = about.shape[0]
        self.about = about
        self.fourth = fourth
        self._plain = not bool(about.any())
        self.count = 0
        self.quartic = about.new_zeros((), dtype=torch.float64)
        self._sums = about.new_zeros(2, d, dtype=torch.float64)
        self._upper = about.new_zeros(d, d, dtype=torch.float64)
        self._run = self._upper if about.dtype == torch.float64 else about.new_empty(d, d)
        self._run_rows = 0
        self._room = about.new_empty(0, d)
        self._weights = about.new_empty(2, 0)

    @property
    def scatter(self) -> Tensor:
        """(d, d) Σvvᵀ."""
        self._end_run()
        return mirrored(self._upper)

    @property
    def total(self) -> Tensor:
        """(d,) Σv."""
        return self._sums[0]

    @property
    def cubic(self) -> Tensor:
        """(d,) Σ‖v‖²v."""
        return self._sums[1]

    def add(self, rows: Tensor) -> None:
        """One more chunk."""
        n = rows.shape[0]
        if self._weights.shape[1] < n:
            self._weights = rows.new_ones(2, n)
        V = rows if self._plain else self._moved(rows)
        self._add_products(V)
        self.count += n
        weights = self._weights[:, :n]
        if not self.fourth:
            self._sums[:1] += weighted_sums(weights[:1], V)
            return
        squares = weights[1].copy_(sum_of_squares(V))
        self._sums += weighted_sums(weights, V)
        wide = squares.double()
        self.quartic += wide @ wide

    def _add_products(self, V: Tensor) -> None:
        if self._run is self._upper:
            add_upper_product(self._upper, V)
            return
        if V.shape[1] <= _FEW:
            self._upper += product_of_runs(V)
            return
        for rows in V.split(_RUN_ROWS):
            if self._run_rows + len(rows) > _RUN_ROWS:
                self._end_run()
            add_upper_product(self._run, rows, fresh=not self._run_rows)
            self._run_rows += len(rows)

    def _end_run(self) -> None:
        if self._run_rows:
            add_upper(self._upper, self._run)
            self._run_rows = 0

    def _moved(self, rows: Tensor) -> Tensor:
        if len(self._room) < len(rows):
            self._room = torch.empty_like(rows)
        return torch.sub(rows, self.about, out=self._room[: len(rows)])
