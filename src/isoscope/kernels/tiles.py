"""Tiles of squared distances between all pairs of rows, exact where float32 algebra would not be.

A tile is one product. With e the centre of the tile of b, a' = a − e and b' = b − e,

    ‖a − b‖² = ‖a'‖² + ‖b'‖² − 2 a'·b'

so the rows (−2a', ‖a'‖², 1) against (b', 1, ‖b'‖²) give it with nothing left to add. Rows are sorted by
cluster; a tile inside one cluster is centred on it, so collapsed clusters lose nothing. Pairs still too
close for the algebra (duplicates, tiny clusters) are taken again by direct difference in float64.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from isoscope.arrays import blocks
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
from isoscope.kernels.products import sum_of_squares
from isoscope.kernels.selection import medians
from isoscope.kernels.workers import in_order
from isoscope.labels import Labels

R = TypeVar("R")

Progress = Callable[[float], None]  # told the share of the work that is done
TILE_ROWS = 768  # measured on two cores with 2 MB of L2 each: 512 to 1,024 within 5 %
CUDA_TILE_ROWS = 8192  # one launch has to keep a whole device busy
_MANY_CLUSTERS = 128  # in a tile; from here a transposed copy costs less than a product with an indicator
_FAR = 1e15  # distances further apart than so many times have squares at both ends of float32
_UNIT_ROWS = 256  # looked at for the unit of length


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
        unit: length that one stands for.
    """

    points: Tensor
    order: Tensor
    codes: Tensor
    tiles: tuple[Tile, ...]
    augmented: Tensor
    centers: Tensor
    center_of: tuple[int, ...]
    unit: float
    _left_cache: _LeftCache = field(default_factory=_LeftCache, init=False, repr=False)

    @classmethod
    def of(cls, X: Tensor, labels: Labels | None = None, *, tile_rows: int | None = None) -> Arranged:
        """Sort, plan and centre the rows of a checked matrix."""
        X = X.detach()
        n, d = X.shape
        codes = labels.codes if labels is not None else torch.zeros(n, dtype=torch.int64, device=X.device)
        order = torch.argsort(codes, stable=True)
        tile_rows = tile_rows or (CUDA_TILE_ROWS if X.is_cuda else TILE_ROWS)
        tiles = _plan(torch.bincount(codes).tolist(), tile_rows)
        pure = sorted({tile.first for tile in tiles if tile.pure})
        place = {cluster: 1 + row for row, cluster in enumerate(pure)}
        center_of = tuple(place[tile.first] if tile.pure else 0 for tile in tiles)
        points, unit = _centers(X, codes, pure)
        augmented = points.new_ones(n, d + 2)
        for tile, center in zip(tiles, center_of, strict=True):
            # a difference is rounded relative to itself, so the rows' own type loses nothing here
            residuals = X[order[tile.rows]].to(points.dtype).sub_(points[center])
            torch.mul(residuals, 1 / unit, out=augmented[tile.rows, :d])
            augmented[tile.rows, -1] = sum_of_squares(augmented[tile.rows, :d])
        centers = (points.double() - points[0].double()) / unit
        return cls(X, order, codes[order], tiles, augmented, centers, center_of, unit)

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

        Each unordered pair of tiles comes once if symmetric. The tensor `reduce` is given is scratch, to
        be overwritten at will; distances of a row to itself are zero; units are unit². On the CPU every
        core makes and reduces tiles by itself.
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
        return [(i, j) for i in range(n) for j in range(i if symmetric else 0, n)]

    def _reduced(self, reduce: Callable[[Tile, Tile, Tensor], R], i: int, j: int) -> R:
        return reduce(self.tiles[i], self.tiles[j], self._tile(i, j))

    def sums_down(self, tile: Tensor, rows: Tile) -> Tensor:
        """(clusters of the rows, columns) sums of a tile over the rows of each cluster."""
        if rows.pure:
            return tile.sum(dim=0, keepdim=True)
        starts = self._starts(rows)
        return embedding_bag(torch.arange(len(tile), device=tile.device), tile, starts, mode="sum")

    def sums_across(self, tile: Tensor, columns: Tile) -> Tensor:
        """(clusters of the columns, rows) sums of a tile over the columns of each cluster."""
        if columns.pure:
            return tile.sum(dim=1)[None]
        if columns.last - columns.first >= _MANY_CLUSTERS:
            return self.sums_down(tile.T.contiguous(), columns)
        clusters = torch.arange(columns.first, columns.last + 1, device=tile.device)
        indicator = clusters == self.codes[columns.rows, None]
        return (tile @ indicator.to(tile.dtype)).T

    def _starts(self, tile: Tile) -> Tensor:
        """(clusters of the tile,) at which of its rows each begins."""
        clusters = torch.arange(tile.first, tile.last + 1, device=self.codes.device)
        return torch.searchsorted(self.codes[tile.rows], clusters)

    def _share_done(self, i: int, symmetric: bool) -> float:
        """Return the share of the pairs that is done after tile i."""
        rows = self.tiles[i].stop / len(self.order)
        return 1 - (1 - rows) ** 2 if symmetric else rows

    def _tile(self, i: int, j: int) -> Tensor:
        rows, columns = self.tiles[i], self.tiles[j]
        left, largest = self._left_rows(i, self.center_of[j])
        tile = left @ self.augmented[columns.rows].T
        scale = largest + self._largest[j]
        if i == j:
            tile.fill_diagonal_(scale)
        near = NEAR[tile.dtype] * scale
        if scale > 0 and float(tile.amin()) < near:
            self._mend(tile, rows, columns, near)
        if i == j:
            tile.fill_diagonal_(0.0)
        return tile

    def _left_rows(self, i: int, center: int) -> tuple[Tensor, float]:
        """(−2a', ‖a'‖², 1) of tile i about a centre, and the largest ‖a'‖²; kept while they are asked for."""
        cache = self._left_cache
        if cache.key != (i, center):
            rows = self.augmented[self.tiles[i].rows]
            moved = rows[:, :-2] + (self.centers[self.center_of[i]] - self.centers[center]).to(rows.dtype)
            squares = sum_of_squares(moved)
            cache.left = torch.cat([moved.mul_(-2), squares[:, None], rows[:, -2:-1]], dim=1)
            cache.key, cache.largest = (i, center), float(squares.max())
        return cache.left, cache.largest

    def _mend(self, tile: Tensor, rows: Tile, columns: Tile, near: float) -> None:
        """Take the pairs under `near` again, from the caller's rows in float64; all, where they are many."""
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


def _plan(counts: list[int], tile_rows: int) -> tuple[Tile, ...]:
    """Tiles of at most tile_rows: large clusters split evenly, runs of small ones packed together."""
    tiles: list[Tile] = []
    start, pending = 0, None  # pending: (start, first cluster) of a run of small clusters
    for cluster, count in enumerate(counts):
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


def _centers(X: Tensor, codes: Tensor, clusters: list[int]) -> tuple[Tensor, float]:
    """(1 + C, d) a centre for all points and one for each cluster named, and a power of two as unit.

    Any point near the points will do for a centre; the mean serves best. The centres are of the type the
    products are taken in, so that subtracting them is exact to rounding.
    """
    n, d = X.shape
    dtype = torch.float64 if _reaches_far(X) else pair_dtype(X)
    parts = [block.mean(dim=0, dtype=dtype).double() * (len(block) / n) for block in blocks(X)]
    origin = torch.stack(parts).sum(dim=0).to(dtype)
    place = torch.full((int(codes.max()) + 1,), len(clusters), device=X.device)
    place[clusters] = torch.arange(len(clusters), device=X.device)
    sums = X.new_zeros(len(clusters) + 1, d, dtype=torch.float64)
    start = 0
    for block in blocks(X) if clusters else ():
        here = place[codes[start : start + len(block)]]
        indicator = torch.nn.functional.one_hot(here, len(clusters) + 1).to(dtype)
        sums += (indicator.T @ (block.to(dtype) - origin)).double()
        start += len(block)
    counts = torch.bincount(place[codes], minlength=len(clusters) + 1)
    means = (sums / counts.clamp(min=1)[:, None])[:-1]
    return torch.cat([origin[None], (origin.double() + means).to(dtype)]), _unit(X, origin)


def _reaches_far(X: Tensor) -> bool:
    """Whether some row lies so far from the others that float32 cannot hold the squares of both lengths."""
    sampled = X[:: -(-len(X) // _UNIT_ROWS)].double()
    usual = float(torch.linalg.vector_norm(sampled - medians(sampled, dim=0), dim=1).median())
    least, most = torch.aminmax(X)
    return 0 < usual * _FAR < float(most) - float(least)


def _unit(X: Tensor, origin: Tensor) -> float:
    """Return a power of two near the root mean square distance to the origin, from some of the points."""
    return length_unit(X[:: -(-len(X) // _UNIT_ROWS)], origin) or center_and_unit(X)[1]
