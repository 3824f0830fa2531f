"""What a metric costs: passes over the rows, bytes read, operations; and how long that takes elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from isoscope.metrics.registry import KNOWN, Metric
from isoscope.scale.separation import strip_rows
from isoscope.statistics.stream import BUILT_ON, STREAMED

# floating operations for a row of d numbers; products count a multiplication and an addition
_PER_ROW = {
    "moments": lambda d: d * (d + 1) + 8 * d,  # the upper triangle of uuᵀ, and sums
    "directions": lambda d: 8 * d,
    "label_moments": lambda d: 6 * d,
    "type_directions": lambda d: 6 * d,
    "sentence_directions": lambda d: 6 * d,
    "sentence_moments": lambda d: 6 * d,
    "left_out_moments": lambda d: 2 * d * d + 6 * d,
    "left_out_cosines": lambda d: 6 * d,
    "log_partition": lambda d: 2 * d * d + 4 * d,
    "label_distances": lambda d: 4 * d,
}
_PER_PAIR = {"separation": lambda d: 2 * d + 6}  # a product, a root and the sums by cluster


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
        """How long reading takes, and how long computing, where each machine does its share."""
        reading = self.bytes_read / (bytes_per_s * n_machines)
        return reading, self.operations / (operations_per_s * n_machines)


def cost(
    metrics: Metric | Iterable[Metric], *, n: int, d: int, n_labels: int = 20, item_bytes: int = 4
) -> Cost | None:
    """The cost of metrics measured together, exactly; None where one needs all vectors in memory.

    Standard errors are not counted.

    >>> from isoscope import registered
    >>> found = cost(registered()["isoscore"], n=1000, d=10)
    >>> found.passes, found.bytes_read, found.operations
    (1, 40000, 190000.0)
    """
    chosen = [metrics] if isinstance(metrics, Metric) else list(metrics)
    needs = set().union(*(metric.needs for metric in chosen)) - set(KNOWN)
    needs |= {BUILT_ON[name] for name in needs & set(BUILT_ON)}
    if not needs <= STREAMED | set(_PER_PAIR):
        return None
    streams, pairs = needs & STREAMED, needs & set(_PER_PAIR)
    passes = (1 if streams - set(BUILT_ON) or pairs else 0) + (1 if streams & set(BUILT_ON) else 0)
    operations = float(sum(n * _PER_ROW[name](d) for name in streams))
    if pairs:  # every strip meets all rows, so every pair is met twice
        passes += math.ceil(n / strip_rows(d, n_labels))
        operations += sum(float(n) * n * _PER_PAIR[name](d) for name in pairs)
    grown = 24 * n if pairs else 0
    held = 8 * (d * d if "moments" in needs else d) + 8 * n_labels * d * ("label_moments" in needs) + grown
    return Cost(passes, passes * n * d * item_bytes, operations, held)
