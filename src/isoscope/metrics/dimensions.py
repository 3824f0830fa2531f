"""Contributions of single dimensions to the mean cosine, and rogue dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from isoscope.arrays import as_matrix, like, scalar
from isoscope.errors import InputError, UndefinedError, check_between
from isoscope.metrics.registry import family
from isoscope.metrics.spectrum import first_reaching
from isoscope.metrics.thresholds import THRESHOLDS
from isoscope.results import Record, Result
from isoscope.space import known_rows
from isoscope.statistics.directions import Directions
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupDirections
from isoscope.tables import percent

_TIMKEY = "Timkey, van Schijndel 2021, All Bark and No Bite: Rogue Dimensions in Transformer Language Models"


_metric = family("dimensions", needs=("directions",), invariances=("scale",))


def _share_sentence(value: float) -> str:
    return f"the strongest dimension makes {percent(value)} of the mean cosine"


def _half_sentence(value: float) -> str:
    return f"{value:.0f} dimension{'s make' if value > 1 else ' makes'} half of the mean cosine"


def _of_the_mean_cosine(sentence: Callable[[float], str]) -> Callable[[float, Statistics], str]:
    """Return what explains a value: shares of a mean cosine near 0 say little, whatever they are."""

    def explain(value: float, shelf: Statistics) -> str:
        cosine = float(contributions_of(shelf.directions.at_hand).sum())
        is_low = THRESHOLDS["common_direction"].severity(cosine) == "healthy"
        return f"{sentence(value)}, which is near 0, so this says little" if is_low else sentence(value)

    return explain


@dataclass(frozen=True)
class RogueDimension(Record):
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


@dataclass(frozen=True, eq=False, repr=False)
class DimensionShares(Result):
    """The share of a similarity that each dimension contributes.

    shares: (d,) float64, adding up to 1.
    """

    shares: Tensor

    def _columns(self) -> dict[str, list[Any]]:
        return {"dimension": self.order.tolist(), "share": self.shares[self.order].tolist()}

    @property
    def order(self) -> Tensor:
        """(d,) dimensions, largest share first."""
        return self.shares.sort(descending=True, stable=True).indices

    def top(self, n: int = 3) -> list[float]:
        """Return the n dimensions with the largest shares."""
        largest: list[float] = self.shares[self.order[:n]].tolist()
        return largest

    def n_for(self, share: float) -> int:
        """Return the number of top dimensions that make up a share in (0, 1]."""
        check_between("share", share, 0, 1, wanted="a number in (0, 1]", open_at="low")
        return first_reaching(self.shares[self.order].cumsum(0), share)


def dimension_contributions(X: Any) -> Any:
    """Compute the contribution of each dimension to the mean cosine of all pairs of vectors.

        c_j = ((Σ u_j)² − Σ u_j²)/(n(n − 1)),   u = x/‖x‖

    Returns a (d,) array of the caller's kind (a tensor for Directions) that adds up to the mean cosine;
    exact, in one pass. Each lies in [−1, 1]; a high one pulls all vectors the same way. Invariant to one
    scale, not to rotation: it is about the axes. Paper: Timkey, van Schijndel 2021.

    >>> dimension_contributions([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]]).tolist()
    [1.0, 0.0]
    """
    return like(contributions_of(Directions.of(X)), X.unit_sum if isinstance(X, Directions) else X)


@_metric(
    range=(0.0, 1.0),
    high="one dimension decides how similar vectors look",
    better="low",
    differentiable=True,
    paper=_TIMKEY,
    sentence=_share_sentence,
    explain=_of_the_mean_cosine(_share_sentence),
)
def top_dimension_share(X: Any) -> Any:
    """Compute the share of the largest contribution to the mean cosine among all contributions.

        max(max_j c_j, 0)/Σ |c_j|

    Range [0, 1]; high means that one axis alone decides how similar vectors look. Even shares are 1/d.
    Invariant to one scale. Paper: Timkey, van Schijndel 2021.

    >>> top_dimension_share([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    1.0
    """
    return scalar(_shares(Directions.of(X).at_hand, "top_dimension_share").max().clamp(0, 1))


def dimensions_for_share(X: Any, *, share: float = 0.5) -> int:
    """Return the number of top dimensions that make up a given share of the mean cosine.

        min k with Σ of the k largest c_j ≥ share · Σ c_j

    Range 1 … d; low means that a few axes decide. Undefined where the mean cosine is not positive.
    Invariant to one scale. Paper: Xiao, Long, Al Moubayed 2023.

    Args:
        X: (n, d) vectors in any array, or Directions.
        share: of the mean cosine, in (0, 1]; reached when it is missed by less than 1e-6.

    >>> dimensions_for_share([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    1
    """
    check_between("share", share, 0, 1, wanted="a share of the mean cosine in (0, 1]", open_at="low")
    contributions = contributions_of(Directions.of(X).at_hand).detach()
    total = contributions.sum()
    if not total > 0:
        raise UndefinedError(
            f"dimensions_for_share is undefined: the mean cosine is not positive ({float(total):.3g})"
        )
    return DimensionShares(contributions / total).n_for(share)


@_metric(
    range=(1.0, math.inf),
    high="many dimensions share the mean cosine",
    better="high",
    paper="Xiao, Long, Al Moubayed 2023, On Isotropy, Contextualization and Learning Dynamics",
    sentence=_half_sentence,
    explain=_of_the_mean_cosine(_half_sentence),
)
def dimensions_for_half(X: Any) -> int:
    """Return the number of top dimensions that make up half of the mean cosine: `dimensions_for_share(X)`.

    >>> dimensions_for_half([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    1
    """
    return dimensions_for_share(X)


def rogue_limit(d: int) -> float:
    """Return the share in the mean cosine that a rogue dimension exceeds, by default."""
    return min(max(0.05, 10 / d), 0.75)


def rogue_dimensions(X: Any, *, min_share: float | None = None) -> list[RogueDimension]:
    """Return the dimensions that dominate the mean cosine, strongest first.

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
        min_share = rogue_limit(matrix.shape[1])
    check_between("min_share", min_share, 0, 1, wanted="a share in [0, 1)", open_at="high")
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


def self_similarity_shares(X: Any, *, token_types: Any = None, diagonal: bool = False) -> DimensionShares:
    """Compute each dimension's share of the self-similarity of tokens.

        Σ_t c_tj/Σ_t Σ_j c_tj,   c_tj = ((Σ u_j)² − Σ u_j²)/(n_t(n_t − 1)) over the n_t occurrences of type t

    the exact parts that add up to `self_similarity`. Shares add up to 1, and can be negative; a high one
    means that one axis decides. Types that occur once are skipped. Invariant to one scale, not to rotation.
    Paper: Xiao, Long, Al Moubayed 2023.

    Args:
        X: a Space that knows its token types, (n, d) vectors, or GroupDirections of the types, of squares
            too unless `diagonal`.
        token_types: the type of each row, where X does not carry it.
        diagonal: the paper's way: each occurrence is paired with itself as well, and shares are taken type
            by type, (Σ u_j)²/‖Σ u‖², before their mean over types.

    >>> shares = self_similarity_shares([[3.0, 1.0], [6.0, 2.0], [3.0, 1.0]], token_types=["a", "a", "a"])
    >>> [round(share, 6) for share in shares.top(2)], shares.n_for(0.5)
    ([0.9, 0.1], 1)
    """
    if isinstance(X, GroupDirections):
        groups = X
    else:
        groups = GroupDirections.of(X, known_rows(X, token_types, "token_types"), squares=not diagonal)
    kept = groups.counts >= 2
    if not kept.any():
        raise UndefinedError(
            "self_similarity_shares is undefined: no token type has two vectors with a direction"
        )
    sums, n = groups.unit_sums[kept].detach(), groups.counts[kept]
    if diagonal:
        totals = (sums * sums).sum(dim=1)
        there = totals > 0  # the vectors of a type can cancel
        return _as_shares((sums[there] ** 2 / totals[there][:, None]).mean(dim=0))
    if groups.unit_square_sums is None:
        raise InputError(
            "X is GroupDirections without squares; make them by GroupDirections.of(X, types, squares=True), "
            "or pass diagonal=True"
        )
    squares = groups.unit_square_sums[kept].detach()
    return _as_shares(((sums * sums - squares) / (n * (n - 1))[:, None]).mean(dim=0))


def _as_shares(contributions: Tensor) -> DimensionShares:
    total = contributions.sum()
    if not total > 0:
        raise UndefinedError(
            f"shares are undefined: the contributions add up to {float(total):.3g}, which is not positive"
        )
    return DimensionShares(contributions / total)


def contributions_of(directions: Directions) -> Tensor:
    """Return (d,) contributions to the mean cosine, from the statistic."""
    directions.need_pairs("dimension_contributions")
    n = directions.count
    return (directions.unit_sum**2 - directions.unit_square_sum) / (n * (n - 1))


def _shares(directions: Directions, name: str) -> Tensor:
    """Return (d,) contributions over the sum of their absolute values."""
    contributions = contributions_of(directions)
    total = contributions.abs().sum()
    if not total > 0:
        raise UndefinedError(
            f"{name} is undefined: no dimension contributes to the mean cosine (all pairs orthogonal)"
        )
    return contributions / total
