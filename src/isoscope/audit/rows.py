"""`RowFacts`: what one pass over all rows tells of lengths, dimensions and directions; and outliers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.kernels.tiles import Progress
from isoscope.statistics.directions import pair_cosine, unit_rows

_LEVEL = 0.01  # the chance of a false alarm among all rows, were what is judged normal
_UPPER = 0.9  # the quantile that tells the spread of the upper half
_UPPER_Z = 1.2815515655446004  # of the normal distribution
_LENGTH = 0.01  # a length that differs by less from the median is not odd
_PADDED = 8  # the least part of the dimensions, one over, that padding takes


@dataclass(frozen=True, eq=False)
class RowFacts:
    """Lengths, used dimensions and mean direction of all rows.

    Attributes:
        lengths: (n,) float64; 0 for a zero vector or one that is not finite.
        used: (n,) int32, how many dimensions there are up to the last one that is not zero.
        filled: (n,) int32, how many dimensions are not zero.
        low, high: (d,) the smallest and the largest value of each dimension, over rows that are not zero.
        total: (d,) sum of the unit vectors. squares: (d, d) sum of their outer products.
    """

    lengths: Tensor
    used: Tensor
    filled: Tensor
    low: Tensor
    high: Tensor
    total: Tensor
    squares: Tensor

    @classmethod
    def of(cls, source: Source, progress: Progress | None = None) -> RowFacts:
        """Return the facts of a source of finite vectors, in one pass."""
        lengths, used, filled = [], [], []
        d, device = source.n_dims, source.device
        low = torch.full((d,), torch.inf, dtype=torch.float64, device=device)
        high, total = -low, torch.zeros_like(low)
        squares = torch.zeros(d, d, dtype=torch.float64, device=device)
        done = 0
        for block in source.blocks():
            vectors = block.vectors.detach()
            units, length = unit_rows(vectors)
            lengths.append(length.cpu())
            is_filled = vectors != 0
            places = is_filled * torch.arange(1, d + 1, dtype=torch.int32, device=vectors.device)
            used.append(places.amax(dim=1).cpu())
            filled.append(is_filled.sum(dim=1, dtype=torch.int32).cpu())
            kept = vectors[length > 0]
            if len(kept):
                low, high = low.minimum(kept.amin(dim=0).double()), high.maximum(kept.amax(dim=0).double())
                total += units.sum(dim=0)
                narrow = units.float()
                squares += (narrow.T @ narrow).double()
            done += len(block)
            if progress and source.n_rows:
                progress(done / source.n_rows)
        return cls(torch.cat(lengths), torch.cat(used), torch.cat(filled), low, high, total, squares)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_dims(self) -> int:
        """How many dimensions."""
        return len(self.total)

    @property
    def has_direction(self) -> Tensor:
        """(n,) whether a row is neither zero nor without numbers."""
        return self.lengths > 0

    @property
    def mean_cosine(self) -> float:
        """The mean cosine of two random rows."""
        n = int(self.has_direction.sum())
        return float(pair_cosine(n, self.total.square().sum())) if n > 1 else 0.0

    @property
    def constant(self) -> Tensor:
        """The dimensions with the same value in all rows."""
        return (self.low >= self.high).nonzero().flatten().cpu()

    @property
    def dead(self) -> Tensor:
        """The dimensions that are zero in all rows."""
        return ((self.low >= self.high) & (self.high <= 0) & (self.low >= 0)).nonzero().flatten().cpu()

    @property
    def padded(self) -> Tensor:
        """The rows that end in zeros where others do not, in an eighth of the dimensions or more.

        In vectors with many zeros some rows end so by chance: only those count of which less than one in a
        hundred such files would have any.
        """
        longest = int(self.used.max())
        zeros = 1 - float(self.filled.sum()) / max(1, int(self.used.sum()))
        by_chance = len(self) * zeros ** (longest - self.used).double()
        short = (self.used > 0) & (self.used <= longest - max(1, longest // _PADDED))
        return (short & (by_chance < _LEVEL)).nonzero().flatten()

    def odd_lengths(self) -> Tensor:
        """Return the rows whose lengths lie far from all others: beyond both fences of log length."""
        rows = self.has_direction.nonzero().flatten()
        if len(rows) < 3:
            return rows[:0]
        logs = self.lengths[rows].log()
        away = (logs - logs.median()).abs() > _LENGTH
        return rows[(beyond(logs) | beyond(-logs)) & away]

    def map(self) -> tuple[Tensor, Tensor]:
        """(d,), (d, d) the mean of the unit vectors, and what takes differences to Mahalanobis' distance.

        The covariance is shrunk to a multiple of the identity by d/n, so that it serves with few rows.
        """
        n = int(self.has_direction.sum())
        mean = self.total / max(n, 1)
        covariance = self.squares / max(n, 1) - mean[:, None] * mean
        share = min(1.0, self.n_dims / max(n, 1))
        size = covariance.diagonal().mean()
        values, axes = torch.linalg.eigh(
            (1 - share) * covariance
            + share * size * torch.eye(self.n_dims, dtype=mean.dtype, device=mean.device)
        )
        least = values[-1] * 1e-9
        return mean, axes / values.clamp(min=least.clamp(min=torch.finfo(values.dtype).tiny)).sqrt()


def beyond(values: Tensor, level: float = _LEVEL) -> Tensor:
    """(n,) which values lie above the upper fence.

    The spread is that of the upper half: (q₉₀ − median)/z₉₀. The fence is where one of n normal numbers lies
    with the chance `level`.
    """
    n = len(values)
    middle = values.median()
    upper = values.kthvalue(max(1, min(n, round(_UPPER * n)))).values
    spread = (upper - middle) / _UPPER_Z
    z = torch.special.ndtri(torch.tensor(1 - level / n, dtype=torch.float64))
    return values > middle + z * spread.double()


@dataclass(frozen=True, eq=False)
class Outliers:
    """Rows whose directions have parts that others do not have.

    Attributes:
        rows: (m,) the outliers, the farthest first.
        distances: (m,) their distances, divided by the median: Mahalanobis' distance of unit vectors.
    """

    rows: Tensor
    distances: Tensor

    @classmethod
    def of(cls, source: Source, facts: RowFacts, progress: Progress | None = None) -> Outliers:
        """Return the outliers among all rows, in one pass.

        Each row's unit vector u has the distance √((u − μ)ᵀ C⁻¹ (u − μ)) from the mean μ, C the covariance.
        """
        mean, axes = facts.map()
        whitening, squared, done = axes.float(), [], 0
        for block in source.blocks():
            units, _ = unit_rows(block.vectors.detach())
            squared.append(((units - mean).float() @ whitening).square().sum(dim=1).double().cpu())
            done += len(block)
            if progress and source.n_rows:
                progress(done / source.n_rows)
        rows = facts.has_direction.nonzero().flatten()
        if len(rows) < 3 or not float(axes.abs().sum()) > 0:
            return cls(rows[:0], torch.empty(0))
        distances = torch.cat(squared)[rows].sqrt()
        outlying = beyond(distances.clamp(min=1e-300).log()).nonzero().flatten()
        order = distances[outlying].argsort(descending=True, stable=True)
        outlying = outlying[order]
        return cls(rows[outlying], distances[outlying] / distances.median())
