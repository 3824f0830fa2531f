"""Squared distances between all pairs of rows, in tiles, accurate even where float32 would cancel.

A tile is one product. With e the centre of the tile of b, a' = a − e and b' = b − e,

    ‖a − b‖² = ‖a'‖² + ‖b'‖² − 2 a'·b'

so one matrix product of the rows (−2a', ‖a'‖², 1) with the rows (b', 1, ‖b'‖²) gives the whole tile. Rows
are sorted by cluster; a tile inside one cluster is centred on it, so collapsed clusters lose no precision.
Pairs that are still too close (duplicates, tiny clusters) are recomputed by direct difference in float64.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from isoscope.kernels.precision import (
    CROWDED,
    NEAR,
    center_and_unit,
    crowded_squares,
    direct_squares,
    full_precision,
    length_unit,
    pair_dtype,
)
from isoscope.kernels.products import sum_of_squares, weighted_sums
from isoscope.kernels.selection import medians
from isoscope.kernels.workers import Room, in_order, one_core
from isoscope.labels import Labels

R = TypeVar("R")

Progress = Callable[[float], None]  # is called with the share of the work that is done
_L2_BYTES = torch.cpu.get_capabilities().get("l2_cache_size") or 2**20
# Measured on cores with 1 and 2 MB of L2: matrix products take the same time in tiles of 384 to 900 rows; the
# work around them is fastest from 640 to 768. A smaller cache needs smaller tiles, which must fit in it.
TILE_ROWS = 768 if _L2_BYTES >= 2**20 else 512
CUDA_TILE_ROWS = 8192  # one launch has to keep a whole device busy
_FEW_CLUSTERS = 16  # in a tile; up to here one sum per cluster is cheaper than a transposed copy
_TILES_PER_THREAD = 4  # at least, when centring: with fewer, starting a thread costs more than it saves
_SPREAD_ROWS = 16  # sampled to estimate the spread of a tile
_FAR = 1e15  # if distances differ by more than this factor, float32 cannot hold both squares
_UNIT_ROWS = 256  # sampled to choose the unit of length


@dataclass(frozen=True)
class Tile:
    """Rows start … stop−1 of the arranged points, holding clusters first … last."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def pure(self) -> bool:
        """Whether all rows belong to one cluster."""
        return self.first == self.last

    @property
    def rows(self) -> slice:
        """The tile's rows."""
        return slice(self.start, self.stop)

    @property
    def clusters(self) -> slice:
        """The tile's clusters, as columns of a per-cluster result."""
        return slice(self.first, self.last + 1)


class _LeftCache(threading.local):
    """The rows on the left of a thread's last product, for its next one."""

    key = (-1, -1)
    left: Tensor
    largest: float


@dataclass(frozen=True, eq=False)
class Arranged:
    """Points sorted by cluster and centred tile by tile, in units of their root mean square.

    Attributes:
        points: (n, d) the caller's rows, unsorted, never changed.
        order: (n,) where each sorted row comes from.
        codes: (n,) cluster of each sorted row.
        tiles: the plan, in order.
        augmented: (n, d + 2) rows (b', 1, ‖b'‖²), sorted, about their tile's centre, in units.
        centers: (C, d) float64; the first is the common centre of mixed tiles, zero.
        center_of: (number of tiles,) which centre each tile has.
        unit: the length that the number 1 stands for.
        cut: if given, only pairs with one point in a cluster before `cut` and one in a later cluster are
            computed.
    """

    points: Tensor
    order: Tensor
    codes: Tensor
    tiles: tuple[Tile, ...]
    augmented: Tensor
    centers: Tensor
    center_of: tuple[int, ...]
    unit: float
    cut: int | None = None
    _left_cache: _LeftCache = field(default_factory=_LeftCache, init=False, repr=False)
    _left_room: Room = field(default_factory=Room, init=False, repr=False)
    _tile_room: Room = field(default_factory=Room, init=False, repr=False)
    _sums_room: Room = field(default_factory=Room, init=False, repr=False)

    @classmethod
    def of(
        cls,
        X: Tensor,
        labels: Labels | None = None,
        *,
        tile_rows: int | None = None,
        cut: int | None = None,
    ) -> Arranged:
        """Sort, plan and centre the rows of a checked matrix."""
        with one_core() as n_cores:
            return cls._of(X.detach(), labels, tile_rows, cut, 1 if X.is_cuda else n_cores)

    @classmethod
    def _of(
        cls, X: Tensor, labels: Labels | None, tile_rows: int | None, cut: int | None, n_workers: int
    ) -> Arranged:
        n, d = X.shape
        codes = labels.codes if labels is not None else torch.zeros(n, dtype=torch.int64, device=X.device)
        order = torch.argsort(codes, stable=True)
        tile_rows = tile_rows or (CUDA_TILE_ROWS if X.is_cuda else TILE_ROWS)
        tiles = _plan(torch.bincount(codes).tolist(), tile_rows, cut)
        rows = _SortedRows(X, order, n_workers)
        points, center_of, unit = _centers(rows, tiles)
        augmented = points.new_empty(n, d + 2)

        def centered(tile: Tile, center: int) -> None:
            # a difference is rounded relative to itself, so the rows' own type loses nothing here
            residuals = torch.sub(rows[tile], points[center], out=augmented[tile.rows, :d]).mul_(1 / unit)
            augmented[tile.rows, -2], augmented[tile.rows, -1] = 1, sum_of_squares(residuals)

        rows.each(centered, tiles, center_of)
        centers = (points.double() - points[0].double()) / unit
        return cls(X, order, codes[order], tiles, augmented, centers, center_of, unit, cut)

    @cached_property
    def _largest(self) -> list[float]:
        """The largest ‖b'‖² of every tile."""
        return torch.stack([self.augmented[tile.rows, -1].max() for tile in self.tiles]).tolist()

    def reduced(
        self,
        reduce: Callable[[Tile, Tile, Tensor], R],
        *,
        symmetric: bool = True,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Tile, Tile, R]]:
        """Yield the result of `reduce` for the squared distances of every pair of tiles, in order.

        Each unordered pair of tiles comes once if symmetric. `reduce` may overwrite the tensor that it
        receives. Distances of a row to itself are zero; distances are in units of `unit`². On the CPU each
        core computes and reduces its own tiles.
        """
        n_workers = 1 if self.points.is_cuda else torch.get_num_threads()
        run = self._reduced if n_workers > 1 else full_precision(self._reduced)
        pairs = self._pairs(symmetric)
        tasks = (partial(run, reduce, i, j) for i, j in pairs)
        for (i, j), reduced_tile in zip(pairs, in_order(tasks, n_workers=n_workers), strict=True):
            yield self.tiles[i], self.tiles[j], reduced_tile
            if progress and j == len(self.tiles) - 1:
                progress(self._share_done(i, symmetric))

    def _pairs(self, symmetric: bool) -> list[tuple[int, int]]:
        n = len(self.tiles)
        if self.cut is not None:
            n_first = sum(tile.last < self.cut for tile in self.tiles)
            return list(itertools.product(range(n_first), range(n_first, n)))
        return [(i, j) for i in range(n) for j in range(i if symmetric else 0, n)]

    def _reduced(self, reduce: Callable[[Tile, Tile, Tensor], R], i: int, j: int) -> R:
        return reduce(self.tiles[i], self.tiles[j], self._tile(i, j))

    def sums_down(self, tile: Tensor, rows: Tile) -> Tensor:
        """(clusters of the rows, columns) sums of a tile over the rows of each cluster.

        They may be overwritten by this thread's next sums.
        """
        if rows.pure:
            return tile.sum(dim=0, keepdim=True)
        sums = self._sums_room.of(1 + rows.last - rows.first, tile.shape[1], tile)
        return sums.zero_().index_add_(0, self.codes[rows.rows] - rows.first, tile)

    def sums_across(self, tile: Tensor, columns: Tile) -> Tensor:
        """(clusters of the columns, rows) sums of a tile over the columns of each cluster, likewise."""
        if columns.pure:
            return tile.sum(dim=1)[None]
        if columns.last - columns.first >= _FEW_CLUSTERS:
            return self.sums_down(_transposed(tile), columns)
        later = torch.arange(columns.first + 1, columns.last + 1, device=tile.device)
        cuts = torch.searchsorted(self.codes[columns.rows], later).tolist()
        return torch.stack([part.sum(dim=1) for part in tile.tensor_split(cuts, dim=1)])

    def _share_done(self, i: int, symmetric: bool) -> float:
        """Return the share of the pairs that is done after tile i."""
        rows = self.tiles[i].stop / len(self.order)
        return 1 - (1 - rows) ** 2 if symmetric else rows

    def _tile(self, i: int, j: int) -> Tensor:
        rows, columns = self.tiles[i], self.tiles[j]
        left, largest = self._left_rows(i, self.center_of[j])
        right = self.augmented[columns.rows]
        tile = torch.mm(left, right.T, out=self._tile_room.of(len(left), len(right), left))
        scale = largest + self._largest[j]
        if i == j:
            tile.fill_diagonal_(scale)
        near = NEAR[tile.dtype] * scale
        if scale > 0 and float(tile.amin()) < near:
            self._recompute_close(tile, rows, columns, near)
        if i == j:
            tile.fill_diagonal_(0.0)
        return tile

    def _left_rows(self, i: int, center: int) -> tuple[Tensor, float]:
        """(−2a', ‖a'‖², 1) of tile i about a centre, and the largest ‖a'‖²; cached for the next product."""
        cache = self._left_cache
        if cache.key != (i, center):
            rows = self.augmented[self.tiles[i].rows]
            cache.left = self._left_room.of(len(rows), rows.shape[1], rows)
            shift = (self.centers[self.center_of[i]] - self.centers[center]).to(rows.dtype)
            moved = torch.add(-2 * shift, rows[:, :-2], alpha=-2, out=cache.left[:, :-2])
            squares = sum_of_squares(moved) / 4
            cache.left[:, -2], cache.left[:, -1] = squares, 1
            cache.key, cache.largest = (i, center), float(squares.max())
        return cache.left, cache.largest

    def _recompute_close(self, tile: Tensor, rows: Tile, columns: Tile, near: float) -> None:
        """Recompute pairs below `near` from the caller's rows in float64; the whole tile if they are many."""
        close = tile < near
        if int(close.sum()) > CROWDED * tile.numel():
            a, b = self._exact(rows.rows), self._exact(columns.rows)
            tile.copy_(crowded_squares(a, b))
            return
        i, j = close.nonzero(as_tuple=True)
        places = self.order[rows.start + i], self.order[columns.start + j]
        tile[i, j] = direct_squares(self.points, places[0], self.points, places[1], self.unit).to(tile.dtype)

    def _exact(self, rows: slice) -> Tensor:
        return self.points[self.order[rows]].double() / self.unit


def _transposed(tile: Tensor) -> Tensor:
    """Return a transposed copy. On the CPU, channel_shuffle of a one-pixel image is torch's fastest."""
    if tile.is_cuda or tile.dtype != torch.float32:
        return tile.T.contiguous()
    n, m = tile.shape
    pixel = tile.as_strided((1, n * m, 1, 1), (n * m, 1, n * m, n * m))
    return torch.channel_shuffle(pixel, n).view(m, n)


def _plan(counts: list[int], tile_rows: int, cut: int | None = None) -> tuple[Tile, ...]:
    """Tiles of at most tile_rows: large clusters split evenly, runs of small ones packed together.

    No tile has clusters on both sides of the cut.
    """
    tiles: list[Tile] = []
    start, pending = 0, None  # pending: (start, first cluster) of a run of small clusters
    for cluster, count in enumerate(counts):
        if cluster == cut and pending is not None:
            tiles.append(Tile(pending[0], start, pending[1], cluster - 1))
            pending = None
        if not count:
            continue
        if count >= tile_rows // 2:
            if pending is not None:
                tiles.append(Tile(pending[0], start, pending[1], cluster - 1))
                pending = None
            n_parts = -(-count // tile_rows)
            cuts = [start + count * part // n_parts for part in range(n_parts + 1)]
            tiles += [Tile(a, b, cluster, cluster) for a, b in itertools.pairwise(cuts)]
        else:
            if pending is not None and start + count - pending[0] > tile_rows:
                tiles.append(Tile(pending[0], start, pending[1], cluster - 1))
                pending = None
            if pending is None:
                pending = (start, cluster)
        start += count
    if pending is not None:
        tiles.append(Tile(pending[0], start, pending[1], len(counts) - 1))
    return tuple(tiles)


class _SortedRows:
    """The caller's rows tile by tile, in the order of their clusters."""

    def __init__(self, X: Tensor, order: Tensor, n_workers: int) -> None:
        self.X, self._order, self._room, self._n_workers = X, order, Room(), n_workers

    def __getitem__(self, tile: Tile) -> Tensor:
        index = self._order[tile.rows]
        return torch.index_select(self.X, 0, index, out=self._room.of(len(index), self.X.shape[1], self.X))

    def each(self, work: Callable[..., R], *arguments: Sequence[Any]) -> list[R]:
        """Run `work` for each tile, on several cores if there are many, and return the results."""
        tasks = [partial(work, *values) for values in zip(*arguments, strict=True)]
        return list(in_order(tasks, n_workers=min(self._n_workers, len(tasks) // _TILES_PER_THREAD)))


@full_precision
def _centers(rows: _SortedRows, tiles: Sequence[Tile]) -> tuple[Tensor, tuple[int, ...], float]:
    """(1 + C, d) a centre for all points and one for each of C clusters, which one each tile has, and a unit.

    Any point near the points can be a centre; the mean is best. A cluster with its own tiles is centred on
    its own mean if that mean is further from the common centre than the cluster's points are from their mean.
    The centres have the type of the products, so that subtracting them is exact to rounding. The unit is a
    power of two.
    """
    X = rows.X
    dtype = torch.float64 if _reaches_far(X) else pair_dtype(X)

    def summed(tile: Tile) -> tuple[Tensor, Tensor]:
        here = rows[tile].to(dtype)
        sums = weighted_sums(here.new_ones(1, len(here)), here)[0]
        steps = here[:_SPREAD_ROWS].double() - sums / len(here)
        return sums, steps.abs().sum(dim=1).mean() * len(here)

    sums, spreads = (torch.stack(parts) for parts in zip(*rows.each(summed, tiles), strict=True))
    sizes = sums.new_tensor([tile.stop - tile.start for tile in tiles])
    origin = sums.sum(dim=0) / len(X)
    center_row = {cluster: 1 + row for row, cluster in enumerate(sorted({t.first for t in tiles if t.pure}))}
    center_of = [center_row[tile.first] if tile.pure else 0 for tile in tiles]
    index = torch.tensor(center_of, device=X.device)
    sums, spreads, sizes = (
        by_tile.new_zeros(1 + len(center_row), *by_tile.shape[1:]).index_add_(0, index, by_tile)
        for by_tile in (sums, spreads, sizes)
    )
    centers = sums / sizes.clamp(min=1)[:, None]
    centers[0] = origin
    is_own = ((centers - origin).abs().sum(dim=1) > spreads / sizes.clamp(min=1)).tolist()
    centered_on = tuple(center if is_own[center] else 0 for center in center_of)
    return centers.to(dtype), centered_on, _unit(X, origin.to(dtype))


def _reaches_far(X: Tensor) -> bool:
    """Whether some row lies so far from the others that float32 cannot hold the squares of both lengths."""
    sampled = X[:: -(-len(X) // _UNIT_ROWS)].double()
    usual = float(torch.linalg.vector_norm(sampled - medians(sampled, dim=0), dim=1).median())
    least, most = torch.aminmax(X)
    return 0 < usual * _FAR < float(most) - float(least)


def _unit(X: Tensor, origin: Tensor) -> float:
    """Return a power of two near the root mean square distance to the origin, from some of the points."""
    return length_unit(X[:: -(-len(X) // _UNIT_ROWS)], origin) or center_and_unit(X)[1]
