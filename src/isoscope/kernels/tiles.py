"""Squared distances between all pairs of rows, in tiles, accurate even where float32 would cancel.

A tile is one product. With e the centre of the tile of b, a' = a − e and b' = b − e,

    ‖a − b‖² = ‖a'‖² + ‖b'‖² − 2 a'·b'

so one matrix product of the rows (−2a', ‖a'‖², 1) with the rows (b', 1, ‖b'‖²) gives the whole tile. Rows
are sorted by cluster; a tile inside one cluster is centred on it, so collapsed clusters lose no precision.
Pairs that are still too close (duplicates, tiny clusters) are recomputed by direct difference in float64.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from isoscope.kernels.tile_plan import Band, Tile, by_size, planned
from isoscope.kernels.workers import Room, in_order, one_core
from isoscope.labels import Labels

R = TypeVar("R")

Progress = Callable[[float], None]  # is called with the share of the work that is done
_L2_BYTES = torch.cpu.get_capabilities().get("l2_cache_size") or 2**20
# Measured on cores with 1 MB of L2: products take the same time in tiles of 384 to 1,536 rows. Every
# operation after a product starts with cold caches, at 30 µs each, so large tiles cost less; but those on
# the diagonal are taken whole, and larger ones waste more. A smaller cache needs smaller tiles.
TILE_ROWS = 1024 if _L2_BYTES >= 2**20 else 512
CUDA_TILE_ROWS = 8192  # one launch has to keep a whole device busy
_TILES_PER_THREAD = 4  # at least, when centring: with fewer, starting a thread costs more than it saves
_SPREAD_ROWS = 16  # sampled to estimate the spread of a tile
_FAR = 1e15  # if distances differ by more than this factor, float32 cannot hold both squares
_NEAR_UNIT = 2.0**10  # units that differ by less can be held together, up to distances of _FAR
_UNIT_ROWS = 256  # sampled to choose the unit of length


class _LeftCache(threading.local):
    """The rows on the left of a thread's last product, for its next one."""

    key: tuple[Any, ...] = ()
    left: Tensor
    largest: float


@dataclass(frozen=True, eq=False)
class Arranged:
    """Points sorted by cluster and centred tile by tile, in units of their root mean square.

    Attributes:
        points: (n, d) the caller's rows, unsorted, never changed.
        order: (n,) where each sorted row comes from.
        clusters: (K,) the caller's number of each cluster that occurs, in the order of the tiles.
        codes: (n,) cluster of each sorted row, by its place in `clusters`.
        tiles: the plan, in order.
        augmented: (n, d + 2) rows (b', 1, ‖b'‖²), sorted, about their tile's centre, in units.
        centers: (C, d) float64; the first is the common centre of mixed tiles.
        center_of: (number of tiles,) which centre each tile has.
        unit: the length that the number 1 stands for, a power of two.
    """

    points: Tensor
    order: Tensor
    clusters: Tensor
    codes: Tensor
    tiles: tuple[Tile, ...]
    augmented: Tensor
    centers: Tensor
    center_of: tuple[int, ...]
    unit: float
    _left_cache: _LeftCache = field(default_factory=_LeftCache, init=False, repr=False)
    _left_room: Room = field(default_factory=Room, init=False, repr=False)
    _tile_room: Room = field(default_factory=Room, init=False, repr=False)
    _sums_room: Room = field(default_factory=Room, init=False, repr=False)

    @classmethod
    def of(cls, X: Tensor, labels: Labels | None = None, *, tile_rows: int | None = None) -> Arranged:
        """Sort, plan and centre the rows of a checked matrix."""
        with one_core() as n_cores:
            return cls._of(X.detach(), labels, tile_rows, 1 if X.is_cuda else n_cores)

    @classmethod
    def _of(cls, X: Tensor, labels: Labels | None, tile_rows: int | None, n_workers: int) -> Arranged:
        n, d = X.shape
        codes = labels.codes if labels is not None else torch.zeros(n, dtype=torch.int64, device=X.device)
        tile_rows = tile_rows or (CUDA_TILE_ROWS if X.is_cuda else TILE_ROWS)
        counts = torch.bincount(codes).tolist()
        clusters = by_size(counts, tile_rows)
        tiles = planned([counts[cluster] for cluster in clusters], tile_rows)
        origin = torch.tensor(clusters, device=X.device)
        order, codes = _sorted(codes, origin, tiles)
        rows = _SortedRows(X, order, n_workers)
        points, center_of, unit = _centers(rows, tiles)
        augmented = points.new_empty(n, d + 2)

        def centered(tile: Tile, center: int) -> None:
            # a difference is rounded relative to itself, so the rows' own type loses nothing here
            residuals = torch.sub(rows[tile], points[center], out=augmented[tile.rows, :d]).mul_(1 / unit)
            augmented[tile.rows, -2], augmented[tile.rows, -1] = 1, sum_of_squares(residuals)

        rows.each(centered, tiles, center_of)
        return cls(X, order, origin, codes, tiles, augmented, points.double(), center_of, unit)

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
        n = len(self.tiles)
        pairs = [(i, j) for i in range(n) for j in range(i if symmetric else 0, n)]
        for (i, j), reduced_tile in self._each(reduce, self, pairs):
            yield self.tiles[i], self.tiles[j], reduced_tile
            if progress and j == n - 1:
                progress(self._share_done(i, symmetric))

    def reduced_with(
        self, other: Arranged, reduce: Callable[[Tile, Tile, Tensor], R]
    ) -> Iterator[tuple[Tile, Tile, R]]:
        """Yield the same for every tile of these points with every tile of others, in units of theirs.

        The two have to fit each other (`fits`).
        """
        pairs = list(itertools.product(range(len(self.tiles)), range(len(other.tiles))))
        for (i, j), reduced_tile in self._each(reduce, other, pairs):
            yield self.tiles[i], other.tiles[j], reduced_tile

    def fits(self, other: Arranged) -> bool:
        """Whether the squares of distances to other points can be held with these in the others' unit."""
        return (
            self.augmented.dtype == other.augmented.dtype
            and 1 / _NEAR_UNIT <= self.unit / other.unit <= _NEAR_UNIT
            and self._distance(other) < _FAR * other.unit
        )

    def fitting(self, other: Arranged) -> tuple[Arranged, Arranged]:
        """Return these and the other points, both in float64 and in one unit where they do not fit."""
        if self.fits(other):
            return self, other
        unit = max(self.unit, other.unit, 2.0 ** math.frexp(self._distance(other))[1])
        return self._widened(unit), other._widened(unit)

    def _distance(self, other: Arranged) -> float:
        """Return a bound of the distance between the common centres."""
        return float((self.centers[0] - other.centers[0]).abs().max()) * self.centers.shape[1] ** 0.5

    @full_precision
    def _widened(self, unit: float) -> Arranged:
        augmented = self.augmented.new_ones(self.augmented.shape, dtype=torch.float64)
        for tile, center in zip(self.tiles, self.center_of, strict=True):
            residuals = (self.points[self.order[tile.rows]].double() - self.centers[center]) / unit
            augmented[tile.rows, :-2], augmented[tile.rows, -1] = residuals, sum_of_squares(residuals)
        return replace(self, augmented=augmented, unit=unit)

    def _each(
        self, reduce: Callable[[Tile, Tile, Tensor], R], other: Arranged, pairs: list[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], R]]:
        n_workers = 1 if self.points.is_cuda else torch.get_num_threads()
        run = self._reduced if n_workers > 1 else full_precision(self._reduced)
        tasks = (partial(run, reduce, i, other, j) for i, j in pairs)
        return zip(pairs, in_order(tasks, n_workers=n_workers), strict=True)

    def _reduced(self, reduce: Callable[[Tile, Tile, Tensor], R], i: int, other: Arranged, j: int) -> R:
        return reduce(self.tiles[i], other.tiles[j], self._tile(i, other, j))

    def sums_down(self, tile: Tensor, rows: Tile) -> Tensor:
        """(clusters of the rows, columns) sums of a tile over the rows of each cluster.

        They may be overwritten by this thread's next sums.
        """
        if rows.pure:
            return tile.sum(dim=0, keepdim=True)
        n = tile.shape[1]
        sums = self._sums_room.of(rows.n_clusters, n, tile)
        for band in rows.bands:
            _add_up(tile[band.rows].view(band.n_members, band.n_clusters, n), 0, sums[band.clusters], band)
        return sums

    def sums_across(self, tile: Tensor, columns: Tile) -> Tensor:
        """(clusters of the columns, rows) sums of a tile over the columns of each cluster, likewise."""
        if columns.pure:
            return tile.sum(dim=1)[None]
        n = tile.shape[0]
        sums = self._sums_room.of(n, columns.n_clusters, tile)
        for band in columns.bands:
            part = tile[:, band.rows].view(n, band.n_members, band.n_clusters)
            _add_up(part, 1, sums[:, band.clusters], band)
        return sums.T

    def _share_done(self, i: int, symmetric: bool) -> float:
        """Return the share of the pairs that is done after tile i."""
        rows = self.tiles[i].stop / len(self.order)
        return 1 - (1 - rows) ** 2 if symmetric else rows

    def _tile(self, i: int, other: Arranged, j: int) -> Tensor:
        rows, columns, itself = self.tiles[i], other.tiles[j], self is other and i == j
        left, largest = self._left_rows(i, other, other.center_of[j])
        right = other.augmented[columns.rows]
        tile = torch.mm(left, right.T, out=self._tile_room.of(len(left), len(right), left))
        scale = largest + other._largest[j]
        if itself:
            tile.fill_diagonal_(scale)
        near = NEAR[tile.dtype] * scale
        if scale > 0 and float(tile.amin()) < near:
            self._recompute_close(tile, rows, other, columns, near)
        if itself:
            tile.fill_diagonal_(0.0)
        return tile

    def _left_rows(self, i: int, other: Arranged, center: int) -> tuple[Tensor, float]:
        """(−2a', ‖a'‖², 1) of tile i about a centre of others, and the largest ‖a'‖²; cached for the next."""
        cache = self._left_cache
        key = (i, other, center)
        if cache.key != key:
            rows = self.augmented[self.tiles[i].rows]
            cache.left = self._left_room.of(len(rows), rows.shape[1], rows)
            shift = ((self.centers[self.center_of[i]] - other.centers[center]) / other.unit).to(rows.dtype)
            scale = self.unit / other.unit
            moved = torch.add(-2 * shift, rows[:, :-2], alpha=-2 * scale, out=cache.left[:, :-2])
            squares = sum_of_squares(moved) / 4
            cache.left[:, -2], cache.left[:, -1] = squares, 1
            cache.key, cache.largest = key, float(squares.max())
        return cache.left, cache.largest

    def _recompute_close(self, tile: Tensor, rows: Tile, other: Arranged, columns: Tile, near: float) -> None:
        """Recompute pairs below `near` from the caller's rows in float64; the whole tile if they are many."""
        close = tile < near
        if int(close.sum()) > CROWDED * tile.numel():
            a, b = self._exact(rows.rows, other.unit), other._exact(columns.rows, other.unit)
            tile.copy_(crowded_squares(a, b))
            return
        i, j = close.nonzero(as_tuple=True)
        places = self.order[rows.start + i], other.order[columns.start + j]
        squares = direct_squares(self.points, places[0], other.points, places[1], other.unit)
        tile[i, j] = squares.to(tile.dtype)

    def _exact(self, rows: slice, unit: float) -> Tensor:
        return self.points[self.order[rows]].double() / unit


def _sorted(codes: Tensor, clusters: Tensor, tiles: Sequence[Tile]) -> tuple[Tensor, Tensor]:
    """(n,) the rows in the order of the tiles, and (n,) the cluster of each, by its place in `clusters`."""
    place = codes.new_empty(int(clusters.max()) + 1)
    place[clusters] = torch.arange(len(clusters), device=codes.device)
    sorted_codes, order = torch.sort(place[codes], stable=True)
    for tile in tiles:
        if tile.by_member:
            here = sorted_codes[tile.rows]
            member = torch.arange(len(here), device=codes.device) - torch.searchsorted(here, here)
            by_member = tile.start + torch.argsort(member, stable=True)
            order[tile.rows], sorted_codes[tile.rows] = order[by_member], sorted_codes[by_member]
    return order, sorted_codes


def _add_up(part: Tensor, dim: int, sums: Tensor, band: Band) -> None:
    """Set sums to those of a band over one axis, or increase them."""
    if band.is_first:
        torch.sum(part, dim, out=sums)
    else:
        sums.add_(part.sum(dim))


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
