"""How well a classifier tells the rows of two samples apart: the classifier two-sample test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, working_dtype
from isoscope.clustering import kmeans
from isoscope.errors import ShapeError, UndefinedError, check_seed, check_whole
from isoscope.kernels.precision import full_precision
from isoscope.kernels.tiles import Progress
from isoscope.results import Record
from isoscope.statistics.intervals import Z95
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import ledoit_wolf

_N_FOLDS = 5
_FEWEST = 4 * _N_FOLDS  # rows of a sample: four in each fold
_FOLDED = 64  # principal directions whose sizes are features too
_LEAST_SHRINKAGE = 1e-3
_N_CLUSTERS, _EACH = 20, 10  # clusters at most, and rows of one on average at least
_NO_DEVIATION = 1e-6  # of a feature, as a share of its size: the rounding of float32 and less
_LEAST_SHARE = 0.01  # of all rows, on either side of a threshold
_AT_ONCE = 2**21  # numbers of a block of permutations
_SHARED = 2.0  # Σ_f (Σ_{g≠f} δ_g)·δ_f counts each pair of folds twice: the largest share of the variance


@dataclass(frozen=True, eq=False, repr=False)
class Separability(Record):
    """How well two samples are told apart.

    Attributes:
        total_variation: a lower bound of the total variation distance, which is the share of the rows of Y
            that has to be replaced to make it a sample like X: 0 for equal distributions, 1 where no row of
            one could be of the other. A little below 0 by chance.
        total_variation_interval: its 95 % interval.
        auc: the probability that a random row of Y scores higher than a random row of X, by a classifier
            that has seen neither; 0.5 where nothing tells them apart, 1 where everything does.
        auc_interval: its 95 % interval.
        p_value: of the hypothesis that both samples are drawn from one distribution, by permutations; None
            without permutations.
        n_permutations: how many, the observed order not counted.
        n_x, n_y: rows of the samples.
        scores: (n_x + n_y,) the score of every row, X first; high is like Y.
    """

    total_variation: float
    total_variation_interval: tuple[float, float]
    auc: float
    auc_interval: tuple[float, float]
    p_value: float | None
    n_permutations: int
    n_x: int
    n_y: int
    scores: Tensor = field(repr=False)

    @property
    def title(self) -> str:
        """How well the samples are told apart, in one line."""
        return f"separability of {self.n_x:,} and {self.n_y:,} rows: AUC {self.auc:.3f}"


@full_precision
def separability(
    X: Any, Y: Any, *, n_permutations: int = 0, seed: int = 0, progress: Progress | None = None
) -> Separability:
    """Compute how well a classifier tells the rows of two samples apart.

    The classifier is linear discriminant analysis on the coordinates, the sizes of the 64 strongest principal
    components, two lengths, and indicators of 20 clusters, so that a change of the mean, of the variances,
    of the lengths or of the share of a cluster shows. It is fitted on four fifths of the rows and scores the
    last fifth, five times. A classifier that has to learn finds at most what there is, on average.

        total_variation = P(s(y) > t) − P(s(x) > t) ≤ sup_S P(y ∈ S) − P(x ∈ S),   auc = P(s(y) > s(x))

    with s the score and t a threshold, both found without the rows that are counted. For two Gaussians of one
    covariance the best classifier has 2Φ(δ/2) − 1 and Φ(δ/√2), δ their Mahalanobis distance.

    Range [−1, 1] and [0, 1]: 0 and 0.5 for equal distributions, 1 where no row is mistaken. Each classifier
    shares rows with the others, which at most doubles the variance of the mean over the folds; the intervals
    are that wide. The p-value is (1 + c)/(1 + N), c the permutations of N whose largest difference of shares
    above a threshold, in its standard errors, is no smaller than the observed one; the classifier is fitted
    anew to each. Invariant to one rotation and scale of both samples,
    and to nothing else. Papers: Lopez-Paz and Oquab 2017, Revisiting classifier two-sample tests; DeLong et
    al. 1988; Agresti and Caffo 2000; Phipson and Smyth 2010, Permutation p-values should never be zero.

    Args:
        X, Y: (n, d) and (m, d) vectors of different items.
        n_permutations: N; 0 for no p-value.
        seed: of the folds and the permutations.
        progress: is called with the share of the permutations that is done.

    >>> import numpy as np
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 400, 3))
    >>> found = separability(X, Y + [3.0, 0.0, 0.0], n_permutations=99)
    >>> round(found.auc, 2), found.p_value
    (0.98, 0.01)
    """
    check_seed(seed)
    check_whole("n_permutations", n_permutations, least=0)
    x, y = as_matrix(X).detach(), as_matrix(Y, name="Y").detach()
    if x.shape[1] != y.shape[1]:
        raise ShapeError(
            f"has {y.shape[1]} dimensions",
            argument="Y",
            wanted=f"{x.shape[1]}, as `X` has: both samples are in one space",
        )
    if min(len(x), len(y)) < _FEWEST:
        raise UndefinedError(
            f"separability needs at least {_FEWEST} vectors a sample; there are {len(x)} and {len(y)}"
        )
    generator = torch.Generator().manual_seed(seed)
    is_y = torch.cat([torch.zeros(len(x), dtype=torch.bool), torch.ones(len(y), dtype=torch.bool)])
    order = torch.randperm(len(is_y), generator=generator)  # ties in a fold are in random order
    rows = features(torch.cat([x, y.to(x.device, x.dtype)])[order.to(x.device)], seed=seed)
    folds = _Folds(rows.to(working_dtype(x.dtype)), is_y[order])
    scores = folds.scores(folds.is_y[:, None])[:, 0]
    area, difference = folds.delong(scores), folds.differing(scores)
    ordered = torch.empty(len(is_y), dtype=torch.float64)
    ordered[order] = scores.double().cpu()
    p_value = None
    if n_permutations:
        p_value = _p_value(folds, n_permutations, generator, progress)
    return Separability(
        total_variation=difference[0],
        total_variation_interval=_interval(*difference, least=-1.0),
        auc=area[0],
        auc_interval=_interval(*area, least=0.0),
        p_value=p_value,
        n_permutations=n_permutations,
        n_x=len(x),
        n_y=len(y),
        scores=ordered,
    )


def features(rows: Tensor, *, seed: int = 0) -> Tensor:
    """Return (n, e) features that a difference of means tells samples apart by; no label is looked at.

    They are the coordinates, the sizes of the strongest principal components and two lengths, whitened
    together, and which of 20 clusters a row is in: a few new rows of one kind show there first.
    """
    moments = Moments.of(rows)
    moments.need_spread("separability")
    scale = (moments.trace / (moments.count * moments.n_dims)).sqrt()
    centred = rows.double() - moments.mean
    directions = torch.linalg.eigh(moments.scatter)[1].flip(1)[:, :_FOLDED]
    lengths = [
        torch.linalg.vector_norm(part, dim=1).clamp(min=1e-300).log() for part in (centred, rows.double())
    ]
    folded = torch.cat([(centred @ directions).abs(), torch.stack(lengths, dim=1)], dim=1)
    found = torch.cat([centred / scale, _standardized(folded)], dim=1)
    codes = kmeans(rows, min(_N_CLUSTERS, len(rows) // _EACH), seed=seed).labels.codes
    indicators = torch.nn.functional.one_hot(codes).double()
    return torch.cat([found @ _root(Moments.of(found)), _standardized(indicators)], dim=1)


def _standardized(columns: Tensor) -> Tensor:
    """Return columns of mean 0 and variance 1, without those that are constant but for rounding."""
    centred = columns - columns.mean(dim=0)
    deviations = centred.square().mean(dim=0).sqrt()
    varies = deviations > _NO_DEVIATION * columns.abs().amax(dim=0).clamp(min=1e-300)
    return centred[:, varies] / deviations[varies]


def _root(moments: Moments) -> Tensor:
    """Return the inverse square root of a covariance, shrunk towards a multiple of the identity."""
    shrinkage = max(ledoit_wolf(moments), _LEAST_SHRINKAGE)
    values, vectors = torch.linalg.eigh(moments.scatter / moments.count)
    values = (1 - shrinkage) * values.clamp(min=0) + shrinkage * values.mean()
    return vectors * values.rsqrt()


class _Folds:
    """Rows dealt into folds, each sample evenly; a classifier is fitted to the rows outside each fold.

    Args:
        rows: (n, e) whitened features.
        is_y: (n,) bool, which rows are of Y.
    """

    def __init__(self, rows: Tensor, is_y: Tensor) -> None:
        fold = torch.empty(len(is_y), dtype=torch.int64)
        for own in (is_y, ~is_y):
            fold[own] = torch.arange(int(own.sum())) % _N_FOLDS
        self.places = [(fold == number).nonzero().flatten() for number in range(_N_FOLDS)]
        self.rows = [rows[place.to(rows.device)] for place in self.places]
        self.totals = [part.sum(dim=0) for part in self.rows]
        self.is_y = is_y

    def scores(self, is_y: Tensor) -> Tensor:
        """Return (n, p) the scores of every row for p ways to call the rows Y, (n, p) bool."""
        sums, counts = self._sums(is_y)
        scores = self.rows[0].new_empty(is_y.shape)
        for number, (place, part) in enumerate(zip(self.places, self.rows, strict=True)):
            scores[place.to(scores.device)] = part @ self._direction(sums, counts, {number})
        return scores

    def differing(self, scores: Tensor) -> tuple[float, float]:
        """Return the share of Y above a threshold minus that of X, and its variance.

        The threshold of a fold is the one that parts the other folds best, each scored by a classifier that
        has seen neither: in those folds nothing was fitted to the rows that are counted.
        """
        sums, counts = self._sums(self.is_y[:, None])
        n_above, n = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        total = 0.0
        for number, place in enumerate(self.places):
            others = [other for other in range(_N_FOLDS) if other != number]
            seen = [
                self.rows[other] @ self._direction(sums, counts, {number, other})[:, 0] for other in others
            ]
            threshold = _best_threshold(
                torch.cat(seen).double().cpu(), self.is_y[torch.cat([self.places[one] for one in others])]
            )
            above, is_y = scores[place.to(scores.device)].double().cpu() > threshold, self.is_y[place]
            of_x, of_y = above[~is_y].double(), above[is_y].double()
            total += float(of_y.mean() - of_x.mean())
            n_above += torch.stack([of_x.sum(), of_y.sum()])
            n += torch.tensor([len(of_x), len(of_y)])
        shares = (n_above + 1) / (n + 2)  # Agresti and Caffo
        return total / _N_FOLDS, float((shares * (1 - shares) / (n + 2)).sum())

    def _sums(self, is_y: Tensor) -> tuple[Any, Any]:
        """Return the sums of the rows of each sample, X first, by fold, (e, p), and their counts, (p,)."""
        chosen = [is_y[place].to(self.rows[0]) for place in self.places]
        of_y = [part.T @ own for part, own in zip(self.rows, chosen, strict=True)]
        of_x = [total[:, None] - own for total, own in zip(self.totals, of_y, strict=True)]
        n_y = [own.sum(dim=0) for own in chosen]
        n_x = [len(own) - n for own, n in zip(chosen, n_y, strict=True)]
        return (of_x, of_y), (n_x, n_y)

    def _direction(self, sums: Any, counts: Any, without: set[int]) -> Tensor:
        """Return (e, p) the difference of the means of the rows outside some folds, of length 1."""
        rest = [number for number in range(_N_FOLDS) if number not in without]
        x, y = (
            sum(of[one] for one in rest) / sum(n[one] for one in rest)
            for of, n in zip(sums, counts, strict=True)
        )
        return torch.nn.functional.normalize(y - x, dim=0)

    def contrasts(self, is_y: Tensor) -> Tensor:
        """Return (p,) the largest difference of shares above a threshold, in its standard errors.

        Thresholds have a hundredth of all rows or more on either side. Ties are broken by the order of the
        rows, which is random.
        """
        order = self.scores(is_y).argsort(dim=0, descending=True, stable=True).cpu()
        n, n_y = len(is_y), int(is_y[:, 0].sum())
        of_y = is_y.gather(0, order).double().cumsum(0)
        shares = torch.arange(1, n + 1, dtype=torch.float64)[:, None] / n
        inside = (shares >= _LEAST_SHARE) & (shares <= 1 - _LEAST_SHARE)
        differences = (of_y / n_y - shares) * n / (n - n_y)
        errors = (shares * (1 - shares) * (1 / n_y + 1 / (n - n_y))).clamp(min=1e-300).sqrt()
        return torch.where(inside, differences / errors, -math.inf).amax(dim=0)

    def delong(self, scores: Tensor) -> tuple[float, float]:
        """Return the mean area over the folds, ties counted as a half, and its variance."""
        areas, variances = [], []
        for place in self.places:
            own, is_y = scores[place.to(scores.device)].double().cpu(), self.is_y[place]
            x, y = own[~is_y], own[is_y]
            above, below = _placements(y, x), 1 - _placements(x, y)
            areas.append(float(above.mean()))
            variances.append(float(above.var() / len(y) + below.var() / len(x)))
        return math.fsum(areas) / len(areas), math.fsum(variances) / len(areas) ** 2


def _interval(value: float, variance: float, *, least: float) -> tuple[float, float]:
    half = Z95 * math.sqrt(_SHARED * variance)
    return max(value - half, least), min(value + half, 1.0)


def _best_threshold(scores: Tensor, is_y: Tensor) -> float:
    """Return the threshold with the largest share of Y above it minus that of X."""
    ordered, order = scores.sort(descending=True)
    own = is_y[order].double()
    gains = own.cumsum(0) / own.sum() - (1 - own).cumsum(0) / (1 - own).sum()
    gains[:-1][ordered[:-1] == ordered[1:]] = -1.0  # no threshold lies between equal scores
    best = int(gains.argmax())
    return float(ordered[best] + ordered[min(best + 1, len(ordered) - 1)]) / 2


def _placements(of: Tensor, among: Tensor) -> Tensor:
    """Return for each number the share of the others below it, equal ones counted as a half."""
    ordered = among.sort().values
    sides = (torch.searchsorted(ordered, of, right=right).double() for right in (False, True))
    return sum(sides, torch.zeros(1, dtype=torch.float64)) / (2 * len(among))


def _p_value(folds: _Folds, n: int, generator: torch.Generator, progress: Progress | None) -> float:
    """Return (1 + c)/(1 + n): labels are permuted within the folds, which every labelling leaves as even."""
    observed = float(folds.contrasts(folds.is_y[:, None])[0])
    at_once = max(1, _AT_ONCE // len(folds.is_y))
    n_as_large = done = 0
    while done < n:
        step = min(at_once, n - done)
        permuted = torch.empty(len(folds.is_y), step, dtype=torch.bool)
        for place in folds.places:
            shuffle = torch.rand(len(place), step, generator=generator).argsort(dim=0)
            permuted[place] = folds.is_y[place][shuffle]
        n_as_large += int((folds.contrasts(permuted) >= observed).sum())
        done += step
        if progress:
            progress(done / n)
    return (1 + n_as_large) / (1 + n)
