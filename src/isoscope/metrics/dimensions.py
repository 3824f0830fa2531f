"""Which coordinates make vectors look alike: each dimension's share of the mean cosine, and rogue ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks, like, scalar
from isoscope.errors import InputError, UndefinedError
from isoscope.kernels.products import symmetric_product
from isoscope.metrics.registry import Metric
from isoscope.metrics.spectrum import first_reaching
from isoscope.statistics.directions import Directions, unit_rows

_TIMKEY = "Timkey, van Schijndel 2021, All Bark and No Bite: Rogue Dimensions in Transformer Language Models"
_EQUAL_COSINES = 1e-14  # a spread of cosines below this is the rounding of unit vectors in float64
_CANCELLED = 1e-12  # a variance this far below the terms it is the difference of is rounding


@dataclass(frozen=True)
class RogueDimension:
    """One dimension that dominates the mean cosine.

    Attributes:
        dimension: its index.
        share: its part of the sum of absolute contributions.
        mean, standard_deviation: of the coordinate itself, over all vectors.
    """

    dimension: int
    share: float
    mean: float
    standard_deviation: float


def dimension_contributions(X: Any) -> Any:
    """What each dimension adds to the mean cosine of all pairs of vectors.

        c_j = ((Σ u_j)² − Σ u_j²)/(n(n − 1)),   u = x/‖x‖

    Returns a (d,) array of the caller's kind (a tensor for Directions) that adds up to the mean cosine;
    exact, in one pass. Each lies in [−1, 1]; a high one pulls all vectors the same way. Invariant to one
    scale, not to rotation: it is about the axes. Paper: Timkey, van Schijndel 2021.

    >>> dimension_contributions([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]]).tolist()
    [1.0, 0.0]
    """
    return like(_contributions(Directions.of(X)), X.unit_sum if isinstance(X, Directions) else X)


def top_dimension_share(X: Any) -> Any:
    """The share of the largest contribution to the mean cosine among all contributions.

        max(max_j c_j, 0)/Σ |c_j|

    Range [0, 1]; high means that one axis alone decides how similar vectors look. Even shares are 1/d.
    Invariant to one scale. Paper: Timkey, van Schijndel 2021.

    >>> top_dimension_share([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    1.0
    """
    return scalar(_shares(Directions.of(X), "top_dimension_share").max().clamp(0, 1))


def dimensions_for_share(X: Any, *, share: float = 0.5) -> int:
    """How many of the top dimensions make a given share of the mean cosine.

        min k with Σ of the k largest c_j ≥ share · Σ c_j

    Range 1 … d; low means that a few axes decide. Undefined where the mean cosine is not positive.
    Invariant to one scale. Paper: Xiao, Long, Al Moubayed 2023.

    Args:
        X: (n, d) vectors in any array, or Directions.
        share: of the mean cosine, in (0, 1]; reached when it is missed by less than 1e-6.

    >>> dimensions_for_share([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    1
    """
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; wanted a share of the mean cosine in (0, 1]")
    contributions = _contributions(Directions.of(X)).detach()
    total = contributions.sum()
    if not total > 0:
        raise UndefinedError(
            f"dimensions_for_share is undefined: the mean cosine is not positive ({float(total):.3g})"
        )
    return first_reaching(contributions.sort(descending=True).values.cumsum(0) / total, share)


def rogue_dimensions(X: Any, *, min_share: float | None = None) -> list[RogueDimension]:
    """The dimensions that dominate the mean cosine, the strongest first.

        c_j > min_share · Σ |c|

    By default ten times an even share 1/d, but at least 5 % (mpnet's strongest dimension holds 55 % before
    contrastive training) and at most 75 %, so that a space of a few dimensions can have one too. Shares are
    invariant to one scale. Paper: Timkey, van Schijndel 2021.

    Args:
        X: (n, d) vectors in any array.
        min_share: the share a dimension has to exceed, in [0, 1).

    >>> rogue_dimensions([[2.0, 0.0], [4.0, 0.0], [3.0, 0.0]])
    [RogueDimension(dimension=0, share=1.0, mean=3.0, standard_deviation=1.0)]
    """
    matrix = as_matrix(X).detach()
    if min_share is None:
        min_share = min(max(0.05, 10 / matrix.shape[1]), 0.75)
    if not 0 <= min_share < 1:
        raise InputError(f"min_share is {min_share}; wanted a share in [0, 1)")
    shares = _shares(Directions.of(matrix), "rogue_dimensions")
    order = shares.sort(descending=True, stable=True).indices
    dimensions = [j for j in order.tolist() if shares[j] > min_share]
    if not dimensions:
        return []
    columns = matrix[:, dimensions].double()
    means, deviations = columns.mean(dim=0).tolist(), columns.std(dim=0).tolist()
    return [
        RogueDimension(j, float(shares[j]), mean, deviation)
        for j, mean, deviation in zip(dimensions, means, deviations, strict=True)
    ]


def informativity(X: Any, *, k: int = 1) -> float:
    """How much of the pattern of similarities is left without the k top dimensions.

        r² = Corr(cos(x_i, x_j), cos(x'_i, x'_j))² over all pairs i < j,   x' without those dimensions

    Exact over all pairs in O(n d²) with no n × n matrix: with u = ū + a, the cosines less ‖ū‖² are
    ū·a_i + ū·a_j + a_i·a_j, whose products sum over all pairs to 2n Σ (ū·a)(ū'·a') + ‖AᵀA'‖_F².
    Range [0, 1]; low means that those dimensions decided who is similar to whom. Vectors that are zero,
    with or without the top dimensions, are left out. Invariant to one scale.
    Paper: Xiao, Long, Al Moubayed 2023; after Timkey, van Schijndel 2021.

    Args:
        X: (n, d) vectors in any array.
        k: how many of the largest contributions to remove, 0 … d − 1.

    >>> round(informativity([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 2.0], [1.0, 0.5, -3.0]]), 4)
    0.6705
    """
    matrix = as_matrix(X).detach()
    if not 0 <= k < matrix.shape[1]:
        raise InputError(
            f"k is {k}; wanted 0 … {matrix.shape[1] - 1} dimensions to remove, of {matrix.shape[1]}"
        )
    contributions = _contributions(Directions.of(matrix))
    top = contributions.sort(descending=True, stable=True).indices[:k]
    covariances = _cosine_covariances(matrix, top)
    if covariances is None:
        raise UndefinedError(
            f"informativity is undefined: the cosines with or without the top {k} do not vary"
        )
    with_all, both, without = covariances
    return min(1.0, both * both / (with_all * without))


def _contributions(directions: Directions) -> Tensor:
    directions.need_pairs("dimension_contributions")
    n = directions.count
    return (directions.unit_sum**2 - directions.unit_square_sum) / (n * (n - 1))


def _shares(directions: Directions, name: str) -> Tensor:
    """(d,) contributions over the sum of their absolute values."""
    contributions = _contributions(directions)
    total = contributions.abs().sum()
    if not total > 0:
        raise UndefinedError(
            f"{name} is undefined: no dimension contributes to the mean cosine (all pairs orthogonal)"
        )
    return contributions / total


def _unit_pairs(block: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors with and without the top dimensions, of the rows that have both."""
    units, norms = unit_rows(block)
    less, less_norms = unit_rows(block.index_fill(1, top, 0))
    kept = (norms > 0) & (less_norms > 0)
    return units[kept], less[kept]


def _cosine_covariances(matrix: Tensor, top: Tensor) -> tuple[float, float, float] | None:
    """n(n−1) times Var(c), Cov(c, c'), Var(c') over pairs i ≠ j; None where one of them does not vary."""
    n, sums = 0, matrix.new_zeros(2, matrix.shape[1], dtype=torch.float64)
    for block in blocks(matrix):
        U, V = _unit_pairs(block, top)
        n, sums = n + len(U), sums + torch.stack([U.sum(dim=0), V.sum(dim=0)])
    if n < 2:
        raise UndefinedError(
            f"informativity needs vectors that keep a direction without those dimensions; {n} do"
        )
    means = sums / n
    products, projections = _centred_products(matrix, top, means)
    s, t = (1 - (means * means).sum(dim=1)).tolist()  # the diagonal, c_ii − ‖ū‖²
    results = []
    for place, diagonal in enumerate((s * s, s * t, t * t)):
        total = 2 * n * projections[place] + products[place]
        # less the n diagonal terms, and less the squared mean −diagonal/(n − 1)² of the pairs left
        results.append(total - n * diagonal - n * diagonal / (n - 1))
        if place != 1 and results[-1] <= max(_CANCELLED * total, n * (n - 1) * _EQUAL_COSINES**2):
            return None
    return results[0], results[1], results[2]


def _centred_products(matrix: Tensor, top: Tensor, means: Tensor) -> tuple[list[float], list[float]]:
    """‖AᵀA‖², ‖AᵀA'‖², ‖A'ᵀA'‖², and Σ of r², r·r', r'² with r = ū·a."""
    d = matrix.shape[1]
    AA, AB, BB = (matrix.new_zeros(d, d, dtype=torch.float64) for _ in range(3))
    projections = matrix.new_zeros(3, dtype=torch.float64)
    for block in blocks(matrix):
        U, V = _unit_pairs(block, top)
        A, B = U - means[0], V - means[1]
        AA, AB, BB = AA + symmetric_product(A), AB + A.T @ B, BB + symmetric_product(B)
        r, q = A @ means[0], B @ means[1]
        projections = projections + torch.stack([r @ r, r @ q, q @ q])
    return [float((M * M).sum()) for M in (AA, AB, BB)], projections.tolist()


METRICS = (
    Metric(
        name="top_dimension_share",
        family="dimensions",
        compute=lambda shelf: top_dimension_share(shelf.directions),
        needs=frozenset({"directions"}),
        range=(0.0, 1.0),
        high="one dimension decides how similar vectors look",
        invariances=frozenset({"scale"}),
        differentiable=True,
        paper=_TIMKEY,
        sentence=lambda value: (
            f"the strongest dimension makes {value:.0%} of the mean cosine's contributions"
        ),
    ),
    Metric(
        name="dimensions_for_half",
        family="dimensions",
        compute=lambda shelf: dimensions_for_share(shelf.directions),
        needs=frozenset({"directions"}),
        range=(1.0, math.inf),
        high="many dimensions share the mean cosine",
        invariances=frozenset({"scale"}),
        differentiable=False,
        paper="Xiao, Long, Al Moubayed 2023, On Isotropy, Contextualization and Learning Dynamics",
        sentence=lambda value: f"{value:.0f} dimensions make half of the mean cosine",
    ),
    Metric(
        name="informativity",
        family="dimensions",
        compute=lambda shelf: informativity(shelf.vectors),
        needs=frozenset({"vectors"}),
        range=(0.0, 1.0),
        high="similarities do not hang on one dimension",
        invariances=frozenset({"scale"}),
        differentiable=False,
        paper="Xiao, Long, Al Moubayed 2023, On Isotropy, Contextualization and Learning Dynamics",
        sentence=lambda value: (
            f"without its top dimension the space keeps {value:.0%} of its pattern of similarities"
        ),
        default=False,
    ),
)
