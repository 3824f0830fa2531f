"""What chance adds to the means of labels, and neural collapse without it: NC1 and NC2 debiased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, UndefinedError
from isoscope.kernels.precision import LEAST_SUM
from isoscope.metrics.clusters import clustered
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.statistics.collapse import LabelCollapse
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments

_Z = 1.959963984540054  # 97.5 % of a normal distribution lie below
_CLEAR = 3.0  # standard errors that the weakest direction of the means has to be above 0


PAPYAN_2020 = "Papyan, Han, Donoho 2020, Prevalence of neural collapse"
ZHU_2021 = "Zhu et al. 2021, A geometric analysis of neural collapse"


@dataclass(frozen=True, eq=False)
class LabelNoise:
    """The Gram matrix G of the means of labels about their mean, and what few rows a label do to it.

    The mean of n_k rows is off by a vector of covariance Σ_k/n_k. With C = diag(1/n_k), between labels,

        E[Ĝ] = G + diag(tr Σ_k/n_k),    E[Ĥ] = H + s₂·C,    H_kl = (μ_k − μ)ᵀ Σ_W (μ_l − μ),   s₂ = tr Σ_W²

    for rows that are independent given their labels. The first holds for any distribution, the second and
    all variances below for normal rows with a common covariance Σ_W. All (K−1, K−1) matrices are written
    in a basis of what adds up to 0 over labels.

    Attributes:
        count, n_labels: n, and K.
        gram: (K−1, K−1) G as measured.
        gram_chance: (K−1, K−1) the part of it that is chance.
        spread: (K−1, K−1) H, with the unbiased Σ_W, of divisor n − K.
        inverse_counts: (K−1, K−1) C.
        square: s₂ = tr Σ_W², unbiased for normal rows.
        points: (K−1, q) the means on their axes.
    """

    count: float
    n_labels: int
    gram: Tensor
    gram_chance: Tensor
    spread: Tensor
    inverse_counts: Tensor
    square: Tensor
    points: Tensor

    @classmethod
    def of(cls, collapse: LabelCollapse, moments: Moments, name: str) -> LabelNoise:
        """Take the sums that two passes have left; `name` is that of the metric which asks."""
        groups = collapse.moments
        present = groups.counts > 0
        counts, within, means = groups.counts[present], groups.within[present], groups.coordinates[present]
        n, K = float(counts.sum()), len(counts)
        freedom = n - K
        if not freedom > 1:
            raise UndefinedError(f"{name} needs more rows than labels; there are {n:g} rows of {K} labels")
        basis = torch.linalg.qr((torch.eye(K).to(means) - 1 / K)[:, : K - 1]).Q
        trace = within.sum() / freedom
        if within.any() and not LEAST_SUM < float(trace.square()) < math.inf:
            raise InputError(
                "leaves the range that float64 can square twice (about 1e-72 to 1e75)",
                argument="X",
                hint="divide it by its largest value",
            )
        traces = torch.where(counts > 1, within / (counts - 1).clamp(min=1), trace)
        inner = collapse.products @ groups.axes.T / freedom
        square = _within_square(moments, groups) / freedom**2 - trace.square() / freedom
        square = square * freedom**2 / ((freedom - 1) * (freedom + 2))
        points = basis.T @ means
        return cls(
            n,
            K,
            points @ points.T,
            basis.T @ (basis * (traces / counts)[:, None]),
            points @ inner @ points.T,
            basis.T @ (basis / counts[:, None]),
            square.clamp(trace.square() / groups.n_dims, trace.square()),
            points,
        )

    @property
    def freedom(self) -> float:
        """n − K."""
        return self.count - self.n_labels

    @cached_property
    def fair_gram(self) -> Tensor:
        """G, unbiased."""
        return self.gram - self.gram_chance

    @cached_property
    def fair_spread(self) -> Tensor:
        """H, unbiased."""
        return self.spread - self.square * self.inverse_counts

    def variance(self, gradient: Tensor, spread: Tensor) -> Tensor:
        """Return the variance of tr(Γ Ĝ): 4 tr(ΓCΓH) + 2 s₂ tr(ΓCΓC), for normal rows."""
        along = gradient @ self.inverse_counts
        linear = _trace(along @ gradient, spread)
        return (4 * linear + 2 * self.square * _trace(along, along)).clamp(min=0)


_metric = family(
    "collapse",
    needs=("moments", "label_collapse"),
    better="low",
    invariances=ALL_INVARIANCES,
    default=False,
    paper=PAPYAN_2020,
    place=1,
)


@_metric(
    call=lambda metric, shelf: metric(_noise_of(shelf, "nc1_debiased")),
    range=(-math.inf, math.inf),
    high="labels spread widely about their means",
    sentence="variance within labels over that between means, direction by direction: {value:.3g}, without "
    "the bias of few rows",
    error=lambda shelf: nc1_error(shelf, debias=True),
)
def nc1_debiased(X: Any, labels: Any = None) -> float:
    """Compute NC1 without the bias of few rows a label.

        tr(G⁻¹ H G⁻¹),   G_kl = (μ_k − μ)·(μ_l − μ) − chance,   H_kl = (μ_k − μ)ᵀ Σ_W (μ_l − μ) − chance

    The mean of n_k rows is off by chance, which lengthens the means by tr Σ_W/n_k and makes labels look
    collapsed: with n ≤ d, plain NC1 may be a fraction of its true value. G is unbiased for any rows that are
    independent given their label; H, with Σ_W of divisor n − K, for normal rows with a common covariance.
    Undefined where the means do not differ in all K − 1 directions by three standard errors, or K − 1 > d.
    Samples in which they barely do are those with longer means: where part of all samples is undefined, the
    others read low, by about a standard error.
    Range (−∞, ∞): below 0 by sampling error only. Invariant to rotation, translation and scale.
    Paper: Papyan et al. 2020; the correction is ours.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 200)) + 20 * np.eye(200)[np.arange(40) % 4]
    >>> round(nc1_debiased(X, np.arange(40) % 4), 4)  # 0.0075; plain NC1 is 0.0069
    0.0081
    """
    noise = _as_noise(X, labels, "nc1_debiased")
    values, vectors = torch.linalg.eigh(noise.fair_gram)
    weakest = vectors[:, :1] @ vectors[:, :1].T
    deviation = float(noise.variance(weakest, noise.spread).sqrt())
    if not float(values[0]) > _CLEAR * deviation:
        raise UndefinedError(
            f"nc1_debiased is undefined: {noise.count:g} rows do not show {noise.n_labels} means that differ "
            "in every direction by more than chance; add rows, or use between_share"
        )
    inverse = vectors / values @ vectors.T
    return float((inverse @ noise.fair_spread @ inverse).trace())


@_metric(
    call=lambda metric, shelf: metric(_noise_of(shelf, "nc2_debiased")),
    range=(-math.inf, math.sqrt(2)),
    high="means of labels far from a simplex",
    sentence="without the bias of few rows, the means of labels are {value:.3g} from a simplex",
    paper=ZHU_2021,
    error=lambda shelf: nc2_error(shelf, debias=True),
)
def nc2_debiased(X: Any, labels: Any = None) -> float:
    """Compute NC2 without the bias of few rows a label.

        √(2 − 2√(PR/(K − 1))),   PR = (tr G)²/‖G‖_F² with both of them unbiased

    The chance in means of few rows is the same in all directions across labels: it is itself nearly a
    simplex, so plain NC2 looks too good with n ≤ d. (tr G)² and ‖G‖_F² are unbiased for normal rows with a
    common covariance within labels. By sampling error PR may exceed K − 1; the value is then below 0, the
    root of the same distance with a minus sign. Invariant to rotation, translation and scale.
    Paper: Zhu et al. 2021; the correction is ours.

    >>> import numpy as np
    >>> means = np.eye(300)[:4] * [[5.0], [10.0], [15.0], [20.0]]  # 0.55 from a simplex
    >>> X = np.random.default_rng(0).normal(size=(24, 300)) + means[np.arange(24) % 4]
    >>> round(nc2_debiased(X, np.arange(24) % 4), 2)  # plain NC2 is 0.45
    0.54
    """
    noise = _as_noise(X, labels, "nc2_debiased")
    if noise.n_labels == 2:
        return 0.0
    squared_trace, squared_norm = fair_squares(noise)
    if not (float(squared_trace) > 0 and float(squared_norm) > 0):
        raise UndefinedError(
            f"nc2_debiased is undefined: {noise.count:g} rows show no more differences between the means of "
            f"{noise.n_labels} labels than chance; add rows"
        )
    distance = 2 - 2 * math.sqrt(float(squared_trace / squared_norm) / (noise.n_labels - 1))
    return _signed_root(distance)


def _within_square(moments: Moments, groups: GroupMoments) -> Tensor:
    """Return ‖W‖_F² of the scatter within labels, W = A − B, from ‖A‖², ⟨A, B⟩ and ‖B‖²."""
    offsets = groups.offsets * groups.counts.sqrt()[:, None]
    gram = offsets @ offsets.T
    cross = (offsets.T * moments.times(offsets.T)).sum()
    return (moments.squared_frobenius - 2 * cross + (gram * gram).sum()).clamp(min=0)


def _as_noise(X: Any, labels: Any, name: str) -> LabelNoise:
    """Return the noise of labelled vectors; LabelNoise passes through unchanged."""
    if isinstance(X, LabelNoise):
        return X
    matrix, clusters = clustered(X, labels)
    matrix = matrix.detach()
    collapse = LabelCollapse.of(matrix, clusters, GroupMoments.of(matrix, clusters))
    return LabelNoise.of(collapse, Moments.of(matrix), name)


def _noise_of(shelf: Statistics, name: str) -> LabelNoise:
    """Return the noise from a shelf, computed once for all metrics that ask."""
    held: LabelNoise | None = vars(shelf).get("label_noise")
    if held is None:
        held = vars(shelf)["label_noise"] = LabelNoise.of(shelf.label_collapse, shelf.moments, name)
    return held


def nc1_error(shelf: Statistics, *, debias: bool) -> float:
    """Return the standard error of NC1 by the delta method.

    A row of label k with residual r changes NC1 = E q, q = ‖G⁻¹M r‖², by (q − E q)/n + a_k·r/n_k, with

        a = 2 G⁻¹L − 2 Y G⁻¹M,   Y = G⁻¹HG⁻¹,   L = G⁻¹MΣ_W off the span of the means

    The variance of q is that of the rows; that of a·r is taken from the common covariance. Chance of second
    order in the means, which shows where n is below d, is added for normal rows.
    """
    noise, collapse, moments = _noise_of(shelf, "nc1"), shelf.label_collapse, shelf.moments
    groups = collapse.moments
    counts = groups.counts.clamp(min=1)
    G, H = (noise.fair_gram, noise.fair_spread) if debias else (noise.gram, noise.spread)
    inverse = torch.linalg.pinv(G, hermitian=True)
    Y = inverse @ H @ inverse
    own = (collapse.fourths / counts - (collapse.squares / counts).square()).clamp(min=0) * groups.counts
    measured = float(collapse.squares.sum()) / noise.count
    scale = float(Y.trace()) / measured if measured else 0.0  # of q, where G is debiased
    products = collapse.products / noise.freedom
    L = inverse @ noise.points @ (products - products @ groups.axes.T @ groups.axes)
    turned = inverse @ L
    a = 4 * (Y @ Y @ Y + turned @ moments.times(turned.T) / noise.freedom) - 8 * Y @ L @ turned.T
    gradient = Y @ inverse + inverse @ Y
    second = 2 * noise.square * _trace(gradient @ noise.inverse_counts, gradient @ noise.inverse_counts)
    variance = own.sum() / noise.count**2 * scale**2 + _trace(noise.inverse_counts, a) + second
    return math.sqrt(max(float(variance), 0.0))


def _trace(a: Tensor, b: Tensor) -> Tensor:
    """Return tr(a b)."""
    return (a * b.T).sum()


def fair_squares(noise: LabelNoise) -> tuple[Tensor, Tensor]:
    """Return unbiased (tr G)² and ‖G‖_F²: those of the unbiased G less its variances."""
    G, H, C, s2 = noise.fair_gram, noise.fair_spread, noise.inverse_counts, noise.square
    trace_C, norm_C = C.trace(), (C * C).sum()
    CH = (C * H).sum()
    of_trace = 2 * s2 / noise.freedom  # the variance of the estimate of tr Σ_W
    squared_trace = G.trace().square() - (4 * CH + 2 * norm_C * s2 + trace_C.square() * of_trace)
    chance = 2 * trace_C * H.trace() + 2 * CH + s2 * (trace_C.square() + norm_C) + norm_C * of_trace
    return squared_trace, (G * G).sum() - chance


def nc2_error(shelf: Statistics, *, debias: bool) -> float:
    """Return the standard error of NC2, from the wider half of the interval of its square.

    That comes from the delta method, which fails for the root: it has a kink at 0.
    """
    noise = _noise_of(shelf, "nc2")
    if noise.n_labels == 2:
        return 0.0
    G, H = (noise.fair_gram, noise.fair_spread) if debias else (noise.gram, noise.spread)
    trace, norm = G.trace(), (G * G).sum()
    if debias:
        fair = fair_squares(noise)
        trace, norm = fair[0].clamp(min=0).sqrt(), fair[1]
    share = float(trace.square() / norm) / (noise.n_labels - 1)
    identity = torch.eye(len(G)).to(G)
    gradient = 2 * (trace * identity / norm - trace.square() * G / norm.square()) / (noise.n_labels - 1)
    distance = 2 - 2 * math.sqrt(share)
    width = _Z * math.sqrt(float(noise.variance(gradient, H)) / share)
    value = _signed_root(distance)
    return max(value - _signed_root(distance - width), _signed_root(distance + width) - value) / _Z


def _signed_root(value: float) -> float:
    return math.copysign(math.sqrt(abs(value)), value)
