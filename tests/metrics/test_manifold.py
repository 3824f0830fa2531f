from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import skew
from sklearn.neighbors import NearestNeighbors
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, UndefinedError
from isoscope.kernels.nearest import Search


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


NEIGHBOUR_METRICS = ["hubness", "lid", "twonn", "gride", "correlation_dimension"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("n_times", [2, 130])  # 130 copies fill the list of 100 neighbours
def test_copies_count_once(rng, dtype: type, n_times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row and its copy as the two neighbours of a point have r₂/r₁ = 1, which is no sign of dimension."""
    X = rng.normal(size=(400, 40)).astype(dtype)
    repeated = np.concatenate([X, *[X[: 200 if n_times == 2 else 3]] * (n_times - 1)])
    first = np.sort(np.unique(repeated, axis=0, return_index=True)[1])
    expected = iso.measure(repeated[first], metrics=NEIGHBOUR_METRICS)
    searches, search = [], Search.nearest
    monkeypatch.setattr(Search, "nearest", lambda *given: searches.append(1) or search(*given))
    found = iso.measure(repeated, metrics=NEIGHBOUR_METRICS)
    assert len(searches) == 1
    for name in NEIGHBOUR_METRICS:
        metric = getattr(iso.metrics, name)
        assert metric(repeated) == pytest.approx(metric(repeated[first]), rel=1e-12), name
        assert found[name] == pytest.approx(expected[name], rel=1e-12), name
    for one, other in zip(found.readings, expected.readings, strict=True):
        error = other.standard_error
        assert one.standard_error == (error and pytest.approx(error, rel=1e-9)), one.metric
    assert set(found.notes) - set(expected.notes)  # how many rows were left out
    assert any(f"{len(repeated) - 400} rows" in note for note in found.notes)
    with raises(argument="X", wanted="Neighbors of rows that differ"):
        iso.twonn(iso.statistics.Neighbors.of(repeated, k=2))


def test_a_copy_has_the_value_of_its_row(rng) -> None:
    X = rng.normal(size=(60, 4))
    repeated = np.concatenate([X[:1], np.zeros((1, 4)), X, X[5:9]])
    for samples in (lambda Z: iso.metrics.lid_samples(Z, k=20), lambda Z: iso.metrics.k_occurrence(Z, k=5)):
        of_rows, found = samples(X), samples(repeated)
        assert np.array_equal(found[2:], np.concatenate([of_rows, of_rows[5:9]]))
        assert found[0] == of_rows[0]
    assert np.isnan(iso.metrics.lid_samples(repeated, k=20)[1])
    assert iso.metrics.k_occurrence(repeated, k=5)[1] == 0


def test_copies_are_no_hubs(rng) -> None:
    """Of 60 equal rows the first 10 would be the neighbours of all others near by."""
    X = rng.normal(size=(300, 3))
    copied = np.concatenate([np.repeat(X[:1], 60, axis=0), X[1:]])
    indices = NearestNeighbors(n_neighbors=10).fit(copied).kneighbors(return_distance=False)
    assert skew(np.bincount(indices.ravel(), minlength=len(copied))) > 2 + iso.hubness(X)
    assert iso.hubness(copied) == pytest.approx(iso.hubness(X), rel=1e-12)


def test_twonn_of_few_points_is_noted(rng) -> None:
    X = rng.normal(size=(4, 8))
    notes = iso.measure(X, metrics="twonn").notes
    assert any("twonn of 4 points" in note and "50%" in note for note in notes)
    assert not any("twonn" in note for note in iso.measure(rng.normal(size=(40, 8)), metrics="twonn").notes)
    for few in (X[:2], np.ones((5, 2)), np.vstack([X[:2], X[:1]])):
        with pytest.raises(UndefinedError, match="two different neighbours"):
            iso.twonn(few)
        if few.any() and not (few == few[0]).all():
            assert "two different neighbours" in iso.measure(few, metrics="twonn").readings[0].reason


def test_hubness_equals_brute_force(rng) -> None:
    X = rng.normal(size=(400, 60))
    indices = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
    counts = np.bincount(indices.ravel(), minlength=400)
    assert np.array_equal(iso.metrics.k_occurrence(X), counts)
    assert iso.hubness(X) == pytest.approx(skew(counts))


def test_zero_vectors_are_left_out(rng) -> None:
    """Among unit vectors they are as far from every row: everyone's neighbour, and of a dimension of 1e7."""
    X = rng.normal(size=(400, 60))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    y = rng.integers(0, 3, 400)
    places = [0, 5, 5, 399, 400]
    with_zeros, with_labels = np.insert(X, places, 0, axis=0), np.insert(y, places, 2)
    assert iso.metrics.k_occurrence(with_zeros)[(with_zeros == 0).all(axis=1)].tolist() == [0] * 5
    assert np.isnan(iso.metrics.lid_samples(with_zeros)).sum() == 5
    for metric in (iso.hubness, iso.lid, iso.twonn, iso.metrics.gride, iso.metrics.correlation_dimension):
        assert metric(with_zeros) == pytest.approx(metric(X), rel=1e-9)
    assert iso.knn_purity(with_zeros, with_labels) == iso.knn_purity(X, y)
    names = ["hubness", "lid", "twonn", "gride", "correlation_dimension", "knn_purity"]
    without = iso.measure(X, labels=y, metrics=names)
    for one in iso.measure(with_zeros, labels=with_labels, metrics=names).readings:
        assert one.value == pytest.approx(without[one.metric], rel=1e-9)
        expected = next(other for other in without.readings if other.metric == one.metric).standard_error
        assert one.standard_error == (None if expected is None else pytest.approx(expected, rel=0.2))
    assert np.isfinite(iso.hubness(np.eye(3)[:, :2], k=1))


def test_spaces_of_zero_vectors_alone_are_searched() -> None:
    assert iso.metrics.k_occurrence(np.zeros((3, 2)), k=1).sum() == 3


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
