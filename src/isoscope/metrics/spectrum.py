"""The spectrum of the covariance: effective numbers of dimensions and the decay of eigenvalues."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, like, scalar
from isoscope.errors import InputError, UndefinedError, check_between, check_whole
from isoscope.kernels.at_hand import at_hand
from isoscope.kernels.precision import check_spread
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import rounding, wide_moments

_RANKME_EPSILON = 1e-7  # Garrido et al. 2023, equation 1
_ROUNDING_OF_SHARES = 1e-6  # a cumulative share this close below the wanted one has reached it: float32 sums
_FIRST_RANK, _LAST_RANK = 11, 500  # Stringer et al. 2019 fit ranks 11 to 500
_MANY_RANKS = 60  # below, all ranks are fitted


_metric = family(
    "spectrum",
    needs=("moments",),
    range=(1.0, math.inf),
    high="isotropic",
    better="high",
    invariances=ALL_INVARIANCES,
    differentiable=True,
)


def eigenvalues(X: Any) -> Any:
    """Compute the variances along the principal directions, largest first.

        S v_i = λ_i v_i,   S the covariance with divisor n − 1

    Returns a (d,) array of the caller's kind (a tensor for Moments), none negative; at most
    min(n − 1, d) are positive. Invariant to rotation and translation; scales with the square of X.

    >>> eigenvalues([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).tolist()
    [6.0, 0.6666666666666666]
    """
    return like(Moments.of(X).eigenvalues, _original(X))


@_metric(
    sentence="the variance is as spread out as over {value:.1f} equal dimensions",
    paper="Gao et al. 2017, A theory of multineuronal dimensionality",
)
def participation_ratio(X: Any) -> Any:
    """Compute the effective number of dimensions from the second moment of the spectrum.

        PR = (Σ λ_i)²/Σ λ_i² = (tr S)²/‖S‖_F²

    Range [1, min(n − 1, d)]; high is isotropic: d when the spectrum is flat, 1 when one direction holds
    everything. IsoScore is (PR − 1)/(d − 1). No eigenvalues are taken. Invariant to rotation,
    translation and one scale. Paper: Gao et al. 2017, A theory of multineuronal dimensionality.

    >>> participation_ratio([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    2.0
    """
    return scalar(_spread(X, "participation_ratio").at_hand.participation)


@_metric(
    sentence="by entropy, the variance fills about {value:.1f} dimensions",
    paper="Roy, Vetterli 2007, The effective rank",
)
def effective_rank(X: Any) -> Any:
    """Compute the effective number of dimensions from the entropy of the spectrum.

        erank = exp(−Σ p_i log p_i),   p_i = λ_i/Σ λ

    Roy and Vetterli's effective rank applied to the covariance (they take the singular values of a
    matrix; those of the covariance are its eigenvalues). Never below the participation ratio.
    Range [1, min(n − 1, d)]; high is isotropic. Invariant to rotation, translation and one scale.
    Paper: Roy, Vetterli 2007, The effective rank.

    >>> round(effective_rank([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 12)
    2.0
    """
    (values,) = at_hand(_spread(X, "effective_rank").eigenvalues)
    return scalar(spectral_entropy(values / values.sum()).clamp(min=0).exp())


@_metric(
    sentence="with the mean included, the vectors use about {value:.1f} dimensions",
    paper="Garrido, Balestriero, Najman, LeCun 2023, RankMe",
    range=(1.0 - 1e-6, math.inf),
    high="isotropic about the origin",
    better="high",
    invariances=("rotation", "scale"),
)
def rankme(X: Any) -> Any:
    """Compute the effective rank of the vectors, not centred, from the entropy of singular values.

        RankMe = exp(−Σ p_i log p_i),   p_i = σ_i/Σ σ + 1e-7,   σ the min(n, d) singular values of X

    With weights w, σ are those of √w·x, and n is the number of rows, whatever their weights.
    X is not centred, so a large mean lowers it. Singular values below the rounding of the products are
    taken as 0. Range [1, min(n, d)] up to the paper's 1e-7; high is isotropic about the origin.
    Invariant to rotation and one scale. Paper: Garrido et al. 2023, RankMe.

    >>> round(rankme([[1.0, 0.0], [0.0, 1.0]]), 5)
    2.0
    """
    moments = Moments.of(X)
    total = moments.spread + moments.count * moments.mean_square
    check_spread(total, differ=not total and bool(moments.mean.any()))
    (squares,) = at_hand(uncentred_spectrum(moments))
    kept = squares > 0
    if not kept.any():
        raise UndefinedError(f"rankme is undefined: all {moments.count} vectors are zero")
    sigma = torch.where(kept, torch.where(kept, squares, 1.0).sqrt(), 0.0)
    return scalar(spectral_entropy(sigma / sigma.sum() + _RANKME_EPSILON).exp())


@_metric(
    sentence="the total variance is {value:.1f} times that of the strongest direction",
    paper="Rudelson, Vershynin 2007, Sampling from large matrices; He, Ozay 2022, NESum",
    also="nesum",
)
def stable_rank(X: Any) -> Any:
    """Compute the total variance over the largest variance of a direction.

        srank = tr S/λ_max

    Range [1, min(n − 1, d)]; high is isotropic. Never above the participation ratio. He and Ozay 2022 call
    it NESum, Σ λ_i/λ_1; `nesum` is another name of it. Invariant to rotation, translation and one scale.
    Paper: Rudelson, Vershynin 2007, Sampling from large matrices; He, Ozay 2022.

    >>> round(stable_rank([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 12)
    1.25
    """
    (values,) = at_hand(_spread(X, "stable_rank").eigenvalues)
    return scalar((values.sum() / values[0]).clamp(min=1))


def explained_variance(X: Any) -> Any:
    """Compute the share of the variance in the first 1, 2, … d principal directions.

        (d,) array of the caller's kind:  Σ_{i≤k} λ_i/Σ λ

    Rises from λ_max's share to 1. Invariant to rotation, translation and one scale.

    >>> explained_variance([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).tolist()
    [0.5, 1.0]
    """
    return like(_cumulative(_spread(X, "explained_variance").eigenvalues), _original(X))


@_metric(
    sentence=lambda value: (
        f"{value:.0f} principal direction{'s hold' if value > 1 else ' holds'} 90 % of the variance"
    ),
    paper="Jolliffe 2002, Principal Component Analysis",
    differentiable=False,
)
def dimensions_for_variance(X: Any, *, share: float = 0.9) -> int:
    """Return the number of principal directions that hold a given share of the variance.

        min k with Σ_{i≤k} λ_i ≥ share · Σ λ

    Range 1 … d; high is isotropic. Invariant to rotation, translation and one scale.

    Args:
        X: (n, d) vectors in any array, or Moments.
        share: of the variance, in (0, 1]; reached when it is missed by less than 1e-6.

    >>> dimensions_for_variance([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    1
    """
    check_between("share", share, 0, 1, wanted="a share of the variance in (0, 1]", open_at="low")
    (values,) = at_hand(_spread(X, "dimensions_for_variance").eigenvalues)
    return first_reaching(_cumulative(values), share)


@_metric(
    needs=("vectors",),
    sentence="the strongest direction has {value:.3g} times the variance of the weakest",
    paper="Golub, Van Loan 2013, Matrix Computations",
    high="anisotropic",
    better="low",
    differentiable=False,
    default=False,
)
def condition_number(X: Any) -> float:
    """Compute the largest over the smallest variance of all directions.

        κ = λ_max/λ_min

    Range [1, ∞); high is anisotropic. Undefined for a singular covariance (n ≤ d, or numerically of
    lower rank). The small end of the spectrum needs products in float64: they are taken so whenever
    vectors are given; Moments of narrower vectors are good to κ of about 1e6. Invariant to rotation,
    translation and one scale.

    >>> round(condition_number([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 12)
    4.0
    """
    moments, values = standing_eigenvalues(X, "condition_number")
    if len(values) < moments.n_dims:
        raise UndefinedError(
            f"condition_number is undefined: the covariance has rank {len(values)} of {moments.n_dims} "
            f"({moments.count} vectors); use participation_ratio or more vectors"
        )
    return float(values[0] / values[-1])


@_metric(
    needs=("vectors",),
    sentence="the spectrum decays like rank to the power −{value:.2f}",
    paper="Stringer et al. 2019; Agrawal et al. 2022, α-ReQ",
    range=(0.0, math.inf),
    high="anisotropic",
    better="low",
    differentiable=False,
    default=False,
)
def power_law_exponent(X: Any, *, first: int | None = None, last: int | None = None) -> float:
    """Compute the decay α of the spectrum, λ_i ∝ i^−α, by least squares of log λ on log rank.

    Range [0, ∞); high is anisotropic, 0 a flat spectrum. Stringer et al. find 1 in visual cortex, Agrawal
    et al. in the representations that transfer best. Without limits: ranks 11 to 500 (or to the rank of
    the covariance) where the rank is 60 or more, otherwise all ranks. Products are taken in float64
    whenever vectors are given. Invariant to rotation, translation and one scale.
    Paper: Stringer et al. 2019; Agrawal et al. 2022, α-ReQ.

    Args:
        X: (n, d) vectors in any array, or Moments.
        first: the first rank to fit, counted from 1.
        last: the last rank to fit.

    >>> X = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5], [0.0, -0.5]])
    >>> round(power_law_exponent(X), 12)  # λ_2 = λ_1/4 = λ_1·2^−2
    2.0
    """
    return power_law(X, "power_law_exponent", first, last, most=_LAST_RANK)[0]


def power_law(
    X: Any, name: str, first: int | None, last: int | None, *, most: int, by_rank: bool = False
) -> tuple[float, Tensor, slice]:
    """Return the decay α of log λ on log rank, what it multiplies each log λ by, and the ranks of the fit.

    most: the last rank without limits; by_rank: whether rank i has the weight 1/i, in place of 1.
    """
    _, values = standing_eigenvalues(X, name)
    first, last = _fit_ranks(name, len(values), first, last, most=most)
    ranks = torch.arange(first, last + 1, dtype=values.dtype, device=values.device)
    weights = 1 / ranks if by_rank else torch.ones_like(ranks)
    x = ranks.log()
    x = x - (weights @ x) / weights.sum()
    slope = -weights * x / (weights @ x.square())
    fitted = slice(first - 1, last)
    return max(0.0, float(slope @ values[fitted].log())), slope, fitted


def _fit_ranks(name: str, rank: int, first: int | None, last: int | None, *, most: int) -> tuple[int, int]:
    """Return the first and last rank of a fit, counted from 1: as asked for, or those of a usual spectrum."""
    for argument, value in (("first", first), ("last", last)):
        if value is not None:
            check_whole(argument, value)
    first = first if first is not None else (_FIRST_RANK if rank >= _MANY_RANKS else 1)
    last = last if last is not None else (min(most, rank) if rank >= _MANY_RANKS else rank)
    if not 1 <= first < last and rank < 2:
        raise UndefinedError(f"{name} needs two ranks to fit; the covariance has rank {rank}")
    if not 1 <= first < last:
        raise InputError(
            f"is {last} for first={first}", argument="last", wanted=f"1 ≤ first < last ≤ {rank}, the rank"
        )
    if last > rank:
        raise UndefinedError(f"{name} is undefined to rank {last}: the covariance has rank {rank}")
    return first, last


def first_reaching(cumulative: Tensor, share: float) -> int:
    """Return the first count at which a cumulative share is reached, up to rounding, or else all."""
    reached = (cumulative >= share - _ROUNDING_OF_SHARES).nonzero()
    return int(reached[0]) + 1 if len(reached) else len(cumulative)


def _original(X: Any) -> Any:
    return X.mean if isinstance(X, Moments) else X


def _spread(X: Any, name: str) -> Moments:
    moments = Moments.of(X)
    moments.need_spread(name)
    return moments


def standing_eigenvalues(X: Any, name: str) -> tuple[Moments, Tensor]:
    """Return the moments and the (rank,) eigenvalues of the covariance above rounding, largest first.

    Vectors of any type have their products taken in float64, one block at a time; what is left to rounding
    is then that of the vectors themselves, stored with a relative spacing of `eps`: a variance of at most
    eps²/12 of a coordinate's mean square, a few times that along the worst direction.
    """
    moments = wide_moments(X)
    eps = 0.0 if isinstance(X, Moments) else torch.finfo(as_matrix(X, finite=False).dtype).eps
    moments.need_spread(name)
    values = torch.linalg.eigvalsh(moments.smaller_side.detach()).flip(0)
    mean_square = float((moments.trace / moments.count + moments.mean @ moments.mean) / moments.n_dims)
    noise = rounding(values, max(moments.n_rows, moments.n_dims))
    kept = values > max(noise, moments.count * eps**2 * mean_square)
    return moments, torch.masked_select(values, kept)[: moments.n_rows - 1] / (moments.count - 1)


def spectral_entropy(p: Tensor) -> Tensor:
    """Return −Σ p log p with a finite gradient at p = 0."""
    return -(p * torch.where(p > 0, p, 1.0).log()).sum()


def _cumulative(values: Tensor) -> Tensor:
    return values.cumsum(0) / values.sum()


def uncentred_spectrum(moments: Moments) -> Tensor:
    """Return (min(n, d),) eigenvalues of Σ x xᵀ, largest first; those within rounding are 0."""
    if moments.factor is None:
        known = vars(moments).get("principal")  # taken with the directions, which cost more
        squares = known[0] if known else torch.linalg.eigvalsh(moments.second_moment)
    else:
        rows = torch.cat([moments.factor, math.sqrt(moments.count) * moments.mean[None]])
        squares = torch.linalg.eigvalsh(rows @ rows.T)
    squares = squares.flip(0)[: min(moments.n_rows, moments.n_dims)]
    return torch.where(squares > rounding(squares.detach(), len(squares)), squares, 0.0)
