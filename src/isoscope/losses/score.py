"""IsoScore, IsoScore* and the debiased score of a batch, each with its gradient in closed form.

All three are formulas over four numbers of the scatter A = Σ u uᵀ, u = x − x̄:

    tr A,   ‖A‖_F²,   Σ‖u‖⁴,   ⟨A, C₀⟩

so the gradient of any of them in one vector needs only the four slopes s:

    ∂/∂x = 2 s₁·u + 4 s₂·Au + 4 s₃·(‖u‖²u − mean ‖u‖²u) + 2 s₄·C₀u

no eigenvalues, no graph through the statistic, one product forward and one backward. Where there are
fewer vectors than dimensions both run on the Gram matrix of the centred vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isoscope.arrays import working, working_dtype
from isoscope.kernels.precision import full_precision
from isoscope.kernels.products import sum_of_squares
from isoscope.statistics.moments import Moments
from isoscope.statistics.processes import summed

NO_SQUARE = 1e-12  # an estimate of tr Σ² under this share of (tr Σ)² is rounding, not variance


class Slopes(NamedTuple):
    """Derivatives of a score in tr A, ‖A‖_F², Σ‖u‖⁴ and ⟨A, C₀⟩."""

    trace: float = 0.0
    square: float = 0.0
    quartic: float = 0.0
    inner: float = 0.0


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """C₀ and its weight ζ; the trace and the squared norm are taken once.

    source: (d, d) as it came; covariance: the same in float64 where the vectors are; zeta: in (0, 1].
    """

    source: Tensor
    covariance: Tensor
    zeta: float
    trace: float
    square: float

    def serves(self, source: Tensor, zeta: float, device: torch.device) -> bool:
        """Whether it was made of this."""
        return self.source is source and self.zeta == zeta and self.covariance.device == device

    @cached_property
    def single(self) -> Tensor:
        """C₀ in float32."""
        return self.covariance.float()

    def times(self, rows: Tensor) -> Tensor:
        """(m, d) rows·C₀ in the type of the rows."""
        covariance = self.single if rows.dtype == torch.float32 else self.covariance
        return (covariance @ rows.T).T.contiguous()  # C₀ first: measured, 0.9 of rows @ C₀ for few rows

    @classmethod
    def of(cls, covariance: Tensor, zeta: float, device: torch.device) -> Shrinkage:
        """On a device, with its two numbers."""
        wide = covariance.to(device).double()
        flat = wide.flatten()
        return cls(covariance, wide, zeta, float(wide.trace()), float(flat @ flat))


def shrunk_score(
    n: int, d: int, trace: float, square: float, inner: float, shrinkage: Shrinkage | None
) -> tuple[float, Slopes]:
    """IsoScore of (1 − ζ)·A/(n−1) + ζ·C₀, and its slopes; 0 and flat where that matrix is zero."""
    zeta, t0, s0 = (shrinkage.zeta, shrinkage.trace, shrinkage.square) if shrinkage else (0.0, 0.0, 0.0)
    a = (1 - zeta) / (n - 1)
    t = a * trace + zeta * t0
    s = a * a * square + 2 * a * zeta * inner + zeta * zeta * s0
    if not (t > 0 and s > 0):
        return 0.0, Slopes()
    c = t / s
    in_t, in_s = 2 * c / (d - 1), -c * c / (d - 1)
    slopes = Slopes(trace=a * in_t, square=a * a * in_s, inner=2 * a * zeta * in_s)
    return (t * c - 1) / (d - 1), slopes


def debiased_score(n: int, d: int, trace: float, square: float, quartic: float) -> tuple[float, Slopes]:
    """Return the ratio of unbiased (tr Σ)² and tr Σ² (Himeno and Yamada 2014) as a score, with gradients.

    0 and flat where all points are equal; 1 and flat where no direction shows twice, so that tr Σ² is
    estimated as nothing.
    """
    if not trace > 0:
        return 0.0, Slopes()
    f, q = square / trace / trace, quartic / trace / trace
    squared_trace = (2 * f + n * n - 3 * n + 1) / (n - 1) ** 2 - n * q / (n - 1)
    trace_of_square = (n - 2) * f / (n - 1) + 1 / (n - 1) ** 2 - n * q / (n - 1)
    if trace_of_square <= NO_SQUARE * squared_trace:
        return 1.0, Slopes()
    ratio = squared_trace / trace_of_square
    unit = 1 / (trace_of_square * (d - 1))
    in_f = unit * (2 / (n - 1) ** 2 - ratio * (n - 2) / (n - 1))
    in_q = unit * (ratio - 1) * n / (n - 1)
    in_trace = -2 * (f * in_f + q * in_q) / trace  # one scale of all vectors changes nothing
    slopes = Slopes(trace=in_trace, square=in_f / trace / trace, quartic=in_q / trace / trace)
    return (ratio - 1) / (d - 1), slopes


def batch_score(
    rows: Tensor,
    moments: Moments,
    *,
    shrinkage: Shrinkage | None,
    debias: bool,
    partial: bool = False,
    processes: bool = False,
) -> Tensor:
    """Return the score of `moments`, differentiable with respect to `rows`, a part of its vectors.

    Args:
        rows: (m, d), all the vectors, in their order; or a part of them.
        moments: of all the vectors.
        shrinkage: C₀ and ζ, or None for ζ = 0.
        debias: the debiased score.
        partial: whether the rows may be only a part of the vectors.
        processes: whether others compute the same score with their own part of the rows.
    """
    # a factor without sums of its own holds the centred vectors themselves
    gram = not (partial or processes) and moments.factor is not None and moments.quartic_sum is None
    way = _GramScore if gram else _ScatterScore
    score: Tensor = way.apply(rows, moments, shrinkage, debias, processes)  # type: ignore[no-untyped-call]
    return score


def _scored(
    moments: Moments, inner: Tensor | None, shrinkage: Shrinkage | None, debias: bool
) -> tuple[float, Slopes]:
    """Return the score and its gradients with a single device synchronization."""
    third = moments.quartic if debias else inner
    square, *rest = torch.stack([moments.squared_frobenius, *([] if third is None else [third])]).tolist()
    n, d, trace = moments.count, moments.n_dims, moments.spread
    if debias:
        return debiased_score(n, d, trace, square, rest[0])
    return shrunk_score(n, d, trace, square, rest[0] if rest else 0.0, shrinkage)


class _ScatterScore(torch.autograd.Function):
    """Through the (d, d) scatter: nothing is kept for the way back but the rows, which were there before."""

    @staticmethod
    @full_precision
    def forward(
        ctx: Any, rows: Tensor, moments: Moments, shrinkage: Shrinkage | None, debias: bool, processes: bool
    ) -> Tensor:
        inner = None if shrinkage is None else moments.scatter.flatten() @ shrinkage.covariance.flatten()
        score, slopes = _scored(moments, inner, shrinkage, debias)
        ctx.save_for_backward(rows)
        ctx.found = moments, shrinkage, slopes, processes
        return rows.new_full((), score, dtype=working_dtype(rows.dtype))  # filled there: no copy is awaited

    @staticmethod
    @once_differentiable
    @full_precision
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        (rows,) = ctx.saved_tensors
        moments, shrinkage, slopes, processes = ctx.found
        if processes:
            upstream = summed(upstream)
        U = working(rows) - moments.mean.to(working_dtype(rows.dtype))
        # in float64 until the sum is done: near a flat spectrum the terms cancel
        matrix = moments.scatter * (4 * slopes.square)
        if shrinkage is not None:
            matrix.add_(shrinkage.covariance, alpha=2 * slopes.inner)
        matrix.diagonal().add_(2 * slopes.trace)
        matrix = matrix.mul_(upstream).to(U.dtype)
        if not slopes.quartic:
            return (U @ matrix).to(rows.dtype), None, None, None, None
        quartic = 4 * slopes.quartic
        mean_cubic = (moments.cubic * (-quartic / moments.count)).mul_(upstream).to(U.dtype)
        gradient = torch.addmm(mean_cubic, U, matrix)
        gradient.addcmul_(U, sum_of_squares(U).mul_(upstream)[:, None], value=quartic)
        return gradient.to(rows.dtype), None, None, None, None


class _GramScore(torch.autograd.Function):
    """Through the (n, n) Gram matrix K of the centred vectors U, all of which are at hand.

    UA = KU, ‖u‖² is K's diagonal k, and Σ‖u‖²u = kᵀU: the gradient is one matrix times U.
    """

    @staticmethod
    @full_precision
    def forward(
        ctx: Any, rows: Tensor, moments: Moments, shrinkage: Shrinkage | None, debias: bool, processes: bool
    ) -> Tensor:
        assert moments.factor is not None
        assert not processes
        U = moments.factor.to(working_dtype(rows.dtype))
        towards = inner = None
        if shrinkage is not None:
            towards = shrinkage.times(U)
            inner = towards.double().flatten() @ moments.factor.flatten()
        score, slopes = _scored(moments, inner, shrinkage, debias)
        ctx.save_for_backward(U, moments.smaller_side, towards)
        ctx.found = rows.dtype, slopes
        return U.new_full((), score)

    @staticmethod
    @once_differentiable
    @full_precision
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        U, K, towards = ctx.saved_tensors
        dtype, slopes = ctx.found
        weights = K * (4 * slopes.square)
        weights.diagonal().add_(2 * slopes.trace)
        if slopes.quartic:
            squares = K.diagonal() * (4 * slopes.quartic)
            weights.diagonal().add_(squares)
            weights.sub_(squares / len(squares))
        gradient = weights.to(U.dtype) @ U
        if towards is not None:
            gradient.add_(towards, alpha=2 * slopes.inner)
        return gradient.mul_(upstream).to(dtype), None, None, None, None
