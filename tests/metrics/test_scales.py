from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from sklearn.neighbors import NearestNeighbors
from tests.metrics.peers import rows, sequence
from tests.raising import raises

import isoscope as iso
from isoscope.metrics import correlation_dimension, dimension_scales, gride
from isoscope.metrics.scales import gride_error
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.neighbors import Neighbors


def log_likelihood(ratios: np.ndarray, d: float, k: int) -> float:
    """Denti et al. 2022, equation 5, with n1 = k and n2 = 2k."""
    numerator = np.log(d) + (k - 1) * np.log(ratios**d - 1)
    return float((numerator - ((2 * k - 1) * d + 1) * np.log(ratios) - betaln(k, k)).sum())


@pytest.mark.parametrize("k", [1, 2, 7, 16])
@pytest.mark.parametrize("d", [1, 4, 30])
def test_gride_maximises_the_published_likelihood(rng: np.random.Generator, d: int, k: int) -> None:
    X = rng.normal(size=(300, d))
    distances = NearestNeighbors(n_neighbors=2 * k).fit(X).kneighbors()[0]
    ratios = distances[:, -1] / distances[:, k - 1]
    best = minimize_scalar(
        lambda d: -log_likelihood(ratios, d, k), bounds=(0.1, 100), method="bounded", options={"xatol": 1e-9}
    )
    assert gride(X, k=k) == pytest.approx(best.x, rel=1e-6)


def test_gride_at_the_distances_of_dadapy() -> None:
    """DADApy 0.3.4 returns them beside its values, which tests/metrics/peers.json has."""
    theirs = [0.090904, 0.11977, 0.15458, 0.197426, 0.25078, 0.318421]
    scales = dimension_scales(sequence(800), max_k=32).of_method("gride")
    assert [one.distance for one in scales] == pytest.approx(theirs, rel=1e-5)
    # its derivative of the likelihood has (n − 1)/d in place of n/d: with k = 1 exactly this
    (first,) = (row for row in rows() if row.metric == "gride, k = 1")
    assert scales[0].value * 799 / 800 == pytest.approx(first.theirs, rel=1e-8)


def manifolds(rng: np.random.Generator, n: int) -> dict[int, np.ndarray]:
    """Return points of manifolds by their dimension: a circle, a sphere and a cube, turned."""
    angles = 2 * np.pi * rng.random(n)
    sphere = rng.normal(size=(n, 3))
    return {
        1: np.stack([np.cos(angles), np.sin(angles)], axis=1),
        2: sphere / np.linalg.norm(sphere, axis=1, keepdims=True),
        4: rng.uniform(size=(n, 4)) @ rng.normal(size=(4, 20)),
    }


@pytest.mark.parametrize("d", [1, 2, 4])
def test_known_manifolds(rng: np.random.Generator, d: int) -> None:
    X = manifolds(rng, 1500)[d]
    for k in (1, 4, 16):
        assert gride(X, k=k) == pytest.approx(d, rel=0.13)
    assert correlation_dimension(X) == pytest.approx(d, rel=0.13)


def test_noise_shows_at_small_scales_only(rng: np.random.Generator) -> None:
    """A line with noise in 10 dimensions: many dimensions near by, one far away."""
    X = np.zeros((1000, 10))
    X[:, 0] = rng.uniform(size=1000)
    scales = dimension_scales(X + 0.002 * rng.normal(size=X.shape), max_k=128)
    for method in ("gride", "correlation_dimension"):
        values = [one.value for one in scales.of_method(method)]
        assert values[0] > 2.5
        assert values[-1] < 1.3


def test_correlation_dimension_is_that_of_scikit_dimension(rng: np.random.Generator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import skdim
    for d in (2, 6):
        X = rng.normal(size=(500, d))
        for k in (5, 10):
            expected = skdim.id.CorrInt(k1=k, k2=2 * k).fit_transform(X)
            assert correlation_dimension(X, k=k) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 6])
def test_standard_errors_match_the_spread_over_samples(rng: np.random.Generator, d: int) -> None:
    """Neither much too small, as Fisher information is, nor twice too large."""
    values, errors = [], []
    for _ in range(40):
        shelf = Statistics(iso.Space(rng.uniform(size=(400, d))))
        metrics = [iso.registered()[name] for name in ("gride", "correlation_dimension")]
        values.append([metric.compute(shelf) for metric in metrics])
        errors.append([metric.error(shelf) for metric in metrics])
    ratios = np.mean(errors, axis=0) / np.std(values, axis=0, ddof=1)
    assert (ratios > 0.75).all()
    assert (ratios < 1.9).all()


def test_duplicates_are_dropped_and_ties_counted(rng: np.random.Generator) -> None:
    X = rng.uniform(size=(600, 2))
    doubled = np.vstack([X, X[:60]])
    assert gride(doubled, k=1) == pytest.approx(2, rel=0.2)
    assert dimension_scales(doubled, max_k=8).rows == dimension_scales(X, max_k=8).rows
    assert np.isfinite(gride_error(Neighbors.of(doubled, k=4), 2))
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    assert gride(grid, k=6) > 2  # of many points neighbours 6 and 12 are equally far


def test_the_result_is_a_table(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    scales = dimension_scales(X, max_k=64)
    assert [one.k for one in scales.rows] == [1, 2, 4, 8, 16] * 2
    table = scales.to_pandas()
    assert list(table) == ["method", "k", "distance", "value", "standard_error", "low", "high"]
    assert ((table.low < table.value) & (table.value < table.high)).all()
    assert "60 points" in str(scales)
    assert [one.value for one in scales.of_method("gride")] == [gride(X, k=k) for k in (1, 2, 4, 8, 16)]
    pairs = [one.value for one in scales.of_method("correlation_dimension")]
    assert pairs == pytest.approx([correlation_dimension(X, k=k) for k in (1, 2, 4, 8, 16)])


def test_measure_takes_both_and_says_what_is_missing(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 4))
    measured = iso.measure(X, metrics=["gride", "correlation_dimension"], errors=True)
    assert measured["gride"] == gride(X)
    assert measured["correlation_dimension"] == correlation_dimension(X)
    few = iso.measure(X[:12], metrics=["gride", "correlation_dimension"])
    assert "more than 32 points" in few.readings[0].reason
    assert "20 neighbours" in few.readings[1].reason


def test_bad_input(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 2))
    with raises(iso.InputError, argument="k", got=0):
        gride(X, k=0)
    with raises(iso.InputError, argument="k", got=30):
        gride(X, k=15)
    with raises(iso.InputError, argument="max_k", got=0):
        dimension_scales(X, max_k=0)
    with pytest.raises(iso.UndefinedError, match="gride is undefined"):
        gride(np.ones((20, 2)), k=2)
    with pytest.raises(iso.UndefinedError, match="correlation_dimension is undefined"):
        correlation_dimension(np.ones((50, 2)))
    with pytest.raises(iso.InputError, match="these Neighbors are cosine"):
        gride(Neighbors.of(X, k=8, metric="cosine"), k=2)
