"""Differences of two samples against closed forms, and their errors against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.errors import ShapeError, UndefinedError
from isoscope.metrics import covariance_change, mean_shift, modality_gap, spread_change


def test_mean_shift_of_gaussians(rng) -> None:
    X, Y = rng.normal(size=(20_000, 5)), rng.normal(size=(10_000, 5)) + 1.0
    found = mean_shift(X, Y)
    exact = 5 / (5 + 2 * 10)
    assert abs(found.value - exact) < 4 * found.standard_error
    assert found.standard_error < 0.005


def test_mean_shift_has_no_bias_and_its_error_is_right(rng) -> None:
    """Of few rows in many dimensions, where ‖x̄ − ȳ‖² is mostly noise; z-scores of 400 draws."""
    for shift in (0.0, 0.2):
        exact = 40 * shift**2 / (40 * shift**2 + 2 * 80)
        found = [mean_shift(*_shifted(rng, 30, 60, 40, shift)) for _ in range(400)]
        values = np.array([one.value for one in found])
        errors = np.array([one.standard_error for one in found])
        assert abs(values.mean() - exact) < 4 * values.std() / 20
        assert 0.85 < values.std() / np.sqrt((errors**2).mean()) < 1.15


def _shifted(rng, n: int, m: int, d: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + shift


def test_mean_shift_is_the_modality_gap_of_unrelated_pairs(rng) -> None:
    X, Y = _shifted(rng, 4000, 4000, 6, 0.5)
    assert np.isclose(mean_shift(X, Y).value, modality_gap(X, Y), atol=2e-4)  # they differ in noise removed


def test_spread_change_of_a_scaled_sample(rng) -> None:
    X = rng.normal(size=(500, 4))
    assert np.isclose(spread_change(X, 2 * X + 3).value, 3)
    values = [spread_change(*_shifted(rng, 100, 150, 4, 1.0)) for _ in range(400)]
    deviation = np.std([one.value for one in values])
    assert 0.85 < deviation / np.mean([one.standard_error for one in values]) < 1.15


def test_covariance_change_of_gaussians(rng) -> None:
    X, Y = rng.normal(size=(5000, 3)), rng.normal(size=(5000, 3)) * [1.0, 1.0, 2.0]
    exact = (1 - 4) ** 2 / (3 + 2 + 16)
    assert abs(covariance_change(X, Y) - exact) < 0.02
    few = [covariance_change(*rng.normal(size=(2, 12, 30))) for _ in range(200)]
    assert abs(np.mean(few)) < 4 * np.std(few) / np.sqrt(200) + 0.02  # a ratio: unbiased above and below


def test_moments_suffice_and_merge(rng) -> None:
    X, Y = _shifted(rng, 300, 200, 5, 0.3)
    parts = iso.Moments.of(X[:100]).merge(iso.Moments.of(X[100:]))
    for formula in (mean_shift, spread_change, covariance_change):
        assert np.allclose(formula(parts, iso.Moments.of(Y)), formula(X, Y), rtol=1e-10)


@pytest.mark.parametrize("formula", [mean_shift, spread_change, covariance_change])
def test_what_has_no_value(formula, rng) -> None:
    X = rng.normal(size=(10, 3))
    with raises(ShapeError, argument="Y"):
        formula(X, rng.normal(size=(10, 4)))
    with raises(UndefinedError):
        formula(X, np.ones((5, 3)))
