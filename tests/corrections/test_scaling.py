from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import Normalizer, StandardScaler

import isoscope as iso


def test_center(rng) -> None:
    X = rng.normal(size=(50, 3)) + 7
    assert np.allclose(iso.Center().fit(X).transform(X[:5]), X[:5] - X.mean(axis=0), atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 300])
def test_standardize_as_scikit_learn(rng, n: int) -> None:
    X = rng.normal(size=(n, 4)) * [1, 100, 1e-8, 0] + [0, 1e6, 0, 3.7]
    ours, theirs = iso.Standardize().fit(X), StandardScaler().fit(X)
    assert np.allclose(ours.scale_, theirs.scale_)
    assert np.allclose(ours.transform(X), theirs.transform(X))


def test_constant_dimensions_keep_their_scale() -> None:
    X = np.full((1000, 2), 0.1)
    X[:, 1] = np.arange(1000)
    fitted = iso.Standardize().fit(X)
    assert fitted.scale_[0] == 1.0
    assert fitted.transform([[0.6, 0.0]])[0, 0] == pytest.approx(0.5)


def test_normalize_as_scikit_learn(rng) -> None:
    X = rng.normal(size=(50, 3))
    assert np.allclose(iso.Normalize().transform(X), Normalizer().transform(X))


def test_normalize_extremes() -> None:
    X = np.array([[3e-200, 4e-200], [3e200, -4e200], [0.0, 0.0]])
    assert np.allclose(iso.Normalize().fit_transform(X), [[0.6, 0.8], [0.6, -0.8], [0, 0]], atol=1e-15)
    assert np.allclose(iso.Normalize().transform(X[:1].astype(np.float32) + np.float32(1e-30)), np.sqrt(0.5))
