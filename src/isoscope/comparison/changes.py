"""The parts of a comparison: a metric of both spaces, one number of both, an item or label that moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from isoscope.results import plain

Interval = tuple[float, float]


@dataclass(frozen=True)
class Change:
    """A metric of both spaces.

    Attributes:
        name: in the registry.
        before, after: its value on A and on B; None where undefined.
        interval: the 95 % interval of the difference; None where it has none.
        meaning: what B's value says, in words.
    """

    name: str
    before: float | None
    after: float | None
    interval: Interval | None
    meaning: str

    @property
    def difference(self) -> float | None:
        """B − A."""
        if self.before is None or self.after is None:
            return None
        difference = self.after - self.before
        return None if math.isnan(difference) else difference

    @property
    def differs(self) -> bool | None:
        """Whether the interval leaves out zero; None where there is no interval."""
        return None if self.interval is None else not self.interval[0] <= 0 <= self.interval[1]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; infinities as None."""
        sides = {"a": self.before, "b": self.after, "difference": self.difference}
        return {**plain(sides), "interval": plain(self.interval), "meaning": self.meaning}


@dataclass(frozen=True)
class Correspondence:
    """One number of how alike both spaces are: cka, cka_debiased, procrustes, overlap."""

    name: str
    value: float | None
    interval: Interval | None
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {name: value for name, value in plain(self).items() if name != "name"}


@dataclass(frozen=True)
class MovedRow:
    """An item whose neighbours changed.

    Attributes:
        row: its number in A.
        overlap: the share of its neighbours that it kept.
        displacement: its distance after the best rotation, 1 on average if the spaces had nothing in common.
        label, text: what it is, where that is known.
        id: what rows were matched by, where they were.
    """

    row: int
    overlap: float
    displacement: float
    label: Any = None
    text: str | None = None
    id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**vars(self), "label": None if self.label is None else str(self.label)}


@dataclass(frozen=True)
class MovedLabel:
    """A label, how many of its rows were looked at, and the mean share of neighbours they kept."""

    label: Any
    n: int
    overlap: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**vars(self), "label": str(self.label)}
