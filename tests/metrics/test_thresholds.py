from __future__ import annotations

import numpy as np
import pytest

import isoscope as iso
from isoscope.metrics.thresholds import THRESHOLDS, Threshold, clusters, lengths


def meaning(X: np.ndarray, metric: str, **known: object) -> str:
    return iso.measure(X, metrics=metric, **known).readings[0].meaning


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_threshold_is_the_first_value_of_its_severity(name: str) -> None:
    threshold: Threshold = THRESHOLDS[name]
    before = threshold.moderate - 1e-9 * (threshold.serious - threshold.moderate)
    assert threshold.severity(before) == "healthy"
    assert threshold.severity(threshold.moderate) == "moderate"
    assert threshold.severity(threshold.serious) == "serious"


def test_silhouettes_by_squares_have_the_words_of_the_one_by_distances(rng) -> None:
    """The directions of unit vectors: 1 − cosine is half the squared distance."""
    y = rng.integers(0, 4, 400)
    for spread in (0.2, 0.5, 1.0, 5.0):
        X = rng.normal(size=(400, 8)) * spread + np.eye(8)[y]
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        for metric in ("silhouette", "silhouette_cosine", "silhouette_squared"):
            assert clusters(iso.silhouette_score(X, y)) in meaning(X, metric, labels=y)


def test_shares_of_a_mean_cosine_near_0_say_little(rng) -> None:
    X = rng.normal(size=(500, 6)) + 0.1
    assert 0 < iso.mean_cosine(X) < 0.1
    for metric in ("top_dimension_share", "dimensions_for_half"):
        assert "says little" in meaning(X, metric)
        assert "says little" not in meaning(X + 1, metric)


def test_lengths_that_differ_by_rounding_are_the_same(rng) -> None:
    X = rng.normal(size=(500, 64))
    units = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    assert iso.metrics.norm_variation(units) == iso.metrics.norm_variation(units.astype(np.float64)) == 0
    assert meaning(units, "norm_variation") == lengths(0.0) == "all vectors have the same length"
