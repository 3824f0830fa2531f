"""What a metric costs: passes over the rows, bytes read, operations; and how long that takes elsewhere."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from isoscope.engine.strips import meets_once, strip_rows
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
    in_memory: bool = False,
) -> Cost:
    """Return the cost of statistics taken together, each as it declares; pairs are met strip by strip.

    in_memory: whether the vectors are read once and kept in memory, and each pair is met once. Strips meet
        each pair once too, unless the sums of all rows would be large.
    """
    declarations = [declared()[name] for name in statistics]
    passes = any(not statistic.builds_on for statistic in declarations) + any(
        statistic.builds_on is not None for statistic in declarations
    )
    operations = float(
        sum(
            n * statistic.operations(d)
            for statistic in declarations
            if statistic.operations and not statistic.of_pairs
        )
    )
    once = in_memory or meets_once(n, n_labels)
    for statistic in declarations:
        if statistic.of_pairs and statistic.operations:
            n_strips = math.ceil(n / strip_rows(d, n_labels))
            passes += math.ceil((n_strips + 1) / 2) if once else n_strips  # a strip meets the rows after it
            operations += float(n) * n * statistic.operations(d) / (2 if once else 1)
    passes = 1 if in_memory else passes
    n_bytes = sum(statistic.bytes_held(n, d, n_labels) for statistic in declarations)
    return Cost(passes, passes * n * d * item_bytes, operations, n_bytes)
