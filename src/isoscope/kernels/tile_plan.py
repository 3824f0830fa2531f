"""Which rows make a tile and which of them are summed at once: what the sizes of the clusters decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_FEW_CLUSTERS = 16  # in a tile; up to here one sum for each is cheaper than one for each size


class Band(NamedTuple):
    """Rows of a tile that one sum takes: `n_members` of each of `n_clusters` clusters, in turn.

    Attributes:
        rows: counted from the tile's first; each is followed by the next cluster's.
        clusters: counted from the tile's first.
        n_members: how many rows of each cluster.
        n_clusters: how many clusters.
        is_first: whether no band before has rows of these clusters.
    """

    rows: slice
    clusters: slice
    n_members: int
    n_clusters: int
    is_first: bool


@dataclass(frozen=True)
class Tile:
    """Rows start … stop−1 of the arranged points, holding clusters first … last, and their bands.

    The rows of few clusters come cluster by cluster, a band each. Of many clusters, which are sorted by size,
    the first rows of all come first, then the second rows of all that have two, and so on: rows that equally
    many clusters have make a band, and sums over them read the tile in the order in which it is stored.
    """

    start: int
    stop: int
    first: int
    last: int
    bands: tuple[Band, ...]

    @property
    def pure(self) -> bool:
        """Whether all rows belong to one cluster."""
        return self.first == self.last

    @property
    def by_member(self) -> bool:
        """Whether the first rows of all clusters come first, and not all rows of the first cluster."""
        return self.bands[0].n_clusters > 1

    @property
    def rows(self) -> slice:
        """The tile's rows."""
        return slice(self.start, self.stop)

    @property
    def clusters(self) -> slice:
        """The tile's clusters, as columns of a per-cluster result."""
        return slice(self.first, self.last + 1)

    @property
    def n_clusters(self) -> int:
        """How many clusters the tile has."""
        return 1 + self.last - self.first


def by_size(counts: Sequence[int], tile_rows: int) -> list[int]:
    """Return the clusters in the order of the tiles: those that fill tiles of their own, then by size.

    >>> by_size([1, 9, 0, 2, 8], 8)
    [1, 4, 3, 0]
    """
    occurring = [cluster for cluster, count in enumerate(counts) if count]
    return sorted(occurring, key=lambda cluster: -min(counts[cluster], tile_rows // 2))


def planned(counts: Sequence[int], tile_rows: int) -> tuple[Tile, ...]:
    """Tiles of at most tile_rows: large clusters split evenly, runs of small ones packed together.

    counts: rows of each cluster, none of them empty, in the order of `by_size`.
    """
    n_large = sum(count >= tile_rows // 2 for count in counts)
    tiles: list[Tile] = []
    start = 0
    for cluster, count in enumerate(counts[:n_large]):
        n_parts = -(-count // tile_rows)
        for part in range(n_parts):
            a, b = (start + count * edge // n_parts for edge in (part, part + 1))
            tiles.append(Tile(a, b, cluster, cluster, (_band(0, b - a, 1, 0),)))
        start += count
    for first, stop in _packed(counts, n_large, tile_rows):
        sizes = counts[first:stop]
        tiles.append(Tile(start, start + sum(sizes), first, stop - 1, tuple(_bands(sizes))))
        start += sum(sizes)
    return tuple(tiles)


def _packed(counts: Sequence[int], n_large: int, tile_rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first cluster of each run of small clusters, and the one after its last."""
    first, n_rows = n_large, 0
    for cluster in range(n_large, len(counts)):
        if n_rows + counts[cluster] > tile_rows:
            yield first, cluster
            first, n_rows = cluster, 0
        n_rows += counts[cluster]
    if first < len(counts):
        yield first, len(counts)


def _bands(sizes: Sequence[int]) -> Iterator[Band]:
    """Yield the bands of a tile from the rows of each of its clusters, largest first."""
    start = n_before = 0
    if len(sizes) <= _FEW_CLUSTERS:
        for place, size in enumerate(sizes):
            yield _band(start, size, 1, place)
            start += size
        return
    for size in sorted(set(sizes)):
        n_clusters = sum(other >= size for other in sizes)
        yield _band(start, size - n_before, n_clusters, 0)
        start, n_before = start + (size - n_before) * n_clusters, size


def _band(start: int, n_members: int, n_clusters: int, first: int) -> Band:
    rows = slice(start, start + n_members * n_clusters)
    return Band(rows, slice(first, first + n_clusters), n_members, n_clusters, start == 0 or first > 0)
