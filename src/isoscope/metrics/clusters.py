"""How well labels describe clusters: by means and extremes, by nearest neighbours, by a linear classifier."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, scalar
from isoscope.errors import UndefinedError, check_seed, check_whole
from isoscope.kernels.tile_plan import Tile
from isoscope.kernels.tiles import Arranged, Progress
from isoscope.labels import Labels, as_clusters
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.space import known_rows
from isoscope.statistics.centroids import CentroidDistances
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.leave_one_out import jackknife
from isoscope.statistics.neighbors import Neighbors
from isoscope.tables import percent

_COINCIDE = 1e-14  # means nearer than this share of the spreads about them differ by rounding
PURITY_NEIGHBORS = 10
_CLUSTERS_AT_ONCE = 1024  # rows of the (K, K) table of gaps between means held at once


_metric = family(
    "clusters", range=(0.0, math.inf), high="well clustered", better="high", invariances=ALL_INVARIANCES
)


@_metric(
    name="calinski_harabasz",  # the function has scikit-learn's name
    needs=("label_moments",),
    differentiable=True,
    paper="Caliński, Harabasz 1974, A dendrite method for cluster analysis",
    sentence="labels differ {value:.3g} times as much as random labels would",
)
def calinski_harabasz_score(X: Any, labels: Any = None) -> Any:
    """Compute the spread between clusters over the spread within, each per degree of freedom.

        (tr B/(K−1))/(tr W/(n−K))

    Range [0, ∞); high is well clustered. Invariant to rotation, translation and scale.
    Paper: Caliński and Harabasz 1974.

    >>> calinski_harabasz_score([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1])
    32.0
    """
    moments = (X if isinstance(X, GroupMoments) else GroupMoments.of(*clustered(X, labels))).at_hand
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
    better="low",
    paper="Davies, Bouldin 1979, A cluster separation measure",
    sentence="the spreads of the closest labels add up to {value:.2g} times the distance of their means",
)
def davies_bouldin_score(X: Any, labels: Any = None) -> float:
    """Compute the mean over clusters of the worst ratio of spreads to the distance between means.

        mean_k max_{l≠k} (σ_k + σ_l)/‖μ_k − μ_l‖,   σ the mean distance to the cluster's mean

    Range [0, ∞); low is well clustered. Invariant to rotation, translation and scale. Clusters whose
    means coincide are passed over, as in scikit-learn. Paper: Davies and Bouldin 1979.

    >>> davies_bouldin_score([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1])
    0.25
    """
    distances = X
    if not isinstance(X, CentroidDistances):
        matrix, clusters = clustered(X, labels)
        distances = CentroidDistances.of(matrix, clusters, GroupMoments.of(matrix, clusters))
    moments = distances.moments.at_hand
    moments.check_scale()
    spread = distances.distance_sums.to(moments.counts.device) / moments.counts
    means = moments.about[1]
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
    sentence="the smallest distance between labels is {value:.2g} times the largest within a label",
    default=False,
)
def dunn_index(X: Any, labels: Any = None, *, progress: Progress | None = None) -> float:
    """Compute the smallest distance between clusters over the largest distance within one.

        min_{l(i)≠l(j)} ‖x_i − x_j‖ / max_{l(i)=l(j)} ‖x_i − x_j‖

    Range [0, ∞); high is well clustered; one stray point decides it. Exact over all pairs, tile by
    tile. Invariant to rotation, translation and scale. Paper: Dunn 1974.

    >>> round(dunn_index([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1]), 9)
    3.0
    """
    arranged = Arranged.of(*clustered(X, labels))

    def extremes(rows: Tile, columns: Tile, tile: Tensor) -> tuple[float, float]:
        same = arranged.codes[rows.rows, None] == arranged.codes[columns.rows]
        return float(torch.where(same, tile, 0.0).max()), float(torch.where(same, torch.inf, tile).min())

    extreme_pairs = [pair for _, _, pair in arranged.reduced(extremes, progress=progress)]
    diameter, gap = max(within for within, _ in extreme_pairs), min(between for _, between in extreme_pairs)
    if diameter == 0:
        raise UndefinedError("dunn_index is undefined: every cluster has collapsed to a point")
    return math.sqrt(gap / diameter)


@_metric(
    range=(0.0, 1.0),
    needs=("neighbors", "labels"),
    call=lambda metric, shelf: metric(
        shelf.neighbors, shelf.labels, k=min(PURITY_NEIGHBORS, shelf.neighbors.k)
    ),
    high="neighbours share labels",
    paper="nearest-neighbour purity",
    sentence=lambda value: f"{percent(value)} of the nearest neighbours have the same label",
    error=lambda shelf: _purity_error(shelf.neighbors, shelf.labels.codes),
    biased_by_rows=True,
    default=False,
)
def knn_purity(X: Any, labels: Any = None, *, k: int = PURITY_NEIGHBORS) -> float:
    """Compute the mean share of a point's k nearest neighbours that have its label.

    Range [0, 1]; high means labels live in neighbourhoods, even where they are no round clusters. Zero
    vectors are left out. Invariant to rotation, translation and scale.

    >>> knn_purity([[1.0], [2.0], [5.0], [6.0]], labels=[0, 0, 1, 1], k=1)
    1.0
    """
    n = X.distances.shape[0] if isinstance(X, Neighbors) else as_matrix(X, apart=labels).shape[0]
    codes = as_clusters(known_rows(X, labels, "labels"), n=n).codes
    return float(_same_label(Neighbors.of_nonzero(X, k=k), codes).mean())


def _same_label(neighbors: Neighbors, codes: Tensor) -> Tensor:
    """Return 1 for each neighbour that carries the point's label, else 0: (m, k) for points that have any."""
    codes, has_any = codes.to(neighbors.indices.device), neighbors.has_any
    return (codes[neighbors.indices[has_any]] == codes[has_any, None]).double()


def _purity_error(neighbors: Neighbors, codes: Tensor) -> float:
    """Return the standard error by leaving each point out: the next neighbour takes its place."""
    k, has_any = PURITY_NEIGHBORS, neighbors.has_any
    if neighbors.k <= k:
        raise UndefinedError(f"the standard error of knn_purity needs more than {k} neighbours")
    same = _same_label(neighbors.nearest(k + 1), codes)
    change, n = same.new_zeros(len(has_any)), len(same)
    change.index_add_(0, neighbors.indices[has_any, :k].flatten(), (same[:, k:] - same[:, :k]).flatten())
    change, total = change[has_any] - same[:, :k].sum(dim=1), same[:, :k].sum()
    return jackknife(total / (n * k), (total + change) / ((n - 1) * k), n)[0]


@_metric(
    range=(0.0, 1.0),
    needs=("vectors", "labels"),
    call=lambda metric, shelf: metric(shelf.vectors, shelf.labels, seed=shelf.seed),
    high="linearly separable",
    invariances=("translation", "scale"),
    paper="logistic regression, 5-fold cross-validation (scikit-learn)",
    sentence=lambda value: f"a linear classifier finds the label of {percent(value)} of unseen rows",
    default=False,
)
def linear_probe_accuracy(X: Any, labels: Any = None, *, folds: int = 5, seed: int = 0) -> float:
    """Compute the cross-validated accuracy of a logistic regression on standardised vectors.

    Labels are kept in proportion in every fold; labels with fewer members than folds make the folds
    fewer, and labels with a single member are left out. Range [0, 1]; high is linearly separable. Not exactly
    invariant to rotation (the penalty acts on standardised coordinates), invariant to translation
    and scale. Estimator: scikit-learn.

    >>> import numpy as np
    >>> X = np.vstack([np.eye(2)[[0] * 9], np.eye(2)[[1] * 9]])
    >>> linear_probe_accuracy(X, [0] * 9 + [1] * 9)
    1.0
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    check_seed(seed)
    folds = check_whole("folds", folds, least=2)
    matrix, clusters = clustered(X, labels)
    clusters = clusters.to(torch.device("cpu"))
    kept = clusters.counts[clusters.codes] > 1
    codes = clusters.codes[kept]
    if codes.unique().numel() < 2:
        raise UndefinedError("linear_probe_accuracy needs two labels with at least 2 points each")
    vectors = matrix.detach().cpu()[kept].double().numpy()
    folds = min(folds, int(clusters.counts[clusters.counts > 1].min()))
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return float(cross_val_score(probe, vectors, codes.numpy(), cv=split).mean())


def softmax_regression(penalty: float, *, n_labels: int, **options: Any) -> Any:
    """Return scikit-learn's logistic regression, unfitted, that minimises Σ −log softmax(Wx + b)_y + λ‖W‖²/2.

    Of two labels it fits one vector w = W₁ − W₂, for which ‖W‖² = ‖w‖²/2.

    Args:
        penalty: λ.
        n_labels: how many labels it is fitted to.
        options: of `sklearn.linear_model.LogisticRegression`.
    """
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=(2 if n_labels == 2 else 1) / penalty, **options)


def clustered(X: Any, labels: Any) -> tuple[Tensor, Labels]:
    """Return the vectors and their labels, checked to be clusters, on one device."""
    matrix = as_matrix(X, apart=labels)
    return matrix, as_clusters(known_rows(X, labels, "labels"), n=len(matrix)).to(matrix.device)
