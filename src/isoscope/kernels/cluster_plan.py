"""Which rows the CUDA kernels over clusters take together: a plan that the labels alone decide."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

Tiles = list[tuple[int, ...]]  # start, stop, cluster; or start, stop, first and last cluster
MOST_SUMS = 500_000_000  # n·K above which the (n, K) tables are not worth their memory
_MANY_TILES = 512
_CHUNK_ROWS = 64  # rows summed by one program on the way to a mean


@dataclass(frozen=True)
class Tuning:
    """Shapes and types of the kernels; none changes what is computed.

    Attributes:
        rows, columns: tile of large clusters; rows a multiple of columns, both powers of two.
        dims: coordinates multiplied at a time.
        mixed: rows and columns of a tile that holds small clusters.
        warps, stages: of the kernel over large clusters; `mixed_warps`, `mixed_stages` of the others.
        group: row tiles along a side of the square that runs at a time, to share L2; None: by their number.
        sums: type in which sums are added up.
        described: whether a device that can fetches tiles by tensor descriptors (TMA).
        near: share of the terms under which a squared distance is taken again by direct difference.
        mixed_near: the same in tiles of small clusters, which are not centred each on their own.
    """

    rows: int = 128
    columns: int = 128
    dims: int = 32
    mixed: int = 64
    warps: int = 4
    stages: int = 3
    mixed_warps: int = 4
    mixed_stages: int = 3
    group: int | None = None
    sums: torch.dtype = torch.float32
    described: bool = True
    near: float = 1e-3
    mixed_near: float = 0.1


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """What the labels alone decide, on the device; reuse it for every space with the same labels.

    Attributes:
        n_frames: F, centres of residuals: the mean of each large cluster, then one for all small ones.
        order, inverse: (n,) int64, where each sorted row comes from, and back.
        codes: (n,) int32, cluster of each sorted row: large clusters first, then the small ones.
        frames: (n,) int32, frame of each sorted row.
        starts, chunk_of: (F + 1,) int32, first sorted row and first chunk of each frame.
        groups: (G + 1,) int32, runs of square tiles: one a large cluster, one a tile of small ones.
        chunks: (3, C) int32 start, stop, frame of pieces of a frame.
        large: (3, T) int32 start, stop, cluster of the tiles of large clusters.
        tiles: (4, U) int32 start, stop, first and last cluster of square tiles: `n_pure` inside large
            clusters, then those of several small ones.
        n_labels: clusters a mixed tile can hold, a power of two.
        places: (K,) int64, where the caller's clusters stand among the sorted ones; None: where they were.
    """

    n: int
    n_clusters: int
    n_frames: int
    tuning: Tuning
    n_pure: int
    n_labels: int
    places: Tensor | None
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

    @classmethod
    def of(cls, codes: Tensor, n_clusters: int, *, tuning: Tuning | None = None) -> ClusterPlan:
        """From the cluster 0 … K−1 of every row, on the device of the points to come."""
        tuning = tuning or Tuning()
        counts = torch.bincount(codes, minlength=n_clusters).tolist()
        if len(counts) != n_clusters:
            raise ValueError(f"codes go up to {len(counts) - 1}; wanted less than n_clusters = {n_clusters}")
        codes, counts, places = _large_first(codes, counts, tuning.mixed)
        order = torch.argsort(codes, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(codes), device=codes.device)
        n_large = sum(count >= tuning.mixed for count in counts)
        framed = counts[:n_large] + [sum(counts[n_large:])] * (n_large < n_clusters)
        starts = list(itertools.accumulate(framed, initial=0))
        chunks, chunk_of = _pieces(framed, _CHUNK_ROWS)
        large, _ = _pieces(counts[:n_large], tuning.rows)
        pure, mixed, groups = _square_tiles(counts, tuning.mixed)
        widest = max((last - first + 1 for _, _, first, last in mixed), default=1)
        tables = _on_device(codes.device, [starts, chunk_of, groups], [chunks, large, pure + mixed])
        n_labels = max(16, 1 << (widest - 1).bit_length())
        arranged = (order, inverse, codes[order].int(), codes[order].clamp(max=n_large).int())
        sizes = (len(codes), n_clusters, len(framed))
        return cls(*sizes, tuning, len(pure), n_labels, places, *arranged, *tables)

    @property
    def group(self) -> int:
        """Row tiles along a side of the square of them that runs at a time: measured on an H200."""
        return self.tuning.group or (32 if self.large.shape[1] >= _MANY_TILES else 16)


def _large_first(codes: Tensor, counts: list[int], side: int) -> tuple[Tensor, list[int], Tensor | None]:
    """Codes and counts with clusters of at least `side` rows first, and where each cluster went."""
    by_size = sorted(range(len(counts)), key=lambda cluster: counts[cluster] < side)
    if by_size == list(range(len(counts))):
        return codes, counts, None
    places = torch.tensor(by_size).argsort().to(codes.device)
    return places[codes], [counts[cluster] for cluster in by_size], places


def _pieces(counts: list[int], n_rows: int) -> tuple[Tiles, list[int]]:
    """Start, stop and number of pieces of at most n_rows of consecutive parts, and each one's first."""
    pieces: Tiles = []
    first_of = [0]
    for k, (start, stop) in enumerate(itertools.pairwise(itertools.accumulate(counts, initial=0))):
        pieces += [(at, min(at + n_rows, stop), k) for at in range(start, stop, n_rows)]
        first_of.append(len(pieces))
    return pieces, first_of


def _square_tiles(counts: list[int], side: int) -> tuple[Tiles, Tiles, list[int]]:
    """Tiles inside clusters of at least `side` rows, tiles of runs of smaller ones, and their groups."""
    starts = list(itertools.accumulate(counts, initial=0))
    pure: Tiles = []
    mixed: Tiles = []
    groups = [0]
    run: tuple[int, int] | None = None  # first row and cluster of a run of small clusters
    for k, count in enumerate(counts):
        if run is not None and (count >= side or starts[k + 1] - run[0] > side):
            mixed.append((run[0], starts[k], run[1], k - 1))
            run = None
        if count >= side:
            stop = starts[k + 1]
            pure += [(at, min(at + side, stop), k, k) for at in range(starts[k], stop, side)]
            groups.append(len(pure))
        elif count and run is None:
            run = (starts[k], k)
    if run is not None:
        mixed.append((run[0], starts[-1], run[1], len(counts) - 1))
    groups += [len(pure) + place for place in range(1, len(mixed) + 1)]
    return pure, mixed, groups


def _on_device(device: torch.device, lists: list[list[int]], tables: list[Tiles]) -> list[Tensor]:
    """Lists, and tables by their columns, as int32 tensors: one transfer, each at an aligned address."""
    flat = lists + [list(itertools.chain(*zip(*table, strict=True))) for table in tables]
    padded = [part + [0] * (-len(part) % 4) for part in flat]  # Triton compiles anew for each alignment
    whole = torch.tensor(list(itertools.chain(*padded)), dtype=torch.int32).to(device)
    parts = [own[: len(part)] for own, part in zip(whole.split(list(map(len, padded))), flat, strict=True)]
    return [*parts[:3], *(part.view(width, -1) for part, width in zip(parts[3:], (3, 3, 4), strict=True))]
