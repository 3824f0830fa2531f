from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope import Moments
from isoscope.errors import InputError, NotFiniteError, ShapeError, UndefinedError


def with_spectrum(variances, n: int = 200, seed: int = 0) -> np.ndarray:
    """Vectors whose sample covariance has exactly these eigenvalues."""
    rng = np.random.default_rng(seed)
    d = len(variances)
    Q = rng.normal(size=(n, d))
    Q = np.linalg.qr(Q - Q.mean(0))[0] * math.sqrt(n - 1)
    return Q * np.sqrt(variances) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 3


def by_definition(X: np.ndarray) -> float:
    """The published steps, literally, in float64."""
    d = X.shape[1]
    variances = np.linalg.eigvalsh(np.cov(X.T.astype(np.float64)))
    normed = variances * math.sqrt(d) / np.linalg.norm(variances)
    defect = np.linalg.norm(normed - 1) / math.sqrt(2 * (d - math.sqrt(d)))
    share = (d - defect**2 * (d - math.sqrt(d))) ** 2 / d**2
    return (d * share - 1) / (d - 1)


@pytest.mark.parametrize("shape", [(200, 5), (50, 50), (20, 64), (3, 2), (2000, 30)])
def test_equals_the_eigenvalue_definition(rng, shape: tuple[int, int]) -> None:
    X = rng.normal(size=shape) * np.geomspace(1, 30, shape[1]) + 7
    assert iso.isoscore(X) == pytest.approx(by_definition(X), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(500, 8), (100, 100), (64, 200), (4000, 64)])
def test_equals_the_published_package(rng, shape: tuple[int, int], dtype: type) -> None:
    from IsoScore.IsoScore import IsoScore

    X = (rng.normal(size=shape) * np.linspace(1, 4, shape[1])).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        published = float(IsoScore(torch.from_numpy(X)))
    assert iso.isoscore(X) == pytest.approx(published, abs=1e-6)


def test_isoscore_star_equals_the_published_package(rng) -> None:
    from IsoScore.IsoScore import IsoScore_star

    X = rng.normal(size=(32, 16))
    C = np.cov(rng.normal(size=(500, 16)).T * np.linspace(1, 3, 16)[:, None])
    for zeta in (0.0, 0.2, 0.75, 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            published = float(IsoScore_star(torch.from_numpy(X), torch.from_numpy(C), zeta))
        assert iso.isoscore_star(X, C, zeta=zeta) == pytest.approx(published, abs=1e-6)
    assert iso.isoscore_star(X, C, zeta=0.0) == pytest.approx(iso.isoscore(X), abs=1e-12)


@pytest.mark.parametrize(
    ("variances", "expected"),
    [
        ([1, 1, 1, 1], 1.0),
        ([1, 0, 0, 0], 0.0),
        ([1, 1, 0, 0], 1 / 3),
        ([3, 2, 1], (36 / 14 - 1) / 2),
    ],
)
def test_closed_form(variances, expected: float) -> None:
    X = with_spectrum(variances)
    assert iso.isoscore(X) == pytest.approx(expected, abs=1e-12)
    cosine = sum(variances) / math.sqrt(len(variances)) / math.sqrt(sum(v * v for v in variances))
    defect = math.sqrt(max(0.0, 1 - cosine) / (1 - 1 / math.sqrt(len(variances))))
    assert iso.metrics.isotropy_defect(X) == pytest.approx(defect, abs=1e-6)


def test_gradient_has_its_closed_form() -> None:
    """∂/∂S = 2c(I − cS)/(d − 1) with c = tr S/‖S‖²."""
    X = torch.from_numpy(with_spectrum([4, 2, 1], n=30)).requires_grad_()
    iso.isoscore(X).backward()
    U = (X - X.mean(0)).detach()
    S = U.T @ U / 29
    c = S.trace() / (S * S).sum()
    expected = U @ (2 * c * (torch.eye(3) - c * S) / 2) * 2 / 29
    assert torch.allclose(X.grad, expected, atol=1e-12)


DRAWS = 200


@pytest.mark.slow
@pytest.mark.parametrize("tails", ["normal", "t5"])
@pytest.mark.parametrize("spectrum", ["flat", "geometric"])
def test_debiased_is_unbiased_at_64_vectors_of_768(spectrum: str, tails: str) -> None:
    d, n = 768, 64
    rng = np.random.default_rng(1)
    variances = np.ones(d) if spectrum == "flat" else np.geomspace(1, 1e-3, d)
    truth = (variances.sum() ** 2 / (variances**2).sum() - 1) / (d - 1)
    plain, debiased = [], []
    for _ in range(DRAWS):
        Z = (
            rng.normal(size=(n, d))
            if tails == "normal"
            else rng.standard_t(5, size=(n, d)) * math.sqrt(3 / 5)
        )
        moments = Moments.of(Z * np.sqrt(variances))
        plain.append(iso.isoscore(moments))
        debiased.append(iso.isoscore(moments, debias=True))
    two_errors = 2 * np.std(debiased) / math.sqrt(DRAWS)
    assert abs(np.mean(debiased) - truth) < max(two_errors, 0.005)
    assert abs(np.mean(plain) - truth) > 0.2  # the bias that was there


def test_jackknife_removes_what_a_rogue_direction_leaves() -> None:
    """One variance 50 times the rest, 16 vectors: the ratio of unbiased estimates is itself biased."""
    d, n = 300, 16
    rng = np.random.default_rng(2)
    scale = np.ones(d)
    scale[0] = math.sqrt(50)
    variances = scale**2
    truth = (variances.sum() ** 2 / (variances**2).sum() - 1) / (d - 1)
    once, twice = [], []
    for _ in range(300):
        X = rng.normal(size=(n, d)) * scale
        once.append(iso.isoscore(X, debias=True))
        twice.append(iso.isoscore(X, debias="jackknife"))
    assert abs(np.mean(twice) - truth) < 0.5 * abs(np.mean(once) - truth)


def test_debiased_and_plain_meet_in_large_samples(rng) -> None:
    X = rng.normal(size=(20_000, 8)) * np.linspace(1, 2, 8)
    assert iso.isoscore(X, debias=True) == pytest.approx(iso.isoscore(X), abs=2e-3)


@pytest.mark.parametrize("scale", [1e20, 1e-30, 1e70, 1e-70])
def test_scales_far_from_one(rng, scale: float) -> None:
    X = rng.normal(size=(40, 6)) * np.linspace(1, 2, 6)
    assert iso.isoscore(X * scale) == pytest.approx(iso.isoscore(X), rel=1e-12)
    assert iso.isoscore(X * scale, debias=True) == pytest.approx(iso.isoscore(X, debias=True), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scales_beyond_squaring_twice_are_refused_only_where_they_matter(rng, scale: float) -> None:
    X = rng.normal(size=(40, 6)) * scale
    assert iso.isoscore(X) == pytest.approx(iso.isoscore(X / scale))
    with pytest.raises(InputError, match="float64 can square twice"):
        iso.isoscore(X, debias=True)


def partition_by_definition(X: np.ndarray) -> float:
    directions = np.linalg.eigh(X.T @ X)[1]
    directions = np.hstack([directions, -directions])
    Z = np.exp(X @ directions).sum(axis=0)
    return Z.min() / Z.max()


def test_partition_isotropy_equals_its_definition(rng) -> None:
    for X in (rng.normal(size=(100, 5)), rng.normal(size=(100, 5)) + 0.4, rng.normal(size=(4, 9))):
        assert iso.partition_isotropy(X) == pytest.approx(partition_by_definition(X), rel=1e-9)


def test_partition_isotropy_does_not_overflow(rng) -> None:
    X = rng.normal(size=(50, 4)).astype(np.float32)
    X[:, 0] += 1200
    assert iso.partition_isotropy(X) == 0.0
    assert -2500 < iso.partition_isotropy(X, log=True) < -2300


def test_uneven_orientation_is_not_guessed(rng) -> None:
    """(n, d) always: a transposed array is another space."""
    X = rng.normal(size=(40, 5)) * [1, 2, 3, 4, 5]
    assert abs(iso.isoscore(X) - iso.isoscore(X.T)) > 1e-3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: iso.isoscore(np.ones((5, 3))), UndefinedError, "all 5 points are equal"),
        (lambda: iso.isoscore(np.ones((1, 3))), UndefinedError, "at least 2 vectors"),
        (lambda: iso.isoscore(np.arange(5.0)[:, None]), UndefinedError, "1 dimension.*transposed"),
        (lambda: iso.isoscore(np.eye(3), debias=True), UndefinedError, "at least 4 vectors; there are 3"),
        (
            lambda: iso.isoscore(np.arange(12.0).reshape(4, 3) ** 2, debias="jackknife"),
            UndefinedError,
            "at least 5 vectors",
        ),
        (
            lambda: iso.isoscore(Moments.of(np.arange(18.0).reshape(6, 3) ** 2), debias="jackknife"),
            InputError,
            "not its Moments",
        ),
        (
            lambda: iso.metrics.isotropy_defect(np.ones((5, 3))),
            UndefinedError,
            "isotropy_defect is undefined",
        ),
        (lambda: iso.isoscore_star(np.eye(3), np.eye(2)), ShapeError, r"expected \(3, 3\)"),
        (lambda: iso.isoscore_star(np.eye(3), np.triu(np.ones((3, 3)))), InputError, "not symmetric"),
        (lambda: iso.isoscore_star(np.eye(3), -np.eye(3)), InputError, "negative eigenvalues"),
        (
            lambda: iso.isoscore_star(np.eye(3), np.eye(3), zeta=1.5),
            InputError,
            r"`zeta` must be .*\[0, 1\].*got 1.5",
        ),
        (lambda: iso.isoscore_star(np.ones((3, 2)), np.zeros((2, 2))), UndefinedError, "covariance is zero"),
    ],
)
def test_undefined_is_said(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_debiased_is_undefined_where_no_direction_is_seen_twice() -> None:
    """The differences of disjoint pairs of a simplex are all at right angles."""
    for n in (4, 9):
        with pytest.raises(UndefinedError, match="right angles"):
            iso.isoscore(3 * np.eye(n), debias=True)


def test_debiased_is_the_mean_over_all_quadruples(rng) -> None:
    X = rng.normal(size=(7, 3)) * [1, 2, 3]
    squared_trace = trace_of_square = 0.0
    for i, j, k, l in itertools.permutations(range(7), 4):
        p, q = X[i] - X[j], X[k] - X[l]
        squared_trace += (p @ p) * (q @ q)
        trace_of_square += (p @ q) ** 2
    expected = (squared_trace / trace_of_square - 1) / 2
    assert iso.isoscore(X, debias=True) == pytest.approx(expected, rel=1e-12)


def test_a_jackknife_that_hangs_on_one_vector_is_undefined() -> None:
    X = np.array([[0.0, 0, 0]] * 4 + [[1.0, 1, 0], [1.0, 0.5, 0]])
    with pytest.raises(UndefinedError, match="hangs on one vector"):
        iso.isoscore(X, debias="jackknife")
    assert iso.measure(X, metrics="isoscore_debiased").readings[0].standard_error is None


def test_jackknife_carries_no_gradient_and_says_so(rng) -> None:
    with pytest.raises(InputError, match="no gradient"):
        iso.isoscore(torch.from_numpy(rng.normal(size=(20, 3))).requires_grad_(), debias="jackknife")
    with raises(InputError, argument="debias", got="jacknife"):
        iso.isoscore(rng.normal(size=(20, 3)), debias="jacknife")


def test_a_covariance_that_is_not_finite_speaks_of_the_covariance(rng) -> None:
    C0 = np.eye(3)
    C0[1, 1] = np.nan
    with raises(NotFiniteError, argument="covariance", hint="from finite vectors") as caught:
        iso.isoscore_star(rng.normal(size=(20, 3)), C0)
    assert "drop" not in str(caught.value)
