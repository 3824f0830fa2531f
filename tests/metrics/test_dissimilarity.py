from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group, pearsonr, spearmanr
from tests.raising import raises

import isoscope as iso
from isoscope.metrics import rsa
from isoscope.metrics.dissimilarity import correlate, paired_dissimilarities


def two_spaces(rng: np.random.Generator, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 7)) + 1
    return X, X[:, :4] + rng.normal(size=(n, 4))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("correlation", "oracle"), [("spearman", spearmanr), ("pearson", pearsonr)])
def test_rsa_is_the_correlation_of_scipys_distances(
    rng: np.random.Generator, metric: str, correlation: str, oracle
) -> None:
    X, Y = two_spaces(rng)
    expected = oracle(pdist(X, metric), pdist(Y, metric)).statistic
    assert rsa(X, Y, metric=metric, correlation=correlation) == pytest.approx(expected, rel=1e-9)


def test_equal_distances_have_their_mean_rank() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [5.0, 5.0]])
    Y = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])
    assert rsa(X, Y, metric="euclidean") == pytest.approx(spearmanr(pdist(X), pdist(Y)).statistic)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_distances_that_are_equal_but_for_rounding_stay_equal(rng: np.random.Generator, metric: str) -> None:
    """A lattice has few distances: whole numbers are exact, a lattice that is turned and scaled is not."""
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 4), -1).reshape(-1, 4)[1:]
    Y = rng.normal(size=(len(grid), 5))
    i, j = np.triu_indices(len(grid), 1)
    if metric == "euclidean":
        exact = ((grid[i] - grid[j]) ** 2).sum(1)
    else:
        products, squares = (grid[i] * grid[j]).sum(1), (grid**2).sum(1)
        exact = np.unique(
            [
                -Fraction(int(p) ** 2, int(a) * int(b))
                for p, a, b in zip(products, squares[i], squares[j], strict=True)
            ],
            return_inverse=True,
        )[1]
    expected = spearmanr(exact, pdist(Y, metric)).statistic
    for X in (grid, 0.1 * grid, 0.3 * grid @ ortho_group.rvs(4, random_state=0), grid.astype(np.float32)):
        assert rsa(X, Y, metric=metric) == pytest.approx(expected, rel=1e-12)
    turned = 0.3 * grid @ ortho_group.rvs(4, random_state=0)
    assert (
        abs(spearmanr(pdist(turned, metric), pdist(Y, metric)).statistic - expected) > 1e-9
    )  # what noise does


def test_the_error_is_that_of_leaving_out_items(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng, 30)
    value, error = correlate(*paired_dissimilarities(X, Y, "cosine", "pearson", None, 0))
    left_out = [rsa(np.delete(X, i, 0), np.delete(Y, i, 0), correlation="pearson") for i in range(30)]
    assert value == rsa(X, Y, correlation="pearson")
    assert error == pytest.approx(np.std(left_out) * np.sqrt(29), rel=1e-9)


def test_rotation_scale_and_a_monotone_change_of_distances(rng: np.random.Generator) -> None:
    X, _ = two_spaces(rng)
    assert rsa(X, -3 * X @ ortho_group.rvs(7, random_state=0)) == pytest.approx(1)
    line = np.sort(rng.uniform(size=(20, 1)), axis=0)
    assert rsa(line, line + 5, metric="euclidean") == pytest.approx(1)
    unrelated = [rsa(rng.normal(size=(40, 5)), rng.normal(size=(40, 9))) for _ in range(40)]
    assert abs(np.mean(unrelated)) < 3 * np.std(unrelated) / np.sqrt(40)


def test_zero_rows_samples_and_bad_input(rng: np.random.Generator) -> None:
    X, Y = two_spaces(rng)
    with_zero = X.copy()
    with_zero[3] = 0
    assert rsa(with_zero, Y) == rsa(np.delete(X, 3, 0), np.delete(Y, 3, 0))
    assert rsa(X, Y, sample=60) == rsa(X, Y)
    assert rsa(X, Y, sample=30, seed=1) != rsa(X, Y, sample=30, seed=2)
    with raises(iso.ShapeError, argument="Y"):
        rsa(X, Y[:-1])
    with raises(iso.InputError, argument="metric", got="manhattan"):
        rsa(X, Y, metric="manhattan")
    with raises(iso.InputError, argument="correlation", got="kendall"):
        rsa(X, Y, correlation="kendall")
    with raises(iso.InputError, argument="sample", got=3):
        rsa(X, Y, sample=3)
    with pytest.raises(iso.UndefinedError, match="at least 4 items"):
        rsa(X[:3], Y[:3])
    with pytest.raises(iso.UndefinedError, match="equally far apart"):
        rsa(np.eye(6), Y[:6])
