"""The theorems of docs/collapse-law.md on the way there: gradient flow, the first step, the reach of Adam."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from free_vectors import Free, of_variances, one_hot, score
from scipy.spatial.distance import pdist

from isoscope.metrics.collapse_law import isoscore_derivative


def covariances(X: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance Σ of all rows and B of the labels' means, divisor n."""
    means = np.stack([X[labels == label].mean(axis=0) for label in labels])
    return np.cov(X.T, bias=True), np.cov(means.T, bias=True)


def participation(S: np.ndarray) -> float:
    return float(np.trace(S) ** 2 / (S**2).sum())


@pytest.mark.parametrize("loss", ["cross-entropy", "squared", "sets"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_flow_conserves_the_difference_of_second_moments(loss: str, decay: float) -> None:
    """Theorem C6: XᵀX − WᵀW stays, or falls as exp(−2λt); one loss as well as another."""
    rng = np.random.default_rng(0)
    targets = (rng.random((9, 3)) < 0.5).astype(float) if loss == "sets" else one_hot([3, 4, 2])
    free = Free(targets, 5, loss, decay=decay, class_decay=decay)
    X, W = rng.normal(size=(9, 5)), rng.normal(size=(3, 5))
    later, weights = free.flow(X, W, 8.0)
    assert np.abs(later - X).max() > 0.1
    expected = (X.T @ X - W.T @ W) * np.exp(-2 * decay * 8.0)
    assert later.T @ later - weights.T @ weights == pytest.approx(expected, abs=1e-7)
    if not decay:  # the growth has the rank of the classifier
        growth = np.linalg.eigvalsh(later.T @ later - X.T @ X + W.T @ W)
        assert growth[:2] == pytest.approx(0, abs=1e-7)
        assert growth.min() > -1e-7


def test_without_decay_a_loss_with_a_minimum_leaves_the_spread_within_labels() -> None:
    """Theorem C6: label smoothing ends at finite scores, and the vectors where they begin far apart."""
    rng = np.random.default_rng(1)
    free, labels = Free(one_hot([4] * 3, smoothing=0.2), 6), np.repeat(range(3), 4)
    shares = []
    for scale in (0.01, 1.0, 5.0):
        X, _ = free.flow(scale * rng.normal(size=(12, 6)), 0.01 * rng.normal(size=(3, 6)), 200.0)
        total, between = covariances(X, labels)
        shares.append(np.trace(between) / np.trace(total))
    assert shares[0] > 0.99 > 0.9 > shares[1] > shares[2]
    assert shares[2] < 0.5


@pytest.mark.parametrize(("K", "d"), [(4, 3), (3, 5)])
def test_a_loss_with_a_minimum_collapses_labels_where_dimensions_are_few(K: int, d: int) -> None:
    """Theorem C6: with d < K at places that the start decides; with d > K the rank of XᵀX keeps ρ below 1."""
    rng = np.random.default_rng(1)
    labels, free = np.repeat(np.arange(K), 3), Free(one_hot([3] * K), d, "squared")
    X, _ = free.flow(rng.normal(size=(3 * K, d)), 0.1 * rng.normal(size=(K, d)), 600.0)
    total, between = covariances(X, labels)
    if d < K:
        assert np.trace(between) > (1 - 1e-5) * np.trace(total)
        assert score(X) < 0.6  # of the simplex, 1
    else:
        assert np.linalg.matrix_rank(X, tol=0.1) == d
        assert np.trace(between) < 0.9 * np.trace(total)


@pytest.mark.parametrize("seed", range(8))
def test_the_first_motion_of_balanced_labels_is_along_b(seed: int) -> None:
    """Theorem C7: Σ(t) = Σ + t²·B/(n·K) + O(t³) from a classifier of zeros, whatever the mean."""
    rng = np.random.default_rng(seed)
    K, m, d = int(rng.integers(2, 6)), int(rng.integers(2, 6)), int(rng.integers(2, 7))
    labels, n = np.repeat(np.arange(K), m), K * m
    X = rng.normal(size=(n, d)) * rng.lognormal(sigma=1, size=d) + 3 * rng.normal(size=d)
    S, B = covariances(X, labels)
    time = 1e-4
    moved, _ = Free(one_hot([m] * K), d).flow(X, np.zeros((K, d)), time)
    growth = np.cov(moved.T, bias=True) - S
    outward = np.repeat(X.reshape(K, m, d).mean(axis=1) - X.mean(axis=0), m, axis=0)
    assert (moved - X) / time**2 * 2 * n * K == pytest.approx(outward, abs=0.02 * np.abs(outward).max())
    assert growth / time**2 * n * K == pytest.approx(B, abs=0.02 * np.abs(B).max())
    rises = (S * B).sum() / np.trace(B) < (S**2).sum() / np.trace(S)
    assert (score(moved) > score(X)) == rises == (isoscore_derivative(*map(torch.tensor, (S, B))) > 0)


def test_labels_that_hold_much_of_the_variance_fall_at_once() -> None:
    """Theorem C7: ρ·PR > K − 1 suffices."""
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(500):
        K, d = int(rng.integers(2, 6)), int(rng.integers(2, 9))
        labels = np.repeat(np.arange(K), 5)
        X = rng.normal(size=(K, d))[labels] * rng.lognormal() + rng.normal(size=(5 * K, d))
        S, B = covariances(X, labels)
        if np.trace(B) / np.trace(S) * participation(S) > K - 1:
            seen += 1
            assert isoscore_derivative(torch.tensor(S), torch.tensor(B)) < 0
    assert 50 < seen < 450


def test_isoscore_turns_once_at_most_as_means_move_apart() -> None:
    """Theorem C7: along W + s·B it is monotone, or rises to one maximum at s*."""
    rng = np.random.default_rng(0)
    turned = 0
    for _ in range(300):
        d = int(rng.integers(2, 7))
        W, B = (
            M @ M.T for M in (rng.normal(size=(d, d)) * 3, rng.normal(size=(d, int(rng.integers(1, d + 1)))))
        )
        s = np.geomspace(1e-4, 1e5, 400)
        curve = np.array([participation(W + one * B) for one in s])
        steps = np.sign(np.diff(curve)[np.abs(np.diff(curve)) > 1e-9])
        assert np.all(np.diff(steps) <= 0)  # never a fall before a rise
        w, b, cross = np.trace(W), np.trace(B), (W * B).sum()
        up, down = b * (W**2).sum() - w * cross, w * (B**2).sum() - b * cross
        if up > 0 < down and 1e-3 < up / down < 1e4:
            turned += 1
            assert participation(W + up / down * B) >= curve.max() - 1e-9
    assert turned > 20


def test_a_first_fall_need_not_be_final() -> None:
    """Theorem C7: three labels in the plane fall, then rise to 1, their means moving apart all the time."""
    means = np.array([[0.279, -0.065], [0.208, 0.292], [-0.486, -0.227]])
    around = np.vstack([np.diag([0.396, 0.31]), -np.diag([0.396, 0.31])])
    X, W, free = (means - means.mean(axis=0))[:, None] + around, np.zeros((3, 2)), Free(one_hot([4] * 3), 2)
    scores, ways = [], []
    X = X.reshape(12, 2)
    for _ in range(3000):
        places = X.reshape(3, 4, 2).mean(axis=1)
        ways.append([*np.linalg.norm(places - places.mean(axis=0), axis=1), *pdist(places)])
        scores.append(score(X))
        moves = free.split(free.value(np.concatenate([X.ravel(), W.ravel(), np.zeros(3)]))[1])
        X, W = X - 0.1 * moves[0], W - 0.1 * moves[1]
    lowest = int(np.argmin(scores))
    assert np.all(np.diff(scores)[1:lowest] < 0)
    assert scores[0] == pytest.approx(0.608, abs=1e-3)
    assert scores[lowest] == pytest.approx(0.545, abs=1e-3)
    assert scores[-1] > 0.99
    assert np.all(np.diff(ways, axis=0)[1:] > 0)


def test_the_sign_of_a_small_random_classifier_is_a_coin() -> None:
    """The first motion is odd in the classifier, so either sign is as likely."""
    rng = np.random.default_rng(0)
    signs = []
    for _ in range(200):
        X, W = rng.normal(size=(12, 5)) * [1, 1, 2, 3, 4], 1e-5 * rng.normal(size=(3, 5))
        free, change = Free(one_hot([4] * 3), 5), []
        for side in (1, -1):
            _, gradient = free.value(np.concatenate([X.ravel(), side * W.ravel(), np.zeros(3)]))
            change.append(score(X - free.split(gradient)[0]) - score(X))
        assert change[0] == pytest.approx(-change[1], rel=0.02, abs=1e-10)
        signs.append(change[0] > 0)
    assert 70 < sum(signs) < 130


def step_of_adam(X: np.ndarray, W: np.ndarray, labels: np.ndarray, rate: float) -> np.ndarray:
    rows = torch.tensor(X, requires_grad=True)
    torch.nn.functional.cross_entropy(rows @ torch.tensor(W).T, torch.tensor(labels)).backward()
    torch.optim.Adam([rows], lr=rate, eps=1e-30).step()
    return rows.detach().numpy()


def test_the_first_step_of_adam_moves_labels_as_bodies_by_signs() -> None:
    """Theorem C8: by rate·sign(w_k − w̄), for a small classifier; it depends on the basis."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 5)
    X, W = rng.normal(size=(20, 6)) * [1, 2, 3, 4, 5, 6], 1e-6 * rng.normal(size=(4, 6))
    moved = step_of_adam(X, W, labels, 1e-3)
    assert moved - X == pytest.approx(1e-3 * np.sign(W - W.mean(axis=0))[labels], abs=1e-9)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    turned = step_of_adam(X @ turn, W @ turn, labels, 1e-3)
    assert score(X @ turn) == pytest.approx(score(X), abs=1e-12)
    assert abs(score(turned) - score(moved)) > 1e-7


def most_per_step(t: int, betas: tuple[float, float] = (0.9, 0.999)) -> float:
    """Return the longest move of a coordinate in update t of Adam, in learning rates."""
    a, b = betas
    ratio = a * a / b
    corrections = np.sqrt(1 - b**t) / (1 - a**t)
    return float((1 - a) / np.sqrt(1 - b) * np.sqrt((1 - ratio**t) / (1 - ratio)) * corrections)


def test_no_update_of_adam_is_longer_than_its_bound() -> None:
    """Theorem C8: attained by gradients that grow by β₂/β₁ an update; under 7.3 rates always."""
    rng = np.random.default_rng(0)
    assert most_per_step(1) == pytest.approx(1)
    assert 7.2 < most_per_step(100_000) < 7.3
    assert max(most_per_step(t) for t in range(1, 20_000)) < 7.3
    for length in (1, 7, 30):
        growing = (0.999 / 0.9) ** np.arange(length)
        for gradients in (
            growing,
            *rng.normal(size=(5, length)),
            *rng.lognormal(sigma=3, size=(5, length)),
        ):
            place = torch.zeros(1, dtype=torch.float64, requires_grad=True)
            adam = torch.optim.Adam([place], lr=1.0, eps=1e-300)
            for t, gradient in enumerate(gradients, start=1):
                before = float(place.detach())
                place.grad = torch.tensor([gradient], dtype=torch.float64)
                adam.step()
                move = abs(float(place.detach()) - before)
                assert move <= most_per_step(t) * (1 + 1e-9)
            if gradients is growing:
                assert move == pytest.approx(most_per_step(length))


def test_a_short_reach_bounds_the_change_of_isoscore() -> None:
    """Theorem C8: between ((1 − ε)/(1 + ε·PR^¼))⁴ and ((1 + ε)/(1 − ε·PR^¼))⁴ times PR."""
    rng = np.random.default_rng(0)
    closest = 0.0
    for trial in range(500):
        n, d = int(rng.integers(4, 30)), int(rng.integers(2, 8))
        X = rng.normal(size=(n, d)) * rng.lognormal(sigma=1, size=d)
        X -= X.mean(axis=0)
        U, s, V = np.linalg.svd(X, full_matrices=False)
        best = (U * s**3) @ V if trial % 2 else rng.normal(size=(n, d))  # along the gradient, or anywhere
        ratio = participation(X.T @ X)
        e = rng.uniform(0, 0.9) / ratio**0.25
        moved = X + rng.choice([-1, 1]) * e * np.linalg.norm(X) * best / np.linalg.norm(best)
        changed = (participation(np.cov(moved.T)) / ratio) ** 0.25
        low, high = (1 - e) / (1 + e * ratio**0.25), (1 + e) / (1 - e * ratio**0.25)
        assert low - 1e-12 <= changed <= high + 1e-12
        closest = max(closest, np.log(changed) / np.log(low if changed < 1 else high))
    assert closest > 0.1  # of the bound, in logarithms: it is no empty one


def test_the_value_of_variances_is_isoscore() -> None:
    X = np.random.default_rng(0).normal(size=(30, 5))
    assert of_variances(np.linalg.eigvalsh(np.cov(X.T)), 5) == pytest.approx(score(X))
