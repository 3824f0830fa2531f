import math

import numpy as np
import pytest
from tests.raising import raises

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.frontier import (
    between_ceiling,
    between_share,
    frontier_curve,
    isotropy_ceiling,
    scatter_decomposition,
)
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.registry import registered
from isoscope.metrics.silhouettes import silhouette_score
from isoscope.space import Space
from isoscope.statistics import GroupMoments, Moments


def rotation(d, rng):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def on_the_frontier(K, d, rho, weights, seed=0):
    """Labels with flat B on K − 1 directions and flat W on the rest, tr Σ = 1; any label proportions."""
    rng = np.random.default_rng(seed)
    r, rest = K - 1, d - K + 1
    p = np.asarray(weights) / np.sum(weights)
    across = np.linalg.qr(np.column_stack([np.sqrt(p), rng.normal(size=(K, r))]))[0][:, 1:]  # ⟂ √p
    means = across / np.sqrt(p)[:, None] * math.sqrt(rho / r)
    cross = math.sqrt(1 - rho) * np.vstack([np.eye(rest), -np.eye(rest)])
    rows = [
        np.hstack([np.tile(means[k], (len(cross), 1)), cross]) for k in range(K) for _ in range(weights[k])
    ]
    labels = [k for k in range(K) for _ in range(weights[k] * len(cross))]
    return np.vstack(rows) @ rotation(d, rng) + rng.normal(size=d), np.array(labels)


@pytest.mark.parametrize(("K", "d"), [(2, 3), (2, 20), (3, 5), (5, 12), (9, 10)])
@pytest.mark.parametrize("excess", [0.0, 0.1, 0.6, 0.99, 1.0])
@pytest.mark.parametrize("even", [True, False])
def test_the_ceiling_is_attained(K, d, excess, even):
    rho = (K - 1) / d + excess * (1 - (K - 1) / d)
    X, labels = on_the_frontier(K, d, rho, [1] * K if even else [1 + k % 4 for k in range(K)])
    split = scatter_decomposition(X, labels)
    assert split.between_share == pytest.approx(rho, abs=1e-12)
    assert split.isoscore == pytest.approx(split.ceiling, abs=1e-9)
    assert split.distance < 1e-9
    if excess > 0.5 and d > K:
        assert split.ceiling < 0.95


def near_the_frontier(rng):
    """A random labelled space, often close to the ceiling: frontier spaces, pushed; and plain noise."""
    K, d = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    if d < K or rng.random() < 0.3:
        labels = np.concatenate([np.arange(K), rng.integers(0, K, size=int(rng.integers(1, 30)))])
        means = rng.normal(size=(K, d)) * 10 ** rng.uniform(-2, 2)
        return means[labels] + rng.normal(size=(len(labels), d)) * 10 ** rng.uniform(-2, 0, size=d), labels
    weights = rng.integers(1, 4, size=K).tolist()
    X, labels = on_the_frontier(K, d, rng.uniform((K - 1) / d, 1), weights, seed=int(rng.integers(2**31)))
    return X + rng.normal(size=X.shape) * 10 ** rng.uniform(-6, -0.5), labels


@pytest.mark.slow
def test_no_space_is_above_the_ceiling():
    rng = np.random.default_rng(1)
    close = 0
    for _ in range(600):
        split = scatter_decomposition(*near_the_frontier(rng))
        gap = split.ceiling - split.isoscore
        assert gap > -1e-9
        close += gap < 1e-3 and split.ceiling < 0.999
    assert close > 60  # so that a ceiling a little too low would have shown


@pytest.mark.parametrize("d", [2, 3, 8])
def test_a_simplex_is_clustered_and_isotropic(d):
    rng = np.random.default_rng(2)
    X, labels = on_the_frontier(d + 1, d + 1, 1.0, [1] * (d + 1))  # K = d + 1 vertices span d dimensions
    flat = np.linalg.svd(X - X.mean(axis=0))[2][:d]
    vertices = (X - X.mean(axis=0)) @ flat.T
    rows = np.repeat(vertices, 5, axis=0) + 1e-6 * rng.normal(size=(5 * len(vertices), d))
    labels = np.repeat(labels, 5)
    split = scatter_decomposition(rows, labels)
    assert split.n_labels == d + 1
    assert split.n_effective_labels == d
    assert split.ceiling == 1
    assert split.isoscore == pytest.approx(1, abs=1e-5)
    assert silhouette_score(rows, labels) > 0.999


def test_ceiling_in_closed_cases():
    assert isotropy_ceiling(2, 10) == 0
    for K, d in [(2, 3), (5, 50), (10, 768)]:
        assert isotropy_ceiling(K, d) == pytest.approx((K - 2) / (d - 1), rel=1e-12, abs=1e-15)
        assert isotropy_ceiling(K, d, between=(K - 1) / d) == 1
        assert isotropy_ceiling(K, d, between=0) == 1
        rising = [isotropy_ceiling(K, d, between=rho) for rho in np.linspace((K - 1) / d, 1, 50)]
        assert rising == sorted(rising, reverse=True)
    assert isotropy_ceiling(2, 10, between=0.105) < 1  # just beyond (K − 1)/d
    assert isotropy_ceiling(4, 3) == isotropy_ceiling(100, 3) == isotropy_ceiling(1, 3, between=0) == 1
    assert isotropy_ceiling(np.int64(3), np.int32(4)) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("K", "d"), [(2, 3), (3, 10), (10, 768), (5, 5)])
def test_the_frontier_read_the_other_way(K, d):
    for rho in np.linspace((K - 1) / d, 1, 9):
        assert between_ceiling(isotropy_ceiling(K, d, between=rho), K, d) == pytest.approx(rho, abs=1e-9)
    for score in np.linspace((K - 2) / (d - 1), 1, 9)[1:]:
        found = between_ceiling(score, K, d)
        assert isotropy_ceiling(K, d, between=found) == pytest.approx(score, abs=1e-9)
        assert isotropy_ceiling(K, d, between=min(1, found + 1e-3)) < score
    assert between_ceiling(0.0, K, d) == 1
    assert between_ceiling(1.0, d + 1, d) == 1
    assert between_ceiling(0.5, 1, d) == 0
    for bad in (-0.1, 1.1, math.nan):
        with raises(InputError, argument="isoscore"):
            between_ceiling(bad, K, d)


def test_the_whole_curve():
    shares, ceilings = frontier_curve(4, 9, n_steps=10)
    assert len(shares) == 12  # ten steps, and the knee
    assert 1 / 3 in shares
    assert ceilings.tolist() == [isotropy_ceiling(4, 9, between=rho) for rho in shares]
    few, low = frontier_curve(4, 9, n_points=6, n_steps=10)
    assert (low <= np.interp(few, shares, ceilings) + 1e-3).all()
    assert low.max() == pytest.approx(4 / 8)  # six points span five dimensions
    assert few[low.argmax()] == pytest.approx(3 / 5)
    assert frontier_curve(3, 5, n_points=3)[0].tolist() == [1]
    with pytest.raises(InputError, match="`n_labels` must be at least 2"):
        frontier_curve(1, 5)
    with raises(InputError, argument="n_steps", got=0):
        frontier_curve(3, 5, n_steps=0)


def test_the_ceiling_of_few_points_in_closed_cases():
    assert isotropy_ceiling(2, 11, between=0.1, n_points=11) == pytest.approx(9 / 10)  # flat on 10 dimensions
    assert isotropy_ceiling(2, 11, between=0.5, n_points=12) == isotropy_ceiling(2, 11, between=0.5)
    assert isotropy_ceiling(1, 11, between=0, n_points=6) == pytest.approx(4 / 10)
    assert isotropy_ceiling(3, 11, between=1, n_points=3) == pytest.approx(1 / 10)
    with raises(InputError, argument="n_points", got=2, wanted="at least 3"):
        isotropy_ceiling(3, 11, n_points=2)


def brute_split(X, labels):
    centred = X - X.mean(axis=0)
    sigma, within = np.zeros((X.shape[1],) * 2), np.zeros((X.shape[1],) * 2)
    for row, label in zip(X, labels, strict=True):
        own = row - X[labels == label].mean(axis=0)
        within += np.outer(own, own) / len(X)
    for row in centred:
        sigma += np.outer(row, row) / len(X)
    return sigma, within, sigma - within


def test_decomposition_by_brute_force():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, size=40)
    X = rng.normal(size=(40, 6)) + rng.normal(size=(4, 6))[labels]
    sigma, W, B = brute_split(X, labels)
    split = scatter_decomposition(X, labels)
    assert split.total == pytest.approx(np.trace(sigma), rel=1e-12)
    assert split.within == pytest.approx(np.trace(W), rel=1e-12)
    assert split.between == pytest.approx(np.trace(B), rel=1e-12)
    assert split.between_share == pytest.approx(np.trace(B) / np.trace(sigma), rel=1e-12)
    norm = np.sum(sigma**2)
    assert split.within_part == pytest.approx(np.sum(W**2) / norm, rel=1e-10)
    assert split.cross_part == pytest.approx(2 * np.sum(W * B) / norm, rel=1e-10)
    assert split.between_part == pytest.approx(np.sum(B**2) / norm, rel=1e-10)
    assert split.within_part + split.cross_part + split.between_part == pytest.approx(1, rel=1e-12)
    assert split.isoscore == isoscore(X)
    assert split.distance == pytest.approx(split.ceiling - split.isoscore)
    assert (split.n_labels, split.n_dims, split.n_effective_labels) == (4, 6, 3)
    assert split.ceiling == isotropy_ceiling(4, 6, between=split.between_share)


def test_a_space_and_the_statistics_give_the_same():
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(30, 5)), rng.integers(0, 3, size=30)
    expected = scatter_decomposition(X, labels)
    assert scatter_decomposition(Space(X, labels=labels)) == expected
    assert scatter_decomposition(Moments.of(X), GroupMoments.of(X, labels)) == expected
    assert between_share(Space(X, labels=labels)) == expected.between_share
    assert between_share(GroupMoments.of(X, labels)) == expected.between_share


@pytest.mark.parametrize("change", [lambda X: X * 1e20, lambda X: X * 1e-30, lambda X: X + 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_and_offset_do_not_matter(change, dtype):
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, size=200)
    X = (rng.normal(size=(200, 5)) * 40 + 80 * np.eye(5)[labels]).astype(np.float64)
    split, other = scatter_decomposition(X, labels), scatter_decomposition(change(X).astype(dtype), labels)
    for name in ("between_share", "ceiling", "isoscore", "within_part", "cross_part", "between_part"):
        assert getattr(other, name) == pytest.approx(
            getattr(split, name), rel=1e-4 if dtype == np.float32 else 1e-9
        )


def test_collapsed_labels_keep_their_within():
    rng = np.random.default_rng(6)
    labels = np.repeat([0, 1, 2], 50)
    X = 1000.0 * np.eye(8)[labels] + rng.normal(size=(150, 8)) * 1e-6
    split = scatter_decomposition(X, labels)
    residuals = X - np.vstack([X[labels == k].mean(axis=0) for k in range(3)])[labels]
    assert split.within == pytest.approx(np.sum(residuals**2) / 150, rel=1e-6)
    assert split.ceiling == pytest.approx(1 / 7, rel=1e-9)
    assert split.isoscore == pytest.approx(1 / 7, rel=1e-9)


def test_one_label_and_every_point_its_own():
    X = np.random.default_rng(7).normal(size=(6, 9))
    one = scatter_decomposition(X, ["a"] * 6)
    assert (one.between_share, one.ceiling, one.within_part, one.n_effective_labels) == (0, 1, 1, 0)
    own = scatter_decomposition(X, range(6))
    assert own.between_share == 1
    assert own.ceiling == pytest.approx(4 / 8)
    assert own.isoscore <= own.ceiling


def test_one_label_in_blocks_has_nothing_between_labels():
    X = np.random.default_rng(9).normal(size=(49, 30)) + 0.1
    groups = GroupMoments.of(X[:20], ["a"] * 20).merge(GroupMoments.of(X[20:], ["a"] * 29))
    split = scatter_decomposition(Moments.of(X), groups)
    assert (split.between_share, split.ceiling) == (0, 1)


def test_registered() -> None:
    rng = np.random.default_rng(8)
    X, labels = rng.normal(size=(20, 4)) + 2 * np.eye(4)[np.arange(20) % 3], np.arange(20) % 3
    split = scatter_decomposition(X, labels)
    for name, expected in {"between_share": split.between_share, "isotropy_ceiling": split.ceiling}.items():
        assert registered()[name].of(X, labels=labels) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [3, 7, 100, 20_000])
def test_equal_points_are_seen_through_the_rounding_of_their_means(n):
    X = np.tile([[0.1, 1 / 3, -7.7]], (n, 1))
    with pytest.raises(UndefinedError, match="points are equal"):
        between_share(X, np.arange(n) % 2)
    X[0, 0] += 1e-6
    assert 0 <= between_share(X, np.arange(n) % 2) <= 1


def test_undefined():
    with pytest.raises(UndefinedError, match="all 4 points are equal"):
        scatter_decomposition(np.ones((4, 3)), [0, 0, 1, 1])
    with pytest.raises(UndefinedError, match="all 4 points are equal"):
        between_share(np.ones((4, 3)), [0, 0, 1, 1])
    with pytest.raises(UndefinedError, match="1 dimension"):
        scatter_decomposition([[1.0], [2.0], [3.0]], [0, 0, 1])
    with pytest.raises(UndefinedError, match="1 dimension"):
        registered()["isotropy_ceiling"].of([[1.0], [2.0], [3.0]], labels=[0, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "between", "message"),
    [
        ((0, 5), 1.0, r"`n_labels` must be .*got 0"),
        ((2, 1), 1.0, r"`n_dims` must be .*got 1"),
        ((2.5, 5), 1.0, "must be a whole number"),
        ((2, 5), 1.1, r"`between` must be .*got 1.1"),
        ((2, 5), math.nan, r"`between` must be .*got nan"),
        ((1, 5), 0.5, "one label"),
    ],
)
def test_bad_arguments(arguments, between, message):
    with pytest.raises(InputError, match=message):
        isotropy_ceiling(*arguments, between=between)


def test_labels_are_needed():
    with pytest.raises(InputError, match="`labels` is missing"):
        scatter_decomposition(np.eye(3))
