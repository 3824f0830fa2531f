"""The collapse law and the bound on silhouettes on random cases, for the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.metrics import silhouette_samples

from isoscope.metrics.collapse_law import collapse_value

Values = dict[str, Any]


def law(n_spaces: int = 40, n_first: int = 2000, n_seeds: int = 5, seed: int = 0) -> Values:
    """Return how far tiny trained spaces are from the law, and how often the first motion has its sign."""
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(n_spaces):
        K = int(rng.integers(2, 7))
        d, each = K - 1 + int(rng.integers(1, 5)), int(rng.integers(1, 5))
        threshold = 1 / (K * each**0.5)  # of the decay, from which on vectors vanish
        X = trained([each] * K, d, decay=threshold * 10 ** rng.uniform(-2, -0.2), has_bias=rng.random() < 0.5)
        differences.append(abs(score(X) - (K - 2) / (d - 1)))
    right = [first_motion_is_right(rng) for _ in range(n_first)]
    return {
        "n_spaces": n_spaces,
        "largest_difference": max(differences),
        "n_first": n_first,
        "n_first_right": sum(right),
        "unbalanced": [
            unbalanced(counts, n_seeds) for counts in ([6, 6, 6, 6], [10, 5, 5, 5], [30, 3, 3, 3])
        ],
        "pentagon": score(trained([1] * 5, 2, decay=1e-3)),
        "pentagon_without_bias": score(trained([1] * 5, 2, decay=1e-3, has_bias=False)),
        "five_in_three": score(trained([1] * 5, 3, decay=1e-3)),
        "five_in_three_without_bias": score(trained([1] * 5, 3, decay=1e-3, has_bias=False)),
    }


def trained(counts: list[int], d: int, *, decay: float, has_bias: bool = True) -> np.ndarray:
    """Return free vectors at the minimum of cross-entropy with decay of vectors and classifier."""
    K, Y = len(counts), np.eye(len(counts))[np.repeat(np.arange(len(counts)), counts)]
    n = len(Y)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        X, W, b = flat[: n * d].reshape(n, d), flat[n * d : -K].reshape(K, d), flat[-K:] * has_bias
        Z = X @ W.T + b
        G = (softmax(Z, axis=1) - Y) / n
        value = (logsumexp(Z, axis=1) - (Y * Z).sum(axis=1)).mean() + decay / 2 * (flat[:-K] ** 2).sum()
        slopes = [(G @ W + decay * X).ravel(), (G.T @ X + decay * W).ravel(), G.sum(axis=0) * has_bias]
        return float(value), np.concatenate(slopes)

    start = np.random.default_rng(0).normal(size=(n + K) * d + K)
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 30}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x[: n * d]).reshape(n, d)


def score(X: np.ndarray) -> float:
    """Return IsoScore from the definition."""
    S = np.cov(X.T)
    return float((np.trace(S) ** 2 / (S**2).sum() - 1) / (len(S) - 1))


def unbalanced(counts: list[int], n_seeds: int, d: int = 8) -> Values:
    """Return the three values of labels of these sizes, and where a small decay takes them."""
    p = np.array(counts) / sum(counts)
    roots = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).clip(0) ** 0.5
    Y = np.repeat(np.eye(len(counts)), counts, axis=0)
    U, S, _ = np.linalg.svd(Y - 1 / len(counts), full_matrices=False)
    return {
        "counts": counts,
        "simplex": collapse_value(counts, d),
        "with_bias": float((roots.sum() ** 2 / (roots**2).sum() - 1) / (d - 1)),
        "without_bias": score(np.pad(U * S**0.5, ((0, 0), (0, d - len(counts))))),
        "trained": score(trained(counts, d, decay=1e-6)),
        "adam": [
            float(np.mean(scores))
            for scores in zip(*(adam(counts, d, seed) for seed in range(n_seeds)), strict=True)
        ],
        "trained_without_bias": score(trained(counts, d, decay=1e-6, has_bias=False)),
    }


def adam(counts: list[int], d: int, seed: int, steps: tuple[int, int] = (100, 5000)) -> list[float]:
    """Return IsoScore after these updates of Adam at 0.01, without decay, from short normal vectors."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    X, W = (torch.randn(n, d, generator=generator, dtype=torch.float64) for n in (len(labels), len(counts)))
    values = [0.01 * X, 0.1 * W, torch.zeros(len(counts), dtype=torch.float64)]
    X, W, b = (value.requires_grad_() for value in values)
    optimizer, scores = torch.optim.Adam(values, lr=0.01), []
    for step in range(1, max(steps) + 1):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(X @ W.T + b, labels).backward()
        optimizer.step()
        if step in steps:
            scores.append(score(X.detach().numpy()))
    return scores


def first_motion_is_right(rng: np.random.Generator) -> bool:
    """Return whether two small steps of gradient descent from a classifier of zeros have the stated sign."""
    K, each = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    d, n = int(rng.integers(2, 9)), K * each
    Y = np.repeat(np.eye(K), each, axis=0)
    X = Y @ rng.normal(size=(K, d)) + rng.normal(size=(n, d)) * rng.lognormal(size=d) + rng.normal(size=d)
    S, B = np.cov(X.T, bias=True), np.cov((Y @ (Y.T @ X)).T / each, bias=True)
    rises = (S * B).sum() / np.trace(B) < (S**2).sum() / np.trace(S)
    W = 1e-6 * (Y - 1 / K).T @ X / n
    moved = X - 0.1 * (softmax(X @ W.T, axis=1) - Y) @ W
    return bool((score(moved) > score(X)) == rises)


def silhouettes(n_spaces: int = 5000, seed: int = 0) -> Values:
    """Return how many spaces have less variance between labels than their least silhouette demands."""
    rng = np.random.default_rng(seed)
    counted, below, nearest = 0, 0, np.inf
    while counted < n_spaces:
        K, d = int(rng.integers(2, 6)), int(rng.integers(1, 10))
        sizes = rng.integers(2, 7, size=K)
        labels = np.repeat(np.arange(K), sizes)
        spread = rng.lognormal(sigma=rng.uniform(0, 2), size=(K, d)) * np.exp(rng.uniform(-3, 0))
        X = 2 * rng.normal(size=(K, d))[labels] + spread[labels] * rng.standard_t(3, size=(len(labels), d))
        least = silhouette_samples(X, labels).min()
        if least <= 1 - 2**-0.5:
            continue
        gap = between(X, labels) - least_between(least, sizes)
        counted, below, nearest = counted + 1, below + (gap < -1e-12), min(nearest, gap)
    gaps = []
    for K in (2, 3, 5):
        for r in np.linspace(0.05, 0.6, 12):
            X, labels = extremal(K, float(r))
            least = silhouette_samples(X, labels).min()
            gaps.append(abs(between(X, labels) - least_between(least, np.full(K, 8))))
    return {"n_spaces": n_spaces, "below": int(below), "nearest": float(nearest),
            "n_extremal": len(gaps), "largest_gap": max(gaps)}  # fmt: skip


def between(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of the variance between labels."""
    means = np.stack([X[labels == label].mean(axis=0) for label in labels])
    return float(means.var(axis=0).sum() / X.var(axis=0).sum())


def least_between(least: float, sizes: np.ndarray) -> float:
    """Return the smallest share where no silhouette is under `least`."""
    r, p = (1 - least) * (1 - 1 / sizes.max()), sizes / sizes.sum()
    odds = max(0.0, (1 - (p**2).sum()) * (1 - 2 * r * r))
    return float(odds / (odds + 2 * r * r))


def extremal(K: int, r: float, each: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return labels at two ends of an axis of their own, their means on a simplex."""
    labels = np.repeat(np.arange(K), each)
    ends = np.resize([1.0, -1.0], K * each) * r / (1 - 2 * r * r) ** 0.5
    return np.hstack([np.eye(K)[labels] / 2**0.5, np.eye(K)[labels] * ends[:, None]]), labels
