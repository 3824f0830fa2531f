"""Position of a labelled space relative to the frontier, as measured or without the bias of its size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, working
from isoscope.errors import UndefinedError
from isoscope.labels import Labels, as_labels
from isoscope.metrics.frontier import (
    between_ceiling,
    between_share,
    isotropy_ceiling,
    n_labels_seen,
    scatter_traces,
    unbiased_share,
)
from isoscope.metrics.isotropy import isoscore, left_out_scores
from isoscope.results import Record
from isoscope.space import known_rows
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.leave_one_out import LeftOutMoments, jackknife
from isoscope.statistics.moments import Moments
from isoscope.tables import Grid, span

_Z = 1.959963984540054  # 97.5 % of a normal distribution lie below
QUANTITIES = {  # as tables name them
    "between_share": "ρ, variance between labels",
    "isoscore": "IsoScore",
    "ceiling": "largest IsoScore at this ρ",
    "sample_ceiling": "largest of so many points",
    "distance": "distance to the frontier",
    "between_ceiling": "largest ρ at this IsoScore",
}
_MIN_POINTS = 5  # for standard errors by leaving one out


@dataclass(frozen=True)
class FrontierPosition(Record):
    """The position of a labelled space relative to the frontier.

    Attributes:
        n, n_labels, n_dims: points, K and d.
        debiased: whether the bias of small samples was removed.
        between_share: ρ, the share of variance between labels; debiased, it may fall under 0.
        isoscore: of the space; debiased, it may exceed 1.
        ceiling: the largest IsoScore at this ρ.
        sample_ceiling: the largest IsoScore that this many points can have at the ρ measured.
        distance: ceiling − isoscore; debiased, it may fall under 0 by sampling error.
        between_ceiling: the largest ρ at this IsoScore.
        between_share_se, isoscore_se, distance_se: standard errors; None where there is none.
    """

    n: int
    n_labels: int
    n_dims: int
    debiased: bool
    between_share: float
    isoscore: float
    ceiling: float
    sample_ceiling: float
    distance: float
    between_ceiling: float
    between_share_se: float | None = None
    isoscore_se: float | None = None
    distance_se: float | None = None

    @property
    def knee(self) -> float:
        """(K − 1)/d, the share above which labels reduce the largest IsoScore; at most 1."""
        return min(1.0, (self.n_labels - 1) / self.n_dims)

    def interval(self, name: str) -> tuple[float, float] | None:
        """Return the 95 % interval of between_share, isoscore or distance, or None."""
        value, error = getattr(self, name), getattr(self, f"{name}_se")
        return None if error is None else (value - _Z * error, value + _Z * error)

    def to_dict(self) -> dict[str, Any]:
        """Return every field and the knee, JSON-ready."""
        return super().to_dict() | {"knee": self.knee}

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        how = ", debiased" if self.debiased else ""
        return f"{self.n:,} vectors, {self.n_dims:,} dimensions, {self.n_labels:,} labels{how}"

    def grids(self) -> Iterable[Grid]:
        """Return each quantity with its 95 % interval."""
        rows = [
            (name, getattr(self, key), span(self.interval(key)) if hasattr(self, f"{key}_se") else "")
            for key, name in QUANTITIES.items()
        ]
        return [Grid("", ("", "value", "95 % interval"), rows)]


def frontier_position(X: Any, labels: Any = None, *, debias: bool = False) -> FrontierPosition:
    """Compute the position of a labelled space and the largest IsoScore it could have, with standard errors.

        distance = ceiling(K, d, ρ) − IsoScore

    Small samples look less isotropic than they are, and their labels further apart: means of few points
    differ by chance, which adds Σ_k (1 − n_k/n)·tr W_k/n to tr B. `debias=True` takes that off again:

        tr W_k ≈ Σ_{i in k} ‖x_i − x̄_k‖²/(n_k − 1),   tr W ≈ Σ_k (n_k/n)·tr W_k
        tr B ≈ Σ_k (n_k/n)·‖x̄_k − x̄‖² − Σ_k (1 − n_k/n)·tr W_k/n

    each unbiased given the labels; a label with one point is lent the spread of the pooled others. ρ, and
    the ceiling at it, are then ratios and functions of unbiased estimates, with an error of order 1/n; a ρ
    under 0 has the ceiling 1. IsoScore is debiased as `isoscore(X, debias=True)`. Undefined where every
    point has a label of its own. Standard errors by leaving each point out in turn, in closed form.

    Args:
        X: a labelled Space, or (n, d) vectors in any array.
        labels: one label for each vector, where X does not carry it.
        debias: whether to remove the bias of small samples.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 30))  # labels that mean nothing
    >>> plain, fair = (frontier_position(X, np.arange(60) % 10, debias=debias) for debias in (False, True))
    >>> round(plain.between_share, 2), round(fair.between_share, 2)
    (0.14, -0.01)
    """
    matrix = as_matrix(X, apart=labels).detach()
    coded = as_labels(known_rows(X, labels, "labels"), n=len(matrix)).to(matrix.device).seen()
    moments, groups = Moments.of(matrix), GroupMoments.of(matrix, coded)
    n, K, d = moments.count, n_labels_seen(groups), moments.n_dims
    if debias and n == K:
        raise UndefinedError(
            f"the debiased position is undefined: {n} points of {K} labels, one each, show no spread within "
            "labels"
        )
    share = plain_share = float(between_share(groups))
    if debias:
        share = float(unbiased_share(groups.counts, groups.within, groups.between_trace))
    score = float(isoscore(moments, debias=debias))
    ceiling = _ceiling(K, d, share)
    errors = _errors(matrix, coded, moments, groups, debias=debias) if n >= _MIN_POINTS else {}
    return FrontierPosition(
        n=n,
        n_labels=K,
        n_dims=d,
        debiased=debias,
        between_share=share,
        isoscore=score,
        ceiling=ceiling,
        sample_ceiling=isotropy_ceiling(K, d, between=plain_share, n_points=n),
        distance=ceiling - score if debias else max(0.0, ceiling - score),
        between_ceiling=between_ceiling(min(1.0, max(0.0, score)), K, d),
        **errors,
    )


def _ceiling(K: int, d: int, share: float) -> float:
    return isotropy_ceiling(K, d, between=min(1.0, max(0.0, share)) if K > 1 else 0.0)


def _errors(
    matrix: Tensor, labels: Labels, moments: Moments, groups: GroupMoments, *, debias: bool
) -> dict[str, float | None]:
    """Return standard errors by the jackknife; None for each that depends on a single point."""
    n, K, d = moments.count, n_labels_seen(groups), moments.n_dims
    try:
        scores = left_out_scores(moments, LeftOutMoments.of(matrix, moments), debias=debias)
    except UndefinedError:
        scores = None
    shares = _left_out_shares(matrix, labels, moments, groups, debias=debias)
    gaps = None
    if scores is not None and bool(shares.isfinite().all()):
        ceilings = torch.tensor([_ceiling(K, d, share) for share in shares.tolist()], dtype=torch.float64)
        gaps = ceilings.to(scores.device) - scores
    return {
        "between_share_se": _jackknifed(shares, n),
        "isoscore_se": _jackknifed(scores, n),
        "distance_se": _jackknifed(gaps, n),
    }


def _jackknifed(left_out: Tensor | None, n: int) -> float | None:
    if left_out is None or not bool(left_out.isfinite().all()):  # one point less, and it is undefined
        return None
    return jackknife(left_out.mean(), left_out, n)[0]


def _left_out_shares(
    matrix: Tensor, labels: Labels, moments: Moments, groups: GroupMoments, *, debias: bool
) -> Tensor:
    """Return (n,) ρ without each point in turn.

    Its label loses n_k/(n_k−1)·‖x − x̄_k‖², the whole n/(n−1)·‖x − x̄‖².
    """
    n, own = moments.count, labels.codes
    rows = working(matrix).double()
    to_mean = (rows - groups.mean).square().sum(dim=1)
    to_own = (rows - groups.means[own]).square().sum(dim=1)
    n_own = groups.counts[own]
    within_lost = torch.where(n_own > 1, n_own / (n_own - 1).clamp(min=1) * to_own, 0.0)
    within, between = scatter_traces(groups, "frontier_position")
    total_left = within + between - n / (n - 1) * to_mean
    within_left = (within - within_lost).clamp(min=0)
    between_left = (total_left - within_left).clamp(min=0)
    if not debias:
        return between_left / (within_left + between_left)
    shares = []
    K = len(groups.counts)
    for block in torch.arange(n, device=own.device).split(max(1, 2**20 // K)):  # (block, K) tables at once
        taken = torch.nn.functional.one_hot(own[block], K).double()
        counts = groups.counts - taken
        spread = (groups.within - taken * within_lost[block, None]).clamp(min=0)
        shares.append(unbiased_share(counts, spread, between_left[block]))
    return torch.cat(shares)
