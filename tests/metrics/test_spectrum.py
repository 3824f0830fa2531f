import math

import numpy as np
import pytest
import torch

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.spectrum import (
    condition_number,
    dimensions_for_variance,
    effective_rank,
    eigenvalues,
    explained_variance,
    participation_ratio,
    power_law_exponent,
    rankme,
    stable_rank,
)
from isoscope.statistics import Moments

CENTRED = [
    participation_ratio,
    effective_rank,
    stable_rank,
    condition_number,
    explained_variance,
    dimensions_for_variance,
    power_law_exponent,
]
SCALARS = [participation_ratio, effective_rank, rankme, stable_rank]


def with_spectrum(values, n, seed=0, offset=0.0):
    """(n, d) vectors whose covariance has exactly these eigenvalues, in random directions."""
    rng = np.random.default_rng(seed)
    d = len(values)
    centred = rng.normal(size=(n, d))
    Q = np.linalg.qr(centred - centred.mean(axis=0))[0]
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (Q * np.sqrt(np.asarray(values) * (n - 1))) @ rotation + offset


GEOMETRIC = 10.0 ** -np.linspace(0, 3, 12)


def shares(values):
    return np.asarray(values) / np.sum(values)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_known_spectrum(offset):
    X = with_spectrum(GEOMETRIC, 40, offset=offset)
    p = shares(GEOMETRIC)
    np.testing.assert_allclose(eigenvalues(X), GEOMETRIC, rtol=1e-6)
    assert participation_ratio(X) == pytest.approx(1 / np.sum(p**2), rel=1e-9)
    assert effective_rank(X) == pytest.approx(np.exp(-np.sum(p * np.log(p))), rel=1e-9)
    assert stable_rank(X) == pytest.approx(GEOMETRIC.sum() / GEOMETRIC.max(), rel=1e-9)
    assert condition_number(X) == pytest.approx(1e3, rel=1e-6)
    np.testing.assert_allclose(explained_variance(X), np.cumsum(p), rtol=1e-9)
    assert dimensions_for_variance(X) == int(np.argmax(np.cumsum(p) >= 0.9)) + 1


@pytest.mark.parametrize("d", [1, 2, 7])
def test_flat_spectrum(d):
    X = with_spectrum(np.ones(d), 30)
    for metric in (participation_ratio, effective_rank, stable_rank):
        assert metric(X) == pytest.approx(d, rel=1e-12)
    assert condition_number(X) == pytest.approx(1, rel=1e-12)
    assert dimensions_for_variance(X, share=1.0) == d


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_share_that_is_held_exactly_is_reached(dtype):
    spaces = [with_spectrum([9.0, 1.0], 30, seed=seed).astype(dtype) for seed in range(20)]
    assert {dimensions_for_variance(X, share=0.9) for X in spaces} == {1}
    flat = with_spectrum(np.ones(10), 30).astype(dtype)
    assert [dimensions_for_variance(flat, share=k / 10) for k in range(1, 11)] == list(range(1, 11))


def test_participation_ratio_is_isoscore_on_another_scale():
    X = with_spectrum(GEOMETRIC, 25)
    assert isoscore(X) == pytest.approx((participation_ratio(X) - 1) / (len(GEOMETRIC) - 1), rel=1e-12)


def test_the_three_counts_are_ordered():
    X = np.random.default_rng(1).standard_t(3, size=(60, 20))
    assert 1 <= stable_rank(X) <= participation_ratio(X) <= effective_rank(X) <= 20


def published_rankme(X):
    sigma = np.linalg.svd(np.asarray(X, dtype=np.float64), compute_uv=False)
    p = sigma / sigma.sum() + 1e-7
    return np.exp(-np.sum(p * np.log(p)))


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (9, 9), (1, 5), (5, 1)])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e4])
def test_rankme_is_the_published_one(shape, offset):
    X = np.random.default_rng(2).normal(size=shape) + offset
    assert rankme(X) == pytest.approx(published_rankme(X), rel=1e-7)


def test_rankme_from_merged_moments_of_fewer_rows_than_dimensions():
    X = np.random.default_rng(3).normal(size=(9, 30)) + 1
    parts = Moments.of(X[:4]).merge(Moments.of(X[4:]))
    assert parts.factor is not None
    assert rankme(parts) == pytest.approx(published_rankme(X), rel=1e-10)


@pytest.mark.parametrize("shape", [(3000, 400), (300, 400)])
def test_rankme_of_low_rank_float32_is_not_filled_up_by_rounding(shape):
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(shape[0], 5)) @ rng.normal(size=(5, shape[1]))).astype(np.float32)
    assert rankme(X) == pytest.approx(published_rankme(X), rel=1e-4)
    assert effective_rank(X) == pytest.approx(effective_rank(X.astype(np.float64)), rel=3e-4)


@pytest.mark.parametrize("metric", SCALARS)
def test_scale_1e20_in_float64(metric):
    X = with_spectrum(GEOMETRIC, 50)
    assert metric(X * 1e20) == pytest.approx(metric(X), rel=1e-9)
    assert metric(X * 1e-100) == pytest.approx(metric(X), rel=1e-9)


@pytest.mark.parametrize("metric", [participation_ratio, effective_rank, stable_rank])
def test_float32_far_from_the_origin(metric):
    X = (with_spectrum(GEOMETRIC, 500) * 30 + 1e4).astype(np.float32)
    assert metric(X) == pytest.approx(metric(X.astype(np.float64)), rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0, 2.5])
@pytest.mark.parametrize("d", [20, 100])
def test_power_law_is_recovered(alpha, d):
    X = with_spectrum(np.arange(1, d + 1) ** -alpha, 3 * d)
    assert power_law_exponent(X) == pytest.approx(alpha, abs=1e-8)


def test_power_law_ranks():
    values = np.arange(1, 81) ** -1.0
    values[:10] = values[:10] * 50  # a head off the line, which the default leaves out
    X = with_spectrum(values, 300)
    assert power_law_exponent(X) == pytest.approx(1.0, abs=1e-8)
    assert power_law_exponent(X, first=1, last=10) == pytest.approx(1.0, abs=1e-8)
    assert power_law_exponent(X, first=1) > 1.5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_power_law_stops_at_the_rank_whatever_type_the_vectors_are_stored_in(dtype, offset):
    values = np.concatenate([np.arange(1, 31) ** -1.0, np.zeros(20)])
    X = with_spectrum(values, 400, offset=offset).astype(dtype)
    assert power_law_exponent(X) == pytest.approx(1, abs=1e-2 if dtype == np.float16 else 1e-5)
    with pytest.raises(UndefinedError, match="rank 30 of 50"):
        condition_number(X)


def test_one_null_direction_in_float32_is_not_mistaken_for_a_small_one():
    rng = np.random.default_rng(5)
    X = rng.integers(-1000, 1000, size=(400, 12)).astype(np.float32)
    X[:, -1] = -X[:, :-1].sum(axis=1)  # whole numbers: rows add up to 0 exactly
    with pytest.raises(UndefinedError, match="rank 11 of 12"):
        condition_number(X)


def test_condition_number_of_float32_vectors_is_that_of_the_vectors():
    X = with_spectrum(10.0 ** -np.linspace(0, 9, 12), 200).astype(np.float32)
    assert condition_number(X) == pytest.approx(np.linalg.cond(np.cov(X.T.astype(np.float64))), rel=1e-4)


def test_wide_condition_numbers_survive_in_float64():
    assert condition_number(with_spectrum([1.0, 1e-5, 1e-10], 50)) == pytest.approx(1e10, rel=1e-4)


@pytest.mark.parametrize("metric", SCALARS)
@pytest.mark.parametrize("rows", [1, 2])
def test_gradient_is_finite_at_the_flat_and_at_a_low_rank_spectrum(metric, rows):
    flat = torch.cat([torch.eye(4), -torch.eye(4)]).double().repeat(rows, 1).requires_grad_()
    metric(flat).backward()
    assert torch.isfinite(flat.grad).all()
    low = torch.zeros(6, 5, dtype=torch.float64)
    low[:, 0] = torch.arange(6)
    low.requires_grad_()
    metric(low).backward()
    assert torch.isfinite(low.grad).all()


@pytest.mark.parametrize("metric", [*SCALARS, eigenvalues, explained_variance])
def test_moments_and_vectors_agree(metric):
    X = np.random.default_rng(7).normal(size=(40, 6)) + 2
    parts = Moments.of(X[:13]).merge(Moments.of(X[13:]))
    np.testing.assert_allclose(np.asarray(metric(parts)), np.asarray(metric(X)), rtol=1e-10)


def test_arrays_come_back_as_the_callers_kind():
    X = with_spectrum([2.0, 1.0], 9)
    assert isinstance(eigenvalues(X), np.ndarray)
    assert isinstance(eigenvalues(torch.from_numpy(X)), torch.Tensor)
    assert isinstance(explained_variance(Moments.of(X)), torch.Tensor)
    assert isinstance(eigenvalues(X.tolist()), np.ndarray)


@pytest.mark.parametrize("metric", CENTRED)
def test_undefined(metric):
    with pytest.raises(UndefinedError, match="all 5 points are equal"):
        metric(np.ones((5, 3)))
    with pytest.raises(UndefinedError, match="at least 2 vectors"):
        metric(np.ones((1, 3)))


def test_rankme_of_zeros_is_undefined():
    with pytest.raises(UndefinedError, match="all 3 vectors are zero"):
        rankme(np.zeros((3, 2)))


def test_condition_number_names_the_rank():
    with pytest.raises(UndefinedError, match=r"rank 3 of 6 \(4 vectors\)"):
        condition_number(np.random.default_rng(8).normal(size=(4, 6)))
    with pytest.raises(UndefinedError, match="rank 1 of 2"):
        condition_number([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])


def test_bad_arguments():
    X = with_spectrum(GEOMETRIC, 30)
    for share in (0, -1, 1.5, math.nan):
        with pytest.raises(InputError, match="share"):
            dimensions_for_variance(X, share=share)
    with pytest.raises(InputError, match="first < last"):
        power_law_exponent(X, first=5, last=5)
    with pytest.raises(UndefinedError, match="to rank 13: the covariance has rank 12"):
        power_law_exponent(X, last=13)
    with pytest.raises(UndefinedError, match="two ranks"):
        power_law_exponent([[1.0, 0.0], [2.0, 0.0]])
