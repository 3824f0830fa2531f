# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""Summed distances of points to clusters on CUDA: each pair of tiles once, never n × n.

With a' = a − μ_A and b' = b − μ_B the rows about the means of their frames (the own cluster, or one frame
for all small clusters) and Δ = μ_A − μ_B,

    ‖a − b‖² = T[a, B] + T[b, A] − 2 a'·b',    T[a, B] = ‖a'‖² + 2Δ·a' + ‖Δ‖²/2

so nothing large cancels when clusters collapse, and a pair needs two terms and one product. T is made
in float64 and kept in float32, clusters first, so that a tile reads and adds to contiguous memory.
Pairs still too close for the algebra (duplicates) are taken again by direct difference, which float32
rounds correctly.

The file imports without Triton; then `AVAILABLE` is False and `cluster_sums` raises.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError, check_choice, not_installed
from isoscope.kernels.cluster_plan import MOST_SUMS, ClusterPlan, Tuning
from isoscope.kernels.triton_residuals import (
    AVAILABLE,
    HALVES,
    INTERPRETED,
    Prepared,
    from_scale,
    kernel,
    prepare,
    tl,
    to_scale,
    triton,
    unit_of,
)
from isoscope.kernels.triton_tiles import (
    described_product,
    direct,
    eights_product,
    mixed_distances,
    tile_place,
    tile_product,
    triangle,
)

PRECISIONS = ("fp16x3", "fp16+fp8", "tf32x3", "ieee")
_MANY_POINTS, _MANY_DIMS = 2**16, 64  # from here on products in eight bits are worth it, and average out
_CLOSE_PROGRAMS = 512  # enough to fill the device; each walks through the list of tiles


def cluster_sums(
    X: Tensor,
    codes: Tensor,
    n_clusters: int,
    *,
    precision: str | None = None,
    deterministic: bool = False,
    plan: ClusterPlan | None = None,
    tuning: Tuning | None = None,
) -> Tensor:
    """(n, K) summed Euclidean distance of every point to every cluster; (B, n, K) for B spaces at once.

    Args:
        X: (n, d) or (B, n, d) float32, float16 or bfloat16, on a CUDA device.
        codes: (n,) cluster 0 … K−1 of each row.
        n_clusters: K.
        precision: of the products: "fp16x3" (two half-precision parts), "fp16+fp8" (the same inside large
            clusters, but with parts in eight bits where one of them is small), "tf32x3" or "ieee". By default
            the first, for many points the second.
        deterministic: the same bits every time, at twice the work or more.
        plan: `ClusterPlan.of(codes, n_clusters)`, to make it once for many spaces.
        tuning: shapes of the kernels, where no plan is given.
    """
    precision = precision or default_precision(X)
    _check(X, codes, n_clusters, precision)
    plan = plan or ClusterPlan.of(codes, n_clusters, tuning=tuning)
    spaces = X if X.ndim == 3 else X[None]
    prepared = prepare(spaces, plan, precision=precision)
    sums = pair_sums(prepared, plan, precision=precision, deterministic=deterministic)
    if plan.capacity.moved:
        sums = sums.index_select(1, plan.places)
    back = sums.index_select(2, plan.inverse).mul_(prepared.largest[:, None, None]).mT
    return back if X.ndim == 3 else back[0]


def default_precision(X: Tensor) -> str:
    """Return the fastest precision whose errors do not show: see `cluster_sums`."""
    n, d = X.shape[-2:]
    many = n >= _MANY_POINTS and d >= _MANY_DIMS
    return "fp16+fp8" if many and has_copy_engine(X.device) else "fp16x3"


def has_copy_engine(device: torch.device) -> bool:
    """Whether a device fetches tiles by descriptors; it then multiplies eight-bit numbers too."""
    return INTERPRETED or torch.cuda.get_device_capability(device) >= (9, 0)


def pair_sums(
    prepared: Prepared, plan: ClusterPlan, *, precision: str = "fp16x3", deterministic: bool = False
) -> Tensor:
    """(B, K, n) summed distances in units of `prepared.largest`, rows sorted: the kernels alone."""
    tuning, n, K = plan.tuning, plan.n, plan.n_clusters
    B, n_padded, _ = prepared.parts.shape
    sums = prepared.terms.new_zeros(B, K, n, dtype=tuning.sums)
    n_tiles, n_pure, n_mixed = plan.tiles.shape[1], plan.capacity.n_pure, plan.capacity.n_mixed
    first = (prepared.parts, prepared.terms, prepared.peaks, prepared.points, plan.order)
    size = (n, n_padded, K, plan.n_frames, prepared.points.shape[2], prepared.d_padded, tuning.mixed_near)
    dims = tuning.mixed_dims if prepared.d_padded % tuning.mixed_dims == 0 else tuning.dims
    shape = {
        "BK": dims,
        "PRECISION": _by_address(precision),
        "BLOCK": tuning.mixed,
        "LABELS": plan.capacity.n_labels,
    }
    shape |= {"num_warps": tuning.mixed_warps, "num_stages": tuning.mixed_stages}
    if deterministic:
        rows_in_order[n_tiles, plan.groups.shape[1], B](
            *first, plan.codes, prepared.largest, plan.tiles, plan.groups, sums, n_tiles, *size, **shape
        )
        return sums
    if plan.capacity.n_large_tiles:
        _large_clusters(prepared, plan, sums, precision)
    if n_mixed:
        mixed_pairs[n_pure * n_mixed + n_mixed * (n_mixed + 1) // 2, B](
            *first, plan.codes, prepared.largest, plan.tiles, sums, n_pure, n_tiles, *size, **shape
        )
    return sums


def _large_clusters(prepared: Prepared, plan: ClusterPlan, sums: Tensor, precision: str) -> None:
    """Add the distances between points of large clusters; tiles with close pairs in a second kernel."""
    tuning, n, K = plan.tuning, plan.n, plan.n_clusters
    B, n_padded, _ = prepared.parts.shape
    n_tiles = plan.large.shape[1]
    squares = triton.cdiv(n_tiles, plan.group)
    programs = squares * (squares + 1) // 2 * plan.group**2 * (tuning.rows // tuning.columns)
    listed = sums.new_empty(B * programs, dtype=torch.int64)
    n_listed = sums.new_zeros(1, dtype=torch.int32)
    shape = {"BM": tuning.rows, "BN": tuning.columns, "GROUP": plan.group}
    described = tuning.described and precision in HALVES and has_copy_engine(sums.device)
    in_eights = described and prepared.eights is not None
    halves, eights = prepared.parts, prepared.parts if prepared.eights is None else prepared.eights
    tiles = ((halves, tuning.dims), (halves, tuning.eights_dims), (eights, tuning.eights_dims))
    sides = [
        _rows_of(part, side, dims) if described else part
        for part, dims in tiles[: 3 if in_eights else 1]
        for side in (tuning.rows, tuning.columns)
    ]
    sides += sides[:2] * (0 if in_eights else 2)
    pure_pairs[programs, B](
        *sides, prepared.terms, prepared.peaks, prepared.fourths, plan.large, sums, listed, n_listed,
        n_tiles, n, n_padded, K, plan.n_frames, prepared.d_padded, tuning.near, tuning.concentrated, **shape,
        BK=tuning.dims, EIGHTS=tuning.eights_dims if in_eights else 0, PRECISION=_by_address(precision),
        DESCRIBED=described,
        num_warps=tuning.warps, num_stages=tuning.stages,
    )  # fmt: skip
    side = min(64, tuning.columns)
    pieces = tuning.rows * tuning.columns // side**2
    close_pairs[min(B * programs, _CLOSE_PROGRAMS), pieces](
        prepared.points, plan.order, prepared.largest, plan.large, sums, listed, n_listed,
        n_tiles, programs, n, K, prepared.points.shape[2], **shape, SIDE=side,
    )  # fmt: skip


def _by_address(precision: str) -> str:
    """Return the precision of tiles that are not fetched by descriptors; so are all with small clusters,
    whose sums are over too few points for errors in eight bits to average out."""
    return "fp16x3" if precision in HALVES else precision


def _rows_of(parts: Tensor, n_rows: int, n_dims: int) -> object:
    """Return a descriptor of tiles of rows, for the copy engine."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(parts.flatten(0, 1), [n_rows, n_dims])


def _check(X: Tensor, codes: Tensor, n_clusters: int, precision: str) -> None:
    if not AVAILABLE:
        raise not_installed("A sum on CUDA", "triton")
    if X.device.type != "cuda" and not INTERPRETED:
        raise InputError(
            f"is on {X.device}", argument="X", wanted="a CUDA device", hint="set TRITON_INTERPRET=1"
        )
    if X.ndim not in (2, 3) or X.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise ShapeError(
            f"is of {X.dtype} and shape {tuple(X.shape)}",
            argument="X",
            wanted="float32 or narrower, of shape (n, d) or (B, n, d)",
        )
    if codes.shape != X.shape[-2:-1] or codes.device != X.device:
        raise ShapeError(
            f"has shape {tuple(codes.shape)} on {codes.device}",
            argument="codes",
            wanted=f"({X.shape[-2]},) on {X.device}",
        )
    check_choice("precision", precision, PRECISIONS)
    n_sums = X.shape[:-1].numel() * n_clusters
    if n_sums > MOST_SUMS:
        raise InputError(f"n·K is {n_sums:,}", wanted=f"at most {MOST_SUMS:,}", hint="use the torch engine")


@kernel
def _by_label(distances, rows_labels, LABELS: tl.constexpr):
    """(BN, LABELS) sums over the rows of each label: a product with the labels' indicator.

    Two half-precision parts, scaled by the tile's largest distance, keep 22 bits; the indicator is exact.
    """
    peak = tl.max(tl.max(distances, 1), 0)
    scaled = tl.trans(distances) * to_scale(peak)
    high = scaled.to(tl.float16)
    low = (scaled - high.to(tl.float32)).to(tl.float16)
    indicator = (rows_labels[:, None] == tl.arange(0, LABELS)[None, :]).to(tl.float16)
    return tl.dot(low, indicator, tl.dot(high, indicator)) * from_scale(peak)


@kernel
def pure_pairs(
    left, right, left_wide, right_wide, left_eights, right_eights, terms, peaks, fourths, tiles, sums,
    listed, n_listed, n_tiles, n, n_padded, K, F, d_padded, near, concentrated,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EIGHTS: tl.constexpr,
    PRECISION: tl.constexpr, DESCRIBED: tl.constexpr,
):  # fmt: skip
    """Row tiles of BM against column tiles of BN, all inside one cluster each; each pair of rows once.

    Against the pieces of the own row tile only the row sums are taken. A tile with pairs too close for
    the algebra adds nothing, and is listed for `close_pairs`.
    """
    program, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i, j, start_i, stop_i, start_j, stop_j = tile_place(program, tiles, n_tiles, BM, BN, GROUP)
    if start_j >= stop_j:
        return
    row_cluster, other = tl.load(tiles + 2 * n_tiles + i), tl.load(tiles + 2 * n_tiles + j)
    A, B = batch * F + row_cluster, batch * F + other  # a large cluster is its own frame
    row_i, row_j = batch * n_padded + start_i, batch * n_padded + start_j
    if DESCRIBED:
        at_i, at_j = row_i.to(tl.int32), row_j.to(tl.int32)
        if EIGHTS > 0:
            if tl.maximum(tl.load(fourths + A), tl.load(fourths + B)) < concentrated:
                scaled = eights_product(
                    left_wide, right_wide, left_eights, right_eights, at_i, at_j, d_padded, BM, BN, EIGHTS
                )
            else:
                scaled = described_product(left, right, at_i, at_j, d_padded, BM, BN, BK)
        else:
            scaled = described_product(left, right, at_i, at_j, d_padded, BM, BN, BK)
    else:
        scaled = tile_product(left, row_i, row_j, d_padded, BM, BN, BK, PRECISION)
    rows, columns = start_i + tl.arange(0, BM), start_j + tl.arange(0, BN)
    live_rows, live_columns = rows < stop_i, columns < stop_j
    a = tl.load(terms + B * n + rows, mask=live_rows, other=0.0)
    b = tl.load(terms + A * n + columns, mask=live_columns, other=0.0)
    scale = 2 * from_scale(tl.load(peaks + A)) * from_scale(tl.load(peaks + B))
    squared = a[:, None] + b[None, :] - scale * scaled
    edge = (i == j) | (start_i + BM > stop_i) | (start_j + BN > stop_j)
    if edge:
        distinct = live_rows[:, None] & live_columns[None, :] & (rows[:, None] != columns[None, :])
        squared = tl.where(distinct, squared, float("inf"))
    if tl.min(tl.min(squared, 1), 0) < near * (tl.max(tl.abs(a), 0) + tl.max(tl.abs(b), 0)):
        tl.store(listed + tl.atomic_add(n_listed, 1), batch * tl.num_programs(0) + program)
        return
    distances = tl.sqrt(tl.maximum(squared, 0.0))
    if edge:
        distances = tl.where(squared == float("inf"), 0.0, distances)
    to_rows, to_columns = (
        sums + (batch * K + other) * n + rows,
        sums + (batch * K + row_cluster) * n + columns,
    )
    _add(distances, to_rows, to_columns, live_rows, live_columns, i != j)


@kernel
def _add(distances, to_rows, to_columns, live_rows, live_columns, both):
    """Add the row sums of a tile and, if it counts for both sides, its column sums."""
    row_sums = tl.sum(distances, 1).to(to_rows.dtype.element_ty)
    tl.atomic_add(to_rows, row_sums, mask=live_rows, sem="relaxed")
    if both:
        column_sums = tl.sum(distances, 0).to(to_columns.dtype.element_ty)
        tl.atomic_add(to_columns, column_sums, mask=live_columns, sem="relaxed")


@kernel
def close_pairs(
    X, order, largest, tiles, sums, listed, n_listed,
    n_tiles, n_programs, n, K, d,
    BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr, SIDE: tl.constexpr,
):  # fmt: skip
    """Compute the listed tiles of `pure_pairs` in pieces of SIDE × SIDE, by direct difference."""
    down, across = tl.program_id(1) // (BN // SIDE) * SIDE, tl.program_id(1) % (BN // SIDE) * SIDE
    for at in range(tl.program_id(0), tl.load(n_listed), tl.num_programs(0)):
        entry = tl.load(listed + at)
        batch, program = entry // n_programs, (entry % n_programs).to(tl.int32)
        i, j, start_i, stop_i, start_j, stop_j = tile_place(program, tiles, n_tiles, BM, BN, GROUP)
        A, B = batch * K + tl.load(tiles + 2 * n_tiles + i), batch * K + tl.load(tiles + 2 * n_tiles + j)
        rows, columns = start_i + down + tl.arange(0, SIDE), start_j + across + tl.arange(0, SIDE)
        live_rows, live_columns = rows < stop_i, columns < stop_j
        unit = unit_of(largest, batch).to(tl.float32)
        squared = direct(X, order, batch * n, rows, columns, live_rows, live_columns, d, unit)
        distinct = live_rows[:, None] & live_columns[None, :] & (rows[:, None] != columns[None, :])
        distances = tl.sqrt(tl.where(distinct, squared, 0.0))
        _add(distances, sums + B * n + rows, sums + A * n + columns, live_rows, live_columns, i != j)


@kernel
def mixed_pairs(
    parts, terms, peaks, X, order, codes, largest, tiles, sums,
    n_pure, n_tiles, n, n_padded, K, F, d, d_padded, near,
    BLOCK: tl.constexpr, BK: tl.constexpr, LABELS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Every tile with several clusters against every tile before it and itself, pure ones first."""
    batch = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0)
    n_mixed = n_tiles - n_pure
    i, j = index // n_mixed, n_pure + index % n_mixed
    if i >= n_pure:
        first, second = triangle(index - n_pure * n_mixed)
        i, j = n_pure + first, n_pure + second
    start_i, stop_i = tl.load(tiles + i), tl.load(tiles + n_tiles + i)
    start_j, stop_j = tl.load(tiles + j), tl.load(tiles + n_tiles + j)
    if (start_i >= stop_i) | (start_j >= stop_j):
        return
    distances = mixed_distances(
        parts, terms, peaks, X, order, codes, largest, batch,
        start_i, stop_i, start_j, stop_j, n, n_padded, F, d, d_padded, near, BLOCK, BK, PRECISION,
    )  # fmt: skip
    _add_by_label(tl.trans(distances), codes, tiles, sums, batch, j, i, n_tiles, n, K, BLOCK, LABELS)
    if i != j:
        _add_by_label(distances, codes, tiles, sums, batch, i, j, n_tiles, n, K, BLOCK, LABELS)


@kernel
def _add_by_label(
    distances, codes, tiles, sums, batch, i, j, n_tiles, n, K, BLOCK: tl.constexpr, LABELS: tl.constexpr
):
    """Add to the rows of tile j their summed distances to the clusters of tile i."""
    total, place, mask = _label_sums(distances, codes, tiles, batch, i, j, n_tiles, n, K, BLOCK, LABELS)
    tl.atomic_add(sums + place, total.to(sums.dtype.element_ty), mask=mask, sem="relaxed")


@kernel
def _label_sums(
    distances, codes, tiles, batch, i, j, n_tiles, n, K, BLOCK: tl.constexpr, LABELS: tl.constexpr
):
    """Return summed distances of tile j's rows to tile i's clusters, their places, and which exist."""
    start_i, stop_i = tl.load(tiles + i), tl.load(tiles + n_tiles + i)
    start_j, stop_j = tl.load(tiles + j), tl.load(tiles + n_tiles + j)
    first, last = tl.load(tiles + 2 * n_tiles + i), tl.load(tiles + 3 * n_tiles + i)
    rows, columns = start_i + tl.arange(0, BLOCK), start_j + tl.arange(0, BLOCK)
    labels = tl.load(codes + rows, mask=rows < stop_i, other=-1) - first
    clusters = first + tl.arange(0, LABELS)
    place = (batch * K + clusters)[None, :] * n + columns[:, None]
    mask = (columns < stop_j)[:, None] & (clusters <= last)[None, :]
    return _by_label(distances, labels, LABELS), place, mask


@kernel
def rows_in_order(
    parts, terms, peaks, X, order, codes, largest, tiles, groups, sums,
    n_tiles, n, n_padded, K, F, d, d_padded, near,
    BLOCK: tl.constexpr, BK: tl.constexpr, LABELS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of rows against one group of tiles in order: the same sums every time, at twice the work.

    A group is a large cluster, or one tile of small ones. A small cluster lies in two of those at most, so
    that a sum has two parts, which may come in any order.
    """
    batch = tl.program_id(2).to(tl.int64)
    j, group = tl.program_id(0), tl.program_id(1)
    first, last = tl.load(groups + group), tl.load(groups + tl.num_programs(1) + group)
    start_j, stop_j = tl.load(tiles + j), tl.load(tiles + n_tiles + j)
    total = tl.zeros([BLOCK, LABELS], sums.dtype.element_ty)
    for i in range(first, last):
        start_i, stop_i = tl.load(tiles + i), tl.load(tiles + n_tiles + i)
        distances = mixed_distances(
            parts, terms, peaks, X, order, codes, largest, batch,
            start_i, stop_i, start_j, stop_j, n, n_padded, F, d, d_padded, near, BLOCK, BK, PRECISION,
        )  # fmt: skip
        part, _, _ = _label_sums(distances, codes, tiles, batch, i, j, n_tiles, n, K, BLOCK, LABELS)
        total += part.to(sums.dtype.element_ty)
    columns = start_j + tl.arange(0, BLOCK)
    low, high = tl.load(tiles + 2 * n_tiles + first), tl.load(tiles + 3 * n_tiles + first)
    clusters = low + tl.arange(0, LABELS)
    place = (batch * K + clusters)[None, :] * n + columns[:, None]
    mask = (columns < stop_j)[:, None] & (clusters <= high)[None, :]
    tl.atomic_add(sums + place, total, mask=mask, sem="relaxed")
