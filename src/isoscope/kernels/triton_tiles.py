# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""One tile of pairs on CUDA: its place in the plan, its products, its distances."""

from __future__ import annotations

from isoscope.kernels.triton_residuals import from_scale, kernel, tl, unit_of


@kernel
def triangle(index):
    """(i, j), i ≤ j, of an index that counts the pairs column by column."""
    j = ((tl.sqrt(index.to(tl.float32) * 8.0 + 1.0) - 1.0) * 0.5).to(tl.int32)
    j = tl.where(j * (j + 1) // 2 > index, j - 1, j)
    j = tl.where((j + 1) * (j + 2) // 2 <= index, j + 1, j)
    return index - j * (j + 1) // 2, j


@kernel
def tile_place(program, tiles, n_tiles, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row tile, column tile's row tile, and their rows, of a program over large clusters.

    Programs run through squares of GROUP × GROUP row tiles, so that those at work share L2. A row tile
    is cut into BM // BN column tiles.
    """
    CUTS: tl.constexpr = BM // BN
    square_i, square_j = triangle(program // (GROUP * GROUP * CUTS))
    place = program % (GROUP * GROUP * CUTS)
    i = square_i * GROUP + place % GROUP
    column = square_j * GROUP * CUTS + place // GROUP
    j = column // CUTS
    real = (i <= j) & (j < n_tiles)
    start_i, stop_i = tl.load(tiles + i, mask=real, other=0), tl.load(tiles + n_tiles + i, mask=real, other=0)
    start_j, stop_j = tl.load(tiles + j, mask=real, other=0), tl.load(tiles + n_tiles + j, mask=real, other=0)
    return i, j, start_i, stop_i, start_j + (column % CUTS) * BN, stop_j


@kernel
def tile_product(
    parts, start_i, start_j, d_padded,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """(BM, BN) scaled a'·b' in float32; rows past a tile's end hold other rows, which the caller masks."""
    width = 2 * d_padded if PRECISION == "fp16x3" else d_padded  # "fp16+fp8" is for descriptors alone
    k = tl.arange(0, BK)
    a = parts + (start_i + tl.arange(0, BM))[:, None] * width + k[None, :]
    b = parts + (start_j + tl.arange(0, BN))[None, :] * width + k[:, None]
    total = tl.zeros([BM, BN], tl.float32)
    for first in range(0, d_padded, BK):
        if PRECISION == "fp16x3":
            a_high, a_low = tl.load(a + first), tl.load(a + d_padded + first)
            b_high, b_low = tl.load(b + first), tl.load(b + d_padded + first)
            total = tl.dot(a_high, b_high, total)
            total = tl.dot(a_high, b_low, total)
            total = tl.dot(a_low, b_high, total)
        else:
            total = tl.dot(tl.load(a + first), tl.load(b + first), total, input_precision=PRECISION)
    return total


@kernel
def described_product(
    left, right, row_i, row_j, d_padded, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """`tile_product` of half-precision parts that the copy engine fetches by tensor descriptors."""
    total = tl.zeros([BM, BN], tl.float32)
    for first in range(0, d_padded, BK):
        a_high, a_low = left.load([row_i, first]), left.load([row_i, d_padded + first])
        b_high, b_low = right.load([row_j, first]).T, right.load([row_j, d_padded + first]).T
        total = tl.dot(a_high, b_high, total)
        total = tl.dot(a_high, b_low, total)
        total = tl.dot(a_low, b_high, total)
    return total


@kernel
def eights_product(
    left, right, left_eights, right_eights, row_i, row_j, d_padded,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`described_product` with products of a low part in eight bits.

    They come first: adding them keeps 14 bits of the total only.
    """
    total = tl.zeros([BM, BN], tl.float32)
    for first in range(0, d_padded, BK):
        a_high, a_low = left_eights.load([row_i, first]), left_eights.load([row_i, d_padded + first])
        b_high, b_low = right_eights.load([row_j, first]).T, right_eights.load([row_j, d_padded + first]).T
        total = tl.dot(a_high, b_low, total)
        total = tl.dot(a_low, b_high, total)
    for first in range(0, d_padded, BK):
        total = tl.dot(left.load([row_i, first]), right.load([row_j, first]).T, total)
    return total


@kernel
def direct(X, order, origin_row, rows, columns, live_rows, live_columns, d, unit):
    """(BM, BN) squared distances by direct difference: slow, and right for any pair."""
    a = X + (origin_row + tl.load(order + rows, mask=live_rows, other=0)) * d
    b = X + (origin_row + tl.load(order + columns, mask=live_columns, other=0)) * d
    total = tl.zeros([rows.shape[0], columns.shape[0]], tl.float32)
    inverse = 1.0 / unit
    for k in range(0, d):
        step = tl.load(a + k).to(tl.float32)[:, None] - tl.load(b + k).to(tl.float32)[None, :]
        total += (step * inverse) * (step * inverse)
    return total


@kernel
def mixed_distances(
    parts, terms, peaks, X, order, codes, largest, batch,
    start_i, stop_i, start_j, stop_j, n, n_padded, F, d, d_padded, near,
    BLOCK: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """(BLOCK, BLOCK) distances of two tiles of any clusters, 0 outside them and of a row to itself."""
    rows, columns = start_i + tl.arange(0, BLOCK), start_j + tl.arange(0, BLOCK)
    live_rows, live_columns = rows < stop_i, columns < stop_j
    inside = live_rows[:, None] & live_columns[None, :]
    product = tile_product(
        parts, batch * n_padded + start_i, batch * n_padded + start_j, d_padded, BLOCK, BLOCK, BK, PRECISION
    )
    if F == 1:  # all clusters are small: a term a row, not one a pair
        scale = from_scale(tl.load(peaks + batch))
        of_rows = tl.load(terms + batch * n + rows, mask=live_rows, other=0.0)
        of_columns = tl.load(terms + batch * n + columns, mask=live_columns, other=0.0)
        a = tl.broadcast_to(of_rows[:, None], [BLOCK, BLOCK])
        b = tl.broadcast_to(of_columns[None, :], [BLOCK, BLOCK])
        product *= 2 * scale * scale
    else:
        row_frames = batch * F + tl.minimum(tl.load(codes + rows, mask=live_rows, other=0), F - 1)
        column_frames = batch * F + tl.minimum(tl.load(codes + columns, mask=live_columns, other=0), F - 1)
        a = tl.load(terms + column_frames[None, :] * n + rows[:, None], mask=inside, other=0.0)
        b = tl.load(terms + row_frames[:, None] * n + columns[None, :], mask=inside, other=0.0)
        product *= 2 * from_scale(tl.load(peaks + row_frames))[:, None]
        product *= from_scale(tl.load(peaks + column_frames))[None, :]
    squared = a + b - product
    distinct = inside & (rows[:, None] != columns[None, :])
    close = distinct & (squared < near * (tl.abs(a) + tl.abs(b)))
    if tl.max(tl.max(close.to(tl.int32), 1), 0) > 0:
        unit = unit_of(largest, batch).to(tl.float32)
        exact = direct(X, order, batch * n, rows, columns, live_rows, live_columns, d, unit)
        squared = tl.where(close, exact, squared)
    return tl.sqrt(tl.where(distinct, tl.maximum(squared, 0.0), 0.0))
