from __future__ import annotations

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso


def test_worked_example() -> None:
    """By hand: mean (10, 20, 30); about it, variance lies along (1, 1, 0)/√2, then z, then (1, −1, 0)/√2."""
    about = np.array([[4, 4, 0], [-4, -4, 0], [0, 0, 2], [0, 0, -2], [1, -1, 0], [-1, 1, 0]], dtype=float)
    X = about + np.array([10, 20, 30])
    one = [[0, 0, 0], [0, 0, 0], [0, 0, 2], [0, 0, -2], [1, -1, 0], [-1, 1, 0]]
    two = [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, -1, 0], [-1, 1, 0]]
    assert np.allclose(iso.AllButTheTop(1).fit_transform(X), one)
    assert np.allclose(iso.AllButTheTop(2).fit_transform(X), two)
    # (v·m)v of v = (1, 1, 0)/√2 and m is (15, 15, 0): the paper's print projects x, not x − m
    assert np.allclose(iso.AllButTheTop(1, as_published=True).fit_transform(X), np.array(one) - [15, 15, 0])


@pytest.mark.parametrize("n", [300, 12])
def test_published_procedure(rng, n: int) -> None:
    """Algorithm 1 of Mu and Viswanath, by singular vectors of the centred rows."""
    X = rng.normal(size=(n, 20)) * np.linspace(3, 0.1, 20) + rng.normal(size=20)
    centred = X - X.mean(axis=0)
    U = np.linalg.svd(centred, full_matrices=False)[2][:4]
    assert np.allclose(iso.AllButTheTop(4).fit_transform(X), centred - centred @ U.T @ U)
    published = iso.AllButTheTop(4, as_published=True).fit_transform(X)
    assert np.allclose(published, centred - X @ U.T @ U)


@pytest.mark.parametrize(("d", "k"), [(5, 1), (250, 2), (384, 3)])
def test_default_number(rng, d: int, k: int) -> None:
    assert iso.AllButTheTop().fit(rng.normal(size=(20, d))).components_.shape == (k, d)


def test_nothing_is_left_along_the_directions(rng) -> None:
    X = rng.normal(size=(100, 8)).astype(np.float32)
    fitted = iso.AllButTheTop(3).fit(X)
    assert np.abs(fitted.transform(X) @ fitted.components_.T).max() < 1e-6
    assert not hasattr(fitted, "inverse_transform")


def test_bad_requests(rng) -> None:
    X = rng.normal(size=(5, 8))
    with pytest.raises(iso.InputError, match=r"`n_components` is 6, and the 5 vectors have rank 4"):
        iso.AllButTheTop(6).fit(X)
    flat = X[:, :2] @ rng.normal(size=(2, 8))
    with pytest.raises(iso.InputError, match="rank 2"):
        iso.AllButTheTop(3).fit(flat)
    for k in (0, 9, 1.5, True, "2"):
        with pytest.raises(iso.InputError, match=r"`n_components` (is|must be)"):
            iso.AllButTheTop(k).fit(X)
    with raises(argument="X", message="equal points"):
        iso.AllButTheTop(1).fit(np.ones((5, 8)))
    with raises(argument="X", message="n_samples = 1"):
        iso.AllButTheTop(1).fit(X[:1])


@pytest.mark.parametrize("as_published", [False, True])
def test_something_must_be_left(rng, as_published: bool) -> None:
    X = rng.normal(size=(50, 4))
    with pytest.raises(
        iso.InputError, match="`n_components` is 4, and X has n_features = 4; expected at most 3"
    ):
        iso.AllButTheTop(4, as_published=as_published).fit(X)
    with pytest.raises(iso.InputError, match="n_features = 1"):
        iso.AllButTheTop(as_published=as_published).fit(X[:, :1])
    with pytest.raises(iso.InputError, match="`n_components` is 2, and the 3 vectors have rank 2"):
        iso.AllButTheTop(2, as_published=as_published).fit(X[:3])
    with pytest.raises(iso.InputError, match="`n_components` is 4, and X has n_features = 4"):
        iso.corrections.ClusterwiseAllButTheTop(2, 4, small="keep").fit(X)
    assert np.ptp(iso.AllButTheTop(3, as_published=as_published).fit_transform(X), axis=0).max() > 0.1
