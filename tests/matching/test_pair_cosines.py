from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, precision_score, roc_auc_score

import isoscope as iso
from isoscope.errors import UndefinedError
from isoscope.matching.pair_cosines import PairCosines


@pytest.fixture
def labelled(rng) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 3, 120)
    return rng.normal(size=(120, 6)) + 1.5 * np.eye(6)[y], y


def brute(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    i, j = np.triu_indices(len(X), 1)
    return (units @ units.T)[i, j], y[i] == y[j]


def test_few_pairs_are_all_taken(labelled) -> None:
    found = PairCosines.of(*labelled)
    cosines, alike = brute(*labelled)
    assert found.is_exact
    np.testing.assert_allclose(found.random.numpy(), np.sort(cosines), atol=1e-12)
    np.testing.assert_allclose(found.same.numpy(), np.sort(cosines[alike]), atol=1e-12)
    np.testing.assert_allclose(found.other.numpy(), np.sort(cosines[~alike]), atol=1e-12)


def test_thresholds(labelled) -> None:
    found = PairCosines.of(*labelled)
    cosines, alike = brute(*labelled)
    assert found.threshold(0.01) == pytest.approx(np.quantile(cosines, 0.99))
    best = found.best()
    assert best.auc == pytest.approx(roc_auc_score(alike, cosines))
    gaps = [np.mean(cosines[alike] >= t) - np.mean(cosines[~alike] >= t) for t in np.sort(cosines)]
    assert best.same_above - best.other_above == pytest.approx(max(gaps), abs=1e-9)
    above = cosines >= best.threshold - 1e-12
    assert best.same_above == pytest.approx(np.mean(above[alike]))
    assert best.balanced_accuracy == pytest.approx(balanced_accuracy_score(alike, above))
    assert best.precision == pytest.approx(precision_score(alike, above))
    assert best.same_share == pytest.approx(alike.mean())


def test_precision_of_sampled_pairs_is_that_of_all(labelled) -> None:
    X, y = labelled
    X[5] = 0  # is left out
    best = PairCosines.of(X, y, n_pairs=2000).best()
    cosines, alike = brute(np.delete(X, 5, axis=0), np.delete(y, 5))
    assert best.same_share == pytest.approx(alike.mean())
    assert best.precision == pytest.approx(alike[cosines >= best.threshold].mean(), abs=0.03)


def test_many_pairs_are_sampled_evenly(labelled) -> None:
    X, y = labelled
    found = PairCosines.of(X, y, n_pairs=2000)
    cosines, alike = brute(X, y)
    assert not found.is_exact
    assert len(found.random) == len(found.same) == len(found.other) == 2000
    wanted = {"random": cosines, "same": cosines[alike], "other": cosines[~alike]}
    for name, every in wanted.items():
        error = every.std() / np.sqrt(2000)
        assert float(getattr(found, name).mean()) == pytest.approx(every.mean(), abs=4 * error)
    again = PairCosines.of(X, y, n_pairs=2000)
    other = PairCosines.of(X, y, n_pairs=2000, seed=1)
    assert found.same.equal(again.same)
    assert not found.same.equal(other.same)


def test_few_pairs_of_one_label_are_all_taken(labelled) -> None:
    X, y = labelled
    found = PairCosines.of(X, y, n_pairs=3000)
    cosines, alike = brute(X, y)
    assert len(found.random) == 3000
    np.testing.assert_allclose(found.same.numpy(), np.sort(cosines[alike]), atol=1e-12)


def test_pairs_of_one_label_are_drawn_by_the_label_s_pairs() -> None:
    """A label of 30 has 435 pairs, one of 2 has 1: about one draw in 436 is the small label's."""
    X = np.vstack([np.tile([1.0, 0.0], (30, 1)), [[0.0, 1.0], [1.0, 1.0]]])
    found = PairCosines.of(X, [0] * 30 + [1] * 2, n_pairs=400)
    assert found.same is not None
    assert float((found.same < 0.9).double().mean()) < 0.02


def test_zero_vectors_are_left_out_and_labels_may_be_missing(rng) -> None:
    X = np.vstack([rng.normal(size=(5, 3)), np.zeros((4, 3))])
    found = PairCosines.of(X)
    assert len(found.random) == 10
    assert found.same is None
    assert found.best() is None
    assert float(found.random.mean()) == pytest.approx(iso.mean_cosine(X))
    with pytest.raises(UndefinedError, match="at least 2 vectors that are not zero, got 1"):
        PairCosines.of([[0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("n_pairs", [10_000, 900])
def test_narrow_vectors_lose_no_digits(rng, n_pairs: int) -> None:
    """All pairs, and a sample: float16 vectors have the cosines of the same numbers in float64."""
    narrow = rng.normal(size=(60, 40)).astype(np.float16)
    found = PairCosines.of(narrow, n_pairs=n_pairs)
    wanted = PairCosines.of(narrow.astype(np.float64), n_pairs=n_pairs)
    assert found.is_exact is (n_pairs > 1770)
    assert torch.allclose(found.random, wanted.random, atol=1e-6)


def test_a_small_share_of_few_pairs_is_not_known(rng) -> None:
    assert not PairCosines.of(rng.normal(size=(45, 3))).knows(0.01)  # 990 pairs
    many = PairCosines.of(rng.normal(size=(46, 3)))  # 1,035
    assert many.knows(0.01)
    assert not many.knows(0.001)
