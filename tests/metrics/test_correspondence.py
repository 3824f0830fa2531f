from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group
from tests.raising import raises

import isoscope as iso
from isoscope.comparison import similarity_matrix
from isoscope.metrics.correspondence import neighbor_overlap_samples
from isoscope.statistics.cross import CrossMoments


def two_spaces(
    rng: np.random.Generator, n: int = 60, d: int = 7, e: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1) + 5
    return X, X[:, :e] @ rng.normal(size=(e, e)) + rng.normal(size=(n, e)) - 3


def kernel_cka(X: np.ndarray, Y: np.ndarray) -> float:
    """tr(HKHL)/√(tr(HKHK) tr(HLHL)) from n × n kernels."""
    n = len(X)
    H = np.eye(n) - 1 / n
    K, L = H @ X @ X.T @ H, H @ Y @ Y.T @ H
    return float((K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum()))


def unbiased_hsic(K: np.ndarray, L: np.ndarray) -> float:
    """Song et al. 2012, equation 5, from n × n kernels."""
    n = len(K)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    last = 2 / (n - 2) * (K.sum(0) @ L.sum(0))
    return float(((K * L).sum() + K.sum() * L.sum() / ((n - 1) * (n - 2)) - last) / (n * (n - 3)))


@pytest.mark.parametrize(("n", "d"), [(60, 7), (12, 30), (4, 5)])
def test_cka_is_that_of_the_kernels(rng: np.random.Generator, n: int, d: int) -> None:
    X, Y = two_spaces(rng, n, d)
    assert np.isclose(iso.linear_cka(X, Y), kernel_cka(X, Y), rtol=1e-12)


def test_debiased_cka_is_that_of_the_kernels(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng)
    K, L = X @ X.T, Y @ Y.T
    expected = unbiased_hsic(K, L) / np.sqrt(unbiased_hsic(K, K) * unbiased_hsic(L, L))
    assert np.isclose(iso.linear_cka(X, Y, debias=True), expected, rtol=1e-10)


def test_debiased_cka_of_unrelated_spaces_is_zero_and_the_plain_one_is_not(rng: np.random.Generator) -> None:
    draws = [(rng.normal(size=(50, 40)), rng.normal(size=(50, 40))) for _ in range(40)]
    debiased = [iso.linear_cka(X, Y, debias=True) for X, Y in draws]
    assert abs(np.mean(debiased)) < 3 * np.std(debiased) / np.sqrt(len(draws))
    assert min(iso.linear_cka(X, Y) for X, Y in draws) > 0.3


def test_cka_and_procrustes_see_through_rotation_shift_and_scale(rng: np.random.Generator) -> None:
    X, _ = two_spaces(rng)
    Y = 3 * X @ ortho_group.rvs(7, random_state=1) - 8
    assert np.isclose(iso.linear_cka(X, Y), 1)
    assert np.isclose(iso.linear_cka(X, Y, debias=True), 1)
    assert iso.metrics.procrustes_distance(X, Y) < 1e-14
    assert iso.metrics.procrustes_distance(X, X + 1, scale=False) < 1e-14 * np.linalg.norm(X)
    assert iso.metrics.procrustes_distance(X, Y, scale=False) > 1


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("e", [4, 7, 9])
def test_procrustes_is_what_scipy_finds(rng: np.random.Generator, scale: bool, e: int) -> None:
    X, Y = rng.normal(size=(60, 7)) * 3, rng.normal(size=(60, e)) + 2
    wide = max(7, e)
    A, B = (np.pad(S - S.mean(0), ((0, 0), (0, wide - S.shape[1]))) for S in (X, Y))
    if scale:
        A, B = A / np.linalg.norm(A), B / np.linalg.norm(B)
    Q, _ = orthogonal_procrustes(B, A)
    assert np.isclose(
        iso.metrics.procrustes_distance(X, Y, scale=scale), np.linalg.norm(A - B @ Q), rtol=1e-9
    )


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-10])
@pytest.mark.parametrize("e", [7, 9])
def test_small_procrustes_distances_keep_their_digits(
    rng: np.random.Generator, size: float, scale: bool, e: int
) -> None:
    """2 − 2‖C‖_* has no digits left of a distance of 1e-10, and six of one of 1e-5."""
    X = rng.normal(size=(60, 7))
    wide = np.pad(X, ((0, 0), (0, e - 7)))
    Y = (wide + size * rng.normal(size=wide.shape)) @ ortho_group.rvs(e, random_state=0)
    A, B = wide - wide.mean(0), Y - Y.mean(0)
    if scale:
        A, B = A / np.linalg.norm(A), B / np.linalg.norm(B)
    Q, _ = orthogonal_procrustes(B, A)
    expected = np.linalg.norm(A - B @ Q)
    tolerance = max(1e-9, 1e-15 / size)
    assert iso.metrics.procrustes_distance(X, Y, scale=scale) == pytest.approx(expected, rel=tolerance)
    if scale:
        measured = iso.measure(wide, partners=Y, metrics="procrustes_distance")["procrustes_distance"]
        assert measured == pytest.approx(expected, rel=tolerance)
        assert iso.compare(X, Y).correspondence("procrustes") == pytest.approx(expected, rel=tolerance)
        pair = similarity_matrix([X, Y], measure="procrustes")
        assert float(pair.values[0][1]) == pytest.approx(expected, rel=tolerance)


def test_the_distance_to_equal_points_is_the_norm(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng)
    distance = iso.metrics.procrustes_distance(X, np.ones_like(Y), scale=False)
    assert distance == pytest.approx(np.linalg.norm(X - X.mean(0)))
    assert iso.metrics.procrustes_distance(np.ones((5, 2)), np.zeros((5, 3)), scale=False) == 0


def overlap_by_sets(X: np.ndarray, Y: np.ndarray, k: int) -> np.ndarray:
    def nearest(Z: np.ndarray) -> list[set[int]]:
        D = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        np.fill_diagonal(D, np.inf)
        return [set(row[:k].tolist()) for row in D.argsort(axis=1)]

    return np.array([len(a & b) / k for a, b in zip(nearest(X), nearest(Y), strict=True)])


@pytest.mark.parametrize("k", [1, 5, 20])
def test_overlap_is_that_of_sets(rng: np.random.Generator, k: int) -> None:
    X, Y = two_spaces(rng)
    expected = overlap_by_sets(X, Y, k)
    shares, rows = neighbor_overlap_samples(X, Y, k=k, metric="euclidean")
    assert rows.tolist() == list(range(60))
    assert np.allclose(shares, expected)
    assert np.isclose(iso.metrics.neighbor_overlap(X, Y, k=k, metric="euclidean"), expected.mean())
    units = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, Y)]
    assert np.isclose(iso.metrics.neighbor_overlap(X, Y, k=k), overlap_by_sets(*units, k).mean())


def test_a_sample_of_points_has_the_shares_of_all(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng)
    X[:30], Y[:30] = X[0], Y[0]  # more equal points than neighbours asked for
    X[30:], Y[30:] = rng.normal(size=X[30:].shape) + 9, rng.normal(size=Y[30:].shape) + 9
    whole, _ = neighbor_overlap_samples(X, Y, k=5, metric="euclidean")
    some, rows = neighbor_overlap_samples(X, Y, k=5, metric="euclidean", sample=25, seed=3)
    assert len(rows) == 25
    far = rows >= 30
    assert torch.equal(some[far], whole[rows][far])
    again = neighbor_overlap_samples(X, Y, k=5, metric="euclidean", sample=25, seed=4)[1]
    assert not torch.equal(rows, again)


def test_neighbors_and_sums_pass_through(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng)
    found = [iso.statistics.Neighbors.of(Z, k=8) for Z in (X, Y)]
    assert iso.metrics.neighbor_overlap(*found, k=5) == iso.metrics.neighbor_overlap(
        X, Y, k=5, metric="euclidean"
    )
    assert iso.linear_cka(CrossMoments.of(X, Y)) == iso.linear_cka(X, Y)


def test_float32_and_many_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = two_spaces(rng)
    whole = iso.linear_cka(X, Y, debias=True)
    assert np.isclose(
        iso.linear_cka(X.astype(np.float32), torch.tensor(Y).float(), debias=True), whole, rtol=1e-5
    )
    monkeypatch.setattr("isoscope.statistics.cross.block_rows", lambda d: 7)
    assert np.isclose(iso.linear_cka(X, Y, debias=True), whole, rtol=1e-12)


def test_bad_input(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng)
    with raises(iso.ShapeError, argument="Y", message="59 rows", wanted="60"):
        iso.linear_cka(X, Y[:-1])
    with pytest.raises(iso.ShapeError, match="same items"):
        iso.metrics.neighbor_overlap(X, Y[:-1])
    with pytest.raises(iso.UndefinedError, match="all 60 points of Y are equal"):
        iso.metrics.procrustes_distance(X, np.ones_like(Y))
    with pytest.raises(iso.UndefinedError, match="needs at least 4 rows"):
        iso.linear_cka(X[:3], Y[:3], debias=True)
    with pytest.raises(iso.InputError, match="from 1 to 59"):
        iso.metrics.neighbor_overlap(X, Y, k=60)
    with pytest.raises(iso.InputError, match="from 1 to 59"):
        iso.metrics.neighbor_overlap(X, Y, k=60, sample=5)
    with raises(iso.InputError, argument="sample", got=0):
        iso.metrics.neighbor_overlap(X, Y, sample=0)


@pytest.mark.parametrize("sample", [None, 40])
def test_a_row_that_is_zero_in_one_space_shares_no_neighbours(
    rng: np.random.Generator, sample: int | None
) -> None:
    A = rng.normal(size=(60, 4))
    B = A + 0.3 * rng.normal(size=A.shape)
    A[[3, 7]] = B[[7, 50]] = 0
    shares, rows = neighbor_overlap_samples(A, B, k=5, sample=sample)
    assert len(rows) == (sample or 59)
    near = []  # a row that is zero in the other space alone is a neighbour in this one
    for Z in (A, B):
        norms = np.linalg.norm(Z, axis=1)
        cosines = Z @ Z.T / np.maximum(np.outer(norms, norms), 1e-300)
        cosines[:, norms == 0] = -2
        np.fill_diagonal(cosines, -3)
        near.append([set(row) for row in (-cosines).argsort(axis=1)[:, :5].tolist()])
    share = {row: len(near[0][row] & near[1][row]) / 5 for row in range(60) if row != 7}
    share |= {3: 0.0, 50: 0.0}
    assert [share[row] for row in rows.tolist()] == shares.tolist()
    if sample is None:
        assert set(rows.tolist()) == set(range(60)) - {7}
        assert np.isclose(iso.metrics.neighbor_overlap(A, B, k=5), sum(share.values()) / 59)
    with pytest.raises(iso.UndefinedError, match="5 of 60 rows are not zero"):
        neighbor_overlap_samples(np.vstack([A[10:15], 0 * A[:55]]), B, k=5)


def test_a_sample_of_rows_without_neighbours(rng: np.random.Generator) -> None:
    A = rng.normal(size=(12, 4)) + 5
    A[7:] *= -1  # no neighbours of the first rows
    B = A.copy()
    B[2:] *= np.array([1.0] * 5 + [0.0] * 5)[:, None]
    found = [neighbor_overlap_samples(A, B, k=1, sample=1, seed=seed) for seed in range(20)]
    assert {(float(share), int(row) >= 7) for share, row in found} == {(0.0, True), (1.0, False)}


@pytest.mark.parametrize("scale", [1e78, 1e-82])
def test_squares_of_squares_beyond_float64_are_refused(rng: np.random.Generator, scale: float) -> None:
    X = rng.normal(size=(20, 3))
    with raises(iso.InputError, argument="X", message="square twice"):
        iso.metrics.linear_cka(X * scale, X)
    with raises(iso.InputError, argument="Y", message="square twice"):
        iso.metrics.linear_cka(X, X * scale)
