"""What a metric costs: passes over the rows, bytes read, operations; and how long that takes elsewhere."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from isoscope.engine.strips import strip_rows
from isoscope.metrics.registry import KNOWN, Metric
from isoscope.statistics.declared import declared, with_prerequisites


@dataclass(frozen=True)
class Cost:
    """What a metric, or several together, take of n rows of d numbers.

    Attributes:
        passes: how often every row is read.
        bytes_read: in all.
        operations: floating, in all.
        bytes_held: of statistics, beside the blocks.
    """

    passes: int
    bytes_read: int
    operations: float
    bytes_held: int

    def seconds(
        self, *, bytes_per_s: float, operations_per_s: float, n_machines: int = 1
    ) -> tuple[float, float]:
        """Return the seconds of reading and of computing, where each machine does its share."""
        reading = self.bytes_read / (bytes_per_s * n_machines)
        return reading, self.operations / (operations_per_s * n_machines)


def cost(
    metrics: Metric | Iterable[Metric], *, n: int, d: int, n_labels: int = 20, item_bytes: int = 4
) -> Cost | None:
    """Return the cost of metrics measured together, exactly; None where one needs all vectors in memory.

    Standard errors are not counted.

    >>> from isoscope import registered
    >>> found = cost(registered()["isoscore"], n=1000, d=10)
    >>> found.passes, found.bytes_read, found.operations
    (1, 40000, 190000.0)
    """
    chosen = [metrics] if isinstance(metrics, Metric) else list(metrics)
    needs = with_prerequisites(set().union(*(metric.needs for metric in chosen)) - set(KNOWN))
    if not all(declared()[name].merges or declared()[name].of_pairs for name in needs):
        return None
    return price(needs, n=n, d=d, n_labels=n_labels, item_bytes=item_bytes)


def price(
    statistics: Collection[str],
    *,
    n: int,
    d: int,
    n_labels: int = 20,
    item_bytes: int = 4,
    held: bool = False,
) -> Cost:
    """Return the cost of statistics taken together, each as it declares; pairs are met strip by strip.

    held: whether the vectors are read once and held, and each pair is met once.
    """
    known = [declared()[name] for name in statistics]
    passes = any(not one.builds_on for one in known) + any(one.builds_on is not None for one in known)
    operations = float(sum(n * one.operations(d) for one in known if one.operations and not one.of_pairs))
    for one in known:
        if one.of_pairs and one.operations:  # every strip meets all rows, so every pair is met twice
            passes += math.ceil(n / strip_rows(d, n_labels))
            operations += float(n) * n * one.operations(d) / (2 if held else 1)
    passes = 1 if held else passes
    n_bytes = sum(one.bytes_held(n, d, n_labels) for one in known)
    return Cost(passes, passes * n * d * item_bytes, operations, n_bytes)
