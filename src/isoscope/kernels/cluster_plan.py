"""Which rows the CUDA kernels over clusters take together: a plan that the labels alone decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError

MOST_SUMS = 500_000_000  # n·K above which the (n, K) tables are not worth their memory
_MANY_TILES = 512
_CHUNK_ROWS = 64  # rows summed by one program on the way to a mean
_LEAST_LABELS = 16  # of a mixed tile: the narrowest product
_CROSSING = 1.5  # by so much a cluster may grow or shrink past the size of a large one, where there is room


@dataclass(frozen=True)
class Tuning:
    """Shapes and types of the kernels; none changes what is computed.

    Attributes:
        rows, columns: tile of large clusters; rows a multiple of columns, both powers of two.
        dims: coordinates multiplied at a time; `eights_dims` where products are partly in eight bits.
        mixed: rows and columns of a tile that holds small clusters.
        mixed_dims: coordinates multiplied at a time there, where it divides their padded number.
        warps, stages: of the kernel over large clusters; `mixed_warps`, `mixed_stages` of the others.
        group: row tiles along a side of the square that runs at a time, to share L2; None: by their number.
        sums: type in which sums are added up.
        described: whether a device that can fetches tiles by tensor descriptors (TMA).
        near: share of the terms under which a squared distance is taken again by direct difference.
        mixed_near: the same in tiles of small clusters, which are not centred each on their own.
        concentrated: `Prepared.fourths` from which on nothing is multiplied in eight bits.
    """

    rows: int = 128
    columns: int = 128
    dims: int = 32
    eights_dims: int = 64
    mixed: int = 64
    mixed_dims: int = 64
    warps: int = 4
    stages: int = 3
    mixed_warps: int = 4
    mixed_stages: int = 3
    group: int | None = None
    sums: torch.dtype = torch.float32
    described: bool = True
    near: float = 1e-3
    mixed_near: float = 0.1
    concentrated: float = 1 / 32


@dataclass(frozen=True)
class Capacity:
    """What a plan has room for: it decides launches and memory, and is known before the labels are.

    Attributes:
        n_large: clusters of at least `Tuning.mixed` rows.
        n_small: smaller ones, empty ones too.
        n_labels: clusters in a mixed tile, a power of two.
        n_chunks, n_large_tiles, n_pure, n_mixed: pieces of frames; tiles of large clusters; square tiles
            inside large clusters, and of small clusters.
        moved: whether clusters change their order.
    """

    n_large: int
    n_small: int
    n_labels: int
    n_chunks: int
    n_large_tiles: int
    n_pure: int
    n_mixed: int
    moved: bool = True

    @classmethod
    def of(cls, sizes: Sequence[int], *, tuning: Tuning) -> Capacity:
        """For clusters of these sizes and no others."""
        counts = np.asarray(sizes)
        is_small = counts < tuning.mixed
        large, small = counts[~is_small], counts[is_small]
        framed = np.append(large, small.sum())
        return cls(
            n_large=len(large),
            n_small=len(small),
            n_labels=_power_of_two(_widest(small[small > 0], tuning.mixed)),
            n_chunks=_pieces(framed, _CHUNK_ROWS),
            n_large_tiles=_pieces(large, tuning.rows),
            n_pure=_pieces(large, tuning.mixed),
            n_mixed=_pieces(small.sum(), tuning.mixed),
            moved=bool((is_small[:-1] & ~is_small[1:]).any() or (small == 0).any()),
        )

    @classmethod
    def around(cls, sizes: Sequence[int], *, tuning: Tuning | None = None) -> Capacity:
        """For other labels of as many rows too, whose clusters are of about these sizes."""
        tuning = tuning or Tuning()
        counts = np.asarray(sizes)
        small = counts[(counts > 0) & (counts < tuning.mixed)]
        return cls._for(
            int(counts.sum()),
            int((counts * _CROSSING >= tuning.mixed).sum()),
            int((counts < _CROSSING * tuning.mixed).sum()),
            _power_of_two(min(tuning.mixed, 2 * _widest(small, tuning.mixed))),
            tuning,
        )

    @classmethod
    def _for(cls, n: int, n_large: int, n_small: int, n_labels: int, tuning: Tuning) -> Capacity:
        """For n rows, whatever the sizes of so many clusters."""
        pieces = (-(-n // tuning.rows) + n_large, -(-n // tuning.mixed) + n_large) if n_large else (0, 0)
        n_of_small = min(n, n_small * (tuning.mixed - 1))
        n_chunks = -(-n // _CHUNK_ROWS) + n_large + 1
        return cls(n_large, n_small, n_labels, n_chunks, *pieces, -(-n_of_small // tuning.mixed))

    def holds(self, n_large: int, n_small: int, n_labels: int) -> bool:
        """Whether there is room for so many clusters, and so many in one tile."""
        return n_large <= self.n_large and n_small <= self.n_small and n_labels <= self.n_labels

    @property
    def n_clusters(self) -> int:
        """Sorted clusters: large ones first, then the others."""
        return self.n_large + self.n_small

    @property
    def n_frames(self) -> int:
        """Frames: one a large cluster, one for all others."""
        return self.n_large + (self.n_small > 0)


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """What the labels alone decide, on the device; reuse it for every space with the same labels.

    Sorted clusters are the large ones, then as many free places as the capacity has, the small ones, and the
    empty ones last. Tables have room for what the capacity allows; what is not used covers no rows.

    Attributes:
        capacity: what there is room for.
        fits: (5,) int32, what labels have to be compared with the capacity for: rows outside 0 … K−1, large
            clusters, small ones, empty ones, and the most clusters in a mixed tile.
        order, inverse: (n,) int64, where each sorted row comes from, and back.
        codes: (n,) int32, sorted cluster of each sorted row.
        frames: (n,) int32, frame of each sorted row.
        starts, chunk_of: (F + 1,) int32, first sorted row and first chunk of each frame.
        groups: (2, G) int32 first and last (exclusive) of runs of square tiles: one a large cluster, one a
            tile of small ones.
        chunks: (3, C) int32 start, stop, frame of pieces of a frame.
        large: (3, T) int32 start, stop, cluster of the tiles of large clusters.
        tiles: (4, U) int32 start, stop, first and last cluster of square tiles: `n_pure` inside large
            clusters, then those of small ones, cut wherever a tile is full.
        counts: (K',) int32, rows of each sorted cluster.
        origin: (K',) int32, the caller's number of each sorted cluster.
        places: (K,) int32, where the caller's clusters stand among the sorted ones.
    """

    n: int
    tuning: Tuning
    capacity: Capacity
    fits: Tensor
    order: Tensor
    inverse: Tensor
    codes: Tensor
    frames: Tensor
    starts: Tensor
    chunk_of: Tensor
    groups: Tensor
    chunks: Tensor
    large: Tensor
    tiles: Tensor
    counts: Tensor
    origin: Tensor
    places: Tensor

    @classmethod
    def of(
        cls,
        codes: Tensor,
        n_clusters: int,
        *,
        sizes: Sequence[int] | None = None,
        capacity: Capacity | None = None,
        tuning: Tuning | None = None,
    ) -> ClusterPlan:
        """From the cluster 0 … K−1 of every row, on the device of the points to come.

        sizes: rows of each cluster, where they are known: the device is then not waited for.
        capacity: what there has to be room for, where the sizes are not known; then look at `fits`.
        """
        from isoscope.kernels.triton_plan import planned

        tuning = tuning or Tuning()
        if capacity is None:
            counts = torch.bincount(codes, minlength=n_clusters).tolist() if sizes is None else sizes
            if len(counts) != n_clusters:
                raise InputError(
                    f"has values up to {len(counts) - 1}",
                    argument="codes",
                    wanted=f"whole numbers below {n_clusters}",
                )
            capacity = Capacity.of(counts, tuning=tuning)
        return cls(len(codes), tuning, capacity, *planned(codes, n_clusters, capacity, tuning, _CHUNK_ROWS))

    @property
    def n_clusters(self) -> int:
        """Sorted clusters, free places among them."""
        return self.capacity.n_clusters

    @property
    def n_frames(self) -> int:
        """F, centres of residuals: the mean of each large cluster, then one for all small ones."""
        return self.capacity.n_frames

    @property
    def group(self) -> int:
        """Row tiles along a side of the square of them that runs at a time: measured on an H200."""
        return self.tuning.group or (32 if self.large.shape[1] >= _MANY_TILES else 16)


def _pieces(counts: np.ndarray, n_rows: int) -> int:
    """Return the number of pieces of at most n_rows of parts of some sizes."""
    return int((-(-counts // n_rows)).sum())


def _widest(counts: np.ndarray, side: int) -> int:
    """Return the most clusters in runs of `side` rows, for consecutive clusters that have some."""
    if not len(counts):
        return 1
    stops = np.cumsum(counts)
    edges = np.append(np.arange(0, stops[-1], side), stops[-1])
    first, last = (np.searchsorted(stops, rows, side="right") for rows in (edges[:-1], edges[1:] - 1))
    return int((last - first).max()) + 1


def _power_of_two(n_labels: int) -> int:
    return max(_LEAST_LABELS, 1 << (n_labels - 1).bit_length())
