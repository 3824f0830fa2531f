from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import skew
from sklearn.neighbors import NearestNeighbors

import isoscope as iso
from isoscope.errors import InputError, UndefinedError


@pytest.fixture
def skdim():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import skdim
    return skdim


def test_lid_equals_scikit_dimension(rng, skdim) -> None:
    X = rng.normal(size=(600, 6))
    expected = skdim.id.MLE().fit(X, n_neighbors=20).dimension_pw_
    assert np.allclose(iso.metrics.lid_samples(X, k=20), expected, rtol=1e-10)
    assert iso.lid(X, k=20) == pytest.approx(expected.mean(), rel=1e-10)


def test_twonn_equals_scikit_dimension(rng, skdim) -> None:
    for d in (2, 5, 40):
        X = rng.normal(size=(700, d))
        assert iso.twonn(X) == pytest.approx(skdim.id.TwoNN().fit_transform(X), rel=1e-9)
        published = skdim.id.TwoNN(discard_fraction=0.3).fit_transform(X)
        assert iso.twonn(X, discard=0.3) == pytest.approx(published, rel=1e-9)


def test_dimension_of_known_manifolds(rng) -> None:
    for d in (1, 2, 5):
        X = rng.uniform(size=(4000, d)) @ rng.normal(size=(d, 12))
        assert iso.twonn(X) == pytest.approx(d, rel=0.12)
        assert iso.lid(X, k=50) == pytest.approx(d, rel=0.15)
    assert 0 < iso.twonn(rng.normal(size=(50, 3)), discard=0.0) < 20


def test_squared_distances_halve_the_dimension(rng) -> None:
    """What Cai et al.'s code computes: their own numbers come out, by that name only."""
    X = rng.normal(size=(300, 5))
    assert iso.lid(X, k=30, squared=True) == pytest.approx(iso.lid(X, k=30) / 2)


def test_duplicates_are_dropped(rng) -> None:
    X = rng.normal(size=(500, 3))
    doubled = np.vstack([X, X[:50]])
    assert np.isfinite(iso.lid(doubled, k=20))
    assert iso.twonn(doubled) == pytest.approx(3, rel=0.25)


def test_hubness_equals_brute_force(rng) -> None:
    X = rng.normal(size=(400, 60))
    indices = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
    counts = np.bincount(indices.ravel(), minlength=400)
    assert np.array_equal(iso.metrics.k_occurrence(X), counts)
    assert iso.hubness(X) == pytest.approx(skew(counts))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: iso.lid(np.eye(5), k=3), UndefinedError, "no point has neighbours at different distances"),
        (lambda: iso.lid(np.eye(5)), InputError, r"`k` must be a whole number from 1 to 4.*got 100"),
        (lambda: iso.twonn(np.ones((5, 2))), UndefinedError, "two different neighbours"),
        (lambda: iso.twonn(np.eye(5), discard=1.0), InputError, r"`discard` must be .*got 1.0"),
        (lambda: iso.hubness(np.eye(3), k=0), InputError, r"`k` must be .*got 0"),
    ],
)
def test_undefined_is_said(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_dimensions_want_euclidean_neighbours_and_hubs_take_any(rng) -> None:
    X = rng.normal(size=(60, 5))
    cosine = iso.statistics.Neighbors.of(X, k=10, metric="cosine")
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert iso.hubness(cosine, k=10) == iso.hubness(units, k=10)
    for dimension in (iso.metrics.lid_samples, iso.lid):
        with pytest.raises(InputError, match="these Neighbors are cosine"):
            dimension(cosine, k=10)
    with pytest.raises(InputError, match="these Neighbors are cosine"):
        iso.twonn(cosine)
