"""Separability against the best classifiers of Gaussians, and its errors where nothing differs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import f as snedecor
from scipy.stats import norm, rankdata
from tests.raising import raises

from isoscope.comparison import separability
from isoscope.comparison.separability import features
from isoscope.errors import ShapeError, UndefinedError


@pytest.mark.parametrize("shift", [0.5, 1.0, 3.0])
def test_two_gaussians_of_one_covariance(rng, shift: float) -> None:
    """Φ(δ/√2) and 2Φ(δ/2) − 1; what has to be learnt is found a little short."""
    A = rng.normal(size=(3, 3))  # any covariance: δ is the Mahalanobis distance
    X, Y = rng.normal(size=(2, 3000, 3))
    Y[:, 0] += shift
    found = separability(X @ A, Y @ A)
    assert norm.cdf(shift / np.sqrt(2)) - 0.03 < found.auc < found.auc_interval[1]
    assert found.auc_interval[0] < norm.cdf(shift / np.sqrt(2))
    assert abs(found.total_variation - (2 * norm.cdf(shift / 2) - 1)) < 0.05


def test_a_change_of_scale_alone(rng) -> None:
    """Means are equal; ‖x‖² is χ² of d, so the best area is P(F_dd < s²)."""
    X, Y = rng.normal(size=(2, 3000, 10))
    found = separability(X, 1.3 * Y)
    assert abs(found.auc - snedecor.cdf(1.3**2, 10, 10)) < 0.03


def test_a_share_of_new_rows_is_the_total_variation(rng) -> None:
    X, Y = rng.normal(size=(2, 2000, 16))
    Y[:200] += 5
    found = separability(X, Y)
    assert found.total_variation_interval[0] < 0.1 < found.total_variation_interval[1]
    assert abs(found.total_variation - 0.1) < 0.02
    new = found.scores[len(X) :][:200]
    assert float((new[:, None] > found.scores[: len(X)][None]).double().mean()) > 0.99


def test_the_area_is_that_of_the_scores_fold_by_fold(rng) -> None:
    """By Mann and Whitney: of folds of one size the mean is near the area of all, which mixes classifiers."""
    X, Y = rng.normal(size=(2, 500, 4))
    Y += 0.4
    found = separability(X, Y)
    ranks = rankdata(found.scores.numpy())[500:]
    whole = (ranks.sum() - 500 * 501 / 2) / 500**2
    assert abs(found.auc - whole) < 0.01


@pytest.mark.slow
def test_type_one_error_and_coverage(rng) -> None:
    """150 null draws: p is uniform (its mean within 4 σ), and 5 % of intervals miss 0, or few more."""
    found = [separability(*rng.normal(size=(2, 80, 4)), n_permutations=19, seed=i) for i in range(150)]
    p_values = np.array([one.p_value for one in found])
    assert p_values.min() == 0.05  # the observed order counts: no p-value is 0
    assert (p_values <= 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 150)
    assert abs(p_values.mean() - 0.525) < 4 * 0.29 / np.sqrt(150)
    for name, nothing in (("auc_interval", 0.5), ("total_variation_interval", 0.0)):
        misses = np.mean([not getattr(one, name)[0] <= nothing <= getattr(one, name)[1] for one in found])
        assert misses < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 150)


def test_a_small_share_is_found_by_permutations(rng) -> None:
    X, Y = rng.normal(size=(2, 1000, 8))
    Y[:30] += 4
    assert separability(X, Y, n_permutations=99).p_value == 0.01


def test_features_know_no_labels_and_are_white(rng) -> None:
    X = torch.tensor(rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6)) + 3)
    found = features(X)
    assert np.allclose(found.mean(dim=0), 0, atol=1e-9)
    n = 6 + 6 + 2  # coordinates, sizes of components, lengths
    covariance = found[:, :n].T @ found[:, :n] / len(found)
    variances = np.diagonal(covariance)
    assert np.allclose(covariance, np.diag(variances), atol=1e-9)
    assert variances.min() > 0.8  # but for shrinkage
    assert variances.max() < 1.1
    same = torch.nn.functional.normalize(X, dim=1)
    assert features(same).isfinite().all()  # one length: no feature


def test_a_seed_gives_the_same_and_another_one_other_folds(rng) -> None:
    X, Y = rng.normal(size=(2, 100, 3))
    first, again, other = (separability(X, Y, seed=seed) for seed in (0, 0, 1))
    assert first.auc == again.auc
    assert first.auc != other.auc
    assert first.to_dict()["auc"] == first.auc


def test_inputs_that_cannot_be(rng) -> None:
    X = rng.normal(size=(50, 3))
    with raises(ShapeError, argument="Y"):
        separability(X, X[:, :2])
    with raises(UndefinedError):
        separability(X, X[:19])
    with raises(argument="n_permutations"):
        separability(X, X, n_permutations=-1)
    with raises(UndefinedError):
        separability(np.ones((40, 3)), np.ones((40, 3)))
