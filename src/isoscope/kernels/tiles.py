"""Tiles of squared distances between all pairs of rows, exact where float32 algebra would not be.

A tile is one product. With a' = a − c and b' = b − e the rows of two tiles about their centres and
Δ = c − e,

    ‖a − b‖² = (‖a'‖² + 2Δ·a' + ‖Δ‖²) + (‖b'‖² − 2Δ·b') − 2 a'·b'

so the rows (−2a', ‖a'‖² + 2Δ·a' + ‖Δ‖², 1) against (b', 1, ‖b'‖² − 2Δ·b') give it with nothing left
to add. Rows are sorted by cluster; a tile inside one cluster is centred on it, so collapsed clusters
lose nothing. Pairs still too close for the algebra (duplicates, tiny clusters) are taken again by
direct difference in float64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from isoscope.arrays import blocks
from isoscope.kernels.precision import NEAR, center_and_unit, direct_squares, full_precision, pair_dtype
from isoscope.kernels.products import sum_of_squares
from isoscope.labels import Labels

Progress = Callable[[float], None]  # told the share of the work that is done
TILE_ROWS = 768  # measured on two cores with 2 MB of L2 each: 512 to 1,024 within 5 %
CUDA_TILE_ROWS = 8192  # one launch has to keep a whole device busy
_UNIT_ROWS = 256  # looked at for the unit of length
_CROWDED = 0.1  # share of near pairs above which a tile is taken whole by direct difference


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


@dataclass(frozen=True, eq=False)
class Arranged:
    """Points sorted by cluster and centred tile by tile, in units of their root mean square.

    Attributes:
        points: (n, d) the caller's rows, unsorted, never changed.
        order: (n,) where each sorted row comes from.
        codes: (n,) cluster of each sorted row.
        tiles: the plan, in order.
        augmented: (n, d + 2) sorted rows minus their tile's centre, divided by unit, then a column of ones
            and one for the terms of the row tile at hand.
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
        centers = (points.double() - points[0].double()) / unit
        return cls(X, order, codes[order], tiles, augmented, centers, center_of, unit)

    @property
    def residuals(self) -> Tensor:
        """(n, d) sorted rows about their tile's centre."""
        return self.augmented[:, :-2]

    @cached_property
    def squares(self) -> Tensor:
        """(n,) ‖a'‖² of every sorted row, float64."""
        return torch.cat([sum_of_squares(self.residuals[tile.rows]).double() for tile in self.tiles])

    def squared_distances(
        self, *, symmetric: bool = True, progress: Progress | None = None
    ) -> Iterator[tuple[Tile, Tile, Tensor]]:
        """Every pair of tiles (each unordered pair once if symmetric) with its squared distances.

        The tensor is scratch: it may be overwritten, and is, at the next step. Distances of a row to
        itself are zero. Units are unit².
        """
        right = self.augmented
        held = -1
        for i, left_tile in enumerate(self.tiles):
            if self.center_of[i] != held:
                held = self.center_of[i]
                right[:, -1] = self._column_terms(held)
            left = self._augmented_rows(left_tile)
            row_terms = self._row_terms(i, left_tile)
            for j in range(i if symmetric else 0, len(self.tiles)):
                left[:, -2] = row_terms[:, self.center_of[j]]
                yield left_tile, self.tiles[j], self._tile(left, right, i, j)
            if progress:
                progress(self._share_done(i, symmetric))

    def _share_done(self, i: int, symmetric: bool) -> float:
        """The share of the pairs that is done once tile i has met all it has to meet."""
        rows = self.tiles[i].stop / len(self.order)
        return 1 - (1 - rows) ** 2 if symmetric else rows

    @full_precision
    def _tile(self, left: Tensor, right: Tensor, i: int, j: int) -> Tensor:
        rows, columns = self.tiles[i], self.tiles[j]
        tile = left @ right[columns.rows].T
        step = self.centers[self.center_of[i]] - self.centers[self.center_of[j]]
        scale = float(self.squares[rows.rows].max() + self.squares[columns.rows].max() + step @ step)
        if i == j:
            tile.fill_diagonal_(scale)
        near = NEAR[tile.dtype] * scale
        if scale > 0 and tile.min() < near:
            self._mend(tile, rows, columns, near)
        if i == j:
            tile.fill_diagonal_(0.0)
        return tile

    def _mend(self, tile: Tensor, rows: Tile, columns: Tile, near: float) -> None:
        """Take the pairs under `near` again, by direct difference of the caller's rows in float64."""
        close = tile < near
        if int(close.sum()) > _CROWDED * tile.numel():
            a, b = self._exact(rows.rows), self._exact(columns.rows)
            tile.copy_(torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square())
            return
        i, j = close.nonzero(as_tuple=True)
        places = self.order[rows.start + i], self.order[columns.start + j]
        tile[i, j] = direct_squares(self.points, places[0], self.points, places[1], self.unit).to(tile.dtype)

    def _exact(self, rows: slice) -> Tensor:
        return self.points[self.order[rows]].double() / self.unit

    def _augmented_rows(self, tile: Tile) -> Tensor:
        d = self.residuals.shape[1]
        left = self.residuals.new_empty(tile.stop - tile.start, d + 2)
        left[:, :d] = -2 * self.residuals[tile.rows]
        left[:, d + 1] = 1
        return left

    @cached_property
    def _along(self) -> Tensor:
        """(n, C) float64 product of every residual with every centre."""
        return torch.cat([self.residuals[tile.rows].double() @ self.centers.T for tile in self.tiles])

    def _row_terms(self, i: int, tile: Tile) -> Tensor:
        """(rows, C) ‖a'‖² + 2Δ·a' + ‖Δ‖² against every centre."""
        steps = self.centers[self.center_of[i]] - self.centers
        along = self._along[tile.rows]
        onto = along[:, self.center_of[i], None] - along
        return self.squares[tile.rows, None] + 2 * onto + (steps * steps).sum(dim=1)

    def _column_terms(self, center: int) -> Tensor:
        """(n,) ‖b'‖² − 2Δ·b' for every sorted row, against one row centre."""
        own = torch.tensor(self.center_of, device=self.order.device)
        sizes = torch.tensor([tile.stop - tile.start for tile in self.tiles], device=self.order.device)
        own_along = self._along.gather(1, own.repeat_interleave(sizes)[:, None]).squeeze(1)
        return self.squares - 2 * (self._along[:, center] - own_along)


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
    dtype = pair_dtype(X)
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


def _unit(X: Tensor, origin: Tensor) -> float:
    """A power of two near the root mean square distance to the origin, from some of the points."""
    some = X[:: -(-len(X) // _UNIT_ROWS)].double() - origin.double()
    largest = float(some.abs().max())
    if largest == 0:
        return center_and_unit(X)[1]
    return 2.0 ** round(math.log2(largest * float((some / largest).square().sum(dim=1).mean().sqrt())))
