"""The k nearest rows of one matrix to every row of another: by products, at rising precision.

With rows about one centre, ‖a − b‖² = ‖a‖² + (‖b‖² − 2 a·b), so a strip of squared distances is one
product. Its error is bounded: where vectors were rounded by a share ρ of their length and a sum by u a
step,

    |error| ≤ 2ρ(2 + ρ)‖a‖R + (d + 8)·u·(‖a‖ + R)²     for all b with ‖b‖ ≤ R

The k + spare smallest of a row are its candidates, and their distances are taken again where the product
has lost digits. Let r be the k-th of these, and T the largest product among the candidates. Whatever was
not chosen lies at T − error or beyond, so a row with r² ≤ T − error is settled; and R need not exceed
‖a‖ + r, for points longer than that are farther than r anyway. Rows not settled go to the next level:
tensor cores (CUDA only), float32, float64, and last direct differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from queue import SimpleQueue

import torch
from torch import Tensor

from isoscope.arrays import blocks, working
from isoscope.kernels.precision import direct_distances, direct_squares, full_precision
from isoscope.kernels.products import sum_of_squares
from isoscope.kernels.selection import smallest
from isoscope.kernels.tiles import Progress
from isoscope.kernels.workers import in_order

STRIP_BYTES = 128 * 2**20  # of squared distances held at once
CUDA_STRIP_BYTES = 2 * 2**30  # a launch has to keep a whole device busy
_LEAST_ROWS = 200  # worth a thread of their own
_STRIP_ROWS = 800  # on the CPU: enough for a product, and small temporary memory is reused
_GATHER_BYTES, _CUDA_GATHER_BYTES = 2**23, 2**29  # of candidates' vectors held at once
# squared distances under this share of ‖a‖² are taken again by direct difference in float64
NEAR = {torch.float32: 5e-2, torch.float64: 1e-6}
_SPARE, _COARSE_SPARE = 8, 28  # candidates beyond k, so that few rows are left unsettled
_TENSOR_CORE_STEP = 2.0**-22  # tensor cores cut off where others round
NARROW = 32  # dimensions up to which every distance is a difference: ties stay ties
_FEW_PAIRS = 2**23  # on CUDA: float64 takes so few in less time than the launches of a rougher level
_SAFE = 2.0**100  # units beyond this, or under its inverse, might overflow in float32


@dataclass(frozen=True, eq=False)
class Level:
    """How products are taken: the points in one type, and what that costs.

    Attributes:
        columns: (n, d) points about the centre, in units; (n, d + 1) if the last column holds ‖b‖².
        squares: (n,) ‖b‖².
        vectors: (n, d) points to take candidates' distances from by difference; None if products serve.
        rounding: ρ, the largest share of its length by which rounding moved a row of the columns.
        coarse: whether tensor cores take the products.
        last: whether only direct differences come after this level.
    """

    columns: Tensor
    squares: Tensor
    vectors: Tensor | None
    rounding: float = 0.0
    coarse: bool = False
    last: bool = False

    @cached_property
    def longest(self) -> Tensor:
        """The largest ‖b‖, float64."""
        return self.squares.max().double().sqrt()

    def products(self, rows: Tensor, out: Tensor) -> Tensor:
        """(rows, n) ‖b‖² − 2 a·b."""
        left = (_rounded(rows) if self.coarse else rows) * -2
        if self.columns.shape[1] > rows.shape[1]:
            return torch.mm(torch.nn.functional.pad(left, (0, 1), value=1.0), self.columns.T, out=out)
        if not (self.coarse and rows.is_cuda):
            return torch.addmm(self.squares, left, self.columns.T, out=out)
        allowed_before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True  # rows already rounded lose nothing more to it
        try:
            return torch.addmm(self.squares, left, self.columns.T, out=out)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed_before

    def error(self, lengths: Tensor, reach: Tensor) -> Tensor:
        """Bound on the error of ‖a‖² + products, for rows and points of these lengths."""
        step = _TENSOR_CORE_STEP if self.coarse else torch.finfo(self.columns.dtype).eps
        moved = 2 * self.rounding * (2 + self.rounding) * lengths * reach
        return moved + (self.columns.shape[1] + 8) * step * (lengths + reach).square()

    def hopeless(self, farthest: Tensor, squares: Tensor) -> Tensor:
        """(rows,) whether no row could be settled here, so that its distances are left to a finer level."""
        lengths = squares.sqrt()
        return (farthest < self.error(lengths, lengths)) & (not self.last)

    def settled(self, squared: Tensor, farthest: Tensor, squares: Tensor) -> Tensor:
        """(rows,) whether nothing nearer than the k-th of `squared` can have been passed over."""
        kth, lengths = squared[:, -1], squares.sqrt()
        reach = torch.minimum(lengths + kth.sqrt(), self.longest)
        nothing_nearer = (kth == 0) & ~self.hopeless(farthest, squares)
        certain = (kth <= farthest - self.error(lengths, reach)) | nothing_nearer
        if self.coarse:
            return certain
        return certain | (kth >= NEAR[self.columns.dtype] * squares)  # as sure as the distance itself


@dataclass(frozen=True, eq=False)
class Search:
    """Queries and points, and where they are put before products are taken.

    Attributes:
        queries, points: (m, d) and (n, d) the caller's rows.
        excludes_self: whether query i is point i, which is then left out.
        dtype: in which products are taken, to begin with.
        center: (d,) near the points, float64.
        unit: a power of two, at most the largest coordinate about the centre and more than half of it.
    """

    queries: Tensor
    points: Tensor
    excludes_self: bool
    dtype: torch.dtype
    center: Tensor
    unit: float

    @classmethod
    def of(cls, queries: Tensor, points: Tensor, *, excludes_self: bool, dtype: torch.dtype) -> Search:
        """Return a search centred on the mean of the points."""
        sums = [block.sum(dim=0, dtype=torch.float64) for block in blocks(points)]
        # of the points' own type, so that a difference from it is rounded once
        center = (torch.stack(sums).sum(dim=0) / len(points)).to(working(points[:1]).dtype).double()
        low = torch.stack([block.amin(dim=0) for block in blocks(points)]).amin(dim=0)
        high = torch.stack([block.amax(dim=0) for block in blocks(points)]).amax(dim=0)
        largest = float(torch.maximum(high - center, center - low).max())
        unit = 2.0 ** (math.frexp(largest)[1] - 1) if largest > 0 else 1.0
        return cls(queries, points, excludes_self, dtype, center, unit)

    @property
    def n_others(self) -> int:
        """How many points a query can have as neighbours."""
        return len(self.points) - self.excludes_self

    @full_precision
    def nearest(self, k: int, progress: Progress | None = None) -> tuple[Tensor, Tensor]:
        """(m, k) distances in ascending order, float64, and the points' rows."""
        left = torch.arange(len(self.queries), device=self.points.device)
        squared = self.center.new_empty(len(left), k)
        indices = left.new_empty(len(left), k)
        for level in self._levels():
            left = self._run(level, left, squared, indices, progress)
            progress = None  # the first level is the work; what it leaves is rare
            if not len(left):
                break
        for places in left.split(_STRIP_ROWS) if len(left) else ():
            squared[places], indices[places] = self._direct(places, k)
        return squared.sqrt_().mul_(self.unit), indices

    def _levels(self) -> Iterator[Level]:
        """From rough to fine; each is made when the one before has left rows."""
        if self.points.is_cuda and len(self.queries) * len(self.points) <= _FEW_PAIRS:
            yield self._plain(torch.float64)
            return
        plain = self._plain(self.dtype)
        if _has_tensor_cores(self.points) and self.dtype == torch.float32:
            placed = plain.columns[:, : self.points.shape[1]]
            rounded = _rounded(placed)
            yield Level(rounded, plain.squares, placed, _share_moved(placed, rounded), coarse=True)
        yield plain
        if self.dtype != torch.float64:
            yield self._plain(torch.float64)

    def _plain(self, dtype: torch.dtype) -> Level:
        n, d = self.points.shape
        # on the CPU, ‖b‖² as one more column is added by the product itself
        columns = torch.empty(n, d + (not self.points.is_cuda), dtype=dtype, device=self.points.device)
        start = 0
        for block in blocks(self.points):
            columns[start : start + len(block), :d] = self._placed(block, dtype)
            start += len(block)
        squares = sum_of_squares(columns[:, :d])
        columns[:, d:] = squares[:, None]
        vectors = self._raw(self.points) if d <= NARROW else None
        return Level(columns, squares, vectors, last=dtype == torch.float64)

    def _run(
        self, level: Level, places: Tensor, squared: Tensor, indices: Tensor, progress: Progress | None
    ) -> Tensor:
        """Fill the results at some places; returns those that are not settled."""
        n, k = len(self.points), squared.shape[1]
        n_bytes, n_workers = CUDA_STRIP_BYTES, 1
        if not self.points.is_cuda:
            n_workers = min(torch.get_num_threads(), -(-len(places) // _LEAST_ROWS))
            n_rows = min(_STRIP_ROWS, -(-len(places) // n_workers))
            n_bytes = min(STRIP_BYTES // n_workers, n_rows * level.columns.element_size() * n)
        n_rows = min(len(places), max(16, n_bytes // (level.columns.element_size() * n)))
        strips: SimpleQueue[Tensor] = SimpleQueue()  # memory taken once, not for every part
        for _ in range(n_workers):
            strips.put(level.columns.new_empty(n_rows, n))

        def search(part: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            strip = strips.get()
            try:
                return self._strip(level, part, k, strip[: len(part)])
            finally:
                strips.put(strip)

        left = []
        parts = places.split(n_rows)
        tasks = (partial(search, part) for part in parts)
        for part, result in zip(parts, in_order(tasks, n_workers=n_workers), strict=True):
            squared[part], indices[part], settled = result
            left.append(part[~settled])
            if progress:
                progress((int(part[-1]) + 1) / len(self.queries))
        return torch.cat(left)

    def _strip(self, level: Level, places: Tensor, k: int, strip: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Squared distances and indices of the k nearest, and which rows are settled."""
        queries = self.queries[places]
        rows = self._placed(working(queries), level.columns.dtype)
        squares = sum_of_squares(rows).double()
        level.products(rows, out=strip)
        if self.excludes_self:
            strip[torch.arange(len(places), device=places.device), places] = torch.inf
        n_candidates = min(k + (_COARSE_SPARE if level.coarse else _SPARE), self.n_others)
        values, indices = smallest(strip, n_candidates)
        squared = (values.double() + squares[:, None]).clamp_(min=0)
        farthest = squared.amax(dim=1)
        if level.vectors is not None:
            squared = _differences(rows if level.coarse else self._raw(queries), level.vectors, indices)
        near = squared < (NEAR[rows.dtype] * squares * ~level.hopeless(farthest, squares))[:, None]
        i, j = near.nonzero(as_tuple=True)
        if len(i):
            squared[i, j] = direct_squares(self.queries, places[i], self.points, indices[i, j], self.unit)
        squared, indices = _ordered(squared, indices, k)
        if n_candidates == self.n_others:
            return squared, indices, torch.ones_like(places, dtype=torch.bool)
        return squared, indices, level.settled(squared, farthest, squares)

    def _direct(self, places: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Squared distances and indices of the k nearest, by direct difference, block by block."""
        rows = self._raw(self.queries[places])
        squared, indices = rows.new_empty(len(places), 0), places.new_empty(len(places), 0)
        begin = 0
        for block in blocks(self.points, n_rows=max(k, STRIP_BYTES // (16 * len(places)))):
            here = direct_distances(rows, self._raw(block)).square_()
            columns = torch.arange(begin, begin + len(block), device=places.device)
            if self.excludes_self:
                here.masked_fill_(columns == places[:, None], torch.inf)
            squared = torch.cat([squared, here], dim=1)
            indices = torch.cat([indices, columns.expand_as(here)], dim=1)
            squared, order = squared.topk(min(k, squared.shape[1]), dim=1, largest=False)
            indices = indices.gather(1, order)
            begin += len(block)
        return squared, indices

    def _placed(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """Rows about the centre, in units: a difference is rounded relative to itself, a unit is exact."""
        safe = 1 / _SAFE < self.unit < _SAFE
        wide = torch.promote_types(rows.dtype, dtype) if safe else torch.float64
        return (rows.to(wide) - self.center.to(wide)).div_(self.unit).to(dtype)

    def _raw(self, rows: Tensor) -> Tensor:
        return rows.double() / self.unit


def _ordered(squared: Tensor, indices: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the first k of every row, nearest first; ties go to the earlier point."""
    squared, order = squared.sort(dim=1)
    indices = indices.gather(1, order)
    tied = (squared.diff(dim=1) == 0).any(dim=1).nonzero().flatten()
    if len(tied):
        first, order = indices[tied].sort(dim=1)
        order = squared[tied].gather(1, order).sort(dim=1, stable=True).indices
        indices[tied] = first.gather(1, order)
    return squared[:, :k], indices[:, :k]


def _differences(rows: Tensor, points: Tensor, indices: Tensor) -> Tensor:
    """(rows, c) float64 squared distances to the points named, by difference in their own type."""
    n_bytes = _CUDA_GATHER_BYTES if points.is_cuda else _GATHER_BYTES
    chunk = max(1, n_bytes // (points.element_size() * points.shape[1] * indices.shape[1]))
    lengths = [
        torch.linalg.vector_norm(points[neighbors].sub_(row[:, None]), dim=2)
        for row, neighbors in zip(rows.split(chunk), indices.split(chunk), strict=True)
    ]
    return torch.cat(lengths).double().square_()


def _has_tensor_cores(points: Tensor) -> bool:
    return points.is_cuda and torch.cuda.get_device_capability(points.device) >= (8, 0)


def _rounded(rows: Tensor) -> Tensor:
    """float32 rounded to the 10 bits that tensor cores read; halves go up."""
    return ((rows.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _share_moved(rows: Tensor, rounded: Tensor) -> float:
    """Return the largest relative rounding error of a row."""
    moved, lengths = (torch.linalg.vector_norm(part, dim=1) for part in (rows - rounded, rows))
    return float((moved / lengths.clamp(min=1e-30)).max())
