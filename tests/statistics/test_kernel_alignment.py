from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group
from tests.raising import raises

import isoscope as iso
from isoscope.statistics.kernel_alignment import KernelAlignment, block_rows


def spaces(rng: np.random.Generator, n: int = 40) -> list[np.ndarray]:
    X = rng.normal(size=(n, 12)) + 5
    return [X, 2 * X[:, :6] + rng.normal(size=(n, 6)), rng.normal(size=(n, 50))]


def two_with(share: float, n: int, d: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return two normal spaces that have a share of their d dimensions in common: their CKA is the share."""
    common = rng.normal(size=(n, int(share * d)))
    return [np.hstack([common, rng.normal(size=(n, d - common.shape[1]))]) for _ in range(2)]


def by_kernels(X: np.ndarray, Y: np.ndarray) -> float:
    """Kornblith et al. 2019 with the unbiased HSIC of Song et al. 2012, term by term in float64."""
    K, L = X @ X.T, Y @ Y.T
    return hsic(K, L) / np.sqrt(hsic(K, K) * hsic(L, L))


@pytest.mark.parametrize("debias", [False, True])
def test_values_are_those_of_two_spaces_at_a_time(rng: np.random.Generator, debias: bool) -> None:
    some = spaces(rng)
    values, errors = KernelAlignment.of(some, debias=debias).cka()
    expected = [[iso.linear_cka(a, b, debias=debias) for b in some] for a in some]
    assert np.allclose(values, expected, rtol=1e-9, atol=1e-12)
    assert np.allclose(errors, errors.T)
    assert np.array_equal(np.diag(errors), np.zeros(3))
    if debias:
        assert np.isclose(values[0, 2], by_kernels(some[0], some[2]), rtol=1e-9)


def hsic(K: np.ndarray, L: np.ndarray) -> float:
    """Return the unbiased HSIC of Song et al. 2012, term by term."""
    n = len(K)
    K, L, one = K - np.diag(np.diag(K)), L - np.diag(np.diag(L)), np.ones(n)
    middle = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + middle - 2 / (n - 2) * one @ K @ L @ one) / (n * (n - 3))


def test_covariances_are_exactly_those_of_leaving_out_rows(rng: np.random.Generator) -> None:
    X, Y, _ = spaces(rng, 15)
    K, L = X @ X.T, Y @ Y.T
    some = [np.delete(np.arange(15), i) for i in range(15)]
    cross, left, right = (
        np.array([hsic(a[np.ix_(rows, rows)], b[np.ix_(rows, rows)]) for rows in some])
        for a, b in ((K, L), (K, K), (L, L))
    )
    found = KernelAlignment.of([X, Y])
    covariances = (found.covariances / 15**2)[:, 0, 1]
    pairs = ((cross, cross), (cross, left), (cross, right), (left, right))
    expected = [14 / 15 * ((a - a.mean()) * (b - b.mean())).sum() for a, b in pairs]
    assert np.allclose(covariances, expected, rtol=1e-8)
    assert float(found.hsic[0, 1] / 15) == pytest.approx(hsic(K, L))


@pytest.mark.parametrize("debias", [False, True])
def test_errors_are_those_of_leaving_out_rows(rng: np.random.Generator, debias: bool) -> None:
    """The covariances are exact; the error of their ratio is a first-order one. Pairs hardly count here."""
    X, Y, _ = spaces(rng, 120)
    _, errors = KernelAlignment.of([X, Y], debias=debias).cka()
    left_out = [iso.linear_cka(np.delete(X, i, 0), np.delete(Y, i, 0), debias=debias) for i in range(120)]
    assert float(errors[0, 1]) == pytest.approx(np.std(left_out) * np.sqrt(119), rel=0.05)


def u_centred(X: np.ndarray) -> np.ndarray:
    """Return the kernel whose products with another, over pairs, are n(n − 3) times the unbiased HSIC."""
    n, K = len(X), X @ X.T
    np.fill_diagonal(K, 0)
    A = K - (K.sum(0) + K.sum(1)[:, None]) / (n - 2) + K.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(A, 0)
    return A


def test_covariances_of_pairs_are_those_of_a_two_way_analysis(rng: np.random.Generator) -> None:
    """The least-squares fit of h_rs by a_r + a_s; its residuals are what pairs alone have."""
    n = 15
    X, Y, _ = spaces(rng, n)
    A, B = u_centred(X), u_centred(Y)
    assert (A * B).sum() / (n * (n - 3)) == pytest.approx(hsic(X @ X.T, Y @ Y.T))
    r, s = np.triu_indices(n, 1)
    design = np.eye(n)[r] + np.eye(n)[s]

    def residuals(h: np.ndarray) -> np.ndarray:
        return h[r, s] - design @ np.linalg.lstsq(design, h[r, s], rcond=None)[0]

    cross, left, right = (residuals(a * b) for a, b in ((A, B), (A, A), (B, B)))
    expected = [
        4 * one / (n**3 * (n - 1)) for one in (cross @ cross, cross @ left, cross @ right, left @ right)
    ]
    found = KernelAlignment.of([X, Y]).pair_covariances / n**2
    assert np.allclose(found[:, 0, 1], expected, rtol=1e-8)
    assert np.allclose(found[:, 1, 0], np.array(expected)[[0, 2, 1, 3]], rtol=1e-8)


@pytest.mark.parametrize(("share", "n", "d"), [(0.0, 60, 160), (0.25, 60, 160), (0.5, 100, 20)])
def test_the_error_is_the_spread_over_samples(rng: np.random.Generator, share: float, n: int, d: int) -> None:
    """Leaving out rows alone gives 1.4 times as much where n is below d."""
    found = [KernelAlignment.of(two_with(share, n, d, rng)) for _ in range(120)]
    values = np.array([float(one.cka()[0][0, 1]) for one in found])
    errors = np.array([float(one.cka()[1][0, 1]) for one in found])
    assert 0.8 < np.sqrt(np.mean(errors**2)) / values.std(ddof=1) < 1.27
    assert np.mean(np.abs(values - share) < 1.96 * errors) > 0.87


def test_orthogonal_maps_shifts_and_scales_change_nothing(rng: np.random.Generator) -> None:
    X, Y, _ = spaces(rng)
    moved = 3 * X @ ortho_group.rvs(12, random_state=1) - 8
    first, second = (KernelAlignment.of([one, Y]).cka() for one in (X, moved))
    assert np.allclose(first[0], second[0], rtol=1e-10)
    assert np.allclose(first[1], second[1], rtol=1e-8)
    assert KernelAlignment.of([X, moved]).cka()[0][0, 1] == pytest.approx(1, abs=1e-12)


def test_blocks_merge_to_the_mean_of_their_estimates(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unbiased in every block, so unbiased together (Nguyen et al. 2021), whatever their sizes and scales."""
    some = two_with(0.5, 400, 60, rng)
    whole = KernelAlignment.of(some)
    parts = KernelAlignment.of([one[:100] for one in some]).merge(
        KernelAlignment.of([one[100:] for one in some])
    )
    assert parts.count == 400
    assert abs(float(parts.cka()[0][0, 1] - whole.cka()[0][0, 1])) < 2 * float(whole.cka()[1][0, 1])
    assert float(parts.cka()[1][0, 1]) == pytest.approx(float(whole.cka()[1][0, 1]), rel=0.3)
    hsic = [KernelAlignment.of([one[a:b] for one in some]).hsic for a, b in ((0, 100), (100, 400))]
    assert np.allclose(parts.hsic, hsic[0] + hsic[1])
    monkeypatch.setattr("isoscope.statistics.kernel_alignment._MAX_ROWS", 100)
    assert block_rows(2) == 100
    order = np.argsort(some[0][:, 0])  # sorted rows are dealt at random
    (dealt, error), (value, _) = KernelAlignment.of([one[order] for one in some]).cka(), whole.cka()
    assert abs(float(dealt[0, 1] - value[0, 1])) < 2 * float(error[0, 1])
    assert 0.9 < float(error[0, 1] / whole.cka()[1][0, 1]) < 1.7  # pairs across blocks are not used


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_few_rows_are_unbiased_and_the_interval_covers(rng: np.random.Generator, share: float) -> None:
    """20 rows of 100 dimensions: where plain CKA reads 0.83 and more."""
    found = [KernelAlignment.of(two_with(share, 20, 100, rng)).cka() for _ in range(150)]
    values = np.array([float(value[0, 1]) for value, _ in found])
    errors = np.array([float(error[0, 1]) for _, error in found])
    assert abs(values.mean() - share) < 3 * values.std() / np.sqrt(len(values))
    assert np.mean(np.abs(values - share) < 1.96 * errors) >= 0.93
    assert errors.mean() < 2 * values.std()


def test_what_has_no_value_is_nan_and_bad_input_is_named(rng: np.random.Generator) -> None:
    X, Y, _ = spaces(rng)
    values, errors = KernelAlignment.of([X, np.ones_like(X), Y]).cka()
    assert torch.isnan(values[1]).all()
    assert torch.isnan(errors[0, 1])
    assert torch.isfinite(values[0, 2])
    with raises(iso.ShapeError, argument="spaces[1]", wanted="40"):
        KernelAlignment.of([X, Y[:-1]])
    with pytest.raises(iso.UndefinedError, match="needs 5 rows; there are 4"):
        KernelAlignment.of([X[:4], Y[:4]])
    plain = KernelAlignment.of([X, Y], debias=False)
    with pytest.raises(iso.UndefinedError, match="all rows at once"):
        plain.merge(plain)
