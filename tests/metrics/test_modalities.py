from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group
from tests.raising import raises

import isoscope as iso
from isoscope.metrics import modality_gap
from isoscope.metrics.modalities import modality_gap_error
from isoscope.statistics.cross import CrossMoments


def sides(rng: np.random.Generator, gap: float, n: int = 50, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides; each has the variance d, and their means are `gap` apart in every dimension."""
    common = rng.normal(size=(n, d))
    return tuple(np.sqrt(0.5) * (common + rng.normal(size=(n, d))) + shift for shift in (0.0, gap))  # type: ignore[return-value]


def truth(gap: float) -> float:
    return gap**2 / (gap**2 + 4)


def test_the_share_between_both_sides_is_that_of_two_labels(rng: np.random.Generator) -> None:
    """Without the correction for the variance of the means, it is between_share of the sides as labels."""
    X, Y = sides(rng, 1.0)
    n = len(X)
    share = iso.metrics.between_share(np.vstack([X, Y]), np.repeat([0, 1], n))
    step = X.mean(0) - Y.mean(0)
    variances = X.var(0, ddof=1).sum() + Y.var(0, ddof=1).sum()
    plain = step @ step / (step @ step + 2 * variances * (n - 1) / n)
    assert share == pytest.approx(plain)
    unbiased = step @ step - (X - Y).var(0, ddof=1).sum() / n
    assert modality_gap(X, Y) == pytest.approx(unbiased / (unbiased + 2 * variances))


@pytest.mark.parametrize("gap", [0.0, 0.5, 3.0])
def test_unbiased_with_an_error_that_matches_the_spread(rng: np.random.Generator, gap: float) -> None:
    drawn = [CrossMoments.of(*sides(rng, gap)) for _ in range(300)]
    values = np.array([modality_gap(one) for one in drawn])
    errors = np.array([modality_gap_error(one) for one in drawn])
    assert abs(values.mean() - truth(gap)) < 4 * values.std() / np.sqrt(300) + 2e-3 * truth(gap)
    assert 0.85 < errors.mean() / values.std() < 1.6
    assert np.mean(np.abs(values - truth(gap)) < 1.96 * errors) > 0.89


def test_the_error_is_that_of_the_jackknife_where_rows_are_skewed(rng: np.random.Generator) -> None:
    """Of skewed rows the distance of the means and the variance go together."""
    X, Y = rng.exponential(size=(400, 3)), 2 * rng.exponential(size=(400, 3))
    left_out = [modality_gap(np.delete(X, i, 0), np.delete(Y, i, 0)) for i in range(400)]
    expected = np.std(left_out) * np.sqrt(399)
    assert modality_gap_error(CrossMoments.of(X, Y)) == pytest.approx(expected, rel=0.02)


def test_moving_both_sides_together_changes_nothing(rng: np.random.Generator) -> None:
    X, Y = sides(rng, 1.0)
    Q = ortho_group.rvs(20, random_state=0)
    first, second = CrossMoments.of(X, Y), CrossMoments.of(3 * X @ Q + 5, 3 * Y @ Q + 5)
    assert modality_gap(first) == pytest.approx(modality_gap(second))
    assert modality_gap_error(first) == pytest.approx(modality_gap_error(second))
    assert modality_gap(X, X) == pytest.approx(0, abs=1e-15)


def test_measure_takes_partners_and_bad_input_is_named(rng: np.random.Generator) -> None:
    X, Y = sides(rng, 1.0)
    reading = iso.measure(X, partners=Y, metrics="modality_gap", errors=True).readings[0]
    assert reading.value == modality_gap(X, Y)
    assert reading.standard_error == modality_gap_error(CrossMoments.of(X, Y))
    with raises(iso.ShapeError, argument="Y", wanted="20"):
        modality_gap(X, Y[:, :-1])
    with pytest.raises(iso.UndefinedError, match="all 50 points of both sides are equal"):
        modality_gap(np.ones_like(Y), np.ones_like(Y))


def test_a_side_of_equal_points_has_a_gap(rng: np.random.Generator) -> None:
    X, _ = sides(rng, 1.0)
    Y = np.full_like(X, 2.0)
    variance = X.var(0, ddof=1).sum()
    squared = ((X.mean(0) - 2) ** 2).sum() - variance / len(X)
    assert modality_gap(X, Y) == pytest.approx(squared / (squared + 2 * variance))
    left_out = [modality_gap(np.delete(X, i, 0), Y[1:]) for i in range(len(X))]
    error = modality_gap_error(CrossMoments.of(X, Y))
    assert error == pytest.approx(np.std(left_out) * np.sqrt(len(X) - 1), rel=0.1)
    assert modality_gap(np.zeros_like(Y), Y) == 1
