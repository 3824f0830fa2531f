from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

import isoscope as iso
from isoscope import Neighbors
from isoscope.errors import InputError, UndefinedError


def test_separable_and_random_labels(rng) -> None:
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 4)) + 6 * np.eye(4)[y]
    assert iso.linear_probe_accuracy(X, y) > 0.97
    assert iso.linear_probe_accuracy(torch.from_numpy(X).float(), rng.permutation(y)) < 0.6


def test_unseen_points_only(rng) -> None:
    """More dimensions than points separate anything they have seen; cross-validation says chance."""
    accuracy = iso.linear_probe_accuracy(rng.normal(size=(60, 200)), np.arange(60) % 2)
    assert 0.2 < accuracy < 0.8


def test_small_labels(rng) -> None:
    X = rng.normal(size=(20, 2)) + np.repeat([[0.0, 0], [9, 9]], 10, axis=0)
    y = ["a"] * 10 + ["b"] * 3 + ["b"] * 6 + ["alone"]
    assert iso.linear_probe_accuracy(X, y) > 0.9
    assert iso.linear_probe_accuracy(X, y, seed=1, folds=3) > 0.9


def test_errors(rng) -> None:
    with pytest.raises(InputError, match="folds is 1"):
        iso.linear_probe_accuracy(np.eye(4), [0, 0, 1, 1], folds=1)
    with pytest.raises(UndefinedError, match="two labels with at least 2 points"):
        iso.linear_probe_accuracy(np.eye(4), [0, 0, 1, 2])


def test_purity_equals_brute_force(rng) -> None:
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) + 2 * np.eye(4)[y]
    indices = NearestNeighbors(n_neighbors=7).fit(X).kneighbors(return_distance=False)
    assert iso.knn_purity(X, y, k=7) == pytest.approx((y[indices] == y[:, None]).mean())
    assert iso.knn_purity(Neighbors.of(X, k=10), y, k=7) == pytest.approx((y[indices] == y[:, None]).mean())
