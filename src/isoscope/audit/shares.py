"""`Share`: a share of rows or results, with an interval where it is from a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

_TAIL = 0.025
_Z = 1.959963984540054


@dataclass(frozen=True)
class Share:
    """A share, and its 95 % interval where it is estimated.

    Attributes:
        value: from 0 to 1.
        interval: None where the share is exact.
    """

    value: float
    interval: tuple[float, float] | None = None

    @classmethod
    def of_counts(cls, count: int, n: int, *, exact: bool) -> Share:
        """Return count/n, with the interval of Clopper and Pearson (1934) unless it is exact."""
        if n == 0:
            return cls(0.0)
        if exact:
            return cls(count / n)
        from scipy.stats import beta

        low = 0.0 if count == 0 else float(beta.ppf(_TAIL, count, n - count + 1))
        high = 1.0 if count == n else float(beta.ppf(1 - _TAIL, count + 1, n - count))
        return cls(count / n, (low, high))

    @classmethod
    def of_sum(cls, shares: Tensor, *, exact: bool) -> Share:
        """Return the mean of the shares of single rows, with its normal interval unless it is exact."""
        mean = float(shares.mean()) if len(shares) else 0.0
        if exact or len(shares) < 2:
            return cls(mean)
        half = _Z * float(shares.std()) / math.sqrt(len(shares))
        return cls(mean, (max(0.0, mean - half), min(1.0, mean + half)))
