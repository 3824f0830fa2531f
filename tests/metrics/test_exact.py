"""Every metric on spaces made to lose digits, whole and merged from blocks, against 120-digit arithmetic.

A small grid runs with all tests; `make nightly` takes every space in every shape and block size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest
from exact import Exact, error
from tests.sources import Blocks

import isoscope as iso
from isoscope.engine.run import gather
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.registry import KNOWN, Metric
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments

Make = Callable[[np.ndarray], np.ndarray]
SPECTRAL = ("effective_rank", "stable_rank")  # their oracle takes eigenvalues: few dimensions only
COMPARED = [
    "participation_ratio",
    "isoscore",
    "isotropy_defect",
    "isoscore_debiased",
    "effective_rank",
    "stable_rank",
    "mean_norm",
    "norm_variation",
    "mean_cosine",
    "top_dimension_share",
    "self_similarity",
    "s_inter",
    "between_share",
    "calinski_harabasz",
    "davies_bouldin",
    "dunn_index",
    "silhouette",
    "silhouette_macro",
    "silhouette_squared",
    "silhouette_cosine",
]
DIGITS = {np.float64: 1e-9, np.float32: 2e-5}
LOOSE = {"norm_variation": 3e-8, "isoscore_debiased": 1e-7}  # as their docstrings say
NARROW, WIDE, FEW = (24, 5), (40, 36), (10, 36)  # wide: products of float32 rows in float32


def far(length: float) -> Make:
    """One row that far out, neither the first nor the last."""

    def make(X: np.ndarray) -> np.ndarray:
        row = len(X) // 2
        return np.concatenate([X[:row], X[row : row + 1] * (length / np.abs(X[row]).max()), X[row + 1 :]])

    return make


def first_far(length: float) -> Make:
    return lambda X: np.roll(far(length)(X), -(len(X) // 2), axis=0)


def offset(length: float) -> Make:
    return lambda X: X + length


def scaled(factor: float) -> Make:
    return lambda X: X * factor


SPACES: dict[str, tuple[Make, tuple[type, ...]]] = {
    "plain": (lambda X: X, (np.float32, np.float64)),
    "far 1e4": (far(1e4), (np.float32, np.float64)),
    "far 1e8": (far(1e8), (np.float32, np.float64)),
    "far 1e15": (far(1e15), (np.float32, np.float64)),
    "first far 1e15": (first_far(1e15), (np.float32, np.float64)),
    "far 3e38": (far(3e38), (np.float32, np.float64)),
    "offset 1e4": (offset(1e4), (np.float32, np.float64)),
    "offset 1e6": (offset(1e6), (np.float32,)),
    "offset 1e8": (offset(1e8), (np.float64,)),
    "offset 1e12": (offset(1e12), (np.float64,)),
    "offset 1e15": (offset(1e15), (np.float64,)),
    "scale 1e-160": (scaled(1e-160), (np.float64,)),
    "scale 1e-140": (scaled(1e-140), (np.float64,)),
    "scale 1e150": (scaled(1e150), (np.float64,)),
    "scale 1e-30": (scaled(1e-30), (np.float32,)),
    "scale 1e30": (scaled(1e30), (np.float32,)),
    "nearly parallel": (lambda X: 1 + np.arange(X.shape[1]) + 1e-5 * X, (np.float32, np.float64)),
    "duplicates": (lambda X: np.concatenate([X[: len(X) // 2]] * 2), (np.float32, np.float64)),
    "one tiny row": (lambda X: np.concatenate([X[:1] * 1e-30, X[1:]]), (np.float32, np.float64)),
    "tiny dimensions": (lambda X: X * 10.0 ** -(6 * (np.arange(X.shape[1]) % 2)), (np.float32, np.float64)),
    "large rows": (lambda X: np.where(np.arange(len(X)) % 4, X.T, 1e6 * X.T).T, (np.float32, np.float64)),
}  # fmt: skip
# refused: sums of squares or of fourth powers leave the range of float64, or cancel in it
FOURTH = ("isoscore_debiased",)
SQUARES = (
    "participation_ratio",
    "isoscore",
    "isotropy_defect",
    "effective_rank",
    "stable_rank",
    "norm_variation",
    "between_share",
    "calinski_harabasz",
    "davies_bouldin",
)
REFUSED = {
    "scale 1e-160": SQUARES + FOURTH,
    "scale 1e-140": FOURTH,
    "scale 1e150": FOURTH,
    "far 1e8": FOURTH,
    "far 1e15": FOURTH,
    "first far 1e15": FOURTH,
    "far 3e38": FOURTH,
}


def space(name: str, shape: tuple[int, int], dtype: type) -> Space:
    n, d = shape
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    X = rng.normal(size=shape) * np.linspace(0.5, 2, d) + rng.normal(size=(3, d))[labels] + 0.7
    return Space(SPACES[name][0](X).astype(dtype), labels=labels, token_types=labels)


def merged(metric: Metric, whole: Space, n_rows: int) -> float:
    cuts = range(0, len(whole), n_rows)
    parts = [whole.rows(start, min(start + n_rows, len(whole))) for start in cuts]
    return float(metric.compute(gather(Blocks(parts), metric.needs - set(KNOWN))))


def values(metric: Metric, whole: Space, blocks: tuple[int, ...]) -> list[float]:
    found = [float(metric.compute(Statistics(whole)))]
    return found + [merged(metric, whole, n_rows) for n_rows in blocks if metric.streams]


def check(name: str, shape: tuple[int, int], dtype: type, blocks: tuple[int, ...]) -> None:
    whole = space(name, shape, dtype)
    exact = Exact(whole.vectors.numpy(), whole.labels.codes.numpy())
    wrong = []
    for key in COMPARED:
        if key in SPECTRAL and shape[1] > 8:
            continue
        metric = iso.registered()[key]
        if key in REFUSED.get(name, ()):
            for n_rows in (len(whole), *blocks):
                with pytest.raises((InputError, UndefinedError)):
                    merged(metric, whole, n_rows)
            continue
        errors = [error(value, exact[key]) for value in values(metric, whole, blocks)]
        if max(errors) > max(LOOSE.get(key, 0), DIGITS[dtype]):
            wrong.append((key, errors))
    assert not wrong, wrong


CASES = [(name, dtype) for name, (_, dtypes) in SPACES.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_narrow_spaces(name: str, dtype: type) -> None:
    check(name, NARROW, dtype, (1, 7))


@pytest.mark.parametrize(("name", "dtype"), [case for case in CASES if case[1] is np.float32])
def test_wide_spaces(name: str, dtype: type) -> None:
    check(name, WIDE, dtype, (7,))


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_fewer_rows_than_dimensions(name: str, dtype: type) -> None:
    check(name, FEW, dtype, (1, 4))


@pytest.mark.nightly
@pytest.mark.parametrize("shape", [NARROW, WIDE, FEW, (120, 36), (64, 17)])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_space_shape_and_block_size(name: str, dtype: type, shape: tuple[int, int]) -> None:
    check(name, shape, dtype, (1, 2, 5, 17, 33))


@pytest.mark.parametrize("angle", [1e-8, 1e-10])
def test_small_angles_outside_one_cone_keep_the_digits_that_are_promised(angle: float) -> None:
    rng = np.random.default_rng(0)
    axis = np.array([3.0, 1, 7, 2, 5])
    steps = angle * (rng.normal(size=(40, 5)) + 3 * np.eye(5)[np.arange(40) % 2])
    X, labels = (
        np.where(np.arange(40)[:, None] < 20, axis, -axis) + steps,
        np.arange(40) % 2 + np.arange(40) // 20 * 2,
    )
    score = iso.silhouette_score(X, labels, metric="cosine")
    assert score == pytest.approx(float(Exact(X, labels)["silhouette_cosine"]), abs=5e-16 / angle)


def _groups(X: np.ndarray) -> GroupMoments:
    """Merged from single rows."""
    return reduce(GroupMoments.merge, (GroupMoments.of(X[i : i + 1], [i % 2]) for i in range(len(X))))


SQUARED: dict[str, Callable[[np.ndarray], object]] = {
    "eigenvalues": iso.metrics.eigenvalues,
    "rankme": iso.rankme,
    "norm_statistics": iso.metrics.norm_statistics,
    "isotropy_objective": iso.metrics.isotropy_objective,
    "davies_bouldin": lambda X: iso.davies_bouldin_score(X, np.arange(len(X)) % 2),
    "calinski_harabasz": lambda X: iso.calinski_harabasz_score(X, np.arange(len(X)) % 2),
    "between_share": lambda X: iso.metrics.between_share(X, np.arange(len(X)) % 2),
    "silhouette_objective": lambda X: iso.metrics.silhouette_objective(X, np.arange(len(X)) % 2),
    "merged calinski_harabasz": lambda X: iso.calinski_harabasz_score(_groups(X)),
    "merged between_share": lambda X: iso.metrics.between_share(_groups(X)),
    "merged silhouette_objective": lambda X: iso.metrics.silhouette_objective(_groups(X)),
    "merged eigenvalues": lambda X: iso.metrics.eigenvalues(
        reduce(Moments.merge, map(Moments.of, X[:4, None]))
    ),
}


@pytest.mark.parametrize("compute", SQUARED.values(), ids=list(SQUARED))
@pytest.mark.parametrize("scale", [1e-155, 1e-160, 1e-170, 1e-300])
def test_squares_that_underflow_are_refused(compute: Callable[[np.ndarray], object], scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(20, 8))
    compute(X * 1e-140)
    with pytest.raises(InputError, match="too small for float64 to square"):
        compute(X * scale)


def test_equal_points_are_not_too_small_to_square() -> None:
    X = np.full((6, 8), 0.1)
    assert iso.metrics.silhouette_objective(X, [0, 1] * 3) == iso.metrics.isotropy_objective(X) == 0
    assert not iso.metrics.eigenvalues(X).any()
    with pytest.raises(UndefinedError, match="every cluster has collapsed"):
        iso.calinski_harabasz_score(X, [0, 1] * 3)
    with pytest.raises(InputError, match="too small for float64 to square"):
        iso.rankme(X * 1e-170)
    with pytest.raises(UndefinedError, match="zero"):
        iso.rankme(X * 0)


@pytest.mark.parametrize("shape", [NARROW, FEW])
def test_the_debiased_score_is_right_or_refused_at_every_scale(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=shape)
    expected = iso.isoscore(X, debias=True)
    for exponent in range(-90, -60):
        try:
            found = iso.isoscore(X * 10.0**exponent, debias=True)
        except InputError:
            assert exponent < -71
        else:
            assert found == pytest.approx(expected, rel=1e-9), exponent


def test_the_oracle_on_a_space_known_by_hand() -> None:
    exact = Exact(np.array([[0.0], [1.0], [4.0], [5.0]]), [0, 0, 1, 1])
    assert exact["calinski_harabasz"] == 32
    assert exact["davies_bouldin"] == 0.25
    assert exact["dunn_index"] == 3
    square = Exact(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), [0, 0, 1, 1])
    assert square["isoscore"] == square["effective_rank"] - 1 == 1
    assert square["mean_cosine"] == pytest.approx(-1 / 3)
