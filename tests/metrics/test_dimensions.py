import math

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.contextual import self_similarity
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.dimensions import (
    dimension_contributions,
    dimensions_for_share,
    rogue_dimensions,
    self_similarity_shares,
    top_dimension_share,
)
from isoscope.statistics import Directions, GroupDirections

X = np.random.default_rng(0).normal(size=(50, 9)) + np.linspace(0, 1.5, 9)
TYPES = [*np.random.default_rng(1).integers(0, 6, size=49).tolist(), 99]


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


def by_type():
    types = np.array(TYPES)
    return [X[types == name] for name in np.unique(types) if (types == name).sum() > 1]


def test_self_similarity_shares_add_up_to_the_self_similarity():
    parts = np.mean([brute_contributions(rows) for rows in by_type()], axis=0)
    shares = self_similarity_shares(X, token_types=TYPES)
    np.testing.assert_allclose(shares.shares * self_similarity(X, token_types=TYPES), parts, atol=1e-13)
    assert shares.order.tolist() == np.argsort(-parts).tolist()
    assert shares.top(2) == pytest.approx(np.sort(parts / parts.sum())[::-1][:2])
    reached = np.cumsum(np.sort(parts / parts.sum())[::-1])
    assert [shares.n_for(share) for share in (0.1, 0.5, 0.9)] == [
        int(np.argmax(reached >= share)) + 1 for share in (0.1, 0.5, 0.9)
    ]


def test_self_similarity_shares_with_the_diagonal_by_brute_force():
    """All pairs, a vector with itself included; shares by type first, then their mean."""
    found = []
    for rows in by_type():
        U = units(rows)
        pairs = np.sum([a * b for a in U for b in U], axis=0)
        found.append(pairs / pairs.sum())
    shares = self_similarity_shares(X, token_types=TYPES, diagonal=True).shares
    np.testing.assert_allclose(shares, np.mean(found, axis=0), atol=1e-13)
    assert not np.allclose(shares, self_similarity_shares(X, token_types=TYPES).shares, atol=1e-3)


def test_self_similarity_shares_stream():
    for diagonal in (False, True):
        groups = GroupDirections.of(X[:13], TYPES[:13], squares=True).update(X[13:], TYPES[13:])
        shares = self_similarity_shares(groups, diagonal=diagonal).shares
        whole = self_similarity_shares(X, token_types=TYPES, diagonal=diagonal).shares
        np.testing.assert_allclose(shares, whole, atol=1e-14)
    mixed = groups.merge(GroupDirections.of(X, TYPES))  # one without squares: the sum has none
    assert mixed.unit_square_sums is None


@pytest.mark.parametrize("scale", [1e20, 1e-30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_does_not_matter(scale, dtype):
    rows = X.astype(dtype)
    scaled = rows * dtype(scale)
    np.testing.assert_allclose(dimension_contributions(scaled), dimension_contributions(rows), atol=1e-6)
    assert dimensions_for_share(scaled) == dimensions_for_share(rows)


def test_float32_far_from_the_origin():
    far = (X * 50 + 1e4).astype(np.float32)
    wide = far.astype(np.float64)
    np.testing.assert_allclose(dimension_contributions(far), brute_contributions(wide), atol=1e-12)


def test_registered_values():
    values = iso.measure(X, metrics=["dimensions"])
    contributions = brute_contributions(X)
    assert values["top_dimension_share"] == pytest.approx(contributions.max() / np.abs(contributions).sum())
    descending = np.cumsum(np.sort(contributions)[::-1]) / contributions.sum()
    assert values["dimensions_for_half"] == np.argmax(descending >= 0.5) + 1


def test_undefined():
    with pytest.raises(UndefinedError, match="needs two vectors with a direction"):
        dimension_contributions([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(UndefinedError, match="not positive"):
        dimensions_for_share([[1.0, 1.0], [-1.0, -1.0]])
    with pytest.raises(UndefinedError, match="no token type has two"):
        self_similarity_shares(X[:2], token_types=["a", "b"])
    with pytest.raises(UndefinedError, match="not positive"):
        self_similarity_shares([[1.0, 1.0], [-1.0, -1.0]], token_types=["a", "a"])
    with pytest.raises(UndefinedError, match="no dimension contributes"):
        top_dimension_share(np.eye(3))


def test_bad_arguments():
    for share in (0, 1.1, math.nan):
        with pytest.raises(InputError, match="share"):
            dimensions_for_share(X, share=share)
    with pytest.raises(InputError, match="min_share"):
        rogue_dimensions(X, min_share=1)
    for share in (0, 1.5):
        with raises(InputError, argument="share"):
            self_similarity_shares(X, token_types=TYPES).n_for(share)
    with pytest.raises(InputError, match="without squares"):
        self_similarity_shares(GroupDirections.of(X, TYPES))
    with pytest.raises(InputError, match="`token_types` is missing"):
        self_similarity_shares(X)
