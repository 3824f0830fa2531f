from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn import metrics as sk
from sklearn.neighbors import NearestNeighbors
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, UndefinedError
from isoscope.statistics import Neighbors


def cases(dtype: type) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    made = {}
    for K in (2, 9, 100):
        y = np.concatenate([np.arange(K), rng.integers(0, K, 200 - K)])
        centers = rng.normal(size=(K, 6))
        for spread in (1.0, 1e-2, 1e-5):
            made[f"K={K} spread={spread}"] = centers[y] + spread * rng.normal(size=(200, 6)), y
        made[f"K={K} duplicates"] = rng.normal(size=(40, 6))[rng.integers(0, 40, 200)], y
    return {name: (X.astype(dtype), y) for name, (X, y) in made.items()}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", cases(np.float64))
def test_equal_scikit_learn(name: str, dtype: type) -> None:
    X, y = cases(dtype)[name]
    wide = X.astype(np.float64)
    assert iso.calinski_harabasz_score(X, y) == pytest.approx(sk.calinski_harabasz_score(wide, y), rel=1e-9)
    assert iso.davies_bouldin_score(X, y) == pytest.approx(davies_bouldin_by_definition(wide, y), abs=1e-9)
    if "K=100" not in name:  # singletons: scikit-learn's distance of a point to itself is 1e-9, not 0
        assert iso.davies_bouldin_score(X, y) == pytest.approx(sk.davies_bouldin_score(wide, y), abs=1e-9)


def davies_bouldin_by_definition(X: np.ndarray, y: np.ndarray) -> float:
    means = np.array([X[y == k].mean(axis=0) for k in np.unique(y)])
    spread = [np.linalg.norm(X[y == k] - means[k], axis=1).mean() for k in np.unique(y)]
    worst = []
    for k in range(len(means)):
        gaps = np.linalg.norm(means - means[k], axis=1)
        worst.append(max((spread[k] + spread[l]) / gaps[l] for l in range(len(means)) if gaps[l] > 0))
    return float(np.mean(worst))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_offset_and_collapse(dtype: type) -> None:
    """Against scikit-learn on centred float64 copies of the very same numbers."""
    rng = np.random.default_rng(6)
    y = np.arange(300) % 4
    X = (rng.normal(size=(4, 6))[y] + 1e-2 * rng.normal(size=(300, 6)) + 1e4).astype(dtype)
    centred = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    assert iso.calinski_harabasz_score(X, y) == pytest.approx(
        sk.calinski_harabasz_score(centred, y), rel=1e-9
    )
    assert iso.davies_bouldin_score(X, y) == pytest.approx(sk.davies_bouldin_score(centred, y), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", cases(np.float64))
def test_dunn_equals_brute_force(name: str, dtype: type) -> None:
    X, y = cases(dtype)[name]
    distances = cdist(X.astype(np.float64), X.astype(np.float64))
    same = y[:, None] == y
    expected = distances[~same].min() / distances[same].max()
    assert iso.metrics.dunn_index(X, y) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_undefined() -> None:
    collapsed, y = np.repeat(np.eye(3), 2, axis=0), [0, 0, 1, 1, 2, 2]
    with pytest.raises(UndefinedError, match="collapsed"):
        iso.calinski_harabasz_score(collapsed, y)
    with pytest.raises(UndefinedError, match="collapsed"):
        iso.metrics.dunn_index(collapsed, y)
    assert iso.davies_bouldin_score(collapsed, y) == 0.0
    assert math.isfinite(iso.davies_bouldin_score(np.ones((4, 2)), [0, 0, 1, 1]))


def test_separable_and_random_labels(rng) -> None:
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 4)) + 6 * np.eye(4)[y]
    assert iso.metrics.linear_probe_accuracy(X, y) > 0.97
    assert iso.metrics.linear_probe_accuracy(torch.from_numpy(X).float(), rng.permutation(y)) < 0.6


def test_unseen_points_only(rng) -> None:
    """More dimensions than points separate anything they have seen; cross-validation says chance."""
    accuracy = iso.metrics.linear_probe_accuracy(rng.normal(size=(60, 200)), np.arange(60) % 2)
    assert 0.2 < accuracy < 0.8


def test_small_labels(rng) -> None:
    X = rng.normal(size=(20, 2)) + np.repeat([[0.0, 0], [9, 9]], 10, axis=0)
    y = ["a"] * 10 + ["b"] * 3 + ["b"] * 6 + ["alone"]
    assert iso.metrics.linear_probe_accuracy(X, y) > 0.9
    assert iso.metrics.linear_probe_accuracy(X, y, seed=1, folds=3) > 0.9


def test_errors_of_a_linear_probe(rng) -> None:
    with raises(InputError, argument="folds", got=1):
        iso.metrics.linear_probe_accuracy(np.eye(4), [0, 0, 1, 1], folds=1)
    with pytest.raises(UndefinedError, match="two labels with at least 2 points"):
        iso.metrics.linear_probe_accuracy(np.eye(4), [0, 0, 1, 2])


def test_purity_equals_brute_force(rng) -> None:
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) + 2 * np.eye(4)[y]
    indices = NearestNeighbors(n_neighbors=7).fit(X).kneighbors(return_distance=False)
    assert iso.knn_purity(X, y, k=7) == pytest.approx((y[indices] == y[:, None]).mean())
    assert iso.knn_purity(Neighbors.of(X, k=10), y, k=7) == pytest.approx((y[indices] == y[:, None]).mean())
