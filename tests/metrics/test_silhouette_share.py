"""The silhouette and ρ: the bounds of docs/theory.md, and when they are tight."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics import silhouette_samples

import isoscope as iso


def share(X: np.ndarray, labels: np.ndarray) -> float:
    """Return ρ from the definition."""
    means = np.stack([X[labels == label].mean(axis=0) for label in labels])
    return float(means.var(axis=0).sum() / X.var(axis=0).sum())


def least_share(least: float, sizes: np.ndarray) -> float:
    """Return the smallest ρ where no silhouette is under `least`: Theorem 2."""
    r = (1 - least) * (1 - 1 / sizes.max())
    p = sizes / sizes.sum()
    odds = (1 - (p**2).sum()) * (1 - 2 * r * r)
    return float(max(0.0, odds) / (max(0.0, odds) + 2 * r * r))


def crosses(sizes: list[int], radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels at ± radius on an axis of their own, their means on a regular simplex of edge 1."""
    K, labels = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    signs = np.concatenate([np.resize([1, -1], size) for size in sizes])
    return np.hstack([np.eye(K)[labels] / 2**0.5, np.eye(K)[labels] * radius * signs[:, None]]), labels


@pytest.mark.parametrize("sizes", [[6, 6], [4, 4, 4, 4, 4], [40, 40]])
@pytest.mark.parametrize("r", [0.05, 0.4, 0.69])
def test_the_bound_is_attained(sizes: list[int], r: float) -> None:
    """Points at ± on an axis of their own: exactly, where labels have one even size."""
    X, labels = crosses(sizes, r / (1 - 2 * r * r) ** 0.5)
    least = silhouette_samples(X, labels).min()
    assert least == pytest.approx(1 - r * sizes[0] / (sizes[0] - 1))
    assert share(X, labels) == pytest.approx(least_share(least, np.array(sizes)))


def test_the_bound_is_attained_for_any_proportions_of_large_labels() -> None:
    sizes = [900, 300, 90]
    X, labels = crosses(sizes, 0.5 / (1 - 2 * 0.25) ** 0.5)
    least = silhouette_samples(X, labels).min()
    assert share(X, labels) == pytest.approx(least_share(least, np.array(sizes)), rel=0.03)


def random_labels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    K, d = int(rng.integers(2, 6)), int(rng.integers(1, 10))
    sizes = rng.integers(2, 7, size=K)
    labels = np.repeat(np.arange(K), sizes)
    spread = np.exp(rng.uniform(-3, 1)) * rng.lognormal(sigma=rng.uniform(0, 2), size=(K, d))
    X = 2 * rng.normal(size=(K, d))[labels] + spread[labels] * rng.standard_t(3, size=(len(labels), d))
    return X, labels, sizes


def test_no_space_has_less_between_its_labels() -> None:
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(800):
        X, labels, sizes = random_labels(rng)
        least = silhouette_samples(X, labels).min()
        if least >= 0 and (least > 0.3 or sizes.max() < 4):
            seen += 1
            assert share(X, labels) >= least_share(least, sizes) - 1e-12
    assert seen > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_search_does_not_get_below_the_bound(seed: int) -> None:
    """Moves that lower ρ above the bound are kept; the search comes near and never below."""
    rng = np.random.default_rng(seed)
    sizes = np.array([[2, 2], [2, 2], [4, 4], [2, 2, 2]][seed])
    X, labels = crosses(sizes.tolist(), [0.2, 0.5, 0.4, 0.3][seed])
    X = X + 0.1 * rng.normal(size=X.shape)
    gap = np.inf
    for trial in range(1500):
        moved = X + rng.normal(size=X.shape) * 0.3 * np.exp(-4 * trial / 800) * rng.random()
        least = silhouette_samples(moved, labels).min()
        if least > 0.32 and (now := share(moved, labels) - least_share(least, sizes)) < gap:
            X, gap = moved, now
    assert 0 <= gap < 0.1


def test_two_labels_without_a_share_have_silhouettes_up_to_1_minus_root_half() -> None:
    """The threshold: four points on two axes, all of them at 1 − 1/√2 in the limit."""
    for size in (4, 50, 500):
        labels = np.repeat([0, 1], size)
        X = np.eye(2)[labels] * np.resize([1.0, -1.0], 2 * size)[:, None]
        assert silhouette_samples(X, labels) == pytest.approx(1 - size / (size - 1) / 2**0.5, abs=1e-6)
        assert share(X, labels) == pytest.approx(0, abs=1e-15)


def test_on_a_line_every_positive_silhouette_bounds_the_share() -> None:
    rng = np.random.default_rng(0)
    seen, closest, closest_of_two = [], np.inf, np.inf
    for _ in range(1500):
        sizes = rng.integers(2, 8, size=rng.integers(2, 4))
        labels = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.normal(size=(len(labels), 1)) * rng.lognormal(size=(len(sizes), 1))[labels]
        X += 3 * rng.random() * labels[:, None]
        least = silhouette_samples(X, labels).min()
        if least > 0:
            u, p, rho = (1 - least) / least, sizes / sizes.sum(), share(X, labels)
            seen.append(least)
            means = [X[labels == k].mean() for k in range(len(sizes))]
            ends = p[[np.argmin(means), np.argmax(means)]]
            closest = min(closest, rho * (1 + 2 * u) ** 2 * ends.sum() / 4 / ends.prod())
            if len(sizes) == 2:
                bound = p.prod() / (u * max(1, min(1 + u, u * (2 * u - 1))))
                closest_of_two = min(closest_of_two, rho / (1 - rho) / bound)
    assert closest >= 1 <= closest_of_two
    assert closest < 1.5  # nearly attained
    assert np.sum(np.array(seen) < 0.29) > 30  # where Theorem 2 says nothing of large labels


def test_labels_of_an_isotropic_square_have_good_silhouettes() -> None:
    """All of them 0.4477 or, with more copies, up to 2 − √2: what bounds ρ need not bound IsoScore."""
    corners = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    for copies, silhouette in ((2, 0.4477), (500, 2 - 2**0.5)):
        X, labels = np.repeat(corners, copies, axis=0), np.repeat([0, 1], 2 * copies)
        assert silhouette_samples(X, labels) == pytest.approx(silhouette, abs=1e-3)
        assert iso.isoscore(X) == pytest.approx(1, abs=1e-12)
        assert share(X, labels) == pytest.approx(1 / 2)  # the knee, (K − 1)/d
        assert least_share(silhouette_samples(X, labels).min(), np.full(2, 2 * copies)) <= 1 / 2


def test_no_mean_of_silhouettes_bounds_the_share() -> None:
    """Two labels of one size: both means go to 1, ρ to 0 and IsoScore to 1 together."""
    d, seen = 3, []
    for size in (30, 300, 3000):
        outer = size**0.6 / 2 * np.vstack([np.eye(d), -np.eye(d)])
        one = np.vstack([np.zeros((size, d)), outer])
        X, labels = np.vstack([one, one + np.eye(d)[0]]), np.repeat([0, 1], size + 2 * d)
        means = iso.metrics.silhouette_by_cluster(X, labels).values()
        seen.append((1 - min(means), share(X, labels), 1 - iso.isoscore(X)))
    assert np.all(np.diff(seen, axis=0) < 0)
    assert np.all(np.array(seen[-1]) < [0.15, 0.05, 0.005])


def test_the_diameter_makes_a_bound_of_the_mean() -> None:
    """Theorem 3: tr W ≤ D²·mean of min(1, 1 − s)², so 1 − ρ ≤ (1 − s̄)·D²/tr Σ."""
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(400):
        X, labels, _ = random_labels(rng)
        s, diameter, total = silhouette_samples(X, labels), pdist(X).max(), X.var(axis=0).sum()
        within = (1 - share(X, labels)) * total
        sharp = diameter**2 * np.minimum(1, 1 - s).clip(0) ** 2
        assert within <= sharp.mean() + 1e-12 <= (1 - s.mean()) * diameter**2 + 1e-9
        closest = max(closest, within / sharp.mean())
    assert closest > 0.2
    X, labels = crosses([50, 50], 1e-4)  # and near collapse it is tight to a factor of 1, D² = 1
    s = silhouette_samples(X, labels)
    assert 1e-8 / ((1 - s) ** 2).mean() == pytest.approx(1, rel=0.05)


def test_means_far_apart_make_a_high_silhouette() -> None:
    """Theorem 4: s̄ ≥ 1 − √(2κη)/(1 − t) − 2η/t² with η = tr W/δ²; for two labels η is p₁p₂(1 − ρ)/ρ."""
    rng = np.random.default_rng(2)
    informative = 0
    for _ in range(500):
        X, labels, sizes = random_labels(rng)
        X = X + 9 * rng.random() * np.eye(len(sizes), X.shape[1])[labels]
        means = np.stack([X[labels == k].mean(axis=0) for k in range(len(sizes))])
        within = X.var(axis=0).sum() * (1 - share(X, labels))
        eta, kappa = within / pdist(means).min() ** 2, (sizes / (sizes - 1)).max()
        t = np.linspace(0.01, 0.99, 99)
        bound = (1 - np.sqrt(2 * kappa * eta) / (1 - t) - 2 * eta / t**2).max()
        mean = silhouette_samples(X, labels).mean()
        assert mean >= bound
        informative += bound > 0
        if len(sizes) == 2:
            p, rho = sizes / sizes.sum(), share(X, labels)
            assert eta == pytest.approx(p.prod() * (1 - rho) / rho)
    assert informative > 15


def test_three_labels_may_have_any_share_at_any_silhouette() -> None:
    """Two labels in one place, a third far away: ρ near 1 says nothing of the mean."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [50, 50, 4])
    X = rng.normal(size=(104, 5)) + 1e3 * (labels == 2)[:, None]
    assert share(X, labels) > 0.9999
    assert silhouette_samples(X, labels).mean() < 0.06
