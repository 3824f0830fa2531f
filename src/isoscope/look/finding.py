"""`Finding`: one thing that a first look has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isoscope.engine.readings import Reading
from isoscope.look.next_steps import Step
from isoscope.metrics.thresholds import SEVERITIES, Severity, threshold_of
from isoscope.results import plain
from isoscope.tables import percent

_MORE_DECIMALS = 3

Write = Callable[..., str]


def _has_digits(text: str) -> bool:
    """Return whether a number that was written has a digit other than 0."""
    return any(mark in "123456789" for mark in text)


def decimal(value: float, more: int = 0) -> str:
    """Return a number with 2 + `more` decimals."""
    return f"{value:z.{2 + more}f}"


def tenths(value: float, more: int = 0) -> str:
    """Return a number with 1 + `more` decimals."""
    return f"{value:z.{1 + more}f}"


def per_cent(value: float, more: int = 0) -> str:
    """Return a share in per cent with 1 + `more` decimals."""
    return percent(value, 1 + more)


@dataclass(frozen=True)
class Example:
    """Rows that a finding is about, and what is said of them.

    Attributes:
        rows: counted from 0.
        detail: such as "retrieved 812 times".
        texts: the text of each row, where they are known.
    """

    rows: tuple[int, ...]
    detail: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing that a first look or an audit has found.

    Attributes:
        name: such as "common_direction"; `threshold_of` has its thresholds.
        severity: "serious", "moderate", "unclear" (too few rows, or no value) or "healthy".
        headline: the finding in one sentence.
        quantity: what the number is, in words.
        reading: the number with its standard error and interval.
        references: the same metric of known models and corpora, the smallest first.
        meaning: what it means for search, clustering or a classifier.
        step: what to try next.
        n_rows: how many rows it was computed from.
        write: formats a number of this quantity; its second argument adds decimals.
        excess: where the number lies: 0 at the moderate threshold, 1 at the serious one, negative if healthy.
        listed: the rows or dimensions concerned, counted from 0, by kind, such as "copies"; at most 1,000 of
            a kind. `copy_groups` has one list for each vector that several rows have.
        count: how many rows or dimensions it is about; None where it is about all.
        examples: some of the rows, with their texts.
    """

    name: str
    severity: Severity
    headline: str
    quantity: str
    reading: Reading
    references: Mapping[str, float]
    meaning: str
    step: Step
    n_rows: int
    write: Write
    excess: float
    listed: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    count: int | None = None
    examples: Sequence[Example] = ()

    @property
    def rank(self) -> tuple[int, float]:
        """The place among others: the worst severity first, then what lies farthest beyond its threshold."""
        return SEVERITIES.index(self.severity), -self.excess

    @property
    def text(self) -> str:
        """The number as it is shown, with half the width of its 95 % interval."""
        if self.reading.value is None:
            return "–"
        half, more = self.reading.half_width, self.more_decimals
        if half is None or not _has_digits(self.write(half, more)):
            return self.write(self.reading.value)
        return f"{self.write(self.reading.value, more)} ± {self.write(half, more)}"

    @property
    def more_decimals(self) -> int:
        """How many decimals are added so that the half-width is not written as 0; 0 if no number helps."""
        half = self.reading.half_width
        if half is None:
            return 0
        decimals = range(_MORE_DECIMALS + 1)
        return next((more for more in decimals if _has_digits(self.write(half, more))), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready values."""
        threshold = threshold_of(self.name)
        more = {} if self.count is None else {"count": self.count, "examples": plain(self.examples)}
        return more | {
            "name": self.name,
            "severity": self.severity,
            "headline": self.headline,
            "metric": self.reading.metric,
            "quantity": self.quantity,
            "value": plain(self.reading.value),
            "standard_error": plain(self.reading.standard_error),
            "interval": plain(self.reading.interval),
            "judged": None if self.severity == "unclear" else plain(threshold.value(self.excess)),
            "judged_quantity": threshold.quantity,
            "thresholds": {"moderate": threshold.moderate, "serious": threshold.serious},
            "references": dict(self.references),
            "meaning": self.meaning,
            "next": str(self.step),
            "n_rows": self.n_rows,
            "listed": {kind: list(numbers) for kind, numbers in self.listed.items()},
        }
