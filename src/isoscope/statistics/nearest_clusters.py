"""The own and the nearest other cluster of arranged points, from their sums over one tile after another."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.tile_plan import Tile
from isoscope.kernels.tiles import Arranged
from isoscope.kernels.workers import one_core
from isoscope.labels import Labels
from isoscope.statistics.fused import Fields, reduced

_NONE = 2**62  # stands for a cluster that is none: after all others
_REDUCED_BYTES = 2**20  # of sums reduced at a time, so that every temporary stays in cache

# a large cluster: (m,) sums over the points of it that are in the tile; small ones: (m,) mean distance to the
# own one where the tile has it, the smallest mean distance to another one, and which one
Part = Tensor | tuple[Tensor | None, Tensor, Tensor]


def reduce_sums(sums: Tensor, codes: Tensor, counts: Tensor) -> Fields:
    """Cohesion, separation and nearest cluster from (m, K) summed distances."""
    n_rows = len(sums) if sums.is_cuda else max(1, _REDUCED_BYTES // (8 * len(counts)))
    parts = [
        reduced(sums[start : start + n_rows], codes[start : start + n_rows], counts)
        for start in range(0, len(sums), n_rows)
    ]
    cohesion, separation, nearest = (torch.cat(column) for column in zip(*parts, strict=True))
    return cohesion, separation, nearest


class NearestClusters:
    """What is known of the distances of consecutive arranged points to all clusters.

    A small cluster lies within one tile, so a point's sum over it is known at once, and only the smallest
    mean is kept. A large one fills tiles of its own, over which sums are added up: (L + 1, m) numbers, the
    last row for the mean distance to the own cluster where that is small.
    """

    def __init__(self, arranged: Arranged, clusters: Labels, start: int, stop: int) -> None:
        self._start, self._codes, self._unit = start, arranged.codes[start:stop], arranged.unit
        large = sorted({tile.first for tile in arranged.tiles if tile.pure})
        self._place = {cluster: place for place, cluster in enumerate(large)}
        self._clusters, self._large = arranged.clusters, arranged.clusters[large]
        self._counts = clusters.counts.double()[self._large]
        self._sums = self._counts.new_zeros(len(large) + 1, stop - start)
        self._sums[-1] = torch.inf
        self._mean = torch.full_like(self._sums[-1], torch.inf)
        self._nearest = torch.full_like(self._codes, _NONE)

    def add(self, points: Tile, tile: Tile, part: Part) -> None:
        """Take in what a tile's clusters are to some points; tiles come in order."""
        rows = slice(points.start - self._start, points.stop - self._start)
        if isinstance(part, Tensor):
            self._sums[self._place[tile.first], rows].add_(part)
            return
        own, mean, nearest = part
        if own is not None:
            self._sums[-1, rows] = own
        best, which = self._mean[rows], self._nearest[rows]
        is_nearer = (mean < best) | ((mean == best) & (nearest < which))
        torch.where(is_nearer, mean, best, out=best)
        torch.where(is_nearer, nearest, which, out=which)

    def fields(self) -> Fields:
        """Cohesion, separation and nearest cluster of every point, once it has met all tiles."""
        n_large = len(self._large)
        counts = torch.cat([self._counts, self._counts.new_tensor([2.0])])  # 2 − 1: as it is
        own = torch.full_like(self._clusters, n_large)
        own[list(self._place)] = torch.arange(n_large, device=own.device)
        with one_core():
            cohesion, separation, place = reduce_sums(self._sums.T, own[self._codes], counts)
        nearest = torch.cat([self._large, self._large.new_tensor([_NONE])])[place]
        is_small = (self._mean < separation) | ((self._mean == separation) & (self._nearest < nearest))
        separation = torch.where(is_small, self._mean, separation)
        return cohesion * self._unit, separation * self._unit, torch.where(is_small, self._nearest, nearest)


def part_of(arranged: Arranged, counts: Tensor, points: Tile, tile: Tile, sums: Tensor) -> Part:
    """Reduce (clusters of the tile, m) summed distances of points, which are overwritten.

    counts: (K,) points of each cluster, in the order of the arranged ones, of the type of the sums.
    """
    if tile.pure:
        return sums[0]
    sizes = counts[tile.clusters]
    own = None
    if points == tile:
        codes = arranged.codes[tile.rows] - tile.first
        own = sums.gather(0, codes[None])[0].double() / (sizes[codes] - 1).clamp_(min=1)
        sums.scatter_(0, codes[None], torch.inf)
    means = sums.div_(sizes[:, None])
    mean = means.amin(dim=0)
    # which one: the least number where nothing is added; torch's own min takes several times as long
    numbers = arranged.clusters[tile.clusters].to(means.dtype)[:, None]
    nearest = torch.add(numbers, means.ne_(mean), alpha=len(counts), out=means).amin(dim=0)
    return own, mean.double(), nearest.long()
