# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""The plan of `cluster_plan` made from labels on the device, in a few launches; nothing waits for it."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import Capacity, Tuning
from isoscope.kernels.triton_residuals import AVAILABLE, kernel, tl, triton

_BLOCK = 1024  # labels or clusters taken at a time
_ENTRIES = 128  # of a table
_MOST_BINS = 1024  # counted together by one program; more are counted one by one


def planned(
    codes: Tensor, n_clusters: int, capacity: Capacity, tuning: Tuning, chunk_rows: int
) -> tuple[Tensor, ...]:
    """Return the tables of a plan in the order of its fields, from `fits` on.

    codes: (n,) whole numbers; those outside 0 … K−1 are counted, and taken for the nearest.
    """
    if not AVAILABLE:
        raise ImportError("plans of CUDA kernels need Triton")
    n, K, device = len(codes), n_clusters, codes.device
    L, F = capacity.n_large, capacity.n_frames
    zeros = torch.zeros(5 + K + 2 * capacity.n_clusters, dtype=torch.int32, device=device)
    fits, found, counts, origin = zeros.split([5, K, capacity.n_clusters, capacity.n_clusters])
    places = torch.empty(K, dtype=torch.int32, device=device)
    starts, chunk_of, large_of, pure_of = torch.empty(4, F + 2, dtype=torch.int32, device=device)
    groups = torch.empty(2, L + capacity.n_mixed, dtype=torch.int32, device=device)
    bins = triton.next_power_of_2(K + 1)
    of_rows = triton.cdiv(n, _BLOCK)
    count_codes[(of_rows,)](codes, found, fits, n, K, ROWS=_BLOCK, BINS=bins if bins <= _MOST_BINS else 0)
    place_clusters[(1,)](
        found, fits, places, counts, origin, K, L, capacity.n_clusters, tuning.mixed, BLOCK=_BLOCK
    )
    start_frames[(1,)](
        counts, starts, chunk_of, large_of, pure_of, groups, n, L, F, capacity.n_pure, capacity.n_mixed,
        CHUNK=chunk_rows, ROWS=tuning.rows, MIXED=tuning.mixed, BLOCK=_BLOCK,
    )  # fmt: skip
    narrow = torch.int16 if capacity.n_clusters < 2**15 else torch.int32
    keys = torch.empty(n, dtype=narrow, device=device)
    key_rows[(of_rows,)](codes, places, keys, n, K, ROWS=_BLOCK)
    sorted_keys, order = torch.sort(keys, stable=True)
    inverse = torch.empty_like(order)
    sorted_codes, frames = torch.empty(2, n, dtype=torch.int32, device=device)
    n_tiles = capacity.n_pure + capacity.n_mixed
    room = torch.empty(
        3 * (capacity.n_chunks + capacity.n_large_tiles) + 4 * n_tiles, dtype=torch.int32, device=device
    )
    chunks, large, tiles = room.split([3 * capacity.n_chunks, 3 * capacity.n_large_tiles, 4 * n_tiles])
    entries = max(n, capacity.n_chunks, capacity.n_large_tiles, n_tiles)
    fill_tables[triton.cdiv(entries, _ENTRIES), 5](
        sorted_keys, order, starts, chunk_of, large_of, pure_of, fits,
        chunks, large, tiles, sorted_codes, frames, inverse,
        n, L, F, capacity.n_chunks, capacity.n_large_tiles, capacity.n_pure, capacity.n_mixed,
        CHUNK=chunk_rows, ROWS=tuning.rows, MIXED=tuning.mixed, ENTRIES=_ENTRIES,
    )  # fmt: skip
    return (
        fits, order, inverse, sorted_codes, frames, starts, chunk_of, groups, chunks.view(3, -1),
        large.view(3, -1), tiles.view(4, -1), counts, origin, places,
    )  # fmt: skip


@kernel
def count_codes(codes, counts, fits, n, K, ROWS: tl.constexpr, BINS: tl.constexpr):
    """Rows of each cluster, and rows of none."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n
    code = tl.load(codes + rows, mask=live, other=-1).to(tl.int64)
    inside = (code >= 0) & (code < K)
    n_outside = tl.sum((live & ~inside).to(tl.int32), 0)
    if n_outside > 0:
        tl.atomic_add(fits, n_outside)
    if BINS > 0:  # the last bin is of rows outside
        bins = tl.arange(0, BINS)
        found = tl.histogram(tl.where(inside, code, BINS - 1).to(tl.int32), BINS)
        tl.atomic_add(counts + bins, found, mask=(bins < K) & (found > 0), sem="relaxed")
    else:
        tl.atomic_add(counts + code, 1, mask=inside, sem="relaxed")


@kernel
def place_clusters(found, fits, places, counts, origin, K, n_large, n_places, mixed, BLOCK: tl.constexpr):
    """Where each cluster stands among the sorted ones: large ones first, empty ones from the end."""
    large_before = tl.zeros([], tl.int32)
    small_before = tl.zeros([], tl.int32)
    empty_before = tl.zeros([], tl.int32)
    for first in range(0, K, BLOCK):
        cluster = first + tl.arange(0, BLOCK)
        live = cluster < K
        count = tl.load(found + cluster, mask=live, other=0)
        is_large, is_empty = (count >= mixed) & live, (count == 0) & live
        is_small = (count < mixed) & (count > 0)
        large = large_before + tl.cumsum(is_large.to(tl.int32), 0) - 1
        small = n_large + small_before + tl.cumsum(is_small.to(tl.int32), 0) - 1
        empty = n_places - empty_before - tl.cumsum(is_empty.to(tl.int32), 0)
        place = tl.where(is_large, large, tl.where(is_small, small, empty))
        place = tl.minimum(tl.maximum(place, 0), n_places - 1)  # `fits` tells of what has no room
        tl.store(places + cluster, place, mask=live)
        tl.store(counts + place, count, mask=is_large | is_small)
        tl.store(origin + place, cluster, mask=live)
        large_before += tl.sum(is_large.to(tl.int32), 0)
        small_before += tl.sum(is_small.to(tl.int32), 0)
        empty_before += tl.sum(is_empty.to(tl.int32), 0)
    tl.store(fits + 1, large_before)
    tl.store(fits + 2, small_before)
    tl.store(fits + 3, empty_before)


@kernel
def start_frames(
    counts, starts, chunk_of, large_of, pure_of, groups, n, n_large, F, n_pure, n_mixed,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, MIXED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """First row, chunk and tiles of each frame, and behind the last; the tiles of each group."""
    row = tl.zeros([], tl.int32)
    chunk = tl.zeros([], tl.int32)
    large = tl.zeros([], tl.int32)
    pure = tl.zeros([], tl.int32)
    for first in range(0, n_large, BLOCK):
        frame = first + tl.arange(0, BLOCK)
        live = frame < n_large
        count = tl.load(counts + frame, mask=live, other=0)
        n_chunks, n_rows = (count + CHUNK - 1) // CHUNK, (count + ROWS - 1) // ROWS
        n_square = (count + MIXED - 1) // MIXED
        pure_stop = pure + tl.cumsum(n_square, 0)
        tl.store(starts + frame, row + tl.cumsum(count, 0) - count, mask=live)
        tl.store(chunk_of + frame, chunk + tl.cumsum(n_chunks, 0) - n_chunks, mask=live)
        tl.store(large_of + frame, large + tl.cumsum(n_rows, 0) - n_rows, mask=live)
        tl.store(pure_of + frame, pure_stop - n_square, mask=live)
        tl.store(groups + frame, pure_stop - n_square, mask=live)
        tl.store(groups + n_large + n_mixed + frame, pure_stop, mask=live)
        row += tl.sum(count, 0)
        chunk += tl.sum(n_chunks, 0)
        large += tl.sum(n_rows, 0)
        pure += tl.sum(n_square, 0)
    for first in range(0, n_mixed, BLOCK):
        tile = first + tl.arange(0, BLOCK)
        tl.store(groups + n_large + tile, n_pure + tile, mask=tile < n_mixed)
        tl.store(groups + 2 * n_large + n_mixed + tile, n_pure + tile + 1, mask=tile < n_mixed)
    tl.store(starts + n_large, row)
    tl.store(chunk_of + n_large, chunk)
    tl.store(large_of + n_large, large)
    tl.store(pure_of + n_large, pure)
    if n_large < F:
        tl.store(starts + F, n)
        tl.store(chunk_of + F, chunk + (n - row + CHUNK - 1) // CHUNK)


@kernel
def key_rows(codes, places, keys, n, K, ROWS: tl.constexpr):
    """Sorted cluster of each row."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n
    code = tl.load(codes + rows, mask=live, other=0).to(tl.int64)
    place = tl.load(places + tl.minimum(tl.maximum(code, 0), K - 1), mask=live, other=0)
    tl.store(keys + rows, place.to(keys.dtype.element_ty), mask=live)


@kernel
def _piece(entry, first_of, starts, n_parts, n, SIZE: tl.constexpr):
    """Rows and part of each of consecutive pieces; behind the last, none."""
    part = tl.zeros_like(entry)
    width = n_parts
    while width > 1:  # the last part that starts at the entry or before
        half = width // 2
        part = tl.where(tl.load(first_of + part + half) <= entry, part + half, part)
        width -= half
    start = tl.load(starts + part) + (entry - tl.load(first_of + part)) * SIZE
    stop = tl.minimum(start + SIZE, tl.load(starts + part + 1))
    used = entry < tl.load(first_of + n_parts)
    return tl.where(used, start, n), tl.where(used, stop, n), tl.where(used, part, 0)


@kernel
def fill_tables(
    keys, order, starts, chunk_of, large_of, pure_of, fits, chunks, large, tiles, codes, frames, inverse,
    n, n_large, F, n_chunks, n_large_tiles, n_pure, n_mixed,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, MIXED: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Fill the tables of chunks, of tiles of each kind, and of rows."""
    entry = tl.program_id(0) * ENTRIES + tl.arange(0, ENTRIES)
    table = tl.program_id(1)
    n_tiles = n_pure + n_mixed
    if table == 0:
        start, stop, part = _piece(entry, chunk_of, starts, F, n, CHUNK)
        tl.store(chunks + entry, start, mask=entry < n_chunks)
        tl.store(chunks + n_chunks + entry, stop, mask=entry < n_chunks)
        tl.store(chunks + 2 * n_chunks + entry, part, mask=entry < n_chunks)
    elif table == 1:
        start, stop, part = _piece(entry, large_of, starts, n_large, n, ROWS)
        tl.store(large + entry, start, mask=entry < n_large_tiles)
        tl.store(large + n_large_tiles + entry, stop, mask=entry < n_large_tiles)
        tl.store(large + 2 * n_large_tiles + entry, part, mask=entry < n_large_tiles)
    elif table == 2:
        start, stop, part = _piece(entry, pure_of, starts, n_large, n, MIXED)
        tl.store(tiles + entry, start, mask=entry < n_pure)
        tl.store(tiles + n_tiles + entry, stop, mask=entry < n_pure)
        tl.store(tiles + 2 * n_tiles + entry, part, mask=entry < n_pure)
        tl.store(tiles + 3 * n_tiles + entry, part, mask=entry < n_pure)
    elif table == 3:
        live = entry < n_mixed
        start = tl.minimum(tl.load(starts + n_large) + entry * MIXED, n)
        stop = tl.minimum(start + MIXED, n)
        used = live & (start < stop)
        first = tl.load(keys + start, mask=used, other=0).to(tl.int32)
        last = tl.load(keys + stop - 1, mask=used, other=0).to(tl.int32)
        tl.store(tiles + n_pure + entry, start, mask=live)
        tl.store(tiles + n_tiles + n_pure + entry, stop, mask=live)
        tl.store(tiles + 2 * n_tiles + n_pure + entry, first, mask=live)
        tl.store(tiles + 3 * n_tiles + n_pure + entry, last, mask=live)
        tl.atomic_max(fits + 4, tl.max(tl.where(used, last - first + 1, 0), 0))
    else:
        live = entry < n
        code = tl.load(keys + entry, mask=live, other=0).to(tl.int32)
        tl.store(codes + entry, code, mask=live)
        tl.store(frames + entry, tl.minimum(tl.minimum(code, n_large), F - 1), mask=live)
        source = tl.load(order + entry, mask=live, other=0)
        tl.store(inverse + source, entry.to(tl.int64), mask=live)
