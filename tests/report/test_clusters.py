from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_samples

from isoscope.engine import plan
from isoscope.report.clusters import Silhouettes
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics


@pytest.fixture
def labelled(rng) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 3, 1500)
    return rng.normal(size=(1500, 5)) + 2 * np.eye(5)[y], y


def silhouettes_of(X: np.ndarray, y: np.ndarray, rows: list[int]) -> Silhouettes:
    return Silhouettes.of(Statistics(Space(X, labels=y)), rows=torch.tensor(rows))


def test_exact(labelled) -> None:
    X, y = labelled
    found = silhouettes_of(X, y, [3, 1])
    wanted = silhouette_samples(X, y)
    assert found.is_exact
    np.testing.assert_allclose(found.points.numpy(), wanted[[3, 1]], atol=1e-9)
    for label in found.labels:
        own = wanted[y == label.name]
        assert label.n == len(own)
        assert label.interval is None
        assert label.mean == pytest.approx(own.mean(), abs=1e-9)
        np.testing.assert_allclose(label.quantiles, np.quantile(own, [0.1, 0.25, 0.5, 0.75, 0.9]), atol=1e-9)


def test_many_points_are_estimated_within_their_interval(labelled, monkeypatch) -> None:
    X, y = labelled
    monkeypatch.setattr(plan, "EXACT_PAIRS", 100**2)
    found = silhouettes_of(X, y, [3, 1])
    wanted = silhouette_samples(X, y)
    assert not found.is_exact
    np.testing.assert_allclose(found.points.numpy(), wanted[[3, 1]], atol=1e-6)
    for label in found.labels:
        assert label.mean == pytest.approx(wanted[y == label.name].mean(), abs=0.01)
        spread = np.quantile(wanted[y == label.name], [0.1, 0.25, 0.5, 0.75, 0.9])
        np.testing.assert_allclose(label.quantiles, spread, atol=0.15)


def test_a_point_alone_scores_0_either_way(labelled, monkeypatch) -> None:
    X, y = labelled
    y = y.copy()
    y[0] = 9
    for exact_rows in (100, 10_000):
        monkeypatch.setattr(plan, "EXACT_PAIRS", exact_rows**2)
        found = silhouettes_of(X, y, [0])
        assert found.is_exact is (exact_rows > 100)
        assert found.points.tolist() == [0]
        assert found.labels[-1].mean == 0
        assert found.labels[-1].quantiles == (0, 0, 0, 0, 0)
