"""The theorems of docs/collapse-law.md on where training ends, by minimising tiny losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from free_vectors import Free, apart, of_variances, one_hot, score
from scipy.spatial.distance import pdist, squareform
from scipy.special import logsumexp

from isoscope.metrics.collapse_law import collapse_value

EITHER = Free(one_hot([3] * 4), 6, decay=1e-2, class_decay=1e-2)
VARIANTS = {
    "cross-entropy": EITHER,
    "without bias": replace(EITHER, has_bias=False),
    "uneven decay": replace(EITHER, class_decay=1e-3),
    "squared": replace(EITHER, loss="squared"),
    "squared, without bias": replace(EITHER, loss="squared", has_bias=False),
}


def labels_covariance(counts: list[int]) -> np.ndarray:
    """Return C = diag(p) − p·pᵀ."""
    p = np.array(counts) / sum(counts)
    return np.diag(p) - np.outer(p, p)


def with_bias(counts: list[int], d: int) -> float:
    """Return the value of the largest margin with a free bias: of variances √(eigenvalues of C)."""
    return of_variances(np.linalg.eigvalsh(labels_covariance(counts)).clip(0) ** 0.5, d)


def without_bias(counts: list[int], d: int) -> float:
    """Return the value of the largest margin without a bias, from its Gram matrix."""
    Z = one_hot(counts) - 1 / len(counts)
    U, S, _ = np.linalg.svd(Z, full_matrices=False)
    X = U * S**0.5
    return of_variances(np.linalg.eigvalsh(np.cov(X.T, bias=True)).clip(0), d)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_decay_takes_balanced_labels_to_a_simplex(variant: str, smoothing: float) -> None:
    """Theorem C3."""
    free = replace(VARIANTS[variant], targets=one_hot([3] * 4, smoothing=smoothing))
    X, _ = free.minimum()
    assert apart(X, np.repeat(range(4), 3)) < 1e-5
    distances = pdist(X[::3])
    assert np.ptp(distances) < 1e-5 < 1e-2 < distances.min()
    assert score(X) == pytest.approx(2 / 5, abs=1e-7)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_vectors_vanish_from_a_decay_on(smoothing: float) -> None:
    """Theorem C3: √(λ_X·λ_W) = (1 − ε)/√(n·K)."""
    threshold = (1 - smoothing) / np.sqrt(12 * 4)
    lengths = []
    for share in (0.97, 1.03):
        decays = {"decay": 2 * share * threshold, "class_decay": share * threshold / 2}
        X, _ = Free(one_hot([3] * 4, smoothing=smoothing), 6, **decays).minimum()
        lengths.append(np.abs(X).max())
    assert lengths[1] < 1e-4 < 1e-2 < lengths[0]


@pytest.mark.parametrize("seed", range(6))
def test_decay_of_vectors_makes_labels_coincide(seed: int) -> None:
    """Theorem C2: any proportions, any number of labels or sets, any convex loss."""
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 7)), int(rng.integers(2, 5))
    loss = ("cross-entropy", "squared", "sets")[seed % 3]
    sets = rng.random((K, 4)) < 0.5 if loss == "sets" else np.eye(K)
    sets = np.unique(sets, axis=0)
    codes = np.concatenate([np.arange(len(sets)), rng.integers(len(sets), size=12)])
    free = Free(
        sets[codes].astype(float), d, loss, bool(seed % 2), decay=1e-3, class_decay=10 ** rng.uniform(-4, -2)
    )
    X, _ = free.minimum(seed=seed)
    assert apart(X, codes) < 1e-4 * np.abs(X).max()


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_the_largest_margin_has_a_certificate(seed: int, has_bias: bool) -> None:
    """Theorem C4: B of norm 1 whose entries off the label are negative, and so no Z is shorter."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    counts = np.ceil(rng.lognormal(sigma=1.5, size=K)).astype(int).tolist()
    Y, labels = one_hot(counts), np.repeat(np.arange(K), counts)
    Z = Y - Y.mean(axis=0) if has_bias else Y - 1 / K
    U, S, V = np.linalg.svd(Z, full_matrices=False)
    U, S, V = U[:, : K - 1], S[: K - 1], V[: K - 1]
    B = U @ V
    assert B[Y == 0].max() < 0
    assert np.abs(B.sum(axis=1)).max() < 1e-12
    assert not has_bias or np.abs(B.sum(axis=0)).max() < 1e-12
    for _ in range(20):
        scores = Y + rng.uniform(-0.4, 0.4) * rng.random(Y.shape)
        margins = scores[np.arange(len(Y)), labels][:, None] - scores
        bias = rng.normal(size=K) if has_bias else 0
        assert np.linalg.norm(scores / margins[Y == 0].min() - bias, "nuc") >= S.sum() - 1e-9


@pytest.mark.parametrize("counts", [[10, 2, 2, 2], [20, 10, 5, 1], [2, 8, 8, 8]])
def test_little_decay_takes_unbalanced_labels_to_the_largest_margin(counts: list[int]) -> None:
    """Theorem C4, and that the regular simplex is not where they go."""
    for has_bias, value in ((True, with_bias), (False, without_bias)):
        off = []
        for decay in (1e-3, 1e-6):
            free = Free(one_hot(counts), 6, has_bias=has_bias, decay=decay, class_decay=decay)
            off.append(abs(score(free.minimum()[0]) - value(counts, 6)))
        assert off[1] < 0.03 * value(counts, 6)
        assert off[1] < off[0] or off[1] < 1e-3
        assert off[1] < abs(collapse_value(counts, 6) - value(counts, 6)) / 5
    squared = Free(one_hot(counts), 6, "squared", decay=1e-5, class_decay=1e-5)
    assert score(squared.minimum()[0]) == pytest.approx(with_bias(counts, 6), abs=1e-3)


def test_the_values_agree_for_balanced_and_for_two_labels() -> None:
    for value in (with_bias, without_bias):
        assert value([5] * 7, 12) == pytest.approx(5 / 11)
        assert value([30, 2], 12) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("K", "d"), [(5, 2), (5, 3), (8, 4)])
def test_squared_loss_makes_more_labels_than_a_simplex_holds_isotropic(K: int, d: int) -> None:
    """Theorem C5: exactly 1 with a bias; at least (d − 2)/(d − 1) without."""
    decays = {"decay": 1e-3, "class_decay": 1e-3}
    assert score(Free(one_hot([2] * K), d, "squared", **decays).minimum()[0]) == pytest.approx(1, abs=1e-6)
    scores = [
        score(Free(one_hot([2] * K), d, "squared", has_bias=False, **decays).minimum(seed=s)[0])
        for s in range(6)
    ]
    assert (d - 2) / (d - 1) - 1e-6 <= min(scores) < 1 - 1e-3


def test_squared_loss_without_bias_wants_a_dimension_more() -> None:
    """Theorem C5: K = d + 1 labels are no simplex there, and have an IsoScore under 1."""
    free = Free(one_hot([3] * 4), 3, "squared", has_bias=False, decay=1e-3, class_decay=1e-3)
    assert all(1 / 2 - 1e-6 <= score(free.minimum(seed=s)[0]) < 1 - 1e-3 for s in range(4))


def least_of_pentagons(decay: float) -> float:
    """Return the smallest loss of regular pentagons with a classifier of their own directions."""
    turns = 2 * np.pi * np.arange(5) / 5
    corners = np.column_stack([np.cos(turns), np.sin(turns)])
    return min(
        (logsumexp(size * corners @ corners.T, axis=1) - size).mean() + decay * size * 5
        for size in np.linspace(0.1, 40, 4000)  # the product of both lengths, which are equal at the optimum
    )


@pytest.mark.parametrize("decay", [1e-2, 1e-4])
def test_five_labels_in_the_plane_are_no_pentagon(decay: float) -> None:
    """The counterexample beyond K = d + 1: a lower loss than any regular pentagon, and not isotropic."""
    X, loss = Free(one_hot([1] * 5), 2, decay=decay, class_decay=decay).minimum()
    assert loss < 0.999 * least_of_pentagons(decay)
    assert score(X) < 0.9


@pytest.mark.parametrize(("decay", "has_bias"), [(0.1, True), (0.04, True), (0.04, False), (1e-4, False)])
def test_without_a_bias_or_with_much_decay_they_are_a_pentagon(decay: float, has_bias: bool) -> None:
    """The counterexample needs a free bias and little decay."""
    free = Free(one_hot([1] * 5), 2, has_bias=has_bias, decay=decay, class_decay=decay)
    X, loss = min((free.minimum(seed=seed) for seed in range(4)), key=lambda found: found[1])
    assert loss == pytest.approx(least_of_pentagons(decay), rel=1e-4)
    assert score(X) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("K", "d", "even"), [(5, 3, False), (6, 3, True), (8, 4, True)])
def test_cross_entropy_makes_some_numbers_of_labels_isotropic(
    K: int, d: int, even: bool, has_bias: bool
) -> None:
    """Beyond K = d + 1 it depends on K and d."""
    for decay, most in ((1e-2, 0.97), (1e-4, 0.9)):
        free = Free(one_hot([1] * K), d, has_bias=has_bias, decay=decay, class_decay=decay)
        found = score(free.minimum()[0])
        assert found == pytest.approx(1, abs=1e-5) if even else found < most


def test_squared_loss_without_bias_has_a_minimum_on_a_line() -> None:
    """Theorem C5: four labels in the plane, at the rows of V, have IsoScore 0 at a global minimum."""
    decay, K = 0.02, 4
    free = Free(one_hot([1] * K), 2, "squared", has_bias=False, decay=decay, class_decay=decay)
    V = np.column_stack([np.ones(K), [1, -1, 1, -1]]) / 2
    X = V * np.sqrt(1 - K * decay)
    loss, gradient = free.value(np.concatenate([X.ravel(), X.ravel(), np.zeros(K)]))
    assert np.abs(gradient).max() < 1e-15
    assert loss == pytest.approx(min(free.minimum(seed=seed)[1] for seed in range(4)), abs=1e-12)
    assert score(X) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("decay", [1e-3, 1e-5])
def test_labels_of_different_size_that_do_not_fit_end_far_above_the_formula_of_the_simplex(
    decay: float,
) -> None:
    counts = [20, 20, 1, 1, 1, 1]
    formula = of_variances(np.linalg.eigvalsh(labels_covariance(counts)).clip(0), 3)
    assert formula == pytest.approx(0.306, abs=1e-3)
    for seed in range(2):
        found = score(Free(one_hot(counts), 3, decay=decay, class_decay=decay).minimum(seed=seed)[0])
        assert 0.79 < found < 0.95


@pytest.mark.parametrize("counts", [[3, 3, 3], [6, 2, 1, 1]])
def test_as_many_dimensions_as_labels_have_no_other_minima(counts: list[int]) -> None:
    """For d ≥ K every descent ends at the same loss; on a line through 0 it stays on the line."""
    free = Free(one_hot(counts), len(counts), decay=5e-3, class_decay=1e-2)
    losses = [free.minimum(seed=seed)[1] for seed in range(6)]
    assert np.ptp(losses) < 1e-9
    X = np.random.default_rng(0).normal(size=(sum(counts), 1)) @ np.ones((1, len(counts)))
    X, _ = free.flow(X, np.zeros((len(counts), len(counts))), 30.0)
    assert np.linalg.matrix_rank(X, tol=1e-9) == 1


def test_sets_of_labels_use_as_many_directions_as_labels() -> None:
    """Theorem C9: 16 sets of 4 labels have IsoScore (L − 1)/(d − 1) at most."""
    sets = np.array([[i >> k & 1 for k in range(4)] for i in range(16)], dtype=float)
    X, _ = Free(np.repeat(sets, 2, axis=0), 10, "sets", decay=1e-4, class_decay=1e-4).minimum()
    assert apart(X, np.repeat(np.arange(16), 2)) < 1e-3 * np.abs(X).max()
    assert np.linalg.matrix_rank(X - X.mean(axis=0), tol=1e-3 * np.abs(X).max()) == 4
    assert score(X) == pytest.approx(3 / 9, abs=1e-4)  # attained where all sets occur equally often
    uneven = np.repeat(sets, [9, 1] * 8, axis=0)
    X, _ = Free(uneven, 10, "sets", decay=1e-4, class_decay=1e-4).minimum()
    assert score(X) < 3 / 9 - 1e-4


def info_nce(U: np.ndarray, V: np.ndarray, temperature: float) -> float:
    """Return the loss of two views of unit length."""
    U, V = (views / np.linalg.norm(views, axis=1, keepdims=True) for views in (U, V))
    products = U @ V.T / temperature
    return float((logsumexp(products, axis=1) - np.diag(products)).mean())


def test_instances_spread_to_a_simplex_under_infonce() -> None:
    """Each instance is a label: no n ≤ d + 1 instances have less than the simplex."""
    rng = np.random.default_rng(0)
    for n, d in [(3, 2), (5, 8), (9, 8)]:
        corners = np.linalg.svd(np.eye(n) - 1 / n)[0][:, : n - 1]
        simplex = np.zeros((n, d))
        simplex[:, : n - 1] = corners / np.linalg.norm(corners, axis=1, keepdims=True)
        best = np.log1p((n - 1) * np.exp(-n / (n - 1) / 0.5))
        assert info_nce(simplex, simplex, 0.5) == pytest.approx(best)
        assert score(simplex) == pytest.approx((n - 2) / (d - 1))
        for _ in range(200):
            U, V = simplex + rng.normal(size=(2, n, d)) * rng.choice([0.01, 1])
            assert info_nce(U, V, 0.5) > best < info_nce(U, U, 0.5)


def supervised_contrastive(U: np.ndarray, each: int, temperature: float) -> float:
    """Return the loss of unit vectors, `each` of a label one after the other."""
    labels = np.repeat(np.arange(len(U) // each), each)
    products = U @ U.T / temperature - np.diag(np.full(len(U), np.inf))
    same = (labels[:, None] == labels) & ~np.eye(len(U), dtype=bool)
    return float((logsumexp(products, axis=1) - np.where(same, products, 0).sum(axis=1) / (each - 1)).mean())


@pytest.mark.parametrize(("K", "each", "d"), [(2, 2, 2), (3, 4, 2), (4, 2, 6)])
def test_labels_spread_to_a_simplex_under_supervised_contrast(K: int, each: int, d: int) -> None:
    """No balanced batch of unit vectors is below log((m − 1) + (n − m)·exp(−K/((K − 1)·τ)))."""
    rng = np.random.default_rng(0)
    corners = np.zeros((K, d))
    corners[:, : K - 1] = np.linalg.svd(np.eye(K) - 1 / K)[0][:, : K - 1] / np.sqrt(1 - 1 / K)
    simplex = np.repeat(corners, each, axis=0)
    for temperature in (0.1, 1.0):
        best = np.log(each - 1 + (K - 1) * each * np.exp(-K / (K - 1) / temperature))
        assert supervised_contrastive(simplex, each, temperature) == pytest.approx(best, abs=1e-12)
        for _ in range(200):
            U = simplex + rng.normal(size=simplex.shape) * rng.choice([0.01, 0.3, 3])
            U /= np.linalg.norm(U, axis=1, keepdims=True)
            assert supervised_contrastive(U, each, temperature) > best


def test_a_triplet_loss_ends_at_an_isotropic_space_too() -> None:
    """All triplets are in strict order, and IsoScore is 1: long enough, no triplet is within the margin."""
    X = np.array([[-0.5, 0.5]] * 3 + [[-0.5, -0.5]] * 3 + [[0.5, 0]] * 2)
    D = squareform(pdist(X))
    within, between = max(D[:6, :6].max(), D[6:, 6:].max()), D[:6, 6:].min()
    assert within == 1
    assert between == pytest.approx(np.sqrt(1.25))
    assert score(X) == pytest.approx(1, abs=1e-15)
