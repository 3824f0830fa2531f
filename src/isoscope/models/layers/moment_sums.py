"""`MomentSums`: the moments of rows that come in batches, in little more than one triangle of numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.arrays import HALVES
from isoscope.kernels.centered import moved_to_mean
from isoscope.kernels.precision import full_precision
from isoscope.kernels.products import sum_of_squares, weighted_sums
from isoscope.kernels.symmetric_sum import SymmetricSum
from isoscope.statistics.chunks import sums_dtype
from isoscope.statistics.moments import Moments

_FAR = 8.0  # sums about a point that misses the mean, squared, by so many variances lose digits
_NEAR_ZERO = 4.0  # a squared mean of so many variances costs float32 sums two bits
_ULPS = 8.0  # of the mean: missing it by less is rounding, as in a dimension that is constant


class MomentSums:
    """Moments of rows that are added up about one point near their mean, so that no batches are merged.

    The first rows, as many as there are dimensions, give the point. Where the mean is far from it when the
    number of rows has doubled, the sums so far become Moments, and others begin about the mean.
    """

    def __init__(self) -> None:
        self._first: list[Tensor] = []
        self._first_uneven = False
        self._sums: _Sums | None = None
        self._ended: Moments | None = None

    def add(self, rows: Tensor, *, uneven: bool = False) -> None:
        """Add (m, d) rows of any type; `uneven` ones have a few that are far longer than all others."""
        if self._sums is not None:
            self._sums.add(rows, uneven=uneven)
            if self._sums.has_missed_mean():
                self._ended, self._sums = self._so_far(), self._sums.about_mean()
            return
        self._first.append(rows)
        self._first_uneven |= uneven
        if sum(map(len, self._first)) >= rows.shape[1]:
            first = torch.cat(self._first)
            self._sums, self._first = _Sums.near(first), []
            self._sums.add(first, uneven=self._first_uneven)

    def moments(self) -> Moments | None:
        """Return the moments of all rows; None where none came."""
        return Moments.of(torch.cat(self._first)) if self._first else self._so_far()

    def _so_far(self) -> Moments | None:
        if self._sums is None or not self._sums.count:
            return self._ended
        own = self._sums.moments()
        return own if self._ended is None else self._ended.merge(own)


class _Sums:
    """Sums over v = x − about in float64.

    Attributes:
        count: the number of rows.
        about: (d,) float64, a point near the mean whose numbers float32 holds, or None for zero.
        dtype: the type in which products are taken.
    """

    def __init__(self, n_dims: int, about: Tensor | None, dtype: torch.dtype, device: torch.device) -> None:
        self.count, self.about, self.dtype = 0, about, dtype
        self._scatter = SymmetricSum(n_dims, device)
        self._totals = torch.zeros(2, n_dims, dtype=torch.float64, device=device)  # Σv and Σ‖v‖²v
        self._quartic = torch.zeros((), dtype=torch.float64, device=device)
        self._next_look = 0

    @classmethod
    def near(cls, rows: Tensor) -> _Sums:
        """Return sums about the mean of some rows, or about zero where that is near by comparison."""
        moments = Moments.of(rows)
        trusted = moments.suits_float32 or moments.hangs_on_few  # few rows are a matter of their batch
        dtype = sums_dtype(rows) if trusted and not moments.is_flat else torch.float64
        is_near = (moments.mean.square() <= _NEAR_ZERO * moments.scatter.diagonal() / len(rows)).all()
        about = None if bool(is_near) else moments.mean if dtype == torch.float64 else _held(moments.mean)
        return cls(rows.shape[1], about, dtype, rows.device)

    @full_precision
    def add(self, rows: Tensor, *, uneven: bool) -> None:
        """Add a batch."""
        V = rows.to(torch.float64 if uneven else self.dtype)
        if self.about is not None:
            V = V - self.about.to(V.dtype)
        is_half = rows.is_cuda and rows.dtype in HALVES and V.dtype == torch.float32
        if is_half and self.about is None:
            self._scatter.add_exact(rows)
        elif is_half:
            self._scatter.add_split(V)
        else:
            self._scatter.add(V)
        weights = V.new_ones(2, len(V))
        weights[1] = sum_of_squares(V)
        wide = weights[1].double()
        self._totals += weighted_sums(weights, V)
        self._quartic += wide @ wide
        self.count += len(V)

    @property
    def _missed(self) -> Tensor:
        """(d,) by how much the point misses the mean."""
        return self._totals[0] / self.count

    @property
    def _mean(self) -> Tensor:
        return self._missed if self.about is None else self.about + self._missed

    def has_missed_mean(self) -> bool:
        """Return whether the point is far from the mean; look each time the number of rows has doubled."""
        if self.count < self._next_look:
            return False
        self._next_look = 2 * self.count
        missed = self._missed.square()
        variance = self._scatter.diagonal / self.count - missed
        rounding = _ULPS * torch.finfo(self.dtype).eps * self._mean
        return bool((missed > _FAR * variance + rounding.square()).any())

    def about_mean(self) -> _Sums:
        """Return empty sums about the mean of these."""
        about = self._mean if self.dtype == torch.float64 else _held(self._mean)
        return _Sums(len(about), about, self.dtype, about.device)

    def moments(self) -> Moments:
        """Return the moments of all rows."""
        about = torch.zeros_like(self._totals[0]) if self.about is None else self.about
        total, cubic = self._totals
        mean, rest, scatter, cubic_sum, quartic_sum = moved_to_mean(
            self.count, about, total, self._scatter.matrix(), cubic, self._quartic
        )
        return Moments(self.count, mean, scatter, None, cubic_sum, quartic_sum, rest)


def _held(values: Tensor) -> Tensor:
    """Return float64 numbers rounded to float32, so that both types subtract the same."""
    return values.float().double()
