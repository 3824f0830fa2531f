"""The objectives of Mickus, Grönroos and Attieh 2024, each as the paper writes it, in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, scalar
from isoscope.errors import ShapeError
from isoscope.labels import as_clusters
from isoscope.metrics.registry import family
from isoscope.space import known_rows
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments

_BLOCK_NUMBERS = 2**20  # distances held at once: 8 MiB of float64


_metric = family(
    "objectives",
    invariances=("rotation", "translation"),
    differentiable=True,
    paper="Mickus, Grönroos, Attieh 2024, Isotropy, Clusters, and Classifiers",
    default=False,
)


@_metric(
    needs=("label_moments",),
    high="labels are compact and apart",
    better="high",
    sentence="squared distances between labels exceed those within by {value:.4g} in all",
)
def silhouette_objective(X: Any, labels: Any = None) -> Any:
    """Compute O_S, equation 1: squared distances between labels less squared distances within them.

        Σ_{x,x'} sign(ℓ(x), ℓ(x'))·‖x − x'‖²,   sign −1 for one label, +1 for two
        = 2n·(tr W + tr B) − 4 Σ_k n_k·w_k,   w_k the squared distances to the mean of label k

    in one pass, about each label's mean, so that offsets and collapsed labels keep their digits.
    Unbounded; high means that labels are compact and apart. Invariant to rotation and translation.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or GroupMoments of the labels.
        labels: one label for each vector, where X does not carry it.

    >>> silhouette_objective([[0.0], [1.0], [3.0]], ["a", "a", "b"])
    24.0
    """
    groups = GroupMoments.by("labels", X, labels)
    groups.check_scale()
    total = groups.within.sum() + groups.between_trace
    return scalar(2 * groups.count * total - 4 * (groups.counts @ groups.within))


@_metric(
    needs=("moments",),
    range=(0.0, math.inf),
    high="points are spread out",
    sentence="all squared distances add up to {value:.4g}",
)
def isotropy_objective(X: Any) -> Any:
    """Compute O_I, the right side of equation 2: the sum of all squared distances.

        Σ_{x,x'} ‖x − x'‖² = 2n·Σ ‖x − x̄‖²

    The paper reaches it from the cosine between the variances and the all-ones vector by dropping a
    norm; what it keeps is the total variance, so it grows with scale where IsoScore does not.
    Range [0, ∞); high means spread out. Invariant to rotation and translation.

    >>> isotropy_objective([[0.0], [1.0], [3.0]])
    28.0
    """
    moments = Moments.of(X)
    moments.check_scale()
    return scalar(2 * moments.count * moments.trace)


def classifier_objective(X: Any, labels: Any = None, *, classes: Any) -> Any:
    """Compute O_C, the first form of equation 3: scores of the right classes less those of the others.

        −Σ_x Σ_ω sign(ω, ℓ(x))·⟨x, c_ω⟩

    Unbounded; high means that points align with the vector of their own class. Invariant to a rotation
    of X and classes together.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or GroupMoments of the labels.
        labels: one label for each vector, where X does not carry it.
        classes: (K, d) vectors of the classes, in the order of the sorted label names.

    >>> classifier_objective([[1.0, 0.0], [0.0, 2.0]], ["a", "b"], classes=[[1.0, 0.0], [0.0, 1.0]])
    3.0
    """
    groups = GroupMoments.by("labels", X, labels)
    C = _class_vectors(classes, groups)
    margins = (groups.means * (2 * C - C.sum(dim=0))).sum(dim=1)
    return scalar(groups.counts @ margins)


def classifier_objective_expansion(X: Any, labels: Any = None, *, classes: Any) -> Any:
    """Compute O_C, the second form of equation 3: norms, and squared distances to the class vectors.

        −(K − 2)/2·Σ_x ‖x‖² − Σ_ω (n − 2n_ω)/2·‖c_ω‖² + ½ Σ_x Σ_ω sign(ω, ℓ(x))·‖x − c_ω‖²

    Equal to `classifier_objective`, with the same arguments; its last sum is what ties classifiers to
    clusters. Far from the origin the norms cancel against the distances: prefer the first form there.

    >>> classes = [[1.0, 0.0], [0.0, 1.0]]
    >>> round(classifier_objective_expansion([[1.0, 0.0], [0.0, 2.0]], ["a", "b"], classes=classes), 9)
    3.0
    """
    groups = GroupMoments.by("labels", X, labels)
    C = _class_vectors(classes, groups)
    n, n_k, K = groups.count, groups.counts, len(C)
    x_squares = groups.within.sum() + n_k @ (groups.means * groups.means).sum(dim=1)
    class_squares = (C * C).sum(dim=1)
    squared_distances = (
        groups.within[:, None] + n_k[:, None] * _distances(groups.means, C) ** 2
    )  # Σ over x in k
    signed = squared_distances.sum() - 2 * squared_distances.diagonal().sum()
    return scalar(-(K - 2) / 2 * x_squares - (n - 2 * n_k) @ class_squares / 2 + signed / 2)


def triplet_objective(X: Any, labels: Any = None) -> Any:
    """Compute O_T, equation 5: minus the triplet loss with no margin, over all triplets.

        Σ over anchors a, p of the same label, q of another:  −max(‖a − p‖ − ‖a − q‖, 0)

    Exact in O(n²(d + log n)): for each anchor the distances to other labels are sorted once, and every
    p finds its losses in their running sums. Range (−∞, 0]; 0 means that every point is nearer to all of
    its own label than to any other. Invariant to rotation and translation.

    >>> triplet_objective([[0.0], [4.0], [1.0]], ["a", "a", "b"])  # anchors 0 and 4: −(4 − 1) − (4 − 3)
    -4.0
    """
    objective: Tensor | float = 0.0
    for own, others, _ in _anchor_distances(X, labels):
        objective = objective - triplet_excess(own, others)[0].clamp(min=0).sum()
    return scalar(objective)


def triplet_excess(bounds: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return (b, k) Σ_q max(bound − ‖a − q‖, 0) for each bound of an anchor a, and how many q lie within it.

    By running sums over the sorted (b, m) distances to others.
    """
    ordered = others.sort(dim=1).values
    nearer = torch.searchsorted(ordered.detach(), bounds.detach().contiguous())
    sums = torch.nn.functional.pad(ordered.cumsum(dim=1), (1, 0)).gather(1, nearer)
    return nearer * bounds - sums, nearer


def triplet_bound(X: Any, labels: Any = None) -> Any:
    """Compute the right side of equation 5: an upper bound of O_T without the maximum.

        Σ_{x,x'} sign_wgt·‖x − x'‖,   sign_wgt n_k − n for one label, n_k − 1 for two (k the label of x)

    Equal to O_T where every triplet is violated. Invariant to rotation and translation. The paper adds
    that it bounds O_S of equation 1 too; with squared distances there and plain ones here, that cannot
    hold at every scale.

    >>> triplet_bound([[0.0], [4.0], [1.0]], ["a", "a", "b"])
    -4.0
    """
    n = as_matrix(X, apart=labels).shape[0]
    bound: Tensor | float = 0.0
    for own, others, n_k in _anchor_distances(X, labels):
        bound = bound + (n_k - n) * own.sum() + (n_k - 1) * others.sum()
    return scalar(bound)


def _class_vectors(classes: Any, groups: GroupMoments) -> Tensor:
    C = as_matrix(classes, name="classes").double().to(groups.means.device)
    if C.shape != groups.means.shape:
        raise ShapeError(
            f"has shape {tuple(C.shape)}",
            argument="classes",
            wanted=f"{tuple(groups.means.shape)}, one vector for each of {len(groups.names)} sorted labels",
        )
    return C


def _anchor_distances(X: Any, labels: Any) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Yield blocks of anchors of one label: distances to it (b, n_k), to the rest (b, n − n_k), and n_k."""
    matrix = as_matrix(X, apart=labels)
    coded = as_clusters(known_rows(X, labels, "labels"), n=matrix.shape[0]).to(matrix.device)
    points = matrix[torch.argsort(coded.codes, stable=True)].double()
    n_rows = max(1, _BLOCK_NUMBERS // len(points))
    start = 0
    for n_k in coded.counts.tolist():
        stop = start + n_k
        for row in range(start, stop, n_rows):
            D = _distances(points[row : min(row + n_rows, stop)], points)
            yield D[:, start:stop], torch.cat([D[:, :start], D[:, stop:]], dim=1), n_k
        start = stop


def _distances(A: Tensor, B: Tensor) -> Tensor:
    """Return (a, b) Euclidean distances by differences, exact also for close points far from the origin."""
    return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist")
