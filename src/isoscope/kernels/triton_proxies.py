# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""Root mean square distances of rows to their own and the nearest other cluster on CUDA, in one read."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.triton_residuals import kernel, tl, triton

_ROWS, _CLUSTERS, _DIMS = 128, 128, 64  # of a tile
_SCALE = 64.0  # of coordinates in half precision, whose smallest number is 6e-8
_LARGEST = 60000.0


def mean_square_roots(
    U: Tensor, squares: Tensor, codes: Tensor, centers: Tensor, offsets: Tensor, larger: Tensor
) -> Tensor:
    """Return (2, n) √((‖u‖² + offset − 2 u·center)·larger) of the own cluster, and the least of the others.

    Args:
        U: (n, d) float32 rows; squares: (n,) their squared lengths; codes: (n,) int64, their clusters.
        centers: (K, d) float32; offsets: (K,) float32.
        larger: (K,) float32, by how much the mean square over the other rows of the own cluster is larger.
    """
    U = U if U.stride(1) == 1 else U.contiguous()
    (n, d), K = U.shape, len(centers)
    found = U.new_empty(2, n)
    parts = U.new_empty(2, K, d, dtype=torch.float16)
    wide = (centers * _SCALE).clamp(-_LARGEST, _LARGEST)
    parts[0] = wide
    parts[1] = wide - parts[0]
    walk_clusters[(triton.cdiv(n, _ROWS),)](
        U, squares, codes, parts, offsets, larger, found, n, K, d, U.stride(0), _SCALE, _LARGEST,
        ROWS=_ROWS, CLUSTERS=_CLUSTERS if K > _CLUSTERS // 2 else max(16, triton.next_power_of_2(K)),
        DIMS=_DIMS, num_warps=8,
    )  # fmt: skip
    return found


@kernel
def walk_clusters(
    U, squares, codes, parts, offsets, larger, found, n, K, width, step, scale, most,
    ROWS: tl.constexpr, CLUSTERS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    """Compare a tile of rows with all clusters, by products of half-precision parts that keep 22 bits.

    `width` and `step` are compiled in where they are multiples of 16: rows are then read by 16 bytes.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n
    code = tl.load(codes + rows, mask=live, other=0).to(tl.int32)
    own = tl.zeros([ROWS], tl.float32)
    least = tl.full([ROWS], float("inf"), tl.float32)
    for first in range(0, K, CLUSTERS):
        clusters = first + tl.arange(0, CLUSTERS)
        total = tl.zeros([ROWS, CLUSTERS], tl.float32)
        for begin in range(0, width, DIMS):
            dims = begin + tl.arange(0, DIMS)
            place = rows.to(tl.int64)[:, None] * step + dims[None, :]
            u = tl.load(U + place, mask=live[:, None] & (dims < width)[None, :], other=0.0) * scale
            u = tl.minimum(tl.maximum(u, -most), most)  # rows so far out are alike
            high = u.to(tl.float16)
            low = (u - high.to(tl.float32)).to(tl.float16)
            place = clusters[None, :] * width + dims[:, None]
            inside = (clusters < K)[None, :] & (dims < width)[:, None]
            center_high = tl.load(parts + place, mask=inside, other=0.0)
            center_low = tl.load(parts + K * width + place, mask=inside, other=0.0)
            total = tl.dot(high, center_high, total)
            total = tl.dot(high, center_low, total)
            total = tl.dot(low, center_high, total)
        offset = tl.load(offsets + clusters, mask=clusters < K, other=float("inf"))
        squared = offset[None, :] - (2 / (scale * scale)) * total
        is_own = clusters[None, :] == code[:, None]
        own += tl.sum(tl.where(is_own, squared, 0.0), 1)
        least = tl.minimum(least, tl.min(tl.where(is_own, float("inf"), squared), 1))
    square = tl.load(squares + rows, mask=live, other=0.0)
    own = (own + square) * tl.load(larger + code, mask=live, other=1.0)
    tl.store(found + rows, tl.sqrt(tl.maximum(own, 0.0)), mask=live)
    tl.store(found + n + rows, tl.sqrt(tl.maximum(least + square, 0.0)), mask=live)
