"""Means of shares over queries, with intervals that hold near 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from isoscope.statistics.intervals import Z95, wilson

LOW = 0.05  # the percentile over queries that is reported beside the mean


@dataclass(frozen=True)
class Share:
    """A mean share over queries.

    Attributes:
        mean: the mean.
        interval: its 95 % interval.
        low: the share that all but 5 % of the queries reach.
    """

    mean: float
    interval: tuple[float, float]
    low: float

    @classmethod
    def of(cls, values: Tensor) -> Share:
        """Summarise one share a query, (m,).

        The interval is Wilson's, for as many yes–no trials as would vary as much as the mean does: at least
        one for each query, since shares vary less than yes and no.

        >>> import torch
        >>> share = Share.of(torch.ones(100).double())
        >>> share.mean, round(share.interval[0], 3), share.low
        (1.0, 0.963, 1.0)
        """
        m, mean = len(values), float(values.mean())
        squared_error = float(values.var()) / m if m > 1 else 0.0
        spread = mean * (1 - mean)
        trials = max(m, spread / squared_error) if squared_error > 0 else m
        return cls(mean, wilson(mean, trials), float(values.quantile(LOW, interpolation="lower")))


def difference(values: Tensor, others: Tensor) -> tuple[float, tuple[float, float] | None]:
    """Return the mean difference of two numbers a query, and its 95 % interval; None for one query."""
    steps = (values - others).double()
    mean = float(steps.mean())
    if len(steps) < 2:
        return mean, None
    half = Z95 * float(steps.std()) / math.sqrt(len(steps))
    return mean, (mean - half, mean + half)
