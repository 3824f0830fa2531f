"""The parts of a comparison: changed metrics, similarities of two spaces, rows and labels that moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from isoscope.results import plain

Interval = tuple[float, float]
_LEVEL = 0.05  # significance level: a smaller p-value counts as a difference


@dataclass(frozen=True)
class Change:
    """A metric of both spaces, and its change.

    Attributes:
        name: the name of the metric.
        before, after: the value for A and for B; None where it is undefined.
        interval: the 95 % interval of the difference; None where it is not known.
        meaning: what the value for B means, in words.
    """

    name: str
    before: float | None
    after: float | None
    interval: Interval | None
    meaning: str

    @property
    def difference(self) -> float | None:
        """The value for B minus the value for A; None where one is undefined."""
        if self.before is None or self.after is None:
            return None
        difference = self.after - self.before
        return None if math.isnan(difference) else difference

    @property
    def differs(self) -> bool | None:
        """Whether the interval excludes zero; None where there is no interval."""
        return None if self.interval is None else not self.interval[0] <= 0 <= self.interval[1]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; infinities as None."""
        sides = {"a": self.before, "b": self.after, "difference": self.difference}
        return {**plain(sides), "interval": plain(self.interval), "meaning": self.meaning}


@dataclass(frozen=True)
class SliceChange(Change):
    """A metric of both spaces on one slice of the rows, and its change.

    Attributes:
        meaning: what the value for B means, in words; the reason where a value is undefined.
        slice: the name of the slice.
        n: the number of its rows.
        p_value: the two-sided p-value of the hypothesis that nothing changed, adjusted by Holm's method for
            the number of changes that are tested.
    """

    slice: str = ""
    n: int = 0
    p_value: float | None = None

    @property
    def differs(self) -> bool | None:
        """Whether the adjusted p-value is below 0.05; None where there is none."""
        return None if self.p_value is None else self.p_value < _LEVEL

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; infinities as None."""
        named = {"slice": self.slice, "n": self.n, "metric": self.name}
        return {**named, **super().to_dict(), "p_value": plain(self.p_value)}


@dataclass(frozen=True)
class SliceOverlap:
    """How many nearest neighbours the rows of one slice keep. Neighbours are searched among all rows.

    Attributes:
        slice: the name of the slice.
        n: the number of its rows.
        overlap, interval: the share of nearest neighbours that are the same in both spaces, and its 95 %
            interval; None if the slice has no rows to compare.
    """

    slice: str
    n: int
    overlap: float | None
    interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Correspondence:
    """One measure of how similar the two spaces are: cka, cka_debiased, procrustes or overlap."""

    name: str
    value: float | None
    interval: Interval | None
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {name: value for name, value in plain(self).items() if name != "name"}


@dataclass(frozen=True)
class MovedRow:
    """A row whose neighbours changed.

    Attributes:
        row: the number of the row in A.
        overlap: the share of its nearest neighbours that are the same in both spaces.
        displacement: how far the row is from its place in the other space, after the best rotation; 1 on
            average for unrelated spaces.
        label, text: its label and text, where they are known.
        id: its id, where rows were matched by ids.
        zero: "A" or "B" where it is a zero vector in this space alone, and has no cosine there.
    """

    row: int
    overlap: float
    displacement: float
    label: Any = None
    text: str | None = None
    id: str | None = None
    zero: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**vars(self), "label": None if self.label is None else str(self.label)}


@dataclass(frozen=True)
class MovedLabel:
    """A label, the number of its rows that were compared, and their mean overlap of neighbours."""

    label: Any
    n: int
    overlap: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**vars(self), "label": str(self.label)}
