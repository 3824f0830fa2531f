"""`Share`: a share of rows or results, with an interval where it is from a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from isoscope.statistics.intervals import Z95, clopper_pearson


@dataclass(frozen=True)
class Share:
    """A share, and its 95 % interval where it is estimated.

    Attributes:
        value: from 0 to 1.
        interval: None where the share is exact.
    """

    value: float
    interval: tuple[float, float] | None = None

    @property
    def least(self) -> float:
        """The lower end of the interval; the share itself where it is exact."""
        return self.value if self.interval is None else self.interval[0]

    @classmethod
    def of_counts(cls, count: int, n: int, *, exact: bool) -> Share:
        """Return count/n, with the interval of Clopper and Pearson (1934) unless it is exact."""
        if n == 0:
            return cls(0.0)
        if exact:
            return cls(count / n)
        return cls(count / n, clopper_pearson(count, n))

    @classmethod
    def of_sum(cls, shares: Tensor, *, exact: bool) -> Share:
        """Return the mean of the shares of single rows, with its normal interval unless it is exact."""
        mean = float(shares.mean()) if len(shares) else 0.0
        if exact or len(shares) < 2:
            return cls(mean)
        half = Z95 * float(shares.std()) / math.sqrt(len(shares))
        return cls(mean, (max(0.0, mean - half), min(1.0, mean + half)))
