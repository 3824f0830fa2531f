from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata, spearmanr, t

import isoscope as iso
from isoscope.tracking.correlation import Correlation, pearson, ranks


def test_equals_scipy_on_the_averaged_curves(rng) -> None:
    a = rng.normal(size=(4, 60)).cumsum(axis=1)
    b = -(a**3) + rng.normal(size=a.shape)
    found = Correlation.of("a", "b", a, b)
    assert found.r == pytest.approx(pearsonr(a.mean(0), b.mean(0)).statistic)
    assert found.rho == pytest.approx(spearmanr(a.mean(0), b.mean(0)).statistic)
    assert found.r_by_seed == pytest.approx([pearsonr(x, y).statistic for x, y in zip(a, b, strict=True)])
    assert found.rho_by_seed == pytest.approx([spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)])
    assert found.n_points == 60


def test_ranks_share_ties() -> None:
    values = np.array([3.0, 1.0, 3.0, 2.0, 3.0])
    np.testing.assert_array_equal(ranks(values), rankdata(values))


def test_interval_is_the_jackknife_over_seeds(rng) -> None:
    a = rng.normal(size=(5, 40)).cumsum(axis=1)
    b = a + 2 * rng.normal(size=a.shape)
    found = Correlation.of("a", "b", a, b)
    left_out = [pearson(np.delete(a, k, 0).mean(0), np.delete(b, k, 0).mean(0)) for k in range(5)]
    pseudo = 5 * found.r - 4 * np.array(left_out)
    half = t.ppf(0.975, 4) * pseudo.std(ddof=1) / np.sqrt(5)
    assert found.r_interval == pytest.approx((found.r - half, min(found.r + half, 1)))


def test_the_interval_covers_seeds_drawn_again(rng) -> None:
    """Seeds that add noise of their own to a common curve: the interval holds the limit of many seeds."""
    steps = np.linspace(0, 1, 30)

    def curves(n_seeds: int) -> tuple[np.ndarray, np.ndarray]:
        tilt = rng.normal(size=(2, n_seeds, 1))
        return steps + 0.5 * tilt[0] * steps**2, np.sin(3 * steps) + 0.5 * tilt[1] * steps**3

    limit = pearson(*(many.mean(axis=0) for many in curves(20_000)))
    held = 0
    for _ in range(200):
        low, high = Correlation.of("a", "b", *curves(5)).r_interval
        held += low <= limit <= high
    assert 0.88 <= held / 200 <= 1.0


def test_one_seed_has_no_interval(rng) -> None:
    a = rng.normal(size=(1, 10))
    found = Correlation.of("a", "b", a, 2 * a)
    assert found.r == pytest.approx(1)
    assert found.r_interval is None
    assert found.rho_interval is None


def test_nearly_perfect_orders_keep_narrow_intervals(rng) -> None:
    a = np.sort(rng.normal(size=(3, 50)), axis=1)
    b = -np.exp(a)
    assert Correlation.of("a", "b", a, b).rho_interval == (-1, -1)
    a[0, 20] = a[0, 40]  # one seed out of order
    low, high = Correlation.of("a", "b", a, b).rho_interval
    assert -1 <= low < high < -0.9


def test_points_without_a_value_are_left_out(rng) -> None:
    a, b = rng.normal(size=(2, 2, 10))
    a[0, 3] = np.nan
    found = Correlation.of("a", "b", a, b)
    assert found.n_points == 9
    assert found.r == pytest.approx(pearson(np.delete(a, 3, 1).mean(0), np.delete(b, 3, 1).mean(0)))


def test_undefined_is_said() -> None:
    with pytest.raises(iso.UndefinedError, match="a curve is constant"):
        Correlation.of("a", "b", np.ones((2, 5)), np.arange(10.0).reshape(2, 5))
    with pytest.raises(iso.UndefinedError, match="at least 3 points; there are 1"):
        Correlation.of("a", "b", np.ones((2, 1)), np.ones((2, 1)))
