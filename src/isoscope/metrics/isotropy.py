"""IsoScore and related measures of how evenly the variance fills the dimensions, from `Moments`."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, scalar
from isoscope.errors import InputError, NotFiniteError, ShapeError, UndefinedError, check_between
from isoscope.kernels.at_hand import at_hand
from isoscope.kernels.precision import LEAST_SUM
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.metrics.thresholds import variance
from isoscope.statistics.device_participation import quick_participation
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.leave_one_out import LeftOutMoments, jackknife
from isoscope.statistics.moments import Moments
from isoscope.statistics.partition import LogPartition
from isoscope.tables import percent

_JACKKNIFE_MIN = 5  # leaving one out of fewer says nothing: any two points score 0
_NO_SQUARE = 1e-12  # an estimate of tr Σ² under this share of (tr Σ)² is rounding, not variance
_ONE_FAR = 0.5  # a share of Σ‖u‖⁴ in (Σ‖u‖²)² that one vector far from all others makes
_LOST = 1e-9  # under this share of what it is the difference of, an estimate of tr Σ² has lost its digits
_FEW_PER_DIMENSION = 5  # vectors: below, the plain IsoScore reads low
_FEWEST = 10  # vectors whose debiased IsoScore is more than chance
_TOO_FEW = "too few vectors to say how the variance is spread"
_RUDMAN_2022 = "Rudman, Gillman, Rayne, Eickhoff 2022, IsoScore"


def is_few(n: float, d: int) -> bool:
    """Return whether there are so few vectors for their dimensions that the plain IsoScore is too low.

    The IsoScore of isotropic vectors is then below 5/6.
    """
    return n < _FEW_PER_DIMENSION * d


def few_notes(n: float, d: int) -> list[str]:
    """Return a note on IsoScore where n vectors are few for d dimensions."""
    if not is_few(n, d):
        return []
    return [f"{n:,} vectors are few for {d:,} dimensions: isoscore reads low, isoscore_debiased does not"]


def is_too_few(n: float, d: int) -> bool:
    """Return whether even the debiased IsoScore is too uncertain to describe; its error is about 2/n."""
    return is_few(n, d) and n < _FEWEST


def _explain_isoscore(value: float, shelf: Statistics) -> str:
    n, d = shelf.moments.count, shelf.moments.n_dims
    if not is_few(n, d):
        return variance(value)
    try:
        fair = float(isoscore(shelf.moments, debias=True))
    except UndefinedError:
        fair = math.nan
    if is_too_few(n, d) or math.isnan(fair):
        return _TOO_FEW
    return variance(fair) + ", once the bias of few vectors is removed"


def _debiased_sentence(value: float) -> str:
    return variance(value) + ", with the bias of a small sample removed"


def _explain_debiased(value: float, shelf: Statistics) -> str:
    few = is_too_few(shelf.moments.count, shelf.moments.n_dims)
    return _TOO_FEW if few else _debiased_sentence(value)


def _partition_sentence(value: float) -> str:
    if value < 1e-6:
        return "far from isotropic about the origin: the mean or a long direction outweighs all others"
    return (
        f"the partition function is {value:.2g} times as large in its weakest direction as in its strongest"
    )


_metric = family(
    "isotropy",
    needs=("moments",),
    range=(0.0, 1.0),
    high="isotropic",
    better="high",
    invariances=ALL_INVARIANCES,
    differentiable=True,
)


@_metric(
    paper=_RUDMAN_2022,
    sentence=variance,
    explain=_explain_isoscore,
    fair="isoscore_debiased",
    error=lambda shelf: isoscore_jackknife(shelf.moments, shelf.left_out_moments, debias=False)[0],
    error_needs=("left_out_moments",),
)
def isoscore(X: Any, *, debias: bool | Literal["jackknife"] = False) -> Any:
    """Compute how evenly the variance fills the dimensions: 0 for one direction, 1 if all are equal.

        IsoScore = (PR − 1)/(d − 1),   PR = (tr S)²/‖S‖_F²

    with S the covariance: exactly the published score, with no eigenvalues and a gradient everywhere
    but at S = 0. Range [0, 1]; high is isotropic. Invariant to rotation, translation and one scale.

    The plain score is biased when n is not much larger than d (an isotropic Gaussian reads about
    n/(n+d)). `debias=True` replaces both ingredients by unbiased estimates (Himeno and Yamada 2014);
    it needs n ≥ 4, is never negative, and may exceed 1 by its sampling error. What is left is the bias
    of a ratio, which shows where one direction dwarfs the rest at small n; `debias="jackknife"` reduces
    that too, by leaving each vector out in turn, for a second pass and, with heavy tails, more variance.
    One vector far from all others costs it digits, as the square of the ratio of distances: at 10⁴ times
    as far seven are left, and from about 10⁵ on the debiased score is undefined. The plain one is not.

    Args:
        X: (n, d) vectors in any array, or Moments.
        debias: False as published; True unbiased in n; "jackknife" to second order.

    Paper: Rudman et al. 2022; the closed form and the debiased score are ours.

    >>> isoscore([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    1.0
    >>> isoscore([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])
    0.0
    """
    if debias not in (False, True, "jackknife"):
        raise InputError(argument="debias", got=debias, wanted="False, True or 'jackknife'")
    if not debias and (participation := quick_participation(X)) is not None:
        return _score(participation, X.shape[1])
    moments = Moments.of(X)
    if not debias:
        return scalar(_isoscore(moments))
    score = _debiased(moments)
    if debias == "jackknife":
        if isinstance(X, Moments):
            raise InputError(
                "debias='jackknife' needs the vectors for a second pass; pass X, not its Moments"
            )
        if score.requires_grad:
            raise InputError("debias='jackknife' carries no gradient; use debias=True, or detach X")
        score = score - isoscore_jackknife(moments, LeftOutMoments.of(X, moments), debias=True)[1]
    return scalar(score)


@_metric(
    range=(0.0, math.inf),
    paper=f"{_RUDMAN_2022}; Himeno, Yamada 2014, Estimations for some functions of covariance matrix",
    sentence=_debiased_sentence,
    explain=_explain_debiased,
    error=lambda shelf: isoscore_jackknife(shelf.moments, shelf.left_out_moments, debias=True)[0],
    error_needs=("left_out_moments",),
)
def isoscore_debiased(X: Any) -> Any:
    """Compute IsoScore without the bias of a small sample: `isoscore(X, debias=True)`.

    >>> round(isoscore_debiased([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 12)
    2.0
    """
    return isoscore(X, debias=True)


def isoscore_jackknife(moments: Moments, left_out: LeftOutMoments, *, debias: bool) -> tuple[float, float]:
    """Return the standard error and bias of IsoScore, plain or debiased, by the jackknife."""
    scores = left_out_scores(moments, left_out.at_hand, debias=debias)
    return jackknife(_debiased(moments) if debias else _isoscore(moments), scores, moments.count)


def left_out_scores(moments: Moments, left_out: LeftOutMoments, *, debias: bool) -> Tensor:
    """Return (n,) IsoScore, plain or debiased, without each vector in turn."""
    n, d = moments.count, moments.n_dims
    sums = (left_out.trace, left_out.squared_frobenius)
    if n < _JACKKNIFE_MIN:
        raise UndefinedError(
            f"a jackknife of isoscore needs at least {_JACKKNIFE_MIN} vectors; there are {n}"
        )
    if not debias:
        return _score(sums[0] ** 2 / sums[1], d)
    squared_trace, trace_of_square = _unbiased(n - 1, *sums, left_out.quartic)
    if bool((trace_of_square <= _NO_SQUARE * squared_trace).any()):
        raise UndefinedError("the jackknife of the debiased isoscore is undefined: it hangs on one vector")
    return _score(squared_trace / trace_of_square, d)


@_metric(
    high="anisotropic",
    better="low",
    differentiable=False,  # a square root at 0: no slope at the flat spectrum
    paper=_RUDMAN_2022,
    sentence=lambda value: f"the spectrum is {percent(value)} of the way from flat to a single direction",
    default=False,
)
def isotropy_defect(X: Any) -> Any:
    """Compute the distance of the variance profile from a flat one: 0 is flat, 1 is a single direction.

        δ = ‖ṽ − 1‖/√(2(d − √d)) = √((1 − cos α)/(1 − 1/√d)),   cos α = tr S/(√d‖S‖_F)

    with ṽ the principal variances scaled to length √d. Range [0, 1]; high is anisotropic.
    Invariant to rotation, translation and one scale. Paper: Rudman et al. 2022.

    >>> round(isotropy_defect([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]]), 9)
    1.0
    """
    moments = Moments.of(X)
    _need_shape(moments, "isotropy_defect")
    d = moments.n_dims
    cosine = (moments.participation / d).sqrt()
    return scalar(((1 - cosine).clamp(min=0) / (1 - 1 / math.sqrt(d))).sqrt())


@_metric(
    needs=("log_partition",),
    invariances=("rotation",),
    differentiable=False,
    paper="Mu, Viswanath 2018, All-but-the-Top",
    sentence=_partition_sentence,
)
def partition_isotropy(X: Any, *, log: bool = False) -> float:
    """Compute the ratio of the partition function's minimum to its maximum over directions; 1 is isotropic.

        I = min_c Z(c)/max_c Z(c),   Z(c) = Σ exp(c·x),   c over ± the eigenvectors of Σ x xᵀ

    Computed in the log domain, over both signs of each eigenvector. Range [0, 1]; high is isotropic.
    Invariant to rotation; depends on scale and on the mean, by design. `log=True` gives log I, which
    does not underflow. Paper: Mu and Viswanath 2018, All-but-the-Top (after Arora et al. 2016).

    >>> round(partition_isotropy([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 6)
    1.0
    """
    partition = (
        X if isinstance(X, LogPartition) else LogPartition.of(matrix := as_matrix(X), Moments.of(matrix))
    )
    (log_z,) = at_hand(partition.log_z)
    log_ratio = float(log_z.min() - log_z.max())
    return log_ratio if log else math.exp(log_ratio)


@_metric(
    needs=("moments", "covariance"),
    invariances=("translation",),
    paper="Rudman, Eickhoff 2024, Stable Anisotropic Regularization",
    sentence=lambda value: variance(value) + ", shrunk towards the covariance given",
)
def isoscore_star(X: Any, covariance: Any, *, zeta: float = 0.2) -> Any:
    """Compute IsoScore of a covariance shrunk towards a known one: stable on mini-batches, differentiable.

        Σ_ζ = (1 − ζ)·S + ζ·C₀,   then IsoScore's closed form

    ζ = 0 is plain IsoScore, ζ = 1 ignores X. Range [0, 1]; high is isotropic.
    Paper: Rudman and Eickhoff 2024, Stable Anisotropic Regularization.

    Args:
        X: (n, d) vectors in any array, or Moments.
        covariance: (d, d) symmetric positive semi-definite C₀, from a larger sample.
        zeta: weight of C₀, in [0, 1].

    >>> isoscore_star([[1.0, 0.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], zeta=1.0)
    1.0
    """
    check_between("zeta", zeta, 0, 1, wanted="a weight in [0, 1]")
    moments = Moments.of(X)
    target = as_covariance(covariance, moments.n_dims).to(moments.mean)
    shrunk = (1 - zeta) * moments.covariance + zeta * target
    if not shrunk.trace() > 0:
        raise UndefinedError("isoscore_star is undefined: the shrunk covariance is zero")
    return scalar(_score(shrunk.trace() ** 2 / (shrunk * shrunk).sum(), moments.n_dims))


def _isoscore(moments: Moments) -> Tensor:
    _need_shape(moments, "isoscore")
    return _score(moments.at_hand.participation, moments.n_dims)


def _debiased(moments: Moments) -> Tensor:
    _need_shape(moments, "isoscore")
    moments = moments.at_hand
    if moments.count < 4:
        raise UndefinedError(f"the debiased isoscore needs at least 4 vectors; there are {moments.count}")
    sums = (moments.trace, moments.squared_frobenius, moments.quartic)
    if not LEAST_SUM < float(moments.quartic.detach()) < math.inf:
        raise InputError(
            "X leaves the range float64 can square twice (about 1e-72 to 1e75); divide it by its largest"
        )
    squared_trace, trace_of_square = _unbiased(moments.count, *sums)
    quartic_share = moments.quartic / moments.trace / moments.trace
    if quartic_share > _ONE_FAR and trace_of_square <= _LOST * quartic_share:
        raise UndefinedError(
            "the debiased isoscore is undefined: a vector lies so far from all others that the estimate "
            "hangs on it alone; leave it out, or use isoscore"
        )
    if trace_of_square <= _NO_SQUARE * squared_trace:
        raise UndefinedError(
            f"the debiased isoscore is undefined: {moments.count} vectors, all differences at right angles, "
            "show no direction twice; add vectors"
        )
    return _score(squared_trace / trace_of_square, moments.n_dims)


def _score(participation: Any, d: int) -> Any:
    return (participation - 1) / (d - 1)


def _unbiased(n: int, trace: Tensor, squared_frobenius: Tensor, quartic: Tensor) -> tuple[Tensor, Tensor]:
    """Return unbiased (tr Σ)² and tr Σ² from sums about the mean, up to one common factor.

    They are the means of ‖x_i−x_j‖²‖x_k−x_l‖²/4 and ((x_i−x_j)·(x_k−x_l))²/4 over all quadruples of
    different vectors, so neither is negative and the first is never the smaller.
    """
    t = 1 / (n - 1)  # tr S, once divided by the trace
    f = squared_frobenius / trace / trace / (n - 1) ** 2
    Q = quartic / trace / trace / (n - 1)
    squared_trace = 2 * f + (n * n - 3 * n + 1) * t * t - n * Q
    trace_of_square = (n - 1) * (n - 2) * f + t * t - n * Q
    return squared_trace, trace_of_square


def _need_shape(moments: Moments, name: str) -> None:
    if moments.n_dims < 2:
        raise UndefinedError(
            f"{name} is undefined for vectors of 1 dimension",
            wanted="at least 2",
            hint="is the array transposed?",
        )
    moments.need_spread(name)


def as_covariance(covariance: Any, d: int) -> Tensor:
    """Return a (d, d) covariance in float64, checked: symmetric, no negative eigenvalue."""
    matrix = as_matrix(covariance, name="covariance", finite=False).double()
    if not bool(torch.isfinite(matrix).all()):  # its rows are dimensions, not vectors that could be dropped
        raise NotFiniteError(
            "has NaN or infinity",
            argument="covariance",
            wanted="finite numbers",
            hint="compute it from finite vectors with `reference_covariance(…)`",
        )
    if matrix.shape != (d, d):
        raise ShapeError(
            f"has shape {tuple(matrix.shape)}",
            wanted=f"({d}, {d}) for vectors of {d} dimensions",
            argument="covariance",
        )
    if not torch.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-8 * float(matrix.detach().abs().max())):
        raise InputError("is not symmetric", argument="covariance", wanted="a covariance matrix")
    if torch.linalg.eigvalsh(matrix.detach()).min() < -1e-6 * float(matrix.detach().diagonal().max()):
        raise InputError(
            "has negative eigenvalues", argument="covariance", wanted="a positive semi-definite matrix"
        )
    return matrix
