from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raising import raises

from isoscope import Moments
from isoscope.errors import InputError, NotFiniteError, ShapeError, UndefinedError
from isoscope.statistics import moments as module


def brute(X: np.ndarray) -> dict[str, np.ndarray]:
    U = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    r = (U * U).sum(axis=1)
    return {"mean": X.mean(axis=0), "scatter": U.T @ U, "cubic": U.T @ r, "quartic": (r * r).sum()}


def assert_same(moments: Moments, X: np.ndarray, tolerance: float) -> None:
    trace = float(np.trace(brute(X)["scatter"]))
    size = {"mean": np.abs(X).max(), "scatter": trace, "cubic": trace**1.5, "quartic": trace**2}
    for name, expected in brute(X).items():
        got = getattr(moments, name).numpy()
        assert np.allclose(got, expected, rtol=0, atol=tolerance * size[name]), name
    assert moments.count == len(X)


@pytest.mark.parametrize("shape", [(50, 6), (6, 50), (7, 7), (1, 3), (2, 1), (300, 200)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_against_brute_force(rng, shape: tuple[int, int], offset: float) -> None:
    X = rng.normal(size=shape) * np.linspace(1, 3, shape[1]) + offset
    moments = Moments.of(X)
    assert_same(moments, X, 1e-9)
    A = brute(X)["scatter"]
    assert float(moments.trace) == pytest.approx(np.trace(A), rel=1e-9)
    assert float(moments.squared_frobenius) == pytest.approx((A * A).sum(), rel=1e-9)


def test_the_gram_side_is_taken_when_rows_are_few(rng) -> None:
    moments = Moments.of(rng.normal(size=(5, 100)))
    assert moments.scatter_matrix is None
    assert moments.smaller_side.shape == (5, 5)
    assert Moments.of(rng.normal(size=(100, 5))).smaller_side.shape == (5, 5)


def test_eigenvalues_of_either_side(rng) -> None:
    for shape in ((40, 6), (6, 40)):
        X = rng.normal(size=shape)
        expected = np.linalg.eigvalsh(np.cov(X.T))[::-1]
        assert np.allclose(Moments.of(X).eigenvalues.numpy(), expected, atol=1e-12)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    cuts=st.lists(st.integers(1, 29), unique=True, max_size=5),
    d=st.sampled_from([1, 3, 12, 60]),
)
def test_any_split_merges_to_the_whole(seed: int, cuts: list[int], d: int) -> None:
    X = np.random.default_rng(seed).normal(size=(30, d)) + 100
    edges = [0, *sorted(cuts), 30]
    merged: Moments | None = None
    for a, b in itertools.pairwise(edges):
        merged = Moments.of(X[a:b]) if merged is None else merged.update(X[a:b])
    assert_same(merged, X, 1e-9)


def test_merge_commutes_and_associates(rng) -> None:
    a, b, c = (Moments.of(rng.normal(size=(n, 4)) + n) for n in (3, 10, 25))
    left, right = a.merge(b).merge(c), c.merge(b.merge(a))
    for name in ("mean", "scatter", "cubic", "quartic"):
        assert torch.allclose(getattr(left, name), getattr(right, name), rtol=1e-12), name


def test_blocks_inside_of_agree_with_one_block(rng, monkeypatch) -> None:
    X = rng.normal(size=(2000, 9)).astype(np.float32)
    whole = Moments.of(X)
    monkeypatch.setattr("isoscope.arrays.BLOCK_BYTES", 256 * 9 * 4)
    assert torch.allclose(Moments.of(X).scatter, whole.scatter, rtol=0, atol=1e-6 * 2000)


def test_float32_keeps_its_digits_at_an_offset(rng) -> None:
    """Raw float32 sums lose the covariance at a mean of 300 (error 1.5e-2); centred merging does not."""
    X = (rng.normal(size=(5000, 20)) + 300).astype(np.float32)
    exact = np.cov(X.astype(np.float64).T)
    assert np.abs(Moments.of(X).covariance.numpy() - exact).max() < 4e-6


@pytest.mark.parametrize("scale", [1e20, 1e-30, 3e37])
def test_float32_beyond_its_square(rng, scale: float) -> None:
    X = (rng.normal(size=(64, 5)) * scale).astype(np.float32)
    assert_same(Moments.of(X), X.astype(np.float64), 1e-5)


def test_gradient_through_float32_and_gram_side() -> None:
    for shape in ((20, 4), (4, 20)):
        X = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
        Moments.of(X).squared_frobenius.backward()
        U = X.detach() - X.detach().mean(0)
        assert torch.allclose(X.grad, 4 * U @ (U.T @ U), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5000, 40), (8, 40)])
def test_bad_numbers_are_found_without_a_pass_of_their_own(dtype: type, shape: tuple[int, int]) -> None:
    X = np.ones(shape, dtype=dtype)
    X[3, 1], X[-1, 0] = np.nan, -np.inf
    with pytest.raises(NotFiniteError, match=rf"NaN or Inf in 2 of {shape[0]} rows \(row 3"):
        Moments.of(X)


def test_moments_pass_through() -> None:
    moments = Moments.of(np.eye(3))
    assert Moments.of(moments) is moments


def test_errors() -> None:
    with raises(ShapeError, message="2 and 3 dimensions", wanted="same"):
        Moments.of(np.eye(2)).update(np.eye(3))
    with pytest.raises(UndefinedError, match="at least 2 vectors; there is 1"):
        _ = Moments.of(np.ones((1, 3))).covariance
    with pytest.raises(UndefinedError, match="all 4 points are equal"):
        Moments.of(np.ones((4, 3))).need_spread("it")
    with pytest.raises(InputError, match="too large for float64 to square"):
        Moments.of(np.array([[1e200, 0.0], [0.0, 1e200], [1.0, 1.0]]))
    with pytest.raises(InputError, match="too small for float64 to square"):
        Moments.of(np.array([[1e-200, 0.0], [0.0, 1e-200], [1e-200, 1e-200]]))


def test_statistics_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Moments.of(np.eye(2)).count = 5
    assert module.Moments is Moments


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30, 400), (10, 768), (3000, 7), (40_000, 300)])
def test_equal_points_have_no_spread_at_all(rng, shape: tuple[int, int], dtype: type) -> None:
    """The mean of equal numbers is off by rounding; their spread must not be."""
    X = np.tile(rng.normal(size=shape[1]).astype(dtype), (shape[0], 1))
    assert float(Moments.of(X).trace) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [5, 40_000])
def test_without_the_fourth_the_rest_is_the_same(n: int, dtype: torch.dtype) -> None:
    X = torch.randn(n, 30, generator=torch.Generator().manual_seed(0)).to(dtype) + 3
    whole, lean = Moments.of(X), Moments.of(X, fourth=False)
    merged = lean.merge(Moments.of(X, fourth=False))
    torch.testing.assert_close(lean.scatter, whole.scatter, rtol=1e-9, atol=1e-9 * float(whole.trace))
    spread = float((whole.trace / whole.count / whole.n_dims).sqrt())
    torch.testing.assert_close(lean.mean, whole.mean, rtol=0, atol=1e-8 * spread)
    torch.testing.assert_close(merged.scatter, 2 * whole.scatter, rtol=1e-9, atol=1e-9 * float(whole.trace))
    assert lean.has_fourth == (n < 30)
    assert whole.has_fourth
