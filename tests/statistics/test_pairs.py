from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from isoscope.errors import LabelError
from isoscope.kernels.tiles import Arranged
from isoscope.labels import Labels
from isoscope.statistics import ClusterDistances, Separation
from isoscope.statistics.pairs import sums_between


@pytest.fixture
def labelled(rng):
    y = np.array(list("abcd"))[rng.integers(0, 4, 200)]
    return rng.normal(size=(200, 7)), y


def summed(A: np.ndarray, B: np.ndarray, y: np.ndarray) -> np.ndarray:
    distances = cdist(A, B)
    return np.stack([distances[:, y == name].sum(axis=1) for name in "abcd"], axis=1)


def test_sums_to_every_cluster(labelled) -> None:
    X, y = labelled
    found = ClusterDistances.of(X, y)
    assert np.allclose(found.sums, summed(X, X, y), rtol=1e-12)
    assert found.counts.tolist() == [(y == name).sum() for name in "abcd"]


def test_queries_against_blocks_merge_to_the_whole(labelled) -> None:
    X, y = labelled
    queries, own = X[:50], y[:50]
    found = ClusterDistances.between(queries, own, X[:80], y[:80]).update(queries, X[80:], y[80:])
    assert np.allclose(found.sums, summed(queries, X, y), rtol=1e-12)
    assert np.allclose(Separation.from_sums(found).cohesion, Separation.of(X, y).cohesion[:50])


def test_a_cluster_not_seen_yet_is_infinitely_far(labelled) -> None:
    X, y = labelled
    found = ClusterDistances.between(X, y, X[y != "d"], y[y != "d"])
    separation = Separation.from_sums(found)
    assert torch.isfinite(separation.separation).all()
    assert not (separation.nearest == 3).any()
    with pytest.raises(LabelError, match="'e', which query_labels does not name"):
        ClusterDistances.between(X, y, X[:1], ["e"])


def test_separation(labelled) -> None:
    X, y = labelled
    found = Separation.of(X, y)
    means = summed(X, X, y) / [(y == name).sum() for name in "abcd"]
    own = np.searchsorted(list("abcd"), y)
    means[np.arange(200), own] = np.inf
    assert np.allclose(found.separation, means.min(axis=1))
    assert np.array_equal(found.nearest, means.argmin(axis=1))


def test_progress_runs_to_the_end(labelled, monkeypatch) -> None:
    X, y = labelled
    for limit in (256, 0):
        monkeypatch.setattr("isoscope.statistics.budget.MEMORY_MB", limit)
        seen: list[float] = []
        Separation.of(X, y, progress=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == pytest.approx(1.0)


def test_labels_are_checked_before_work() -> None:
    with pytest.raises(LabelError):
        Separation.of(np.eye(3), [0, 0, 0])


def test_sums_are_frozen(labelled) -> None:
    with pytest.raises(AttributeError):
        ClusterDistances.of(*labelled).sums = torch.zeros(1)


@pytest.mark.parametrize("apart", [0.0, 1.0, 1e9, 1e20])
@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e-30])
@pytest.mark.parametrize("K", [2, 40])
def test_sums_between_two_arrangements(K: int, scale: float, apart: float) -> None:
    """However far apart the two are, and however much their spreads differ."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(90, 40)), apart + scale * rng.normal(size=(70, 40))
    A, B = (torch.from_numpy(rows).float() for rows in (A, B))
    a, b = (Labels(torch.arange(len(rows)) % K, tuple(range(K))) for rows in (A, B))
    here, there = sums_between(Arranged.of(A, a, tile_rows=32), Arranged.of(B, b, tile_rows=32), K)
    exact = torch.from_numpy(cdist(A.double(), B.double()))
    for sums, distances, labels in ((here, exact, b), (there, exact.T, a)):
        expected = torch.zeros(K, len(distances), dtype=torch.float64)
        expected.index_add_(0, labels.codes, distances.T.contiguous())
        assert torch.allclose(sums, expected, rtol=1e-6)
