"""Which metrics the states of a model allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from isoscope.errors import InputError
from isoscope.metrics.registry import KNOWN, Metric, choose


def applicable(asked: list[str], known: Collection[str], why: Mapping[str, str]) -> list[Metric]:
    """Return the metrics of these names and families that can be taken with what is known of the rows.

    Args:
        asked: names and families; of a family, what cannot be taken is left out.
        known: of labels, token_types, sentences, partners and covariance, those that are known.
        why: for each of these, why it is not known, and how to tell it.

    Raises:
        InputError: a metric asked for by name cannot be taken, or none can.
    """
    chosen = []
    for metric in choose(asked):
        missing = [name for name in KNOWN if name in metric.needs and name not in known]
        if not missing:
            chosen.append(metric)
        elif metric.name in asked:
            raise InputError(f"{metric.name} needs {missing[0]}, {why[missing[0]]}")
    if not chosen:
        raise InputError(f"metrics: none of {', '.join(asked)} can be taken on these states")
    return chosen
