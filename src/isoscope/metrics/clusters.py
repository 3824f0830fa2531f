"""How well labels describe clusters, by their means and extremes: Calinski–Harabasz, Davies–Bouldin, Dunn."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, scalar
from isoscope.errors import UndefinedError
from isoscope.kernels.tiles import Arranged, Progress, Tile
from isoscope.labels import as_clusters
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.space import known_rows
from isoscope.statistics.centroids import CentroidDistances
from isoscope.statistics.groups import GroupMoments

_COINCIDE = 1e-14  # means nearer than this share of the spreads about them differ by rounding
_CLUSTERS_AT_ONCE = 1024  # rows of the (K, K) table of gaps between means held at once


_metric = family("clusters", range=(0.0, math.inf), high="well clustered", invariances=ALL_INVARIANCES)


@_metric(
    name="calinski_harabasz",  # the function has scikit-learn's name
    needs=("label_moments",),
    differentiable=True,
    paper="Caliński, Harabasz 1974, A dendrite method for cluster analysis",
    sentence="labels differ {value:.3g} times as much as chance would have it (1 is chance)",
)
def calinski_harabasz_score(X: Any, labels: Any = None) -> Any:
    """Spread between clusters over spread within them, each per degree of freedom.

        (tr B/(K−1))/(tr W/(n−K))

    Range [0, ∞); high is well clustered. Invariant to rotation, translation and scale.
    Paper: Caliński and Harabasz 1974.

    >>> calinski_harabasz_score([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1])
    32.0
    """
    moments = _label_moments(X, labels)
    within = moments.within.sum()
    if not within > 0:
        raise UndefinedError("calinski_harabasz_score is undefined: every cluster has collapsed to a point")
    moments.check_scale()
    n, K = moments.count, len(moments.names)
    if not n > K:
        raise UndefinedError(
            f"calinski_harabasz_score needs more vectors than labels; weights add up to {n:g} for {K} labels"
        )
    return scalar(moments.between_trace / (K - 1) / (within / (n - K)))


@_metric(
    name="davies_bouldin",  # the function has scikit-learn's name
    needs=("label_distances",),
    high="badly clustered",
    paper="Davies, Bouldin 1979, A cluster separation measure",
    sentence="the closest labels' spreads add up to {value:.2g} times the gap between their means",
)
def davies_bouldin_score(X: Any, labels: Any = None) -> float:
    """Mean over clusters of the worst ratio of spreads to the distance of the means.

        mean_k max_{l≠k} (σ_k + σ_l)/‖μ_k − μ_l‖,   σ the mean distance to the cluster's mean

    Range [0, ∞); low is well clustered. Invariant to rotation, translation and scale. Clusters whose
    means coincide are passed over, as in scikit-learn. Paper: Davies and Bouldin 1979.

    >>> davies_bouldin_score([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1])
    0.25
    """
    distances = X if isinstance(X, CentroidDistances) else _label_distances(X, labels)
    distances.moments.check_scale()
    spread = distances.distance_sums / distances.moments.counts
    means = distances.moments.about[1]
    worst = []
    for some in torch.arange(len(means), device=means.device).split(_CLUSTERS_AT_ONCE):
        gaps = torch.cdist(means[some], means, compute_mode="donot_use_mm_for_euclid_dist")
        spreads = spread[some, None] + spread
        gaps = torch.where(gaps > _COINCIDE * spreads, gaps, torch.inf)
        worst.append((spreads / gaps).amax(dim=1))
    return float(torch.cat(worst).mean())


@_metric(
    needs=("vectors", "labels"),
    call=lambda metric, shelf: metric(shelf.vectors, shelf.labels, progress=shelf.progress),
    paper="Dunn 1974, Well-separated clusters and optimal fuzzy partitions",
    sentence="the narrowest gap between labels is {value:.2g} of the widest label",
    default=False,
)
def dunn_index(X: Any, labels: Any = None, *, progress: Progress | None = None) -> float:
    """Smallest distance between clusters over the largest distance within one.

        min_{l(i)≠l(j)} ‖x_i − x_j‖ / max_{l(i)=l(j)} ‖x_i − x_j‖

    Range [0, ∞); high is well clustered; one stray point decides it. Exact over all pairs, tile by
    tile. Invariant to rotation, translation and scale. Paper: Dunn 1974.

    >>> round(dunn_index([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1]), 9)
    3.0
    """
    matrix = as_matrix(X)
    arranged = Arranged.of(
        matrix, as_clusters(known_rows(X, labels, "labels"), n=matrix.shape[0]).to(matrix.device)
    )

    def extremes(rows: Tile, columns: Tile, tile: Tensor) -> tuple[float, float]:
        same = arranged.codes[rows.rows, None] == arranged.codes[columns.rows]
        return float(torch.where(same, tile, 0.0).max()), float(torch.where(same, torch.inf, tile).min())

    found = [pair for _, _, pair in arranged.reduced(extremes, progress=progress)]
    diameter, gap = max(within for within, _ in found), min(between for _, between in found)
    if diameter == 0:
        raise UndefinedError("dunn_index is undefined: every cluster has collapsed to a point")
    return math.sqrt(gap / diameter)


def _label_moments(X: Any, labels: Any) -> GroupMoments:
    if isinstance(X, GroupMoments):
        return X
    matrix = as_matrix(X)
    return GroupMoments.of(matrix, as_clusters(known_rows(X, labels, "labels"), n=matrix.shape[0]))


def _label_distances(X: Any, labels: Any) -> CentroidDistances:
    matrix = as_matrix(X)
    clusters = as_clusters(known_rows(X, labels, "labels"), n=matrix.shape[0])
    return CentroidDistances.of(matrix, clusters, GroupMoments.of(matrix, clusters))
