"""Survey sampling: draws from strata, and the regression estimate of a mean over all with its error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.labels import Labels

_Z = 1.959964  # the 97.5 % point of the normal distribution
_PRIOR_FREEDOM = 4.0  # how many residuals the pooled variance counts for in a stratum's own
_MARGIN = 1.1  # of anchors beyond the number reckoned, so that the next look is mostly the last
_LEAST_ROOM = 1e-6  # of 1 − leverage: a row that decides its own fit
_FLAT = 1e-12  # a feature that varies by less than this share of itself is a constant
_TINY = torch.finfo(torch.float64).tiny
_RANK_TOLERANCE = 1e-9  # of the largest eigenvalue: features that hardly differ from others are left out


@dataclass(frozen=True, eq=False)
class Strata:
    """Disjoint groups of rows, each in an order of its own at random.

    Attributes:
        counts: (H,) int64, how many rows each stratum has.
        order: the rows, stratum by stratum, at random within each.
    """

    counts: Tensor
    order: Tensor

    @classmethod
    def of(
        cls, codes: Tensor, n_strata: int, *, generator: torch.Generator, rows: Tensor | None = None
    ) -> Strata:
        """Group rows, all or some, by their stratum's code; those of code −1 belong to none.

        On CUDA the order is drawn there, by a generator that `generator` seeds.
        """
        if codes.is_cuda:
            seed = int(torch.randint(2**62, (), generator=generator))
            generator = torch.Generator(codes.device).manual_seed(seed)
        n = len(codes) if rows is None else len(rows)
        order = torch.randperm(n, generator=generator, device=generator.device)
        order = order if rows is None else rows.to(order.device)[order]
        order = order[codes[order] >= 0]
        if n_strata > 1:
            order = order[codes[order].argsort(stable=True)]
        return cls(torch.bincount(codes[order], minlength=n_strata), order)

    def draw(self, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Of each stratum the rows from the start-th to before the stop-th; and the stratum of each."""
        lengths = stop - start
        stratum = torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)
        first = self.counts.cumsum(0) - self.counts + start - (lengths.cumsum(0) - lengths)
        return self.order[torch.arange(len(stratum), device=stratum.device) + first[stratum]], stratum


def draw_rows(
    labels: Labels, *, at_most: int, generator: torch.Generator, among: Tensor | None = None
) -> Tensor:
    """At most so many random rows of each label, label by label; `among` is a mask of those that count."""
    rows = None if among is None else among.nonzero().flatten()
    strata = Strata.of(labels.codes.cpu(), labels.n_labels, generator=generator, rows=rows)
    return strata.draw(torch.zeros_like(strata.counts), strata.counts.clamp(max=at_most))[0]


@dataclass(frozen=True)
class Estimated:
    """A mean over all rows, estimated.

    Attributes:
        value: the mean.
        error: its standard error about the mean over all.
        freedom: degrees of freedom of the error.
        variances: (H,) of what is left of a row's value in each stratum, pooled where little is known.
    """

    value: float
    error: float
    freedom: float
    variances: Tensor

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        return t95(self.freedom) * self.error


@dataclass(frozen=True, eq=False)
class Sample:
    """Values and features of rows drawn at random, without replacement, from each stratum.

    Attributes:
        values: (m,) what is to be averaged.
        features: (m, q) what it is regressed on; q may be 0.
        stratum: (m,) int64.
        counts: (H,) int64, rows in each stratum.
        means: (H, q) of the features over all rows of each stratum.
        weights: (H,) of each stratum's mean in the mean over all.
    """

    values: Tensor
    features: Tensor
    stratum: Tensor
    counts: Tensor
    means: Tensor
    weights: Tensor

    def plain(self) -> Sample:
        """Return the same without features."""
        return Sample(
            self.values, self.features[:, :0], self.stratum, self.counts, self.means[:, :0], self.weights
        )

    def estimate(self) -> Estimated:
        """Return the stratified regression estimate, cross-fitted, and its standard error.

            Σ_i ω_h/n_h · ( y_i + (F̄_h − f_i)·β₋ᵢ )        h the stratum of row i
            se² = Σ_h (1 − n_h/N_h) · n_h/(n_h − 1) · Σ_{i∈h} ( w_i e_i/(1 − ℓ_i) − their mean )²

        with F̄_h a stratum's mean features over all its rows, and β₋ᵢ from a fit within strata to all rows
        drawn but the i-th, weighted by ω_h/n_h. A row's own error has no part in its β, so the fit adds no
        bias. With every row in the fit the estimate is Σ w_i y_i; e are its residuals, ℓ its leverages.
        """
        y, h = self.values, self.stratum
        n = torch.bincount(h, minlength=len(self.counts)).double()
        unseen = 1 - n / self.counts
        share = (self.weights / n.clamp(min=1))[h]  # ω_h/n_h of each row drawn
        fit = share * (unseen > 0)[h]  # what is known wholly needs no fit
        F, gaps = self._standardized(fit, n)
        weighted = F * fit[:, None]
        inverse = torch.linalg.pinv(weighted.T @ F, rtol=_RANK_TOLERANCE, hermitian=True)
        onto = weighted @ inverse  # βᵀ = yᵀ onto
        e = _about_mean(y, h, n) - F @ (onto.T @ y)
        w = share + onto @ (self.weights @ gaps)
        leverage = (onto * F).sum(dim=1)
        left_out = e / (1 - leverage - (1 / n)[h]).clamp(min=_LEAST_ROOM)
        own_part = ((gaps[h] - F) * onto).sum(dim=1) * left_out  # of row i in its own (F̄_h − f_i)·β
        residuals = e / (1 - leverage).clamp(min=_LEAST_ROOM)
        parts = _about_mean(w * residuals, h, n).square() * (unseen * n / (n - 1).clamp(min=1))[h]
        return Estimated(
            value=float(w @ y - share @ own_part),
            error=math.sqrt(float(parts.sum())),
            freedom=max(_freedom(parts, h, n) - F.shape[1], 1.0),
            variances=_pooled(residuals.square(), h, n),
        )

    def _standardized(self, fit: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features about their stratum's mean, and the distance of that from the mean of all rows.

        Both in units of the features' spread.
        """
        sums = torch.zeros_like(self.means).index_add(0, self.stratum, self.features)
        means = sums / n.clamp(min=1)[:, None]
        F = self.features - means[self.stratum]
        scale = (fit @ F.square() / fit.sum().clamp(min=_TINY)).sqrt()
        flat = scale <= _FLAT * self.features.abs().amax(dim=0)
        scale = torch.where(flat, torch.inf, scale)
        return F / scale, (self.means - means) / scale


def wanted_sizes(sample: Sample, estimate: Estimated, tolerance: float, *, growth: float = 16.0) -> Tensor:
    """(H,) how many rows of each stratum to draw in all to bring the half-width down to the tolerance.

    Neyman's allocation: n_h ∝ ω_h S_h, no fewer than drawn already, no more than there are.
    """
    drawn = torch.bincount(sample.stratum, minlength=len(sample.counts)).double()
    available = sample.counts.double()
    pull = sample.weights * estimate.variances.sqrt()
    goal = (tolerance / t95(estimate.freedom)) ** 2 / _MARGIN
    goal += float((pull.square() / available).sum())
    low, high = 0.0, float(available.max() / pull[pull > 0].min()) if bool((pull > 0).any()) else 0.0
    for _ in range(60):
        rate = (low + high) / 2
        sizes = torch.maximum(torch.minimum(rate * pull, available), drawn)
        enough = float((pull.square() / sizes.clamp(min=1)).sum()) <= goal
        low, high = (low, rate) if enough else (rate, high)
    sizes = torch.maximum(torch.minimum((high * pull).ceil(), growth * drawn), drawn)
    if float((sizes - drawn).sum()) < 1:
        sizes = drawn + 8
    return torch.minimum(sizes, available).long()


def t95(freedom: float) -> float:
    """Two-sided 95 % point of Student's t, by its expansion in 1/freedom (4e-3 off at 3, 0.03 at 2)."""
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))


def _about_mean(x: Tensor, stratum: Tensor, n: Tensor) -> Tensor:
    """(m,) what each number is beyond the mean of its stratum."""
    return x - (torch.zeros_like(n).index_add(0, stratum, x) / n.clamp(min=1))[stratum]


def _pooled(squares: Tensor, stratum: Tensor, n: Tensor) -> Tensor:
    """(H,) variances, each drawn towards the common one by its few degrees of freedom."""
    freedom = (n - 1).clamp(min=0)
    sums = torch.zeros_like(n).index_add(0, stratum, squares)
    common = sums.sum() / freedom.sum().clamp(min=1)
    return (sums + _PRIOR_FREEDOM * common) / (freedom + _PRIOR_FREEDOM)


def _freedom(parts: Tensor, stratum: Tensor, n: Tensor) -> float:
    """Degrees of freedom of a variance that is the sum of the parts: the fewer of two reckonings.

    Satterthwaite's, Σv²/Σ(v_h²/(n_h − 1)), takes each stratum's values for normal. The parts' own spread,
    2(Σv)²/Σ(v_i − v̄)², does not, and tells how little a variance is known that hangs on a few far values.
    """
    total = float(parts.sum())
    if total == 0:
        return float((n - 1).clamp(min=0).sum())
    by_stratum = torch.zeros_like(n).index_add(0, stratum, parts)
    normal = total**2 / float((by_stratum.square() / (n - 1).clamp(min=1)).sum())
    positive = parts[parts > 0]
    spread = float((positive - positive.mean()).square().sum())
    return min(normal, 2 * total**2 / spread) if spread > 0 else normal
