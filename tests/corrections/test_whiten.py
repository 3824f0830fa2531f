from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA

import isoscope as iso


def stretched(rng, n: int, d: int, condition: float = 300.0) -> np.ndarray:
    """Vectors whose deviations along turned axes run from 1 down to 1/condition, with an offset."""
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return rng.normal(size=(n, d)) * np.geomspace(1, 1 / condition, d) @ axes + rng.normal(size=d)


@pytest.mark.parametrize("method", ["pca", "zca"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("condition", [30, 3000])
def test_covariance_is_the_identity(rng, method: str, dtype: type, condition: float) -> None:
    X = stretched(rng, 4000, 48, condition).astype(dtype)
    Y = iso.Whiten(method=method).fit_transform(X)
    assert Y.dtype == dtype
    assert np.abs(np.cov(Y.astype(np.float64).T) - np.eye(48)).max() < 1e-6
    assert np.abs(Y.astype(np.float64).mean(axis=0)).max() < 2e-5


def test_float64_is_taken_only_where_float32_falls_short(rng) -> None:
    for condition, kind in ((30, torch.float32), (3000, torch.float64)):
        X = torch.tensor(stretched(rng, 4000, 48, condition)).float()
        assert iso.Whiten().fit(X)._mapped(X).dtype == kind


def test_as_scikit_learn(rng) -> None:
    X = stretched(rng, 500, 10)
    for k in (None, 4):
        theirs = PCA(k, whiten=True, svd_solver="full").fit_transform(X)
        assert np.allclose(np.abs(iso.Whiten(k).fit_transform(X)), np.abs(theirs))


def test_zca_is_symmetric_and_nearest(rng) -> None:
    X = stretched(rng, 500, 6, condition=3)
    centred = X - X.mean(axis=0)
    Y = iso.Whiten(method="zca").fit_transform(X)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    assert np.allclose(Y, centred @ (vectors / np.sqrt(values)) @ vectors.T)
    turned = iso.Whiten().fit_transform(X)
    assert np.square(Y - centred).sum() < np.square(turned - centred).sum()


def test_strength_runs_from_centring_to_whitening(rng) -> None:
    X = stretched(rng, 300, 5)
    assert np.allclose(iso.Whiten(strength=0, method="zca").fit_transform(X), X - X.mean(axis=0))
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    for strength in (0.3, 1.0):
        Y = iso.Whiten(strength=strength).fit_transform(X)
        assert np.allclose(np.cov(Y.T), np.diag(values ** (1 - strength)), atol=1e-9)


def test_fewer_vectors_than_dimensions_are_shrunk_by_ledoit_and_wolf(rng) -> None:
    X = rng.normal(size=(30, 50)) * np.linspace(2, 0.1, 50)
    fitted = iso.Whiten().fit(X)
    covariance, shrinkage = ledoit_wolf(X)
    assert fitted.regularization_ == pytest.approx(shrinkage)
    # theirs has divisor n, ours n − 1
    assert np.allclose(fitted.eigenvalues_, np.linalg.eigvalsh(covariance)[::-1] * 30 / 29)
    Y = fitted.transform(rng.normal(size=(1000, 50)))
    assert np.isfinite(Y).all()
    assert np.abs(Y).max() < 1000
    assert np.allclose(fitted.inverse_transform(fitted.transform(X)), X)


def test_a_dead_dimension_is_no_danger(rng) -> None:
    X = rng.normal(size=(20_000, 4)) * [4, 2, 1, 0] + 5
    fitted = iso.Whiten().fit(X)
    assert fitted.regularization_ == pytest.approx(1e-3)
    moved = fitted.transform(X + np.array([0, 0, 0, 1e-6]))
    assert np.abs(moved - fitted.transform(X)).max() < 1e-4


def test_within_the_rank_nothing_is_shrunk(rng) -> None:
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 8))
    fitted = iso.Whiten(3).fit(X)
    assert fitted.regularization_ == 0
    assert np.allclose(np.cov(fitted.transform(X).T), np.eye(3))
    back = iso.Whiten(3, method="zca").fit_transform(X)
    assert back.shape == (200, 8)
    assert np.linalg.matrix_rank(back, tol=1e-6) == 3
    assert not hasattr(fitted, "inverse_transform")


def test_more_components_than_rank(rng) -> None:
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 8))
    with pytest.raises(iso.InputError, match="`n_components` is 4, and the 200 vectors have rank 3"):
        iso.Whiten(4).fit(X)
    with pytest.raises(iso.InputError, match="`n_components` is 7, and the 6 vectors have rank 5"):
        iso.Whiten(7).fit(rng.normal(size=(6, 8)))
    with pytest.raises(iso.InputError, match="`regularization` is 0, and the 200 vectors have rank 3"):
        iso.Whiten(regularization=0).fit(X)
    assert iso.Whiten(4, regularization=0.1).fit_transform(X).shape == (200, 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strength": 1.5}, "`strength` must be .*, got 1.5"),
        ({"strength": "all"}, "`strength` must be .*, got 'all'"),
        ({"method": "svd"}, "`method` must be .*, got 'svd'"),
        ({"regularization": -1}, "`regularization` must be .*, got -1"),
        ({"regularization": "some"}, "`regularization` must be .*, got 'some'"),
        ({"n_components": 9}, "`n_components` must be .*, got 9"),
    ],
)
def test_bad_parameters(rng, parameters: dict, message: str) -> None:
    with pytest.raises(iso.InputError, match=message):
        iso.Whiten(**parameters).fit(rng.normal(size=(20, 8)))


def test_no_sign_is_left_to_chance(rng) -> None:
    for components in (
        iso.Whiten().fit(stretched(rng, 200, 12)).components_,
        iso.AllButTheTop(5).fit(stretched(rng, 200, 12)).components_,
    ):
        assert (components[np.arange(len(components)), np.abs(components).argmax(axis=1)] > 0).all()
