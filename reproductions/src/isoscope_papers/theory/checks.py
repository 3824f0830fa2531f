"""Whether what is said of each statement of Mickus et al. 2024 is so, on a random case."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from isoscope.metrics.clusters import calinski_harabasz_score, davies_bouldin_score, dunn_index
from isoscope.metrics.frontier import isotropy_ceiling, scatter_decomposition
from isoscope.metrics.frontier_space import frontier_space
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.objectives import (
    classifier_objective,
    classifier_objective_expansion,
    isotropy_objective,
    silhouette_objective,
    triplet_objective,
)
from isoscope.metrics.objectives import (
    triplet_bound as bound_of,
)
from isoscope.metrics.silhouette import silhouette_score
from isoscope_papers.theory.counterexamples import (
    accuracy_of_least_squares,
    cosine_to_ones,
    crowd,
    signed_distances,
    variances,
)

Rng = np.random.Generator


def _labels(rng: Rng, *, n_labels: int | None = None, least: int = 1) -> np.ndarray:
    K = n_labels or int(rng.integers(2, 6))
    return np.repeat(np.arange(K), rng.integers(least, 5, size=K))


def _space(rng: Rng, n: int, *, least_dims: int = 1) -> np.ndarray:
    d = int(rng.integers(least_dims, 7))
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 3, size=d)


def _case(rng: Rng, *, least: int = 1, least_dims: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and labels of which one has two points at least, so that clusters can be spoken of."""
    labels = _labels(rng, least=least)
    labels = np.append(labels, labels[-1])
    return _space(rng, len(labels), least_dims=least_dims), labels


def _collapsed(rng: Rng, labels: np.ndarray, d: int) -> np.ndarray:
    return rng.normal(size=(labels.max() + 1, d))[labels]


def _spread(X: np.ndarray) -> float:
    return float(((X - X.mean(axis=0)) ** 2).sum())


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def _same(labels: np.ndarray) -> np.ndarray:
    return labels[:, None] == labels[None]


def silhouette_needs(rng: Rng) -> bool:
    """Collapsed labels have silhouette 1 at any distance; labels that are not collapsed have less."""
    X, labels = _case(rng, least=2)
    collapsed = _collapsed(rng, labels, X.shape[1]) * 10 ** rng.uniform(-3, 3)
    return silhouette_score(collapsed, labels) == 1 and silhouette_score(X, labels) < 1


def square_root(rng: Rng) -> bool:
    """O_S ≤ 2n·tr A, attained by collapsed labels; for two, the sum of distances has that optimum too."""
    X, labels = _case(rng)
    n, collapsed = len(X), _collapsed(rng, labels, X.shape[1])
    first = silhouette_objective(X, labels) <= 2 * n * _spread(X) * (1 + 1e-9)
    attained = _close(silhouette_objective(collapsed, labels), 2 * n * _spread(collapsed))
    two = _labels(rng, n_labels=2)
    Y, both = _space(rng, len(two)), _collapsed(rng, two, 3)
    pairs = math.prod(np.bincount(two).tolist())
    largest = [2 * math.sqrt(pairs * len(two) * _spread(space)) for space in (Y, both)]
    second = signed_distances(Y, two) <= largest[0] * (1 + 1e-9)
    return first and attained and second and _close(signed_distances(both, two), largest[1])


def objective_s(rng: Rng) -> bool:
    """The double sum, and the closed form."""
    X, labels = _case(rng)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    direct = float((np.where(_same(labels), -1, 1) * squared).sum())
    return _close(silhouette_objective(X, labels), direct)


def pairwise_variance(rng: Rng) -> bool:
    """By component."""
    X, _ = _case(rng)
    by_pairs = ((X[:, None] - X[None]) ** 2).sum(axis=(0, 1)) / (2 * len(X) ** 2)
    return bool(np.allclose(by_pairs, X.var(axis=0), rtol=1e-9))


def chord(rng: Rng) -> bool:
    """Both forms, from the principal variances."""
    X, _ = _case(rng, least_dims=2)
    v = variances(X)
    d = len(v)
    distance = float(np.linalg.norm(math.sqrt(d) / np.linalg.norm(v) * v - 1))
    alpha = math.acos(min(1.0, cosine_to_ones(X)))
    halves = distance**2 / (4 * d) - 1, -(math.cos(alpha / 2) ** 2)
    # the arc cosine has half its digits near 1
    return abs(distance - 2 * math.sqrt(d) * math.sin(alpha / 2)) < 1e-7 and _close(*halves)


def angle(rng: Rng) -> bool:
    """0 ≤ α ≤ arccos(1/√d), the upper end met by points on a line."""
    X, _ = _case(rng, least_dims=2)
    d = X.shape[1]
    line = np.outer(rng.normal(size=4), rng.normal(size=d))
    largest = math.acos(1 / math.sqrt(d))
    found = math.acos(min(1.0, cosine_to_ones(X)))
    return 0 <= found <= largest + 1e-9 and abs(math.acos(cosine_to_ones(line)) - largest) < 1e-6


def cosine(rng: Rng) -> bool:
    """IsoScore from the cosine."""
    X, _ = _case(rng, least_dims=2)
    d = X.shape[1]
    return _close(isoscore(X), (d * cosine_to_ones(X) ** 2 - 1) / (d - 1))


def objective_i(rng: Rng) -> bool:
    """The sum is 2n²√d·‖V‖·cos."""
    X, _ = _case(rng)
    n, d = X.shape
    factor = 2 * n * n * math.sqrt(d) * float(np.linalg.norm(variances(X)))
    return _close(isotropy_objective(X) / factor, cosine_to_ones(X))


def incompatible(rng: Rng) -> bool:
    """K ≤ d: collapsed labels stay under (K − 2)/(d − 1) < 1; K ≥ d + 1: both are had at once."""
    d = int(rng.integers(2, 6))
    few, many = int(rng.integers(2, d + 1)), int(rng.integers(d + 1, d + 4))
    labels = _labels(rng, n_labels=few)
    under = isoscore(_collapsed(rng, labels, d)) <= (few - 2) / (d - 1) + 1e-9
    simplex = frontier_space(
        rng.integers(2, 5, size=many).tolist(), d, between=1.0, seed=int(rng.integers(99))
    )
    assert simplex.labels is not None
    together = _close(isoscore(simplex), 1) and silhouette_score(simplex.vectors, simplex.labels) > 1 - 1e-6
    return under and isotropy_ceiling(few, d) < 1 and together


def clusters(rng: Rng) -> bool:
    """One label in one place inside another: IsoScore 1, the mean silhouette (m − 2d·s)/(m + 2d), ρ = 0."""
    d, m = int(rng.integers(2, 8)), int(rng.integers(2, 400))
    X, labels = crowd(d, m)
    apart = (2 + (2 * d - 2) * math.sqrt(2)) / (2 * d - 1)  # mean distance within the label around
    expected = (m - 2 * d * (apart - 1) / apart) / (m + 2 * d)
    split = scatter_decomposition(X, labels)
    found = silhouette_score(X, labels)
    return _close(split.isoscore, 1) and split.between_share < 1e-20 and abs(found - expected) < 1e-7


def polarisation(rng: Rng) -> bool:
    """Two random vectors."""
    x, c = rng.normal(size=(2, int(rng.integers(1, 9))))
    return _close(float(x @ c), float((x @ x + c @ c - (x - c) @ (x - c)) / 2))


def objective_c(rng: Rng) -> bool:
    """The double sum, and both forms in closed form."""
    X, labels = _case(rng)
    C = rng.normal(size=(labels.max() + 1, X.shape[1]))
    signs = np.where(np.arange(len(C)) == labels[:, None], -1, 1)
    direct = -float((signs * (X @ C.T)).sum())
    forms = (classifier_objective, classifier_objective_expansion)
    return all(_close(form(X, labels, classes=C), direct) for form in forms)


def priors(rng: Rng) -> bool:
    """Balanced, binary: only the distances are left."""
    labels = np.arange(2 * int(rng.integers(1, 6))) % 2
    X = _space(rng, len(labels))
    C = rng.normal(size=(2, X.shape[1]))
    squared = ((X[:, None] - C[None]) ** 2).sum(axis=2)
    left = float((np.where(np.arange(2) == labels[:, None], -1, 1) * squared).sum()) / 2
    return _close(classifier_objective(X, labels, classes=C), left)


def prior_norms(rng: Rng) -> bool:
    """O_C is linear in each class vector: no length between none and the longest is best."""
    X, labels = _case(rng)
    C = rng.normal(size=(labels.max() + 1, X.shape[1]))
    k, t = int(rng.integers(len(C))), rng.uniform(0.1, 9)
    none, longer = C.copy(), C.copy()
    none[k], longer[k] = 0, t * C[k]
    without, with_it, with_more = (_value(X, labels, classes) for classes in (none, C, longer))
    return _close(with_more - without, t * (with_it - without))


def _best_points(C: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The points of the unit ball with the largest O_C for these class vectors: one direction a label."""
    margins = 2 * C - C.sum(axis=0)
    return (margins / np.linalg.norm(margins, axis=1, keepdims=True))[labels]


def _climbed(C: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Class vectors after points and they were set to their best in turn, which never lowers O_C."""
    members = np.eye(len(C))[:, labels]
    for _ in range(30):
        X = _best_points(C, labels)
        C = 2 * members @ X - X.sum(axis=0)
        C /= np.linalg.norm(C, axis=1, keepdims=True)
    return C


def collapse(rng: Rng) -> bool:
    """Within unit balls: given C, one direction a label is best; over C, the maximum is n·max(2, K − 2).

    And for 4m, m and m points of three labels it is 14m, with two labels in one place.
    """
    K, d, each = int(rng.integers(2, 8)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    labels = np.repeat(np.arange(K), each)
    C = rng.normal(size=(K, d))
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    others = rng.normal(size=(len(labels), d))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    best = _value(_best_points(C, labels), labels, C)
    largest = len(labels) * max(2, K - 2)
    one_place = np.tile(C[:1], (K, 1))
    balanced = _zero_sum(K, d)
    reached = {
        "apart": _value(_best_points(balanced, labels), labels, balanced),
        "together": _value(-one_place[labels], labels, one_place),
    }
    uneven = np.repeat([0, 1, 2], np.array([4, 1, 1]) * each)
    three, pair = C[[0, 1, min(2, K - 1)]], C[0] * np.array([[1.0], [-1], [-1]])
    three = _climbed(three, uneven)
    at_most = _value(_best_points(three, uneven), uneven, three) <= 14 * each + 1e-9
    top = _climbed(C, labels)
    at_most &= _value(_best_points(top, labels), labels, top) <= largest + 1e-9
    return (
        at_most
        and _close(_value(_best_points(pair, uneven), uneven, pair), 14 * each)
        and _value(others, labels, C) <= best + 1e-9
        and _close(reached["apart"], 2 * len(labels))
        and _close(reached["together"], (K - 2) * len(labels))
    )


def _value(X: np.ndarray, labels: np.ndarray, C: np.ndarray) -> float:
    return float(classifier_objective(X, labels, classes=C))


def _zero_sum(K: int, d: int) -> np.ndarray:
    """K unit vectors in d ≥ 2 dimensions that add up to nothing."""
    turns = 2 * np.pi * np.arange(K) / K
    return np.column_stack([np.cos(turns), np.sin(turns), np.zeros((K, d - 2))])


def classifiers(rng: Rng) -> bool:
    """Labels collapsed to a simplex have its IsoScore; d + 1 points that are one are told apart at 1."""
    d = int(rng.integers(2, 7))
    K = int(rng.integers(2, d + 2))
    seed = int(rng.integers(99))
    split = scatter_decomposition(frontier_space([3] * K, d, between=1.0, seed=seed))
    corners = frontier_space([1] * (d + 1), d, between=1.0, seed=seed).vectors.numpy()
    labels = rng.integers(0, 2, size=d + 1)
    told = accuracy_of_least_squares(corners, labels) == 1
    return told and _close(isoscore(corners), 1) and _close(split.isoscore, min(1.0, (K - 2) / (d - 1)))


def triplet_terms(rng: Rng) -> bool:
    """One random triplet."""
    a, p, q = rng.normal(size=(3, 4))
    near, far = float(np.linalg.norm(a - p)), float(np.linalg.norm(a - q))
    loss = max(near - far, 0)
    return _close(loss, max(near, far) - far) and loss >= near - far


def objective_t(rng: Rng) -> bool:
    """O_T ≤ bound, and the bound's weights from counting triplets."""
    X, labels = _case(rng)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    counted = sum(
        D[a, q] - D[a, p]
        for a, p, q in product(range(len(X)), repeat=3)
        if a != p and labels[a] == labels[p] != labels[q]
    )
    bound: Any = bound_of(X, labels)
    return _close(bound, float(counted)) and triplet_objective(X, labels) <= bound + 1e-9


def triplet_bound(rng: Rng) -> bool:
    """O_S outgrows the bound at some scale, wherever it is positive."""
    X, labels = _case(rng)
    X = _collapsed(rng, labels, X.shape[1])
    scale = 1 + 2 * abs(bound_of(X, labels)) / silhouette_objective(X, labels)
    return bool(silhouette_objective(X * scale, labels) > bound_of(X * scale, labels))


def triplets_free(rng: Rng) -> bool:
    """O_T = 0 and IsoScore 1: a square under two labels, a simplex under d + 1."""
    square = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    d = int(rng.integers(2, 6))
    simplex = frontier_space([2] * (d + 1), d, between=1.0, seed=int(rng.integers(99)))
    cases = [(square, np.array([0, 0, 1, 1])), (simplex.vectors.numpy(), np.repeat(np.arange(d + 1), 2))]
    return all(_close(isoscore(X), 1) and _close(triplet_objective(X, labels), 0) for X, labels in cases)


def other_scores(rng: Rng) -> bool:
    """Labels shrunk towards places of their own: all four go to their best; sharing one: not all do."""
    X, labels = _case(rng, least=2, least_dims=2)
    K = labels.max() + 1
    labels = np.append(labels, [K, K])  # three labels at least, so that two can share a place
    X = np.vstack([X, rng.normal(size=(2, X.shape[1]))])
    places = 10 * np.column_stack([np.arange(K + 1), *(rng.normal(size=(X.shape[1] - 1, K + 1)))])
    tight = places[labels] + 1e-6 * X
    places[1] = places[0]
    shared = places[labels] + 1e-6 * X
    apart = (
        silhouette_score(tight, labels) > 1 - 1e-4
        and davies_bouldin_score(tight, labels) < 1e-4
        and dunn_index(tight, labels) > 1e4
        and calinski_harabasz_score(tight, labels) > 1e8
    )
    together = (
        silhouette_score(shared, labels) < 1 - 1e-3
        and davies_bouldin_score(shared, labels) > 1e-2
        and dunn_index(shared, labels) < 1e2
        and calinski_harabasz_score(shared, labels) > 1e8
    )
    return bool(apart and together)
