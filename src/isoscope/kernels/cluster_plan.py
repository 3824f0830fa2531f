"""Which rows the CUDA kernels over clusters take together: a plan that the labels alone decide."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError

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
        mixed_dims: coordinates multiplied at a time there, where it divides their padded number.
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
        counts: (K,) int32, rows of each sorted cluster.
        origin: (K,) int32, the caller's number of each sorted cluster.
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
    counts: Tensor
    origin: Tensor

    @classmethod
    def of(
        cls,
        codes: Tensor,
        n_clusters: int,
        *,
        sizes: Sequence[int] | None = None,
        tuning: Tuning | None = None,
    ) -> ClusterPlan:
        """From the cluster 0 … K−1 of every row, on the device of the points to come.

        sizes: rows of each cluster, where they are known: the device is then not waited for.
        """
        tuning = tuning or Tuning()
        counts = np.array(torch.bincount(codes, minlength=n_clusters).tolist() if sizes is None else sizes)
        if len(counts) != n_clusters:
            raise InputError(
                f"has values up to {len(counts) - 1}",
                argument="codes",
                wanted=f"whole numbers below {n_clusters}",
            )
        is_small = counts < tuning.mixed
        origin = np.argsort(is_small, kind="stable")  # clusters of at least `mixed` rows first
        counts, n_large = counts[origin], n_clusters - int(is_small.sum())
        small = counts[n_large:]
        framed = np.append(counts[:n_large], small.sum()) if len(small) else counts
        starts = _before(framed)
        chunks, chunk_of = _pieces(framed, _CHUNK_ROWS)
        large, _ = _pieces(counts[:n_large], tuning.rows)
        pure, groups = _pieces(counts[:n_large], tuning.mixed)
        mixed = _mixed_tiles(small, int(counts[:n_large].sum()), n_large, tuning.mixed)
        tiles = np.concatenate([pure[[0, 1, 2, 2]], mixed], axis=1)
        groups = np.append(groups, groups[-1] + 1 + np.arange(mixed.shape[1]))
        widest = int((mixed[3] - mixed[2]).max(initial=0)) + 1
        places = np.argsort(origin, kind="stable")
        tables = [starts, chunk_of, groups, chunks, large, tiles, counts, origin, places]
        *plain, on_device = _on_device(codes.device, tables)
        moved = bool((np.diff(origin) < 0).any())
        narrow = (on_device.long()[codes] if moved else codes).to(
            torch.int16 if n_clusters < 2**15 else torch.int32
        )
        sorted_codes, order = torch.sort(narrow, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(codes), device=codes.device)
        sorted_codes = sorted_codes.int()
        arranged = (order, inverse, sorted_codes, sorted_codes.clamp(max=n_large))
        n_labels = max(16, 1 << (widest - 1).bit_length())
        shape = (len(codes), n_clusters, len(framed), tuning, pure.shape[1], n_labels)
        return cls(*shape, on_device.long() if moved else None, *arranged, *plain)

    @property
    def group(self) -> int:
        """Row tiles along a side of the square of them that runs at a time: measured on an H200."""
        return self.tuning.group or (32 if self.large.shape[1] >= _MANY_TILES else 16)


def _before(counts: np.ndarray) -> np.ndarray:
    """Return the first row of each of consecutive parts, and the number of all rows."""
    return np.concatenate([[0], np.cumsum(counts)])


def _pieces(counts: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return start, stop and number of pieces of at most n_rows of consecutive parts; each one's first."""
    first_of = _before(-(-counts // n_rows))
    part = np.repeat(np.arange(len(counts)), np.diff(first_of))
    starts = _before(counts)
    start = starts[part] + (np.arange(len(part)) - first_of[part]) * n_rows
    return np.stack([start, np.minimum(start + n_rows, starts[part + 1]), part]), first_of


def _mixed_tiles(counts: np.ndarray, first_row: int, first_cluster: int, side: int) -> np.ndarray:
    """Return (4, M) start, stop, first and last cluster of runs of small clusters, `side` rows at most."""
    starts: list[int] = _before(counts).tolist()
    tiles = []
    stop = 0
    while starts[stop] < starts[-1]:
        first = bisect_right(starts, starts[stop]) - 1  # behind the empty ones
        stop = bisect_right(starts, starts[first] + side) - 1
        tiles.append((starts[first], starts[stop], first, stop - 1))
    offset = np.array([first_row, first_row, first_cluster, first_cluster])
    return (np.array(tiles, dtype=np.int64).reshape(-1, 4) + offset).T


def _on_device(device: torch.device, tables: list[np.ndarray]) -> list[Tensor]:
    """Tables as int32 tensors: one transfer, each at an aligned address."""
    places = _before(np.array([-(-table.size // 4) * 4 for table in tables]))  # or Triton compiles anew
    whole = np.zeros(places[-1], dtype=np.int32)
    for place, table in zip(places, tables, strict=False):
        whole[place : place + table.size] = table.ravel()
    sent = torch.from_numpy(whole).to(device)
    return [
        sent[place : place + table.size].view(table.shape)
        for place, table in zip(places.tolist(), tables, strict=False)
    ]
