"""Check our assessment of each statement of Mickus et al. 2024 on a random case.

Each check has the name of its statement in statements.toml, which gives the assessment.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import isoscope as iso

Rng = np.random.Generator


def _case(
    rng: Rng, *, n_labels: int | None = None, least: int = 1, least_dims: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors and labels; at least one label has two points, as a silhouette needs."""
    counts = rng.integers(least, 5, size=n_labels or rng.integers(2, 6))
    counts[-1] += 1
    d = rng.integers(least_dims, 7)
    X = rng.normal(size=(counts.sum(), d)) * rng.uniform(0.1, 3, size=d)
    return X, np.repeat(np.arange(len(counts)), counts)


def _collapsed(rng: Rng, labels: np.ndarray, d: int) -> np.ndarray:
    return rng.normal(size=(labels.max() + 1, d))[labels]


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _simplex(rng: Rng, sizes: list[int], d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels collapsed to distinct points of a tight frame, a simplex for K ≤ d + 1."""
    space = iso.metrics.frontier_space(sizes, d, between=1.0, seed=int(rng.integers(99)))
    return space.vectors.numpy(), np.repeat(np.arange(len(sizes)), sizes)


def variances(X: np.ndarray) -> np.ndarray:
    """Return the (d,) principal variances, divisor n."""
    return np.linalg.eigvalsh(np.atleast_2d(np.cov(X.T, bias=True))).clip(min=0)


def cosine_to_ones(X: np.ndarray) -> float:
    """Return cos(1, V(D)) of principal variances."""
    v = variances(X)
    return float(v.sum() / (math.sqrt(len(v)) * np.linalg.norm(v)))


def signed_distances(X: np.ndarray, labels: Any) -> float:
    """Return Σ sign·‖d − d′‖, the objective before squares."""
    return float((_signs(labels, labels) * cdist(X, X)).sum())


def _signs(labels: Any, others: Any) -> np.ndarray:
    """Return −1 where labels agree, 1 where they differ."""
    return np.where(np.asarray(labels)[:, None] == np.asarray(others), -1, 1)


def spread(X: np.ndarray) -> float:
    """Return tr A, the squared distances to the mean."""
    return float(X.var(axis=0).sum() * len(X))


def crowd(n_dims: int, n_inside: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of one label at the origin, of another at ±1 on each axis, and their labels."""
    X = np.vstack([np.zeros((n_inside, n_dims)), np.eye(n_dims), -np.eye(n_dims)])
    return X, np.repeat(["a", "b"], [n_inside, 2 * n_dims])


def accuracy_of_least_squares(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy of the linear classifier fitted to 0 and 1 by least squares."""
    wide = np.column_stack([X, np.ones(len(X))])
    wanted = labels[:, None] == np.unique(labels)
    scores = wide @ np.linalg.lstsq(wide, wanted.astype(float), rcond=None)[0]
    return float(np.mean(wanted[np.arange(len(X)), scores.argmax(axis=1)]))


def isotropy(rng: Rng) -> bool:
    """Check that IsoScore is 1 exactly where the variance is the same in every direction."""
    X, _ = _case(rng, n_labels=5, least=2, least_dims=2)
    even = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0]  # its covariance is proportional to I
    return _close(iso.isoscore(even), 1) and iso.isoscore(X) < 1


def silhouette_needs(rng: Rng) -> bool:
    """Check that only collapsed labels have silhouette 1, at any distance."""
    X, labels = _case(rng, least=2)
    collapsed = _collapsed(rng, labels, X.shape[1]) * 10 ** rng.uniform(-3, 3)
    return iso.silhouette_score(collapsed, labels) == 1 and iso.silhouette_score(X, labels) < 1


def square_root(rng: Rng) -> bool:
    """Check O_S ≤ 2n·tr A, attained by collapsed labels; two also maximise the sum of distances."""
    X, labels = _case(rng, n_labels=int(rng.integers(2, 5)))
    n_across = (labels[:, None] != labels).sum()
    shares = []
    for space in (X, _collapsed(rng, labels, 3)):
        largest = 2 * len(X) * spread(space)
        distances = signed_distances(space, labels) / math.sqrt(n_across * largest)
        shares.append((iso.metrics.silhouette_objective(space, labels) / largest, distances))
    attained = shares[1] if labels.max() == 1 else shares[1][:1]
    return bool(np.max(shares) <= 1 + 1e-9) and all(_close(one, 1) for one in attained)


def objective_s(rng: Rng) -> bool:
    """Check the double sum against the closed form."""
    X, labels = _case(rng)
    direct = float((_signs(labels, labels) * cdist(X, X) ** 2).sum())
    return _close(iso.metrics.silhouette_objective(X, labels), direct)


def pairwise_variance(rng: Rng) -> bool:
    """Check by component, and that a rotation such as PCA changes neither IsoScore nor silhouette."""
    X, labels = _case(rng, least_dims=2)
    by_pairs = ((X[:, None] - X[None]) ** 2).sum(axis=(0, 1)) / (2 * len(X) ** 2)
    turned = X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    a, b = ((iso.isoscore(space), iso.silhouette_score(space, labels)) for space in (X, turned))
    return np.allclose(by_pairs, X.var(axis=0), rtol=1e-9) and np.allclose(a, b, rtol=1e-6, atol=1e-6)


def figure_chord(rng: Rng) -> bool:
    """Check that of two points on a circle, the nearer to a third is at the smaller angle."""
    angles = rng.uniform(0, math.pi, size=2)
    chords = np.hypot(np.cos(angles) - 1, np.sin(angles))
    return bool((chords[0] < chords[1]) == (angles[0] < angles[1]))


def chord(rng: Rng) -> bool:
    """Check both forms from the principal variances."""
    X, _ = _case(rng, least_dims=2)
    v, d = variances(X), X.shape[1]
    distance = float(np.linalg.norm(math.sqrt(d) / np.linalg.norm(v) * v - 1))
    half = math.acos(min(1.0, cosine_to_ones(X))) / 2
    # the arc cosine has half its digits near 1
    first = abs(distance - 2 * math.sqrt(d) * math.sin(half)) < 1e-7
    return first and _close(distance**2 / (4 * d) - 1, -(math.cos(half) ** 2))


def angle(rng: Rng) -> bool:
    """Check 0 ≤ α ≤ arccos(1/√d), where points on a line reach the upper end."""
    X, _ = _case(rng, least_dims=2)
    d = X.shape[1]
    line = np.outer(rng.normal(size=4), rng.normal(size=d))
    largest = math.acos(1 / math.sqrt(d))
    alpha = math.acos(min(1.0, cosine_to_ones(X)))
    return 0 <= alpha <= largest + 1e-9 and abs(math.acos(cosine_to_ones(line)) - largest) < 1e-6


def cosine(rng: Rng) -> bool:
    """Check IsoScore from the cosine."""
    X, _ = _case(rng, least_dims=2)
    d = X.shape[1]
    return _close(iso.isoscore(X), (d * cosine_to_ones(X) ** 2 - 1) / (d - 1))


def objective_i(rng: Rng) -> bool:
    """Check that the sum is 2n²√d·‖V‖·cos."""
    X, _ = _case(rng)
    n, d = X.shape
    scale = 2 * n * n * math.sqrt(d) * float(np.linalg.norm(variances(X)))
    return _close(iso.metrics.isotropy_objective(X), scale * cosine_to_ones(X))


def incompatible(rng: Rng) -> bool:
    """Check IsoScore ≤ (K − 2)/(d − 1) of collapsed labels for K ≤ d; for K ≥ d + 1 both reach 1."""
    d = int(rng.integers(2, 6))
    few, many = int(rng.integers(2, d + 1)), int(rng.integers(d + 1, d + 4))
    _, labels = _case(rng, n_labels=few)
    under = iso.isoscore(_collapsed(rng, labels, d)) <= (few - 2) / (d - 1) + 1e-9
    X, own = _simplex(rng, rng.integers(2, 5, size=many).tolist(), d)
    together = _close(iso.isoscore(X), 1) and iso.silhouette_score(X, own) > 1 - 1e-6
    return under and iso.isotropy_ceiling(few, d) < 1 and together


def clusters(rng: Rng) -> bool:
    """Check one label at a point inside another: IsoScore 1, silhouette (m − 2d·s)/(m + 2d), ρ = 0."""
    d, m = int(rng.integers(2, 8)), int(rng.integers(2, 400))
    X, labels = crowd(d, m)
    apart = (2 + (2 * d - 2) * math.sqrt(2)) / (2 * d - 1)  # mean distance within the label around
    expected = (m - 2 * d * (apart - 1) / apart) / (m + 2 * d)
    split = iso.metrics.scatter_decomposition(X, labels)
    near = abs(iso.silhouette_score(X, labels) - expected) < 1e-7
    return near and _close(split.isoscore, 1) and split.between_share < 1e-20 and incompatible(rng)


def polarisation(rng: Rng) -> bool:
    """Check two random vectors."""
    x, c = rng.normal(size=(2, int(rng.integers(1, 9))))
    return _close(float(x @ c), float((x @ x + c @ c - (x - c) @ (x - c)) / 2))


def objective_c(rng: Rng) -> bool:
    """Check the double sum against both closed forms."""
    X, labels = _case(rng)
    C = rng.normal(size=(labels.max() + 1, X.shape[1]))
    direct = -float((_signs(labels, np.arange(len(C))) * (X @ C.T)).sum())
    forms = (iso.metrics.classifier_objective, iso.metrics.classifier_objective_expansion)
    return all(_close(form(X, labels, classes=C), direct) for form in forms)


def priors(rng: Rng) -> bool:
    """Check that for two balanced labels only the distances remain."""
    labels = np.arange(2 * int(rng.integers(1, 6))) % 2
    X, C = (rng.normal(size=(n, 3)) for n in (len(labels), 2))
    return _close(_value(X, labels, C), float((_signs(labels, np.arange(2)) * cdist(X, C) ** 2).sum()) / 2)


def prior_norms(rng: Rng) -> bool:
    """Check that O_C is linear in each class vector, so that its best length is 0 or the largest."""
    X, labels = _case(rng)
    C = rng.normal(size=(labels.max() + 1, X.shape[1]))
    k, t = int(rng.integers(len(C))), rng.uniform(0.1, 9)
    none, longer = C.copy(), C.copy()
    none[k], longer[k] = 0, t * C[k]
    without, with_it, with_more = (_value(X, labels, classes) for classes in (none, C, longer))
    return _close(with_more - without, t * (with_it - without))


def _value(X: np.ndarray, labels: np.ndarray, C: np.ndarray) -> float:
    return float(iso.metrics.classifier_objective(X, labels, classes=C))


def _climb(C: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return O_C while points and class vectors are optimised in turn within unit balls."""
    members = np.eye(len(C))[:, labels]
    values = []
    for _ in range(30):
        X = _unit(2 * C - C.sum(axis=0))[labels]
        values.append(_value(X, labels, C))
        C = _unit(2 * members @ X - X.sum(axis=0))
    return values


def collapse(rng: Rng) -> bool:
    """Check that within unit balls one direction per label is best, with maximum n·max(2, K − 2).

    For 4m, m and m points of three labels the maximum is 14m, with two labels in one place.
    """
    K, d, each = int(rng.integers(2, 8)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    labels = np.repeat(np.arange(K), each)
    n = len(labels)
    C, others = _unit(rng.normal(size=(K, d))), _unit(rng.normal(size=(n, d)))
    turns = 2 * np.pi * np.arange(K) / K
    apart = np.column_stack([np.cos(turns), np.sin(turns), np.zeros((K, d - 2))])  # adds up to 0
    uneven = np.repeat([0, 1, 2], np.array([4, 1, 1]) * each)
    even_climb, uneven_climb = _climb(C, labels), _climb(C[[0, 1, min(2, K - 1)]], uneven)
    return (
        _value(others, labels, C) <= even_climb[0] + 1e-9
        and even_climb[-1] <= n * max(2, K - 2) + 1e-9
        and _close(_climb(apart, labels)[0], 2 * n)
        and _close(_value(-C[[0] * n], labels, C[[0] * K]), (K - 2) * n)
        and uneven_climb[-1] <= 14 * each + 1e-9
        and _close(_climb(C[0] * np.array([[1.0], [-1], [-1]]), uneven)[0], 14 * each)
    )


def classifiers(rng: Rng) -> bool:
    """Check the IsoScore of labels collapsed to a simplex; d + 1 such labels are separable at 1."""
    d = int(rng.integers(2, 7))
    K = int(rng.integers(2, d + 2))
    collapsed, _ = _simplex(rng, [3] * K, d)
    corners, _ = _simplex(rng, [1] * (d + 1), d)
    accuracy = accuracy_of_least_squares(corners, rng.integers(0, 2, size=d + 1))
    as_said = _close(iso.isoscore(collapsed), min(1.0, (K - 2) / (d - 1)))
    return as_said and accuracy == 1 and _close(iso.isoscore(corners), 1)


def triplet_terms(rng: Rng) -> bool:
    """Check one random triplet."""
    near, far = rng.uniform(0, 9, size=2)
    return _close(max(near - far, 0), max(near, far) - far) and max(near - far, 0) >= near - far


def objective_t(rng: Rng) -> bool:
    """Check O_T ≤ bound, and the weights of the bound by counting triplets."""
    X, labels = _case(rng)
    D = cdist(X, X)
    counted = sum(
        D[a, q] - D[a, p]
        for a, p, q in product(range(len(X)), repeat=3)
        if a != p and labels[a] == labels[p] != labels[q]
    )
    bound = float(iso.metrics.triplet_bound(X, labels))
    return _close(bound, float(counted)) and iso.metrics.triplet_objective(X, labels) <= bound + 1e-9


def triplet_bound(rng: Rng) -> bool:
    """Check that a positive O_S exceeds the bound at some scale."""
    X, labels = _case(rng)
    X = _collapsed(rng, labels, X.shape[1])
    X = X * (1 + 2 * abs(iso.metrics.triplet_bound(X, labels)) / iso.metrics.silhouette_objective(X, labels))
    return bool(iso.metrics.silhouette_objective(X, labels) > iso.metrics.triplet_bound(X, labels))


def triplets_free(rng: Rng) -> bool:
    """Check O_T = 0 with IsoScore 1: a square with two labels, a simplex with d + 1."""
    square = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]]), np.array([0, 0, 1, 1])
    d = int(rng.integers(2, 6))
    cases = (square, _simplex(rng, [2] * (d + 1), d))
    return all(
        _close(iso.isoscore(X), 1) and _close(iso.metrics.triplet_objective(X, labels), 0)
        for X, labels in cases
    )


def other_scores(rng: Rng) -> bool:
    """Check that all four scores reach their best if labels have distinct centres, and not otherwise."""
    X, labels = _case(rng, n_labels=int(rng.integers(3, 6)), least=2, least_dims=2)
    K, d = labels.max() + 1, X.shape[1]
    own = 10 * np.column_stack([np.arange(K), *rng.normal(size=(d - 1, K))])
    shared = own[[0, 0, *range(2, K)]]
    tight, mixed = (places[labels] + 1e-6 * X for places in (own, shared))
    return bool(
        iso.silhouette_score(tight, labels) > 1 - 1e-4
        and iso.silhouette_score(mixed, labels) < 1 - 1e-3
        and iso.davies_bouldin_score(tight, labels) < 1e-4
        and iso.davies_bouldin_score(mixed, labels) > 1e-2
        and iso.metrics.dunn_index(tight, labels) > 1e4
        and iso.metrics.dunn_index(mixed, labels) < 1e2
        and min(iso.calinski_harabasz_score(one, labels) for one in (tight, mixed)) > 1e8
    )
