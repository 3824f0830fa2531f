"""k-means against scikit-learn and brute force; the number of clusters against lumps that were put there."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score as reference_silhouette
from tests.raising import raises

import isoscope as iso
from isoscope.clustering import choose_clusters, kmeans


def lumps(n: int, d: int, K: int, *, apart: float = 3.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(K, d))[y], y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 500.0])
def test_the_same_start_gives_scikit_learns_centres(dtype: type, offset: float) -> None:
    X = (lumps(3000, 12, 5)[0] + offset).astype(dtype)
    start = X[:5]
    theirs = KMeans(5, init=start, n_init=1).fit(X)
    ours = kmeans(X, 5, init=start)
    np.testing.assert_array_equal(ours.labels.codes.numpy(), theirs.labels_)
    np.testing.assert_allclose(ours.centers.numpy(), theirs.cluster_centers_, rtol=1e-5, atol=1e-4)
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-5)
    assert ours.n_steps == theirs.n_iter_
    assert ours.centers.dtype == getattr(torch, np.dtype(dtype).name)


def test_inertia_is_no_worse_than_scikit_learns() -> None:
    worse = []
    for seed in range(8):
        X, _ = lumps(1500, 8, 12, apart=1.5, seed=seed)
        theirs = KMeans(10, n_init=1, random_state=seed).fit(X).inertia_
        worse.append(kmeans(X, 10, seed=seed).inertia / theirs)
    assert np.mean(worse) < 1.01


@pytest.mark.slow
def test_few_points_reach_the_true_minimum() -> None:
    X = np.random.default_rng(0).normal(size=(9, 2))
    best = min(
        sum(((X[np.array(y) == k] - X[np.array(y) == k].mean(0)) ** 2).sum() for k in range(3))
        for y in itertools.product(range(3), repeat=9)
        if len(set(y)) == 3
    )
    assert kmeans(X, 3, n_init=20).inertia == pytest.approx(best)


def test_more_starts_are_never_worse() -> None:
    X, _ = lumps(400, 4, 9, apart=2.0)
    one, many = kmeans(X, 9, seed=3).inertia, kmeans(X, 9, seed=3, n_init=10).inertia
    assert many < one


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = lumps(2000, 6, 4)
    whole = kmeans(X, 4, seed=1)
    monkeypatch.setattr("isoscope.clustering._WHOLE_NUMBERS", 0)
    monkeypatch.setattr("isoscope.clustering._BLOCK_NUMBERS", 6 * 256)
    parts = kmeans(X, 4, seed=1)
    assert parts.inertia == pytest.approx(whole.inertia, rel=1e-12)
    assert torch.equal(parts.labels.codes, whole.labels.codes)


def test_the_seed_decides() -> None:
    X, _ = lumps(500, 3, 8, apart=1.0)
    assert torch.equal(kmeans(X, 6, seed=4).centers, kmeans(X, 6, seed=4).centers)
    assert len({kmeans(X, 6, seed=seed).inertia for seed in range(5)}) > 1


def test_a_cluster_left_empty_takes_the_farthest_point() -> None:
    X = np.array([[0.0], [0.1], [0.2], [9.0]])
    found = kmeans(X, 2, init=[[0.1], [-50.0]])
    assert found.labels.counts.tolist() == [3, 1]
    assert found.centers.flatten().tolist() == pytest.approx([0.1, 9.0])
    assert float(kmeans(X, 2, init=[[0.1], [-50.0]], max_iter=1).centers[1]) == pytest.approx(9.0)


def test_one_cluster_is_the_mean() -> None:
    X, _ = lumps(300, 5, 2)
    found = kmeans(X, 1)
    np.testing.assert_allclose(found.centers[0].numpy(), X.mean(0))
    assert found.inertia == pytest.approx(((X - X.mean(0)) ** 2).sum())


def test_steps_and_tolerance_bound_the_rounds() -> None:
    X, _ = lumps(2000, 6, 10, apart=0.5)
    full = kmeans(X, 10, seed=2, tol=0.0)
    assert kmeans(X, 10, seed=2, max_iter=2).n_steps == 2 < full.n_steps
    assert kmeans(X, 10, seed=2, tol=0.1).n_steps < full.n_steps
    assert kmeans(X, 10, seed=2, max_iter=2).inertia > full.inertia
    with pytest.warns(DeprecationWarning, match="use `max_iter`"):
        assert kmeans(X, 10, seed=2, max_steps=2).n_steps == 2


@pytest.mark.parametrize("max_iter", [1, 3, 300])
def test_every_point_is_with_the_nearest_of_the_centres_returned(max_iter: int) -> None:
    X, _ = lumps(500, 4, 7, apart=1.0)
    found = kmeans(X, 7, seed=1, max_iter=max_iter)
    squared = ((X[:, None] - found.centers.numpy()[None]) ** 2).sum(2)
    np.testing.assert_array_equal(found.labels.codes.numpy(), squared.argmin(1))
    assert found.inertia == pytest.approx(squared.min(1).sum())


def test_the_tolerance_is_relative_to_the_spread() -> None:
    X, _ = lumps(2000, 6, 10, apart=0.5)
    plain = kmeans(X, 10, seed=2, tol=0.01)
    for scale in (1e-3, 1e3):
        assert (
            kmeans(scale * X, 10, init=scale * X[:10], tol=0.01).n_steps
            == kmeans(X, 10, init=X[:10], tol=0.01).n_steps
        )
    assert 2 < plain.n_steps < kmeans(X, 10, seed=2, tol=0.0).n_steps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": 0}, "from 1 to 10"),
        ({"n_clusters": 11}, "from 1 to 10"),
        ({"n_clusters": 2.0}, "whole number"),
        ({"n_clusters": 2, "seed": -1}, "`seed` must be a whole number"),
        ({"n_clusters": 2, "n_init": 0}, r"`n_init` must be .*got 0"),
        ({"n_clusters": 2, "max_iter": 0}, r"`max_iter` must be .*got 0"),
        ({"n_clusters": 2, "init": np.zeros((3, 4))}, r"`init` has shape \(3, 4\)"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    X = np.random.default_rng(0).normal(size=(10, 4))
    with pytest.raises(iso.InputError, match=message):
        kmeans(X, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("K", [2, 4, 7])
def test_as_many_clusters_as_were_put_there(K: int) -> None:
    X, y = lumps(1500, 16, K, apart=4.0, seed=K)
    found = choose_clusters(X, max_clusters=9, n_init=3)
    assert found.n_clusters == K
    pairs = set(zip(found.labels.codes.tolist(), y.tolist(), strict=True))
    assert len(pairs) == K
    assert found.silhouettes[K] == found.silhouette == max(found.silhouettes.values())
    assert sorted(found.silhouettes) == list(range(2, 10))
    assert found.silhouette == pytest.approx(reference_silhouette(X, found.labels.codes.numpy()), abs=1e-6)


def test_a_ball_is_one_cluster() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 30))
    found = choose_clusters(X, max_clusters=5)
    assert found.n_clusters == 1
    assert found.silhouette < 0.1
    assert found.labels.counts.tolist() == [2000]
    assert choose_clusters(X, max_clusters=5, min_silhouette=-1.0).n_clusters > 1


@pytest.mark.slow
def test_the_silhouette_is_taken_on_a_sample() -> None:
    X, _ = lumps(2000, 4, 3, apart=2.0)
    whole, some = choose_clusters(X, sample=None), choose_clusters(X, sample=300)
    assert some.n_clusters == whole.n_clusters
    assert some.silhouette != whole.silhouette
    assert some.silhouette == pytest.approx(whole.silhouette, abs=0.05)
    estimated = choose_clusters(X, sample=None, tolerance=0.01)
    assert estimated.silhouette == pytest.approx(whole.silhouette, abs=0.02)


def test_too_few_points_to_compare() -> None:
    with pytest.raises(iso.UndefinedError, match="at least 3 different points"):
        choose_clusters([[0.0], [1.0]])
    with raises(iso.InputError, argument="max_clusters", got=1):
        choose_clusters([[0.0], [1.0], [2.0]], max_clusters=1)
    with raises(iso.InputError, argument="sample", got=2):
        choose_clusters(np.eye(5), sample=2)
