"""Choose the metrics that can be computed on the states of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from isoscope.errors import InputError
from isoscope.metrics.registry import KNOWN, Metric, choose


def applicable(asked: list[str], known: Collection[str], why: Mapping[str, str]) -> list[Metric]:
    """Return the metrics with these names, and those of these families that can be computed.

    Args:
        asked: names of metrics and families.
        known: those of labels, token_types, sentences, partners and covariance that are known.
        why: for each of the others, why it is not known and how to pass it.

    Raises:
        InputError: a metric asked for by name cannot be computed, or no metric can.
    """
    chosen = []
    for metric in choose(asked):
        missing = [name for name in KNOWN if name in metric.needs and name not in known]
        if not missing:
            chosen.append(metric)
        elif metric.name in asked:
            raise InputError(f"{metric.name} needs {missing[0]}, {why[missing[0]]}")
    if not chosen:
        raise InputError(
            f"has none that can be computed on these states: {', '.join(asked)}", argument="metrics"
        )
    return chosen
