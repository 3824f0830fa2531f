"""Hubs and rows that are never retrieved, from the neighbours of all rows, of a sample, or of queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.audit.search import Found
from isoscope.audit.shares import Share
from isoscope.metrics.manifold import HUB, hubs_of

_LEVEL = 0.01  # the chance that any row is called a hub by chance of the sample
_GROUPS = 20  # of a jackknife over those asked


@dataclass(frozen=True, eq=False)
class Hubs:
    """How often rows are among the k nearest.

    Attributes:
        rows: (h,) the hubs, the greatest first.
        counts: (h,) how often each is retrieved, estimated where the neighbours are those of a sample.
        results: the share of all results that hubs take.
        skewness: of the counts over all rows, and its standard error (None where it is exact).
        mean: of the counts, over rows that can be retrieved.
        n_asked: how many rows or queries were asked.
    """

    rows: Tensor
    counts: Tensor
    results: Share
    skewness: float
    skewness_error: float | None
    mean: float
    n_asked: int

    @classmethod
    def of(cls, found: Found, n: int, *, by_queries: bool = False) -> Hubs:
        """Return the hubs: retrieved `HUB` times as often as the mean; surely so, by some rows or queries."""
        indices = found.neighbors.indices
        q, k = indices.shape
        counts = torch.bincount(indices[indices >= 0].flatten(), minlength=n).cpu()
        scale = found.n_population / q
        mean = q * k / max(found.n_candidates, 1)
        exact = not (found.is_sampled or by_queries)
        if exact:
            rows = hubs_of(counts, mean)
        else:
            rows = hubs_of(counts.where(_surely(counts, HUB * mean, n), 0), max(HUB * mean, 1) / HUB)
        skewness, error = _skewness(counts.double(), found.n_candidates), None
        if found.is_sampled:
            skewness, error = _skewness_of_sample(indices, n, found)
        taken = Share.of_sum(torch.isin(indices.cpu(), rows).double().mean(dim=1), exact=exact)
        return cls(rows, counts[rows] * scale, taken, skewness, error, mean * scale, q)


def never_retrieved(found: Found, n: int, eligible: Tensor) -> tuple[Tensor, float]:
    """Return the rows that nobody has as a neighbour, and the share of rows that chance alone would leave.

    With r results for each row that can be retrieved, e⁻ʳ of them would be left if all were alike.
    """
    indices = found.neighbors.indices
    seen = torch.zeros(n, dtype=torch.bool)
    seen[indices[indices >= 0].flatten().cpu()] = True
    return (eligible & ~seen).nonzero().flatten(), math.exp(-indices.numel() / max(found.n_candidates, 1))


def _surely(counts: Tensor, limit: float, n: int) -> Tensor:
    """(n,) which counts a Poisson number with the mean `limit` reaches with a chance under α/n."""
    least = torch.arange(1, 64 + int(4 * limit), dtype=torch.float64)
    chances = torch.special.gammainc(least, torch.full_like(least, limit))  # of a count of at least so many
    return counts >= int(least[chances <= _LEVEL / n][0])


def _skewness(counts: Tensor, n: int) -> float:
    """Return the skewness of the counts of n rows; of the others all counts are 0."""
    first, second, third = (float(counts.pow(power).sum()) / n for power in (1, 2, 3))
    return _standardized(first, second, third)


def _standardized(first: float, second: float, third: float) -> float:
    variance = second - first**2
    if variance <= 0:
        return 0.0
    return (third - 3 * first * second + 2 * first**3) / variance**1.5


def _skewness_of_sample(indices: Tensor, n: int, found: Found) -> tuple[float, float]:
    """Return the skewness of the counts of all rows from those of a sample, and its standard error.

    If q of N are asked, a row with N_k of all has a count c with E[c(c−1)…(c−r+1)] = (q/N)ʳ N_k(N_k−1)…, but
    for N and q large. The error is a jackknife over groups of those asked.
    """
    groups = torch.arange(len(indices)) % _GROUPS
    by_group = torch.stack(
        [torch.bincount(indices.cpu()[groups == one].flatten(), minlength=n) for one in range(_GROUPS)]
    )
    total = by_group.sum(dim=0)
    share = len(indices) / found.n_population
    whole = _unthinned(total.double(), share, found.n_candidates)
    part = share * (_GROUPS - 1) / _GROUPS
    without = [_unthinned((total - one).double(), part, found.n_candidates) for one in by_group]
    mean = math.fsum(without) / _GROUPS
    error = math.sqrt((_GROUPS - 1) / _GROUPS * math.fsum((one - mean) ** 2 for one in without))
    return whole, error * math.sqrt(1 - share)


def _unthinned(counts: Tensor, share: float, n: int) -> float:
    first = float(counts.sum()) / n / share
    pairs = float((counts * (counts - 1)).sum()) / n / share**2
    triples = float((counts * (counts - 1) * (counts - 2)).sum()) / n / share**3
    return _standardized(first, pairs + first, triples + 3 * pairs + first)
