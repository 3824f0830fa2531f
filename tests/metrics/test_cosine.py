from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import InputError, ShapeError, UndefinedError
from isoscope.metrics.cosine import mean_cosine_error
from isoscope.statistics import Directions
from isoscope.statistics.leave_one_out import LeftOutCosines


def units(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("offset", [0.0, 0.5, 100.0])
def test_mean_cosine_equals_brute_force(rng, offset: float) -> None:
    X = rng.normal(size=(80, 6)) + offset
    C = units(X) @ units(X).T
    assert iso.mean_cosine(X) == pytest.approx(C[np.triu_indices(80, 1)].mean(), abs=1e-12)


def test_mean_cosine_of_opposites_and_copies() -> None:
    assert iso.mean_cosine([[1.0, 0], [-2.0, 0]]) == pytest.approx(-1.0)
    assert iso.mean_cosine([[1.0, 1], [2.0, 2], [5.0, 5]]) == pytest.approx(1.0)


def test_zero_vectors_are_left_out(rng) -> None:
    X = rng.normal(size=(20, 3))
    padded = np.vstack([X, np.zeros((5, 3))])
    assert iso.mean_cosine(padded) == pytest.approx(iso.mean_cosine(X))
    assert iso.uniformity(padded) == pytest.approx(iso.uniformity(X))
    assert iso.metrics.norm_statistics(padded).n_zero == 5


@pytest.mark.parametrize("n", [2, 50, 1700])
def test_uniformity_equals_brute_force(rng, n: int) -> None:
    U = units(rng.normal(size=(n, 40)) + 0.3)
    squared = ((U[:, None] - U) ** 2).sum(-1) if n <= 50 else 2 - 2 * U @ U.T
    expected = math.log(np.exp(-2 * squared)[np.triu_indices(n, 1)].mean())
    assert iso.uniformity(U) == pytest.approx(expected, abs=1e-10)
    assert iso.uniformity(U.astype(np.float32)) == pytest.approx(expected, abs=1e-5)


def test_uniformity_with_gradient_is_the_same_number(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(30, 4))).requires_grad_()
    assert float(iso.uniformity(X, t=3.0).detach()) == pytest.approx(
        iso.uniformity(X.detach(), t=3.0), abs=1e-10
    )


def test_alignment(rng) -> None:
    X, Y = rng.normal(size=(40, 5)), rng.normal(size=(40, 5))
    expected = (np.linalg.norm(units(X) - units(Y), axis=1) ** 3).mean()
    assert iso.alignment(X, Y, alpha=3) == pytest.approx(expected)
    assert iso.alignment(X, 7 * X) == pytest.approx(0.0, abs=1e-15)
    X[0] = 0
    assert iso.alignment(X, Y) == pytest.approx(iso.alignment(X[1:], Y[1:]))


def test_norms(rng) -> None:
    X = rng.normal(size=(50, 4)) * 1e20
    norms = np.linalg.norm(X, axis=1)
    found = iso.metrics.norm_statistics(X.astype(np.float32))
    assert found.mean == pytest.approx(norms.mean(), rel=1e-6)
    assert found.standard_deviation == pytest.approx(norms.std(), rel=1e-5)
    assert (found.min, found.max) == pytest.approx((norms.min(), norms.max()), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: iso.mean_cosine([[1.0, 0.0], [0.0, 0.0]]), UndefinedError, "1, and 1 zero vector"),
        (lambda: iso.uniformity([[1.0, 0.0]]), UndefinedError, "needs two vectors"),
        (lambda: iso.uniformity(np.eye(2), t=0), InputError, r"`t` must be .*got 0"),
        (lambda: iso.alignment(np.eye(2), np.eye(3)), ShapeError, "matching rows"),
        (lambda: iso.alignment(np.eye(2), np.zeros((2, 2))), UndefinedError, "zero vector"),
        (lambda: iso.metrics.norm_statistics(np.zeros((2, 2))), UndefinedError, "every vector is zero"),
    ],
)
def test_undefined_is_said(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_error_needs_three() -> None:
    directions = Directions.of(np.eye(2))
    with pytest.raises(UndefinedError, match="at least 3"):
        mean_cosine_error(directions, LeftOutCosines.of(np.eye(2), directions))
