# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-redef, unused-ignore"
"""Preparation for `triton_clusters`: rows sorted by cluster, tiles planned, residuals and terms made.

What depends on the labels alone is a `ClusterPlan`, made once. What depends on the points is
`Prepared`: residuals about the own cluster's mean, scaled by a power of two a cluster, in two half-
precision parts (hi + lo keep 22 bits), and the terms T[a, B], made in float64 and kept in float32.
Nothing after the plan waits for the device.

The file imports without Triton; then `AVAILABLE` is False and only the plan can be made.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

    class triton:  # noqa: N801 - stands in for the module
        """Enough of Triton to read the kernels."""

        @staticmethod
        def jit(**_):
            """A decorator that changes nothing."""
            return lambda function: function

    tl = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # kernels run on the CPU, element by element
# sizes are not compiled in, or every new data set would wait for the compiler
_SIZES = ["n", "K", "d", "n_chunks", "n_padded", "n_block", "first_row", "n_tiles", "n_pure", "n_programs"]
kernel = triton.jit(do_not_specialize=_SIZES)
Tiles = list[tuple[int, ...]]  # start, stop, cluster; or start, stop, first and last cluster
_CHUNK_ROWS = 256  # rows summed by one program on the way to a mean
_BLOCK_ROWS = 2**17  # rows whose float64 residuals are held at a time


@dataclass(frozen=True)
class Tuning:
    """Shapes and types of the kernels; none changes what is computed.

    Attributes:
        rows, columns: tile of large clusters; rows a multiple of columns, both powers of two.
        dims: coordinates multiplied at a time.
        mixed: rows and columns of a tile that holds small clusters.
        warps, stages: of the kernel over large clusters; `mixed_warps`, `mixed_stages` of the others.
        group: row tiles along a side of the square that runs at a time, to share L2.
        sums: type in which sums are added up.
        near: share of the terms under which a squared distance is taken again by direct difference.
    """

    rows: int = 128
    columns: int = 128
    dims: int = 32
    mixed: int = 64
    warps: int = 4
    stages: int = 3
    mixed_warps: int = 4
    mixed_stages: int = 3
    group: int = 16
    sums: torch.dtype = torch.float32
    near: float = 1e-3


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """What the labels alone decide, on the device; reuse it for every space with the same labels.

    Attributes:
        order, inverse: (n,) int64, where each sorted row comes from, and back.
        codes: (n,) int32, cluster of each sorted row.
        starts, chunk_of: (K + 1,) int32, first sorted row and first chunk of each cluster.
        groups: (G + 1,) int32, runs of square tiles: one a large cluster, one a tile of small ones.
        chunks: (3, C) int32 start, stop, cluster of pieces of a cluster.
        large: (3, T) int32 start, stop, cluster of the tiles of large clusters.
        tiles: (4, U) int32 start, stop, first and last cluster of square tiles: `n_pure` inside large
            clusters, then those of several small ones.
        n_labels: clusters a mixed tile can hold, a power of two.
    """

    n: int
    n_clusters: int
    tuning: Tuning
    n_pure: int
    n_labels: int
    order: Tensor
    inverse: Tensor
    codes: Tensor
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
        order = torch.argsort(codes, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(codes), device=codes.device)
        counts = torch.bincount(codes, minlength=n_clusters).tolist()
        if len(counts) != n_clusters:
            raise ValueError(f"codes go up to {len(counts) - 1}; wanted less than n_clusters = {n_clusters}")
        starts = list(itertools.accumulate(counts, initial=0))
        chunks, chunk_of = _pieces(counts, starts, _CHUNK_ROWS)
        pure, mixed, groups = _square_tiles(counts, starts, tuning.mixed)
        big = [count if count >= tuning.mixed else 0 for count in counts]
        large, _ = _pieces(big, starts, tuning.rows)
        widest = max((last - first + 1 for _, _, first, last in mixed), default=1)
        tables = _on_device(codes.device, [starts, chunk_of, groups], [chunks, large, pure + mixed])
        n_labels = max(16, 1 << (widest - 1).bit_length())
        arranged = (order, inverse, codes[order].int())
        return cls(len(codes), n_clusters, tuning, len(pure), n_labels, *arranged, *tables)


def _pieces(counts: list[int], starts: list[int], n_rows: int) -> tuple[Tiles, list[int]]:
    """Start, stop and cluster of pieces of at most n_rows, and the first piece of every cluster."""
    pieces: Tiles = []
    first_of = [0]
    for k, (start, count) in enumerate(zip(starts, counts, strict=False)):
        stop = start + count
        pieces += [(at, min(at + n_rows, stop), k) for at in range(start, stop, n_rows)]
        first_of.append(len(pieces))
    return pieces, first_of


def _square_tiles(counts: list[int], starts: list[int], side: int) -> tuple[Tiles, Tiles, list[int]]:
    """Tiles inside clusters of at least `side` rows, tiles of runs of smaller ones, and their groups."""
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


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the pair kernels read.

    Attributes:
        points: (B, n, d) the caller's, contiguous.
        parts: (B, n + padding, 2·d_padded) float16 hi and lo, or (…, d_padded) float32.
        terms: (B, K, n) float32 T[a, B].
        peaks: (B, K) float32 largest residual of each cluster, which sets its power of two.
        largest: (B,) float32 length that one stands for (0: all points equal).
    """

    points: Tensor
    parts: Tensor
    terms: Tensor
    peaks: Tensor
    largest: Tensor
    d_padded: int


def prepare(X: Tensor, plan: ClusterPlan, *, precision: str = "fp16x3") -> Prepared:
    """Means, residuals and terms of (B, n, d) points: eight launches where n is small."""
    X = X.contiguous()
    B, n, d = X.shape
    K, n_chunks = plan.n_clusters, plan.chunks.shape[1]
    halves = precision == "fp16x3"
    d_padded = -(-d // plan.tuning.dims) * plan.tuning.dims
    offset = -(-B // 4) * 4
    scales = X.new_zeros(offset + B * K, dtype=torch.float32)
    largest, peaks = scales[:B], scales[offset:].view(B, K)
    partial = X.new_empty(B, n_chunks, d, dtype=torch.float64)
    centers = X.new_empty(B, K, d, dtype=torch.float64)
    columns = triton.cdiv(d, 64)
    gaps = X.new_empty(B, K, K, dtype=torch.float64)
    chunks = (X, plan.order, plan.chunks, largest, centers, peaks, partial, n_chunks, n, K, d)
    walk_chunks[n_chunks, columns, B](*chunks, ROWS=32, COLS=64, RESIDUALS=False)
    cluster_centers[K, columns, B](
        partial, plan.chunk_of, plan.starts, largest, centers, n_chunks, K, d, CHUNKS=32, COLS=64
    )
    walk_chunks[n_chunks, columns, B](*chunks, ROWS=32, COLS=64, RESIDUALS=True)
    center_gaps[triton.cdiv(K, 8), triton.cdiv(K, 16), B](centers, gaps, K, d, ROWS=8, CLUSTERS=16, COLS=32)
    n_padded = n + max(plan.tuning.rows, plan.tuning.mixed)  # a tile may read past the last row
    width, dtype = (2 * d_padded, torch.float16) if halves else (d_padded, torch.float32)
    parts = X.new_empty(B, n_padded, width, dtype=dtype)
    terms = X.new_empty(B, K, n, dtype=torch.float32)
    prepared = Prepared(X, parts, terms, peaks, largest, d_padded)
    for first in range(0, n, _BLOCK_ROWS):
        _prepare_rows(prepared, plan, centers, gaps, first, min(first + _BLOCK_ROWS, n))
    return prepared


def _prepare_rows(
    prepared: Prepared, plan: ClusterPlan, centers: Tensor, gaps: Tensor, first: int, stop: int
) -> None:
    """Parts and terms of sorted rows first … stop−1; with the last of them, the padding."""
    X, d_padded = prepared.points, prepared.d_padded
    B, n, d = X.shape
    K, n_padded, n_block = plan.n_clusters, prepared.parts.shape[1], stop - first
    residuals = X.new_empty(B, n_block, d, dtype=torch.float64)
    squares = X.new_empty(B, n_block, dtype=torch.float64)
    halves = prepared.parts.dtype == torch.float16
    n_rows = n_block + (n_padded - n if stop == n else 0)
    split_residuals[triton.cdiv(n_rows, 16), B](
        X, plan.order, plan.codes, prepared.largest, centers, prepared.peaks, prepared.parts, residuals,
        squares, first, n, n_padded, n_block, K, d, d_padded, ROWS=16, COLS=64, HALVES=halves,
    )  # fmt: skip
    along = centers @ residuals.mT
    pair_terms[triton.cdiv(n_block, 128), triton.cdiv(K, 16), B](
        along, squares, gaps, plan.codes, prepared.terms, first, n, n_block, K, ROWS=128, CLUSTERS=16
    )


@kernel
def _moved(X, order, origin_row, rows, columns, live, d, unit):
    """(rows, columns) of the sorted points about an arbitrary point of theirs, in units; float64."""
    source = tl.load(order + rows, mask=live, other=0)
    wide = columns < d
    origin = tl.load(X + origin_row * d + columns, mask=wide, other=0).to(tl.float64)
    places = X + (origin_row + source)[:, None] * d + columns[None, :]
    x = tl.load(places, mask=live[:, None] & wide[None, :], other=0).to(tl.float64)
    return tl.where(live[:, None] & wide[None, :], (x - origin[None, :]) / unit, 0.0)


@kernel
def _unit(largest, batch):
    """The largest coordinate about the origin, 1 if all points are equal."""
    top = tl.load(largest + batch).to(tl.float64)
    return tl.where(top > 0, top, 1.0)


@kernel
def walk_chunks(
    X, order, chunks, largest, centers, peaks, partial, n_chunks, n, K, d,
    ROWS: tl.constexpr, COLS: tl.constexpr, RESIDUALS: tl.constexpr,
):  # fmt: skip
    """Sums of chunks and the largest coordinate; with the centres known, that of each cluster's residuals."""
    chunk, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    start, stop = tl.load(chunks + chunk), tl.load(chunks + n_chunks + chunk)
    cluster = batch * K + tl.load(chunks + 2 * n_chunks + chunk)
    center = tl.zeros([COLS], tl.float64)
    unit = tl.full([], 1.0, tl.float64)
    if RESIDUALS:
        center = tl.load(centers + cluster * d + columns, mask=columns < d, other=0.0)
        unit = _unit(largest, batch)
    total = tl.zeros([COLS], tl.float64)
    top = tl.zeros([COLS], tl.float64)
    for first in range(start, stop, ROWS):
        rows = first + tl.arange(0, ROWS)
        x = _moved(X, order, batch * n, rows, columns, rows < stop, d, unit)
        x = tl.where((rows < stop)[:, None], x - center[None, :], 0.0)
        total += tl.sum(x, 0)
        top = tl.maximum(top, tl.max(tl.abs(x), 0))
    peak = tl.max(top, 0).to(tl.float32)
    if RESIDUALS:
        tl.atomic_max(peaks + cluster, peak, sem="relaxed")
    else:
        tl.store(partial + (batch * n_chunks + chunk) * d + columns, total, mask=columns < d)
        tl.atomic_max(largest + batch, peak, sem="relaxed")


@kernel
def cluster_centers(
    partial, chunk_of, starts, largest, centers, n_chunks, K, d, CHUNKS: tl.constexpr, COLS: tl.constexpr
):
    """Means of the clusters from their chunks, in a fixed order: the second half."""
    cluster, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    start, stop = tl.load(chunk_of + cluster), tl.load(chunk_of + cluster + 1)
    count = tl.load(starts + cluster + 1) - tl.load(starts + cluster)
    total = tl.zeros([COLS], tl.float64)
    for first in range(start, stop, CHUNKS):
        chunk = first + tl.arange(0, CHUNKS)
        mask = (chunk < stop)[:, None] & (columns < d)[None, :]
        place = (batch * n_chunks + chunk)[:, None] * d + columns[None, :]
        total += tl.sum(tl.load(partial + place, mask=mask, other=0.0), 0)
    mean = total / tl.maximum(count, 1).to(tl.float64) / _unit(largest, batch)
    tl.store(centers + (batch * K + cluster) * d + columns, mean, mask=columns < d)


@kernel
def center_gaps(centers, gaps, K, d, ROWS: tl.constexpr, CLUSTERS: tl.constexpr, COLS: tl.constexpr):
    """(K, K) ‖μ_A − μ_B‖² by direct difference in float64."""
    batch = tl.program_id(2).to(tl.int64)
    a = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    b = tl.program_id(1) * CLUSTERS + tl.arange(0, CLUSTERS)
    total = tl.zeros([ROWS, CLUSTERS], tl.float64)
    for first in range(0, d, COLS):
        k = first + tl.arange(0, COLS)
        at_a, at_b = (batch * K + a)[:, None] * d + k[None, :], (batch * K + b)[:, None] * d + k[None, :]
        left = tl.load(centers + at_a, mask=(a < K)[:, None] & (k < d)[None, :], other=0.0)
        right = tl.load(centers + at_b, mask=(b < K)[:, None] & (k < d)[None, :], other=0.0)
        step = left[:, None, :] - right[None, :, :]
        total += tl.sum(step * step, 2)
    mask = (a < K)[:, None] & (b < K)[None, :]
    tl.store(gaps + (batch * K + a)[:, None] * K + b[None, :], total, mask=mask)


@kernel
def _exponent(peak):
    """The biased exponent of a float32, kept where a scale and its inverse both exist."""
    return tl.minimum(tl.maximum((peak.to(tl.int32, bitcast=True) >> 23) & 255, 30), 240)


@kernel
def _to_scale(peak):
    """The power of two that brings values up to `peak` just under 2^14, exactly."""
    return ((267 - _exponent(peak)) << 23).to(tl.float32, bitcast=True)


@kernel
def _from_scale(peak):
    """Its inverse, exactly."""
    return ((_exponent(peak) - 13) << 23).to(tl.float32, bitcast=True)


@kernel
def split_residuals(
    X, order, codes, largest, centers, peaks, parts, residuals, squares,
    first_row, n, n_padded, n_block, K, d, d_padded,
    ROWS: tl.constexpr, COLS: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    """Residuals of a block of rows: scaled, in two half-precision parts or one float32; and in float64."""
    batch = tl.program_id(1).to(tl.int64)
    local = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = first_row + local
    live, kept = rows < n, rows < n_padded
    code = tl.load(codes + rows, mask=live, other=0)
    scale = _to_scale(tl.load(peaks + batch * K + code))
    unit = _unit(largest, batch)
    square = tl.zeros([ROWS], tl.float64)
    here = (batch * n_padded + rows)[:, None]
    for first in range(0, d_padded, COLS):
        columns = first + tl.arange(0, COLS)
        inside = live[:, None] & (columns < d)[None, :]
        x = _moved(X, order, batch * n, rows, columns, live, d, unit)
        mean = tl.load(centers + (batch * K + code)[:, None] * d + columns[None, :], mask=inside, other=0.0)
        r = tl.where(inside, x - mean, 0.0)
        square += tl.sum(r * r, 1)
        place = (batch * n_block + local)[:, None] * d + columns[None, :]
        tl.store(residuals + place, r, mask=inside & (local < n_block)[:, None])
        mask = kept[:, None] & (columns < d_padded)[None, :]
        scaled = (r * scale[:, None].to(tl.float64)).to(tl.float32)
        if HALVES:
            high = scaled.to(tl.float16)
            low = (scaled - high.to(tl.float32)).to(tl.float16)
            tl.store(parts + here * (2 * d_padded) + columns[None, :], high, mask=mask)
            tl.store(parts + here * (2 * d_padded) + d_padded + columns[None, :], low, mask=mask)
        else:
            tl.store(parts + here * d_padded + columns[None, :], scaled, mask=mask)
    tl.store(squares + batch * n_block + local, square, mask=live & (local < n_block))


@kernel
def pair_terms(
    along, squares, gaps, codes, terms, first_row, n, n_block, K, ROWS: tl.constexpr, CLUSTERS: tl.constexpr
):
    """T[a, B] of a block of rows from a'·μ_B (`along`), ‖a'‖² and ‖Δ‖² (`gaps`); float64 to float32."""
    batch = tl.program_id(2).to(tl.int64)
    local = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    clusters = tl.program_id(1) * CLUSTERS + tl.arange(0, CLUSTERS)
    live = local < n_block
    code = tl.load(codes + first_row + local, mask=live, other=0)
    square = tl.load(squares + batch * n_block + local, mask=live, other=0.0)
    own = tl.load(along + (batch * K + code) * n_block + local, mask=live, other=0.0)
    mask = (clusters < K)[:, None] & live[None, :]
    place = batch * K + clusters
    other = tl.load(along + place[:, None] * n_block + local[None, :], mask=mask, other=0.0)
    gap = tl.load(gaps + (batch * K + code)[None, :] * K + clusters[:, None], mask=mask, other=0.0)
    term = square[None, :] + 2 * (own[None, :] - other) + gap / 2
    tl.store(terms + place[:, None] * n + first_row + local[None, :], term.to(tl.float32), mask=mask)
