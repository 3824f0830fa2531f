from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf as their_ledoit_wolf
from tests.raising import raises

import isoscope as iso
from isoscope.statistics.principal import Principal, ledoit_wolf


@pytest.mark.parametrize(("n", "d"), [(300, 12), (9, 40)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_directions_and_variances_are_numpy_s(rng, n: int, d: int, dtype: type) -> None:
    X = (rng.normal(size=(n, d)) * np.linspace(3, 0.5, d) + 5).astype(dtype).astype(np.float64)
    found = Principal.of(X.astype(dtype))
    roots, directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[1:]
    rank = min(d, n - 1)
    assert (found.rank, found.n_dims) == (rank, d)
    np.testing.assert_allclose(found.eigenvalues.numpy(), roots[:rank] ** 2 / (n - 1), rtol=1e-9)
    same = np.abs(np.sum(directions[:rank] * found.directions.numpy(), axis=1))
    np.testing.assert_allclose(same, 1, atol=1e-7)
    strongest = np.abs(found.directions.numpy()).argmax(axis=1)
    assert (found.directions.numpy()[np.arange(rank), strongest] > 0).all()


def test_coordinates_are_about_the_mean(rng) -> None:
    X = rng.normal(size=(50, 6)) * [5, 4, 3, 2, 1, 1] + 9
    found = Principal.of(X)
    coordinates = found.coordinates(X).numpy()
    np.testing.assert_allclose(np.cov(coordinates.T), np.diag(found.eigenvalues.numpy()), atol=1e-9)
    np.testing.assert_allclose(coordinates.mean(axis=0), 0, atol=1e-12)


def test_directions_that_are_rounding_are_not_kept(rng) -> None:
    flat = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 8))
    found = Principal.of(flat + 1000)
    assert found.rank == 3
    whole = found.completed()
    assert whole.eigenvalues[3:].tolist() == [0.0] * 5
    np.testing.assert_allclose((whole.directions @ whole.directions.T).numpy(), np.eye(8), atol=1e-12)
    np.testing.assert_array_equal(whole.directions[:3].numpy(), found.directions.numpy())


def test_nothing_to_find() -> None:
    with raises(argument="X", message="n_samples = 1", wanted="2 vectors for Whiten"):
        Principal.of([[1.0, 2.0]], what="Whiten")
    with raises(argument="X", message="3 equal points"):
        Principal.of([[1.0, 2.0]] * 3)


@pytest.mark.parametrize("n", [20, 500])
def test_shrinkage_is_scikit_learn_s(rng, n: int) -> None:
    X = rng.normal(size=(n, 30)) * np.linspace(2, 0.1, 30) + 3
    assert ledoit_wolf(iso.Moments.of(X)) == pytest.approx(their_ledoit_wolf(X)[1], rel=1e-9)
