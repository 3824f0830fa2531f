from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import ShapeError
from isoscope.statistics import GroupDirections, GroupMoments
from isoscope.statistics.centroids import CentroidDistances


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(60, 4)) + 1e4
    return X, np.array(list("abc"))[rng.integers(0, 3, 60)]


def test_group_moments(labelled) -> None:
    X, y = labelled
    moments = GroupMoments.of(X, y)
    assert moments.names == ("a", "b", "c")
    for row, name in enumerate(moments.names):
        part = X[y == name]
        assert moments.counts[row] == len(part)
        assert np.allclose(moments.means[row], part.mean(0))
        assert float(moments.within[row]) == pytest.approx(((part - part.mean(0)) ** 2).sum(), rel=1e-9)
    total = np.cov(X.T) * (len(X) - 1)
    within = sum(np.cov(X[y == name].T) * ((y == name).sum() - 1) for name in "abc")
    assert np.allclose(moments.between, total - within, atol=1e-6)
    assert np.allclose(moments.mean, X.mean(0))


def test_groups_merge_by_name_even_when_blocks_know_different_ones(labelled) -> None:
    X, y = labelled
    order = np.argsort(y)
    X, y = X[order], y[order]  # the first block has no "c", the last no "a"
    whole = GroupMoments.of(X, y)
    merged = GroupMoments.of(X[:15], y[:15]).update(X[15:50], y[15:50]).merge(GroupMoments.of(X[50:], y[50:]))
    assert merged.names == whole.names
    for name in ("counts", "means", "within"):
        assert torch.allclose(getattr(merged, name), getattr(whole, name), rtol=1e-9), name
    directions = GroupDirections.of(X, y)
    parts = GroupDirections.of(X[:15], y[:15]).update(X[15:], y[15:])
    assert torch.allclose(parts.unit_sums, directions.unit_sums)
    assert torch.equal(parts.counts, directions.counts)


@pytest.mark.parametrize("blocks", ["merged", "updated", "sorted in one array"])
def test_a_group_that_one_side_has_not_seen_keeps_what_rounding_left_of_its_mean(
    rng, blocks, monkeypatch
) -> None:
    """Fractions of the offset: Σ‖x − mean‖² and the gap between means are of the size of an ulp."""
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 5)) + 1e15
    X[20:] += 1
    if blocks == "merged":
        moments = GroupMoments.of(X[20:], y[20:]).merge(GroupMoments.of(X[:20], y[:20]))
    elif blocks == "updated":
        moments = GroupMoments.of(X[:20], y[:20]).update(X[20:], y[20:])
    else:
        monkeypatch.setattr("isoscope.statistics.groups.block_rows", lambda *_: 8)
        moments = GroupMoments.of(X, y)
    steps = [[Fraction(value) - 10**15 for value in column] for column in X.T]
    means = [[sum(column[k : k + 20]) / 20 for k in (0, 20)] for column in steps]
    gap = sum((a - b) ** 2 for a, b in means)
    within = sum((v - m[k // 20]) ** 2 for c, m in zip(steps, means, strict=True) for k, v in enumerate(c))
    assert float(moments.between_trace) == pytest.approx(float(gap) * 10, rel=1e-9)
    assert float(moments.within.sum()) == pytest.approx(float(within), rel=1e-9)


def test_a_group_far_out_that_one_side_has_not_seen() -> None:
    far = GroupMoments.of(np.full((3, 2), 1e200), [1, 1, 1])
    for moments in (
        far.merge(GroupMoments.of(np.eye(2), [0, 0])),
        GroupMoments.of(np.eye(2), [0, 0]).merge(far),
    ):
        assert moments.within.tolist() == pytest.approx([1, 0])
        assert moments.means[1].tolist() == [1e200, 1e200]


def test_collapsed_groups_keep_their_spread(rng) -> None:
    """tr W as tr A − tr B would keep only six digits here."""
    y = np.arange(40) % 2
    X = rng.normal(size=(2, 3))[y] + 1e-5 * rng.normal(size=(40, 3)) + 1e4
    expected = sum(((X[y == k] - X[y == k].mean(0)) ** 2).sum() for k in (0, 1))
    assert float(GroupMoments.of(X, y).within.sum()) == pytest.approx(expected, rel=1e-9)


def test_zero_vectors_are_counted(rng) -> None:
    X = rng.normal(size=(6, 3))
    X[2] = 0
    directions = GroupDirections.of(X, [0, 0, 0, 1, 1, 1])
    assert directions.n_zero == 1
    assert directions.counts.tolist() == [2, 3]


def test_centroid_distances(labelled) -> None:
    X, y = labelled
    moments = GroupMoments.of(X, y)
    whole = CentroidDistances.of(X, y, moments)
    split = CentroidDistances.of(X[:20], y[:20], moments).merge(CentroidDistances.of(X[20:], y[20:], moments))
    expected = [np.linalg.norm(X[y == k] - X[y == k].mean(0), axis=1).sum() for k in "abc"]
    assert np.allclose(whole.distance_sums, expected)
    assert np.allclose(split.distance_sums, expected)
    only_b = y == "b"  # a block that knows one group still lands in its row
    assert CentroidDistances.of(X[only_b], y[only_b], moments).distance_sums[0] == 0


def test_errors_and_passing_through() -> None:
    moments = GroupMoments.of(np.eye(2), [0, 1])
    directions = GroupDirections.of(np.eye(2), [0, 1])
    assert GroupMoments.of(moments) is moments
    assert GroupDirections.of(directions) is directions
    with raises(ShapeError, message="2 and 3 dimensions", wanted="same"):
        moments.merge(GroupMoments.of(np.eye(3), [0, 1, 2]))
    with pytest.raises(ShapeError, match="`groups` has 1 entries for 2 vectors"):
        GroupMoments.of(np.eye(2), [0])
