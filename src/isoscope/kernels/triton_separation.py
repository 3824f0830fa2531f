# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""From summed distances to the own and the nearest other cluster of every point, in one launch."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import ClusterPlan
from isoscope.kernels.triton_clusters import default_precision, pair_sums
from isoscope.kernels.triton_residuals import kernel, prepare, tl, triton

_ROWS, _CLUSTERS = 64, 16  # of a tile of sums


def cluster_separation(
    X: Tensor, plan: ClusterPlan, *, deterministic: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return each point's mean distance to its own cluster, to the nearest other one, which that is, and
    the mean silhouette.

    Args:
        X: (B, n, d) float32, float16 or bfloat16, on a CUDA device.
        plan: of the labels that the B spaces share.
        deterministic: the same bits every time, at twice the work or more.

    Returns:
        (B, n) float64, float64 and int64, in the order of X, and (B,) float64. Nothing waits for the device.
    """
    precision = default_precision(X)
    prepared = prepare(X, plan, precision=precision)
    sums = pair_sums(prepared, plan, precision=precision, deterministic=deterministic)
    B, K, n = sums.shape
    means = sums.new_empty(2, B, n, dtype=torch.float64)
    nearest = sums.new_empty(B, n, dtype=torch.int64)
    n_programs = triton.cdiv(n, _ROWS)
    scores = sums.new_empty(B, n_programs, dtype=torch.float64)
    nearest_clusters[n_programs, B](
        sums, plan.codes, plan.order, plan.counts, plan.origin, prepared.largest, means, nearest, scores,
        n_programs, B * n, n, K, ROWS=_ROWS, CLUSTERS=_CLUSTERS,
    )  # fmt: skip
    return means[0], means[1], nearest, scores.sum(dim=1) / n


@kernel
def nearest_clusters(
    sums, codes, order, counts, origin, largest, means, nearest, scores, n_programs, n_all, n, K,
    ROWS: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """Means of a tile of sorted rows over their own and the nearest other cluster, in the caller's order.

    `scores` takes the tile's sum of silhouettes; points that are alone in their cluster score 0.
    """
    batch = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n
    row_codes = tl.load(codes + rows, mask=live, other=0)
    total = tl.zeros([ROWS], tl.float64)
    least = tl.full([ROWS], float("inf"), tl.float64)
    at = tl.zeros([ROWS], tl.int32)
    for first in range(0, K, CLUSTERS):
        clusters = first + tl.arange(0, CLUSTERS)
        count = tl.load(counts + clusters, mask=clusters < K, other=0)
        place = (batch * K + clusters)[:, None] * n + rows[None, :]
        part = tl.load(sums + place, mask=(clusters < K)[:, None] & live[None, :], other=0.0).to(tl.float64)
        is_own = clusters[:, None] == row_codes[None, :]
        total += tl.sum(tl.where(is_own, part, 0.0), 0)
        mean = part / tl.maximum(count, 1).to(tl.float64)[:, None]
        mean = tl.where(is_own | (count == 0)[:, None], float("inf"), mean)
        low, place_of_low = tl.min(mean, 0, return_indices=True)
        at = tl.where(low < least, first + place_of_low, at)
        least = tl.minimum(low, least)
    others = tl.load(counts + row_codes, mask=live, other=0) - 1
    unit = tl.load(largest + batch).to(tl.float64)
    place = batch * n + tl.load(order + rows, mask=live, other=0)
    own = total / tl.maximum(others, 1).to(tl.float64) * unit
    least *= unit
    tl.store(means + place, own, mask=live)
    tl.store(means + n_all + place, least, mask=live)
    tl.store(nearest + place, tl.load(origin + at, mask=live, other=0).to(tl.int64), mask=live)
    larger = tl.maximum(own, least)
    counted = live & (others > 0) & (larger > 0)
    score = tl.where(counted, (least - own) / tl.where(counted, larger, 1.0), 0.0)
    tl.store(scores + batch * n_programs + tl.program_id(0), tl.sum(score, 0))
