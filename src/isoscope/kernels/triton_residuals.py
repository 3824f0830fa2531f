# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-redef, unused-ignore"
"""Preparation for `triton_clusters`: residuals of rows sorted by cluster, and their terms.

Residuals are about the mean of the row's frame (its own cluster if that is large, the mean of all small
clusters if not), scaled by a power of two a frame, in two half-precision parts (hi + lo keep 22 bits). For
many points the products hi·lo are taken of both parts in eight bits, rounded up or down at random, so that
points that are alike do not share their rounding: such a product errs by 2⁻¹⁶ of hi·hi at most, and by
nothing on average. Frames whose residuals lie in few coordinates do without: errors of few terms stay.
The terms T[a, B] are made in float64 and kept in float32. Nothing here waits for the device.

The file imports without Triton; then `AVAILABLE` is False.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import ClusterPlan

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
            """Return the function unchanged."""
            return lambda function: function

    tl = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # kernels run on the CPU, element by element
# sizes are not compiled in, or every new data set would wait for the compiler
_COUNTS = ["n_all", "n_chunks", "n_padded", "n_block", "n_tiles", "n_pure", "n_programs"]
_COUNTS += ["n_large", "n_large_tiles", "n_mixed", "n_places"]
_SIZES = ["n", "K", "F", "d", "stride", "first_row", *_COUNTS]
kernel = triton.jit(do_not_specialize=_SIZES)
HALVES = ("fp16x3", "fp16+fp8")  # precisions of products of half-precision parts
_BLOCK_ROWS = 2**17  # rows whose float64 residuals are held at a time


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the pair kernels read.

    Attributes:
        points: (B, n, d) the caller's, contiguous.
        parts: (B, n + padding, 2·d_padded) float16 hi and lo, or (…, d_padded) float32.
        eights: (B, n + padding, 2·d_padded) float8 hi/64 and 64·lo, for products hi·lo; or None.
        terms: (B, F, n) float32 T[a, B].
        peaks: (B, F) float32 largest residual of each frame, which sets its power of two.
        fourths: (B, F) float32 Σ r⁴/(Σ r²)² over coordinates, on average over the rows of each frame: one
            over the number of coordinates that count; 0 without `eights`.
        largest: (B,) float32 length that one stands for (0: all points equal).
    """

    points: Tensor
    parts: Tensor
    eights: Tensor | None
    terms: Tensor
    peaks: Tensor
    fourths: Tensor
    largest: Tensor
    d_padded: int


def prepare(X: Tensor, plan: ClusterPlan, *, precision: str = "fp16x3") -> Prepared:
    """Means, residuals and terms of (B, n, d) points: eight launches where n is small."""
    X = X.contiguous()
    B, n, d = X.shape
    F, n_chunks = plan.n_frames, plan.chunks.shape[1]
    halves, in_eights = precision in HALVES, precision == "fp16+fp8"
    step = plan.tuning.eights_dims if in_eights else plan.tuning.dims
    d_padded = -(-d // step) * step
    offset = -(-B // 4) * 4
    scales = X.new_zeros(offset + 2 * B * F, dtype=torch.float32)
    largest, (peaks, fourths) = scales[:B], scales[offset:].view(2, B, F)
    partial = X.new_empty(B, n_chunks, d, dtype=torch.float64)
    centers = X.new_empty(B, F, d, dtype=torch.float64)
    columns = triton.cdiv(d, 64)
    gaps = X.new_empty(B, F, F, dtype=torch.float64)
    chunks = (X, plan.order, plan.chunks, largest, centers, peaks, partial, n_chunks, n, F, d)
    walk_chunks[n_chunks, columns, B](*chunks, ROWS=32, COLS=64, RESIDUALS=False)
    frame_centers[F, columns, B](
        partial, plan.chunk_of, plan.starts, largest, centers, n_chunks, F, d, CHUNKS=32, COLS=64
    )
    walk_chunks[n_chunks, columns, B](*chunks, ROWS=32, COLS=64, RESIDUALS=True)
    if F > 1:
        center_gaps[triton.cdiv(F, 8), triton.cdiv(F, 16), B](centers, gaps, F, d, ROWS=8, FRAMES=16, COLS=32)
    n_padded = n + max(plan.tuning.rows, plan.tuning.mixed)  # a tile may read past the last row
    width, dtype = (2 * d_padded, torch.float16) if halves else (d_padded, torch.float32)
    parts = X.new_empty(B, n_padded, width, dtype=dtype)
    eights = X.new_empty(B, n_padded, width, dtype=torch.float8_e4m3fn) if in_eights else None
    terms = X.new_empty(B, F, n, dtype=torch.float32)
    prepared = Prepared(X, parts, eights, terms, peaks, fourths, largest, d_padded)
    for first in range(0, n, _BLOCK_ROWS):
        _prepare_rows(prepared, plan, centers, gaps, first, min(first + _BLOCK_ROWS, n))
    return prepared


def _prepare_rows(
    prepared: Prepared, plan: ClusterPlan, centers: Tensor, gaps: Tensor, first: int, stop: int
) -> None:
    """Parts and terms of sorted rows first … stop−1; with the last of them, the padding."""
    X, d_padded = prepared.points, prepared.d_padded
    B, n, d = X.shape
    F, n_padded, n_block = plan.n_frames, prepared.parts.shape[1], stop - first
    residuals = X.new_empty(B, n_block, d, dtype=torch.float64)
    squares = X.new_empty(B, n_block, dtype=torch.float64)
    halves = prepared.parts.dtype == torch.float16
    n_rows = n_block + (n_padded - n if stop == n else 0)
    split_residuals[triton.cdiv(n_rows, 16), B](
        X, plan.order, plan.frames, plan.starts, prepared.largest, centers, prepared.peaks, prepared.fourths,
        prepared.parts, prepared.parts if prepared.eights is None else prepared.eights, residuals, squares,
        first, n, n_padded, n_block, F, d, d_padded, ROWS=16, COLS=64, HALVES=halves,
        EIGHTS=prepared.eights is not None,
    )  # fmt: skip
    if F == 1:  # T[a, B] = ‖a'‖²
        prepared.terms[:, 0, first:stop] = squares
        return
    along = centers @ residuals.mT
    pair_terms[triton.cdiv(n_block, 128), triton.cdiv(F, 16), B](
        along, squares, gaps, plan.frames, prepared.terms, first, n, n_block, F, ROWS=128, FRAMES=16
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
def unit_of(largest, batch):
    """Return the largest coordinate about the origin, 1 if all points are equal."""
    top = tl.load(largest + batch).to(tl.float64)
    return tl.where(top > 0, top, 1.0)


@kernel
def walk_chunks(
    X, order, chunks, largest, centers, peaks, partial, n_chunks, n, F, d,
    ROWS: tl.constexpr, COLS: tl.constexpr, RESIDUALS: tl.constexpr,
):  # fmt: skip
    """Compute sums of chunks and the largest coordinate, or that of residuals given the centres."""
    chunk, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    start, stop = tl.load(chunks + chunk), tl.load(chunks + n_chunks + chunk)
    frame = batch * F + tl.load(chunks + 2 * n_chunks + chunk)
    center = tl.zeros([COLS], tl.float64)
    unit = tl.full([], 1.0, tl.float64)
    if RESIDUALS:
        center = tl.load(centers + frame * d + columns, mask=columns < d, other=0.0)
        unit = unit_of(largest, batch)
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
        tl.atomic_max(peaks + frame, peak, sem="relaxed")
    else:
        tl.store(partial + (batch * n_chunks + chunk) * d + columns, total, mask=columns < d)
        tl.atomic_max(largest + batch, peak, sem="relaxed")


@kernel
def frame_centers(
    partial, chunk_of, starts, largest, centers, n_chunks, F, d, CHUNKS: tl.constexpr, COLS: tl.constexpr
):
    """Means of the frames from their chunks, in a fixed order."""
    frame, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    start, stop = tl.load(chunk_of + frame), tl.load(chunk_of + frame + 1)
    count = tl.load(starts + frame + 1) - tl.load(starts + frame)
    total = tl.zeros([COLS], tl.float64)
    for first in range(start, stop, CHUNKS):
        chunk = first + tl.arange(0, CHUNKS)
        mask = (chunk < stop)[:, None] & (columns < d)[None, :]
        place = (batch * n_chunks + chunk)[:, None] * d + columns[None, :]
        total += tl.sum(tl.load(partial + place, mask=mask, other=0.0), 0)
    mean = total / tl.maximum(count, 1).to(tl.float64) / unit_of(largest, batch)
    tl.store(centers + (batch * F + frame) * d + columns, mean, mask=columns < d)


@kernel
def center_gaps(centers, gaps, F, d, ROWS: tl.constexpr, FRAMES: tl.constexpr, COLS: tl.constexpr):
    """(F, F) ‖μ_A − μ_B‖² by direct difference in float64."""
    batch = tl.program_id(2).to(tl.int64)
    a = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    b = tl.program_id(1) * FRAMES + tl.arange(0, FRAMES)
    total = tl.zeros([ROWS, FRAMES], tl.float64)
    for first in range(0, d, COLS):
        k = first + tl.arange(0, COLS)
        at_a, at_b = (batch * F + a)[:, None] * d + k[None, :], (batch * F + b)[:, None] * d + k[None, :]
        left = tl.load(centers + at_a, mask=(a < F)[:, None] & (k < d)[None, :], other=0.0)
        right = tl.load(centers + at_b, mask=(b < F)[:, None] & (k < d)[None, :], other=0.0)
        step = left[:, None, :] - right[None, :, :]
        total += tl.sum(step * step, 2)
    mask = (a < F)[:, None] & (b < F)[None, :]
    tl.store(gaps + (batch * F + a)[:, None] * F + b[None, :], total, mask=mask)


@kernel
def _exponent(peak):
    """Return the biased exponent of a float32, kept where a scale and its inverse both exist."""
    return tl.minimum(tl.maximum((peak.to(tl.int32, bitcast=True) >> 23) & 255, 30), 240)


@kernel
def to_scale(peak):
    """Return the power of two that brings values up to `peak` just under 2^14, exactly."""
    return ((267 - _exponent(peak)) << 23).to(tl.float32, bitcast=True)


@kernel
def from_scale(peak):
    """Its inverse, exactly."""
    return ((_exponent(peak) - 13) << 23).to(tl.float32, bitcast=True)


@kernel
def _eight_bits(high, low, rows, columns):
    """Both parts in float8, each rounded up or down as often as its rest says, by bits of row and column."""
    bits = (rows * 747796405)[:, None] ^ (columns * 277803737)[None, :]
    bits = (bits ^ ((bits >> 15) & 0x1FFFF)) * 739982445
    bits = (bits ^ ((bits >> 12) & 0xFFFFF)) * 695872825
    of_high = (high.to(tl.float32) * 0.015625).to(tl.int32, bitcast=True) + (bits & 0xFFFFF)
    bits = (bits ^ ((bits >> 16) & 0xFFFF)) * 739982445
    of_low = (low.to(tl.float32) * 64.0).to(tl.int32, bitcast=True) + ((bits >> 12) & 0xFFFFF)
    of_high = (of_high & -0x100000).to(tl.float32, bitcast=True).to(tl.float8e4nv)
    return of_high, (of_low & -0x100000).to(tl.float32, bitcast=True).to(tl.float8e4nv)


@kernel
def split_residuals(
    X, order, frames, starts, largest, centers, peaks, fourths, parts, eights, residuals, squares,
    first_row, n, n_padded, n_block, F, d, d_padded,
    ROWS: tl.constexpr, COLS: tl.constexpr, HALVES: tl.constexpr, EIGHTS: tl.constexpr,
):  # fmt: skip
    """Residuals of a block of rows: scaled, in two half-precision parts or one float32; and in float64."""
    batch = tl.program_id(1).to(tl.int64)
    local = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = first_row + local
    live, stored = rows < n, rows < n_padded
    own_frame = tl.load(frames + rows, mask=live, other=0)
    scale = to_scale(tl.load(peaks + batch * F + own_frame))
    unit = unit_of(largest, batch)
    square = tl.zeros([ROWS], tl.float64)
    fourth = tl.zeros([ROWS], tl.float64)
    here = (batch * n_padded + rows)[:, None]
    for first in range(0, d_padded, COLS):
        columns = first + tl.arange(0, COLS)
        inside = live[:, None] & (columns < d)[None, :]
        x = _moved(X, order, batch * n, rows, columns, live, d, unit)
        place = centers + (batch * F + own_frame)[:, None] * d + columns[None, :]
        mean = tl.load(place, mask=inside, other=0.0)
        r = tl.where(inside, x - mean, 0.0)
        square += tl.sum(r * r, 1)
        place = (batch * n_block + local)[:, None] * d + columns[None, :]
        tl.store(residuals + place, r, mask=inside & (local < n_block)[:, None])
        mask = stored[:, None] & (columns < d_padded)[None, :]
        scaled = (r * scale[:, None].to(tl.float64)).to(tl.float32)
        if HALVES:
            high = scaled.to(tl.float16)
            low = (scaled - high.to(tl.float32)).to(tl.float16)
            tl.store(parts + here * (2 * d_padded) + columns[None, :], high, mask=mask)
            tl.store(parts + here * (2 * d_padded) + d_padded + columns[None, :], low, mask=mask)
            if EIGHTS:
                fourth += tl.sum(r * r * (r * r), 1)
                of_high, of_low = _eight_bits(high, low, rows, columns)
                tl.store(eights + here * (2 * d_padded) + columns[None, :], of_high, mask=mask)
                tl.store(eights + here * (2 * d_padded) + d_padded + columns[None, :], of_low, mask=mask)
        else:
            tl.store(parts + here * d_padded + columns[None, :], scaled, mask=mask)
    tl.store(squares + batch * n_block + local, square, mask=live & (local < n_block))
    if EIGHTS:
        n_own = tl.load(starts + own_frame + 1) - tl.load(starts + own_frame)
        moves = live & (local < n_block) & (fourth > 0)
        share = fourth / tl.where(moves, square * square, 1.0) / tl.maximum(n_own, 1).to(tl.float64)
        tl.atomic_add(fourths + batch * F + own_frame, share.to(tl.float32), mask=moves, sem="relaxed")


@kernel
def pair_terms(
    along, squares, gaps, frames, terms, first_row, n, n_block, F, ROWS: tl.constexpr, FRAMES: tl.constexpr
):
    """T[a, B] of a block of rows from a'·μ_B (`along`), ‖a'‖² and ‖Δ‖² (`gaps`); float64 to float32."""
    batch = tl.program_id(2).to(tl.int64)
    local = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    others = tl.program_id(1) * FRAMES + tl.arange(0, FRAMES)
    live = local < n_block
    own_frame = tl.load(frames + first_row + local, mask=live, other=0)
    square = tl.load(squares + batch * n_block + local, mask=live, other=0.0)
    along_own = tl.load(along + (batch * F + own_frame) * n_block + local, mask=live, other=0.0)
    mask = (others < F)[:, None] & live[None, :]
    place = batch * F + others
    along_other = tl.load(along + place[:, None] * n_block + local[None, :], mask=mask, other=0.0)
    gap = tl.load(gaps + (batch * F + own_frame)[None, :] * F + others[:, None], mask=mask, other=0.0)
    term = square[None, :] + 2 * (along_own[None, :] - along_other) + gap / 2
    tl.store(terms + place[:, None] * n + first_row + local[None, :], term.to(tl.float32), mask=mask)
