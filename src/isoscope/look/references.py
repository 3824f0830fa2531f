"""Reference spaces: known models on known corpora, measured by `look` itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("references.json")
_SHOWN = 3  # beside the caller's value in a line of text


@dataclass(frozen=True)
class Reference:
    """A model on a corpus, and its metrics.

    Attributes:
        name: as it is shown, such as "MiniLM on STS-B".
        model: the model's name, as `isoscope.models.encode` takes it.
        corpus: the texts or words.
        n, d: how many vectors and dimensions.
        metrics: the values by metric.
    """

    name: str
    model: str
    corpus: str
    n: int
    d: int
    metrics: Mapping[str, float]


@cache
def references() -> tuple[Reference, ...]:
    """Return the reference spaces; `python -m benchmarks.references` writes them.

    >>> next(one.name for one in references())
    'MiniLM on STS-B'
    """
    content = json.loads(PATH.read_text(encoding="utf-8"))
    return tuple(Reference(**one) for one in content["spaces"])


def values_of(metric: str) -> dict[str, float]:
    """Return a metric of every reference space that has it, the smallest first."""
    values = {one.name: one.metrics[metric] for one in references() if metric in one.metrics}
    return dict(sorted(values.items(), key=lambda pair: pair[1]))


def nearest_and_ends(values: Mapping[str, float], value: float) -> dict[str, float]:
    """Return the references that a line of text names: the smallest, the nearest and the largest.

    >>> nearest_and_ends({"a": 1.0, "b": 2.0, "c": 3.0, "d": 9.0}, 2.9)
    {'a': 1.0, 'c': 3.0, 'd': 9.0}
    """
    names = list(values)
    if len(names) <= _SHOWN:
        return dict(values)
    middle = min(names[1:-1], key=lambda name: abs(values[name] - value))
    return {name: values[name] for name in (names[0], middle, names[-1])}
