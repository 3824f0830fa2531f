"""Which metrics the states of a model allow, and their readings: a value, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from isoscope.engine.readings import Reading
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.registry import KNOWN, Metric, choose
from isoscope.statistics.gathered import Statistics


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


def read(name: str, compute: Callable[[Any], Any], shelf: Statistics, **about: Any) -> Reading:
    """Return the reading of a metric; `about` is what is known of it, such as space and group."""
    try:
        return Reading(name, float(compute(shelf)), **about)
    except (UndefinedError, InputError) as reason:  # the space is sound: the metric has no value on it
        return Reading(name, None, meaning=str(reason), **about)


def as_floats(readings: Iterable[Reading]) -> dict[str, float]:
    """Return the values by the metrics' names, as a table of floats holds them: NaN where there is none."""
    return {one.metric: math.nan if one.value is None else one.value for one in readings}
