"""The frontier between clusters and isotropy: the largest IsoScore that a labelled space can have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import scalar
from isoscope.errors import InputError, UndefinedError, check_between
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.results import Record
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.tables import percent

_WORTH_TELLING = 0.02  # a share of the variance
_MOST = 2**31  # labels, dimensions, points or steps


@dataclass(frozen=True)
class ScatterDecomposition(Record):
    """The variance of a labelled space, Σ = W + B, split into within labels and between them.

    Attributes:
        total, within, between: traces of Σ, W and B, with divisor n.
        between_share: ρ = tr B/tr Σ, 0 when labels say nothing about position, 1 when each is a point.
        isoscore: the plain IsoScore of the space.
        ceiling: the largest IsoScore any space with this K, d and ρ can have.
        distance: ceiling − isoscore, how far the space is from the frontier.
        n_labels, n_dims: K and d.
        within_part, cross_part, between_part: ‖W‖², 2⟨W, B⟩ and ‖B‖² as shares of ‖Σ‖_F²: how much of
            the anisotropy the labels cause.
    """

    total: float
    within: float
    between: float
    between_share: float
    isoscore: float
    ceiling: float
    distance: float
    n_labels: int
    n_dims: int
    within_part: float
    cross_part: float
    between_part: float

    @property
    def n_effective_labels(self) -> int:
        """min(K − 1, d), the largest number of directions that the means of the labels span."""
        return min(self.n_labels - 1, self.n_dims)


def _share_sentence(value: float) -> str:
    return f"{percent(value)} of the variance lies between labels"


def _explain_share(value: float, shelf: Statistics) -> str:
    fair = share_beyond_chance(shelf.label_moments)
    if fair is None or not is_by_chance(value, fair):
        return _share_sentence(value)
    return f"{_share_sentence(max(0.0, fair))}, once the chance of few vectors a label is removed"


def _ceiling_of(metric: Callable[..., float], shelf: Statistics) -> float:
    groups = shelf.label_moments
    if groups.n_dims < 2:
        raise UndefinedError("isotropy_ceiling is undefined for vectors of 1 dimension", wanted="at least 2")
    return metric(n_labels_seen(groups), groups.n_dims, between=float(between_share(groups)))


_metric = family(
    "clusters",
    needs=("label_moments",),
    range=(0.0, 1.0),
    invariances=ALL_INVARIANCES,
    paper="isoscope: an exact form of Mickus, Grönroos, Attieh 2024, Isotropy, Clusters, and Classifiers",
)


@_metric(
    high="compact, distant labels",
    better="high",
    differentiable=True,
    sentence=_share_sentence,
    explain=_explain_share,
)
def between_share(X: Any, labels: Any = None) -> Any:
    """Compute the share of the variance that lies between labels.

        ρ = tr B/(tr W + tr B)

    Range [0, 1]; high means compact, distant labels: 1 when every label is a single point. The same
    sums as Calinski and Harabasz's score, and η² of a multivariate analysis of variance. Invariant to
    rotation, translation and one scale.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or GroupMoments of the labels.
        labels: one label for each vector, where X does not carry it.

    >>> between_share([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], ["a", "a", "b", "b"])
    0.5
    """
    groups = GroupMoments.by("labels", X, labels)
    within, between = scatter_traces(groups, "between_share")
    return scalar(between / (within + between))


@_metric(
    call=_ceiling_of,
    high="these labels leave room for isotropy",
    sentence="labels this far apart limit the IsoScore to {value:.3f}",
    default=False,  # stands beside isoscore already
)
def isotropy_ceiling(
    n_labels: int, n_dims: int, *, between: float = 1.0, n_points: int | None = None
) -> float:
    """Compute the largest IsoScore of a space with a given share of its variance between K labels.

        1                                                      if ρ ≤ (K − 1)/d
        (1/[ρ²/(K−1) + (1−ρ)²/(d−K+1)] − 1)/(d − 1)            otherwise

    because the scatter between labels has rank K − 1 at most. It is attained, for any label proportions
    (`frontier_space`). Range [0, 1]; high means that clusters and isotropy can be had together: K ≥ d + 1
    labels allow 1, two collapsed labels allow 0. n points bound the rank within labels too, by n − K;
    `n_points` gives the sharper ceiling that follows. Paper: ours, an exact form of Mickus et al. 2024.

    Args:
        n_labels: K, the number of labels.
        n_dims: d, the number of dimensions.
        between: ρ, the share of the variance between labels, in [0, 1]; 1 is fully collapsed labels.
        n_points: n, for the ceiling of n points; as many as it takes where not given.

    >>> isotropy_ceiling(2, 768)
    0.0
    >>> isotropy_ceiling(4, 3)
    1.0
    >>> round(isotropy_ceiling(10, 100), 6)  # (K − 2)/(d − 1)
    0.080808
    >>> isotropy_ceiling(2, 101, between=0.02, n_points=51)  # 51 points span 50 dimensions
    0.49
    """
    r, w, d = ranks(n_labels, n_dims, n_points)
    wanted = "the share of the variance between labels, in [0, 1]"
    rho, D = check_between("between", between, 0, 1, wanted=wanted), min(d, r + w)
    if r == 0 and rho > 0:
        raise InputError(
            argument="between", got=between, wanted="0 for one label, which has no variance between labels"
        )
    if w == 0 and rho < 1:
        raise InputError(
            argument="between",
            got=between,
            wanted=f"1 for {n_points} points of {n_labels} labels, since one point has no variance within",
        )
    for share, m in ((rho, r), (1 - rho, w)):  # at most one of the two is short of room
        if share > m / D:
            participation = 1 / (share * share / m + (1 - share) ** 2 / (D - m))
            return _clipped((participation - 1) / (d - 1))
    return _clipped((D - 1) / (d - 1))


def between_ceiling(isoscore: float, n_labels: int, n_dims: int) -> float:
    """Compute the largest share of the variance between K labels that a given IsoScore allows.

        (K−1)/d + √((K−1)(d−K+1)/d · (1/PR − 1/d)),   PR = 1 + (d − 1)·IsoScore

    The frontier read the other way: the inverse of `isotropy_ceiling`, and 1 where K ≥ d + 1 or
    IsoScore ≤ (K − 2)/(d − 1). Range [0, 1]; high means that labels may collapse further at this IsoScore.

    Args:
        isoscore: of the space, in [0, 1].
        n_labels, n_dims: K and d.

    >>> between_ceiling(1.0, 2, 4)  # an isotropic space has (K − 1)/d between labels at most
    0.25
    >>> round(isotropy_ceiling(3, 10, between=between_ceiling(0.4, 3, 10)), 12)
    0.4
    """
    r, _, d = ranks(n_labels, n_dims, None)
    check_between("isoscore", isoscore, 0, 1, wanted="a score in [0, 1]")
    if r == 0:
        return 0.0
    if r >= d or isoscore * (d - 1) <= r - 1:
        return 1.0
    flatness = max(0.0, 1 / (1 + (d - 1) * float(isoscore)) - 1 / d)
    return min(1.0, r / d + math.sqrt(r * (d - r) / d * flatness))


def frontier_curve(
    n_labels: int, n_dims: int, *, n_points: int | None = None, n_steps: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the frontier: shares of the variance between labels, and the largest IsoScore at each.

    Args:
        n_labels: K, at least 2.
        n_dims: d.
        n_points: n, for the frontier of n points; see `isotropy_ceiling`.
        n_steps: even steps from 0 to 1; where the curve bends, a share is added.

    >>> shares, ceilings = frontier_curve(3, 4, n_steps=4)
    >>> shares.tolist(), ceilings.round(3).tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [1.0, 1.0, 1.0, 0.733, 0.333])
    """
    r, w, d = ranks(n_labels, n_dims, n_points)
    if r == 0:
        raise InputError(argument="n_labels", got=1, wanted="at least 2 to have variance between labels")
    D = min(d, r + w)
    shares = np.union1d(np.linspace(0, 1, whole("n_steps", n_steps, 1) + 1), [r / D, 1 - w / D])
    shares = shares if w else np.array([1.0])
    ceilings = [isotropy_ceiling(n_labels, n_dims, between=share, n_points=n_points) for share in shares]
    return shares, np.array(ceilings)


def scatter_decomposition(X: Any, labels: Any = None) -> ScatterDecomposition:
    """Split the variance into parts within and between labels, and compare the space with the frontier.

        Σ = W + B,   ρ = tr B/tr Σ,   ‖Σ‖_F² = ‖W‖² + 2⟨W, B⟩ + ‖B‖²

    All shares and scores are invariant to rotation, translation and one scale; every part lies in [0, 1].
    tr W is summed from distances to the label's own mean, so collapsed clusters keep their digits.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or Moments.
        labels: one label for each vector, or GroupMoments of the labels.

    >>> X = [[1.0, 0.1], [1.0, -0.1], [-1.0, 0.1], [-1.0, -0.1]]
    >>> split = scatter_decomposition(X, ["a", "a", "b", "b"])
    >>> round(split.between_share, 4), round(split.distance, 12), split.n_effective_labels
    (0.9901, 0.0, 1)
    """
    moments = Moments.of(X)
    groups = labels if isinstance(labels, GroupMoments) else GroupMoments.by("labels", X, labels)
    score = float(isoscore(moments))
    within, between = scatter_traces(groups, "scatter_decomposition")
    K, d, n = n_labels_seen(groups), moments.n_dims, moments.count
    share = float(between / (within + between))
    ceiling = isotropy_ceiling(K, d, between=share)
    return ScatterDecomposition(
        total=float((within + between) / n),
        within=float(within / n),
        between=float(between / n),
        between_share=share,
        isoscore=score,
        ceiling=ceiling,
        distance=max(0.0, ceiling - score),
        n_labels=K,
        n_dims=d,
        **_attribution(moments, groups),
    )


def scatter_traces(groups: GroupMoments, name: str) -> tuple[Tensor, Tensor]:
    """Return n·tr W and n·tr B."""
    groups = groups.at_hand
    within, between = groups.within.sum(), groups.between_trace
    if n_labels_seen(groups) == 1:
        between = between * 0  # one mean differs from itself by rounding only
    groups.check_scale()
    if not within + between > 0:
        raise UndefinedError(f"{name} is undefined: all {groups.count} points are equal")
    return within, between


def unbiased_share(counts: Tensor, within: Tensor, between: Tensor) -> Tensor:
    """Return ρ from unbiased tr W and tr B, over the last axis; `between` is the plain n·tr B."""
    n = counts.sum(dim=-1, keepdim=True)
    pooled = within.sum(dim=-1, keepdim=True) / (n - (counts > 0).sum(dim=-1, keepdim=True))
    spread = torch.where(counts > 1, within / (counts - 1).clamp(min=1), pooled)  # tr W_k
    total_within = (counts * spread).sum(dim=-1)  # n·tr W
    chance = ((counts > 0) * (1 - counts / n) * spread).sum(dim=-1)
    fair = between - chance if counts.shape[-1] > 1 else between * 0
    return fair / (fair + total_within)


def share_beyond_chance(groups: GroupMoments) -> float | None:
    """Return ρ without the bias of few points, perhaps below 0 by sampling error; None if undefined.

    As `frontier_position(…, debias=True)` has it, which says how.

    >>> X = torch.randn(60, 30, generator=torch.Generator().manual_seed(0))
    >>> groups = GroupMoments.of(X, [i % 10 for i in range(60)])  # labels that mean nothing
    >>> round(float(between_share(groups)), 2), round(share_beyond_chance(groups) or 0, 2)
    (0.17, 0.01)
    """
    groups = groups.at_hand
    if not groups.count > n_labels_seen(groups):
        return None
    fair = float(unbiased_share(groups.counts, groups.within, groups.between_trace).detach())
    return fair if math.isfinite(fair) else None


def is_by_chance(share: float, fair: float | None) -> bool:
    """Return whether chance makes up a large part of a share between labels."""
    return fair is not None and share - fair > _WORTH_TELLING


def n_labels_seen(groups: GroupMoments) -> int:
    """Return K, the number of labels that have points."""
    return int((groups.counts > 0).sum())


def _attribution(moments: Moments, groups: GroupMoments) -> dict[str, float]:
    """Return ‖W‖², 2⟨W, B⟩ and ‖B‖² as shares of ‖Σ‖_F², in units of the trace to avoid overflow."""
    A = (moments.scatter / moments.trace).detach()
    B = (groups.between / moments.trace).detach()
    W = A - B
    parts = [float((W * W).sum()), 2 * float((W * B).sum()), float((B * B).sum())]
    parts = [max(0.0, part) for part in parts]  # none is negative but by rounding
    whole = sum(parts)
    return {
        f"{name}_part": part / whole for name, part in zip(("within", "cross", "between"), parts, strict=True)
    }


def ranks(n_labels: int, n_dims: int, n_points: int | None) -> tuple[int, int, int]:
    """Return the largest ranks of the scatter between and within K labels of n points, and d."""
    K, d = whole("n_labels", n_labels, 1), whole("n_dims", n_dims, 2)
    if n_points is None:
        return min(K - 1, d), d, d
    return min(K - 1, d), min(whole("n_points", n_points, max(K, 2)) - K, d), d


def _clipped(score: float) -> float:
    return min(1.0, max(0.0, score))


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least `least`, or raise an error that names the argument."""
    try:
        number = index(value)
    except TypeError:
        raise InputError(argument=name, got=value, wanted="a whole number") from None
    if number < least:
        raise InputError(argument=name, got=number, wanted=f"at least {least}")
    if number >= _MOST:
        raise InputError(argument=name, got=number, wanted="a number that fits in memory")
    return number
