"""Directions and lengths: mean cosine, uniformity, alignment, norms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, scalar
from isoscope.errors import InputError, ShapeError, UndefinedError, check_between
from isoscope.kernels.at_hand import at_hand
from isoscope.kernels.precision import check_spread
from isoscope.kernels.tile_plan import Tile
from isoscope.kernels.tiles import Arranged, Progress
from isoscope.metrics.registry import family
from isoscope.metrics.thresholds import THRESHOLDS, common_direction, lengths
from isoscope.results import Record
from isoscope.statistics.directions import Directions, pair_cosine, unit_rows
from isoscope.statistics.leave_one_out import LeftOutCosines, jackknife
from isoscope.tables import percent

_WANG_2020 = "Wang, Isola 2020, Understanding contrastive representation learning"
_ROUNDING = 1e-14  # of the squared variation of lengths
_CONSEQUENCES = {
    "serious": ", so unrelated ones have a high cosine too",
    "moderate": ", which subtracting the mean would remove",
}


def _cosine_sentence(value: float) -> str:
    severity = THRESHOLDS["common_direction"].severity(value)
    return f"{common_direction(value)}{_CONSEQUENCES.get(severity, '')}"


_metric = family("cosine", needs=("directions",), invariances=("rotation", "scale"), differentiable=True)


@_metric(
    range=(-1.0, 1.0),
    high="all vectors point one way",
    better="low",
    paper="Ethayarajh 2019, How contextual are contextualized word representations?",
    sentence=_cosine_sentence,
    error=lambda shelf: mean_cosine_error(shelf.directions, shelf.left_out_cosines),
    error_needs=("left_out_cosines",),
)
def mean_cosine(X: Any) -> Any:
    """Compute the mean cosine over all pairs of different vectors.

        (‖Σ u_i‖² − n)/(n(n−1)),   u = x/‖x‖

    exact in one pass, without a sample of pairs. Range [−1/(n−1), 1]; high is anisotropic (a cone).
    Invariant to rotation and to the length of each vector; not to translation. Zero vectors have no
    direction and are left out. Paper: Ethayarajh 2019; the closed form is ours.

    >>> mean_cosine([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    0.333...
    """
    directions = Directions.of(X).at_hand
    directions.need_pairs("mean_cosine")
    return scalar(pair_cosine(directions.count, directions.unit_sum @ directions.unit_sum))


def mean_cosine_error(directions: Directions, left_out: LeftOutCosines) -> float:
    """Return the standard error of the mean cosine, by the jackknife."""
    n = directions.count
    if n < 3:
        raise UndefinedError(f"the standard error of mean_cosine needs at least 3 vectors; there are {n}")
    unit_sum = directions.at_hand.unit_sum
    whole = unit_sum @ unit_sum
    (projections,) = at_hand(left_out.projections)
    scores = pair_cosine(n - 1, whole - 2 * projections + 1)
    return jackknife(pair_cosine(n, whole), scores, n)[0]


@_metric(
    range=(0.0, math.inf),
    high="long vectors",
    invariances=("rotation",),
    paper="Euclidean length",
    sentence="the vectors have a mean length of {value:.3g}",
)
def mean_norm(X: Any) -> Any:
    """Compute the mean length of the vectors, Σ‖x‖/n.

    Range [0, ∞). Invariant to rotation.

    >>> mean_norm([[3.0, 4.0], [0.0, 0.0]])
    2.5
    """
    directions = Directions.of(X).at_hand
    return scalar(directions.norm_sum / (directions.count + directions.n_zero))


@_metric(
    range=(0.0, math.inf),
    high="lengths differ",
    differentiable=False,  # a square root at 0 when all lengths are equal
    paper="coefficient of variation of the lengths",
    sentence=lengths,
)
def norm_variation(X: Any) -> Any:
    """Compute the standard deviation of the lengths (divisor n) over their mean.

    Range [0, ∞); 0 where all vectors have one length, and below 1e-7, which is the rounding of unit vectors.
    Invariant to rotation and one scale.

    >>> norm_variation([[3.0, 4.0], [0.0, 0.0]])
    1.0
    """
    directions = Directions.of(X).at_hand
    mean = mean_norm(directions)
    if not mean > 0:
        raise UndefinedError("norm_variation is undefined: every vector is zero")
    n = directions.count + directions.n_zero
    check_spread(float(directions.norm_square_sum.detach()), differ=True)
    square = directions.norm_square_sum / mean / mean / n - 1
    return scalar(torch.where(square > _ROUNDING, square.clamp(min=_ROUNDING).sqrt(), 0.0))


@_metric(
    needs=("vectors",),
    call=lambda metric, shelf: metric(shelf.vectors, progress=shelf.progress),
    range=(-8.0, 0.0),
    high="directions clump",
    better="low",
    paper=_WANG_2020,
    sentence=lambda value: (
        "directions cover the sphere evenly" if value < -3 else "directions leave much of the sphere empty"
    ),
    default=False,
)
def uniformity(X: Any, *, t: float = 2.0, progress: Progress | None = None) -> Any:
    """Compute how evenly the directions cover the sphere; low is even.

        log mean_{i<j} exp(−t‖u_i − u_j‖²)

    over all pairs, exactly, tile by tile. Range [−4t, 0]; high is clumped. Invariant to rotation and
    to the length of each vector. Zero vectors are left out. Paper: Wang and Isola 2020.

    >>> round(uniformity([[1.0, 0.0], [-2.0, 0.0]]), 6)
    -8.0
    """
    check_between("t", t, 0, math.inf, wanted="a positive number", open_at="low, high")
    units, norms = unit_rows(as_matrix(X))
    units = units[norms > 0]
    n = units.shape[0]
    if n < 2:
        raise UndefinedError(f"uniformity needs two vectors with a direction; there are {n}")
    if units.requires_grad:
        return (-t * torch.pdist(units).square()).exp().mean().log()
    arranged = Arranged.of(units)

    def kernel_sum(rows: Tile, columns: Tile, tile: Tensor) -> float:
        part = float(tile.mul_(-t * arranged.unit**2).exp_().sum())
        return (part - len(tile)) / 2 if rows == columns else part

    total = math.fsum(part for _, _, part in arranged.reduced(kernel_sum, progress=progress))
    if not total > 0:
        raise InputError(argument="t", got=t, wanted="small enough for exp(−t‖u − v‖²) not to vanish")
    return math.log(total / (n * (n - 1) / 2))


@_metric(
    needs=("vectors", "partners"),
    range=(0.0, 4.0),
    high="partners lie apart",
    better="low",
    invariances=("scale",),
    paper=_WANG_2020,
    sentence=lambda value: f"partners are {percent(value / 2)} as far apart as vectors at right angles",
)
def alignment(X: Any, Y: Any, *, alpha: float = 2.0) -> Any:
    """Compute the mean distance between the directions of matching rows; low is well aligned.

        mean_i ‖u_i − v_i‖^α,   u = x/‖x‖, v = y/‖y‖

    Range [0, 2^α]. Invariant to one rotation of both and to the length of each vector. Pairs with a
    zero vector are left out. Paper: Wang and Isola 2020.

    >>> alignment([[1.0, 0.0]], [[0.0, 3.0]])
    2.0
    """
    exponent = check_between("alpha", alpha, 0, math.inf, wanted="a positive number", open_at="low, high")
    first, second = as_matrix(X), as_matrix(Y, name="Y")
    if first.shape != second.shape:
        raise ShapeError(
            f"has shape {tuple(second.shape)}, and X has {tuple(first.shape)}",
            argument="Y",
            wanted="matching rows",
        )
    u, u_norms = unit_rows(first)
    v, v_norms = unit_rows(second.to(first.device))
    present = (u_norms > 0) & (v_norms > 0)
    if not present.any():
        raise UndefinedError("alignment is undefined: every pair has a zero vector")
    squared = (u - v)[present].square().sum(dim=1)
    return scalar((squared ** (exponent / 2)).mean())


@dataclass(frozen=True)
class NormStatistics(Record):
    """Lengths of the vectors: mean, standard deviation (divisor n), extremes, and how many are zero."""

    mean: float
    standard_deviation: float
    min: float
    max: float
    n_zero: int


def norm_statistics(X: Any) -> NormStatistics:
    """Compute the mean, standard deviation and extremes of the lengths ‖x‖.

    The spread is known to about 1e-8 of the mean: of lengths that differ by less it may read 0.

    >>> norm_statistics([[3.0, 4.0], [0.0, 0.0]])
    NormStatistics(mean=2.5, standard_deviation=2.5, min=0.0, max=5.0, n_zero=1)
    """
    directions = Directions.of(X)
    return NormStatistics(
        float(mean_norm(directions)),
        float(norm_variation(directions) * mean_norm(directions)),
        float(directions.norm_min),
        float(directions.norm_max),
        directions.n_zero,
    )
