import math

import numpy as np
import pytest
import torch

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics import dimensions
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.dimensions import (
    dimension_contributions,
    dimensions_for_share,
    informativity,
    rogue_dimensions,
    top_dimension_share,
)
from isoscope.statistics import Directions

X = np.random.default_rng(0).normal(size=(50, 9)) + np.linspace(0, 1.5, 9)


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def brute_contributions(rows):
    U, n = units(rows), len(rows)
    total = np.zeros(rows.shape[1])
    for i in range(n):
        for j in range(n):
            if i != j:
                total += U[i] * U[j]
    return total / (n * (n - 1))


def brute_informativity(rows, k):
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows[np.any(rows != 0, axis=1)]
    top = np.argsort(-brute_contributions(rows), kind="stable")[:k]
    less = rows.copy()
    less[:, top] = 0
    kept = np.any(less != 0, axis=1)
    pairs = np.triu_indices(int(kept.sum()), 1)
    U, V = units(rows[kept]), units(less[kept])
    return np.corrcoef((U @ U.T)[pairs], (V @ V.T)[pairs])[0, 1] ** 2


def test_contributions_by_brute_force_add_up_to_the_mean_cosine():
    contributions = dimension_contributions(X)
    np.testing.assert_allclose(contributions, brute_contributions(X), atol=1e-14)
    assert contributions.sum() == pytest.approx(mean_cosine(X), rel=1e-12)


def test_contributions_come_back_as_the_callers_kind():
    assert isinstance(dimension_contributions(X), np.ndarray)
    assert isinstance(dimension_contributions(torch.from_numpy(X)), torch.Tensor)
    assert isinstance(dimension_contributions(Directions.of(X)), torch.Tensor)


def test_known_shares():
    rows = np.array([[3.0, 1.0, 1.0, 0.0], [6.0, 2.0, 2.0, 0.0], [3.0, 1.0, 1.0, 0.0]])
    np.testing.assert_allclose(dimension_contributions(rows), np.array([9, 1, 1, 0]) / 11)
    assert top_dimension_share(rows) == pytest.approx(9 / 11)
    assert [dimensions_for_share(rows, share=share) for share in (0.5, 9 / 11, 0.85, 0.95, 1.0)] == [
        1,
        1,
        2,
        3,
        3,
    ]


def test_top_share_is_zero_where_nothing_pulls_together():
    assert top_dimension_share([[1.0, 1.0], [-1.0, -1.0]]) == 0


def test_rogue_dimensions_are_found_with_their_moments():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 200))
    rows[:, 7] += 30
    rows[:, 150] -= 15
    found = rogue_dimensions(rows)
    assert [rogue.dimension for rogue in found] == [7, 150]
    assert found[0].share > found[1].share > 0.05
    assert found[0].mean == pytest.approx(rows[:, 7].mean())
    assert found[1].standard_deviation == pytest.approx(rows[:, 150].std(ddof=1))
    assert [rogue.dimension for rogue in rogue_dimensions(rows, min_share=0.5)] == [7]


def test_even_spaces_have_no_rogue_dimension():
    rng = np.random.default_rng(2)
    for d in (4, 30, 300):
        assert rogue_dimensions(rng.normal(size=(400, d)) + 1) == []


def test_a_small_space_can_have_a_rogue_dimension():
    rows = np.random.default_rng(3).normal(size=(100, 4))
    rows[:, 2] += 20
    assert [rogue.dimension for rogue in rogue_dimensions(rows)] == [2]


@pytest.mark.parametrize("k", [0, 1, 2, 5, 8])
def test_informativity_by_brute_force(k):
    assert informativity(X, k=k) == pytest.approx(brute_informativity(X, k), rel=1e-9)


@pytest.mark.parametrize("shape", [(5, 30), (700, 3)])
def test_informativity_wide_and_tall(shape):
    rows = np.random.default_rng(4).normal(size=shape) + 0.5
    assert informativity(rows, k=1) == pytest.approx(brute_informativity(rows, 1), rel=1e-9)


def test_informativity_of_a_narrow_cone_keeps_its_digits():
    rows = np.random.default_rng(5).normal(size=(80, 6)) * 1e-3 + [5, 3, 1, 1, 1, 1]
    centred = brute_informativity(rows, 1)  # cosines are 1 − 1e-7: numpy's own corrcoef centres first
    assert mean_cosine(rows) > 1 - 1e-6
    assert informativity(rows, k=1) == pytest.approx(centred, rel=1e-5)


def test_informativity_drops_vectors_without_a_direction():
    padded = np.vstack([X, np.zeros((3, 9))])
    assert informativity(padded, k=2) == pytest.approx(informativity(X, k=2), rel=1e-12)
    top = int(np.argmax(dimension_contributions(X)))
    only_top = np.vstack([X, 3 * np.eye(9)[[top, top]]])  # nothing left after removal
    assert informativity(only_top, k=1) == pytest.approx(brute_informativity(only_top, 1), rel=1e-9)


def test_informativity_in_blocks(monkeypatch):
    from isoscope import arrays

    expected = informativity(X, k=2)
    monkeypatch.setattr(arrays, "block_rows", lambda n_dims: 7)
    assert informativity(X, k=2) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1e20, 1e-30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_does_not_matter(scale, dtype):
    rows = X.astype(dtype)
    scaled = rows * dtype(scale)
    np.testing.assert_allclose(dimension_contributions(scaled), dimension_contributions(rows), atol=1e-6)
    assert informativity(scaled) == pytest.approx(informativity(rows), rel=1e-5)
    assert dimensions_for_share(scaled) == dimensions_for_share(rows)


def test_float32_far_from_the_origin():
    far = (X * 50 + 1e4).astype(np.float32)
    wide = far.astype(np.float64)
    np.testing.assert_allclose(dimension_contributions(far), brute_contributions(wide), atol=1e-12)
    assert informativity(far) == pytest.approx(brute_informativity(wide, 1), rel=1e-3)


def test_the_callers_array_is_not_changed():
    rows = X.copy()
    informativity(rows, k=3)
    np.testing.assert_array_equal(rows, X)


@pytest.mark.parametrize("metric", dimensions.METRICS, ids=lambda metric: metric.name)
def test_registered(metric):
    value = metric.of(X)
    assert metric.range[0] <= value <= metric.range[1]
    assert metric.sentence(value)
    assert metric.sentence(math.nan)
    if metric.differentiable:
        assert torch.autograd.gradcheck(metric.of, (torch.tensor(X[:8, 5:], requires_grad=True),))


def test_registered_values():
    values = {metric.name: metric.of(X) for metric in dimensions.METRICS}
    contributions = brute_contributions(X)
    assert values["top_dimension_share"] == pytest.approx(contributions.max() / np.abs(contributions).sum())
    descending = np.cumsum(np.sort(contributions)[::-1]) / contributions.sum()
    assert values["dimensions_for_half"] == np.argmax(descending >= 0.5) + 1
    assert values["informativity"] == pytest.approx(brute_informativity(X, 1), rel=1e-9)


def test_undefined():
    with pytest.raises(UndefinedError, match="needs two vectors with a direction"):
        dimension_contributions([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(UndefinedError, match="not positive"):
        dimensions_for_share([[1.0, 1.0], [-1.0, -1.0]])
    with pytest.raises(UndefinedError, match="no dimension contributes"):
        top_dimension_share(np.eye(3))
    with pytest.raises(UndefinedError, match="do not vary"):
        informativity(np.eye(4))  # all cosines 0
    with pytest.raises(UndefinedError, match="do not vary"):
        informativity(np.outer(np.arange(1, 9), [0.3, 0.7, 0.1]))  # all cosines 1
    with pytest.raises(UndefinedError, match="do not vary"):
        informativity(X[:2])  # one pair
    with pytest.raises(UndefinedError, match="keep a direction"):
        informativity([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])


def test_bad_arguments():
    for share in (0, 1.1, math.nan):
        with pytest.raises(InputError, match="share"):
            dimensions_for_share(X, share=share)
    with pytest.raises(InputError, match="min_share"):
        rogue_dimensions(X, min_share=1)
    for k in (-1, 9):
        with pytest.raises(InputError, match=r"k is .* of 9"):
            informativity(X, k=k)
