"""Chunks of rows and the sums over them, against float64 sums over all rows at once."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from isoscope.errors import NotFiniteError
from isoscope.statistics.chunks import CenteredSums, chunks, near_point, pieces
from isoscope.statistics.directions import Directions, moments_and_directions
from isoscope.statistics.leave_one_out import LeftOutCosines
from isoscope.statistics.moments import Moments
from isoscope.statistics.partition import LogPartition

HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
def test_chunks_are_all_rows_in_order_and_in_the_type_of_products(dtype: torch.dtype) -> None:
    X = torch.randn(12_000, 300, generator=torch.Generator().manual_seed(0)).to(dtype)
    wanted = torch.float64 if dtype == torch.float64 else torch.float32
    rows = [part.clone() for part in chunks(X)]  # a chunk is written over by the next
    assert len(rows) > 2
    torch.testing.assert_close(torch.cat(rows), X.to(wanted), rtol=0, atol=0)


def test_pieces_are_all_rows_a_few_at_a_time() -> None:
    X = torch.randn(3000, 300).half()
    parts = list(pieces(X))
    assert max(map(len, parts)) * 300 * 8 <= 2 * 2**20
    assert torch.equal(torch.cat(parts), X)
    assert [len(part) for part in pieces(X.float().requires_grad_())] == [3000]


def test_what_is_taken_piece_by_piece_is_what_all_rows_give(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(3000, 300)) + 0.2)
    moments, directions = moments_and_directions(X)
    along = X @ moments.principal[1]
    found = LogPartition.of(X, moments).log_z
    torch.testing.assert_close(found, torch.stack([along.logsumexp(dim=0), (-along).logsumexp(dim=0)]))
    units = torch.nn.functional.normalize(X)
    cosines = LeftOutCosines.of(X, directions).projections
    torch.testing.assert_close(cosines, units @ units.sum(dim=0))


def test_float32_chunks_are_no_copies() -> None:
    X = torch.randn(5000, 300)
    assert next(chunks(X)).data_ptr() == X.data_ptr()


@pytest.mark.parametrize("about", [0.0, 2.5])
def test_sums_about_a_point(rng, monkeypatch, about: float) -> None:
    monkeypatch.setattr("isoscope.statistics.chunks._CHUNK_BYTES", 4 * 40 * 700)
    X = torch.from_numpy(rng.normal(size=(3000, 40)) + 3)
    sums = CenteredSums(torch.full((40,), about, dtype=torch.float64))
    for rows in chunks(X):
        sums.add(rows)
    V = X.numpy() - about
    squares = (V * V).sum(axis=1)
    assert sums.count == 3000
    np.testing.assert_allclose(sums.scatter, V.T @ V, rtol=1e-11)
    np.testing.assert_allclose(sums.total, V.sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(sums.cubic, squares @ V, rtol=1e-11)
    assert float(sums.quartic) == pytest.approx(squares @ squares, rel=1e-11)


def test_a_point_near_rows_is_zero_only_where_that_costs_nothing(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(5000, 10)))
    assert not near_point(X + 1).any()
    torch.testing.assert_close(near_point(X + 9), torch.full((10,), 9.0).double(), rtol=0, atol=0.3)
    one_far = X.clone()
    one_far[:, 3] += 9
    assert near_point(one_far).any()


def test_rows_that_hide_where_the_others_are(rng) -> None:
    """Every row that is looked at lies about zero; the others are far, and float32 would lose them there."""
    n, d = 409_600, 8
    X = rng.normal(size=(n, d)) * 1e-3 + 1e3
    X[:: n // 256] = rng.normal(size=(256, d)) * 1e-3
    rows = torch.from_numpy(X.astype(np.float32))
    exact = Moments.of(rows.double()).scatter
    torch.testing.assert_close(Moments.of(rows).scatter, exact, rtol=2e-5, atol=0)


def test_one_dimension_hidden_beside_wide_ones(rng) -> None:
    """The others' spread is no excuse: each dimension has its own digits."""
    n, d = 409_600, 20
    X = rng.normal(size=(n, d)) * 1e3
    X[:, 0] = rng.normal(size=n) + 1e3
    X[:: n // 256, 0] = rng.normal(size=256) * 1e3
    rows = torch.from_numpy(X[: n // 2].astype(np.float32))
    exact = Moments.of(rows.double()).scatter.diagonal()
    torch.testing.assert_close(Moments.of(rows).scatter.diagonal(), exact, rtol=1e-5, atol=0)


def test_a_constant_dimension_is_no_reason_to_begin_again(rng, monkeypatch) -> None:
    """What rounding leaves of its mean is not a mean that was missed."""
    X = torch.from_numpy(rng.normal(size=(5000, 20)).astype(np.float32))
    X[:, 5:] = torch.from_numpy(rng.normal(size=15).astype(np.float32))
    passes: list[torch.Tensor] = []
    noted = importlib.import_module("isoscope.statistics.moments")
    monkeypatch.setattr(noted, "chunks", lambda X: passes.append(X) or chunks(X))
    assert float(Moments.of(X).scatter.diagonal()[5:].max()) < 1e-8
    assert len(passes) == 1


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("d", [1, 2, 15])
def test_very_many_narrow_rows(rng, d: int, grad: bool) -> None:
    """One float32 sum of millions of squares keeps three digits."""
    X = rng.normal(size=(2_000_000 // d, d)).astype(np.float32) + 1
    U = X - X.mean(axis=0, dtype=np.float64)
    squares = (U * U).sum(axis=1)
    found = Moments.of(torch.from_numpy(X).requires_grad_(grad))
    np.testing.assert_allclose(found.scatter.detach(), U.T @ U, rtol=1e-9, atol=1e-6)
    assert float(found.quartic.detach()) == pytest.approx(squares @ squares, rel=1e-9)


@pytest.mark.parametrize("n_threads", [1, 2, 3])  # from three on, MKL's products were less exact
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
def test_float32_moments_keep_each_dimensions_digits(rng, set_threads, offset: float, n_threads: int) -> None:
    """A dimension of little variance beside large ones, with the mean anywhere."""
    set_threads(n_threads)
    scales = np.geomspace(1e-3, 1e3, 24)
    X = torch.from_numpy(((rng.normal(size=(30_000, 24)) + offset) * scales).astype(np.float32))
    exact = Moments.of(X.double()).scatter.diagonal()
    torch.testing.assert_close(Moments.of(X).scatter.diagonal(), exact, rtol=3e-6, atol=0)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("n", [7, 40_000])
def test_both_in_one_pass_are_what_they_are_alone(dtype: torch.dtype, n: int) -> None:
    X = (torch.randn(n, 64, generator=torch.Generator().manual_seed(1)) + 0.5).to(dtype)
    X[n // 2] = 0
    moments, directions = moments_and_directions(X)
    torch.testing.assert_close(moments.scatter, Moments.of(X).scatter, rtol=1e-12, atol=0)
    alone = Directions.of(X)
    assert directions.count == alone.count == n - 1
    assert directions.n_zero == 1
    for name in ("unit_sum", "unit_square_sum", "norm_sum", "norm_square_sum", "norm_min", "norm_max"):
        torch.testing.assert_close(getattr(directions, name), getattr(alone, name), rtol=1e-6, atol=1e-7 * n)


@pytest.mark.parametrize("dtype", HALVES)
def test_directions_of_half_precision(dtype: torch.dtype) -> None:
    X = (torch.randn(30_000, 100, generator=torch.Generator().manual_seed(2)) + 0.3).to(dtype)
    found, exact = Directions.of(X), Directions.of(X.double())
    for name in ("unit_sum", "unit_square_sum", "norm_sum", "norm_square_sum", "norm_min", "norm_max"):
        torch.testing.assert_close(getattr(found, name), getattr(exact, name), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("size", [1e12, 1e-45])
def test_large_and_tiny_weights_of_half_precision(rng, size: float) -> None:
    X, weights = torch.from_numpy(rng.normal(size=(500, 20))).half(), rng.random(500)
    found, plain = Directions.of(X, weights=weights * size), Directions.of(X.double(), weights=weights)
    for name in ("unit_sum", "unit_square_sum", "norm_sum"):
        torch.testing.assert_close(getattr(found, name) / size, getattr(plain, name))


@pytest.mark.parametrize("scales", [(1e-30, 1e30, 1.0), (1e-20,), (1e19,)])
def test_lengths_that_float32_cannot_square(scales: tuple[float, ...]) -> None:
    """bfloat16 has float32's range."""
    rows = [[3 * scale, 4 * scale] for scale in scales]
    X = torch.tensor(rows, dtype=torch.bfloat16).repeat(50, 1)
    found = Directions.of(X)
    lengths = torch.linalg.vector_norm(X.double(), dim=1)
    assert float(found.norm_min) == pytest.approx(float(lengths.min()), rel=1e-12)
    assert float(found.norm_max) == pytest.approx(float(lengths.max()), rel=1e-12)
    units = X.double() / lengths[:, None]
    torch.testing.assert_close(found.unit_sum, units.sum(dim=0))
    torch.testing.assert_close(found.unit_square_sum, units.square().sum(dim=0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_found_by_the_pass_itself(dtype: torch.dtype, bad: float) -> None:
    X = torch.ones(3000, 8, dtype=dtype)
    X[2345, 6] = bad
    with pytest.raises(NotFiniteError, match="2345"):
        moments_and_directions(X)


def test_large_half_numbers_that_are_finite_pass() -> None:
    X = torch.full((600, 300), 60_000.0, dtype=torch.float16)
    X[::2] *= -1
    assert float(Moments.of(X).trace) == pytest.approx(600 * 300 * 60_000.0**2, rel=1e-3)
