"""`SlicedMeasurement`: what `measure(…, by=…)` returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from isoscope.engine.readings import Reading
from isoscope.measurement import Measurement, shown_half_width
from isoscope.metrics.registry import registered
from isoscope.printable import listed
from isoscope.results import arrow, plain
from isoscope.tables import Cell, Grid, shown, signed

_SHOWN = 12  # slices of a table
_ALL_ROWS = "all rows"
_LEVEL = 0.05  # of p-values below which a difference is clear


@dataclass(frozen=True)
class SliceReading(Reading):
    """A metric's value on one slice, and how far it is from that of all other rows.

    Attributes:
        n: how many vectors the slice has.
        difference: its value less that of all other rows.
        difference_error: the standard error of the difference, where one is known.
        difference_half_width: half the width of its 95 % interval, by Student's t as the p-value is.
        p_value: of no difference, two-sided, adjusted by Holm for all differences that are tested. Two
            slices are one difference, seen from both sides.
    """

    n: int = 0
    difference: float | None = None
    difference_error: float | None = None
    difference_half_width: float | None = None
    p_value: float | None = None

    def row(self) -> dict[str, Any]:
        """Return the columns of a long table."""
        return {
            **self.group,
            "n": self.n,
            "metric": self.metric,
            "value": self.value,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "difference": self.difference,
            "difference_standard_error": self.difference_error,
            "p_value": self.p_value,
            "reason": self.reason,
        }


@dataclass(frozen=True, repr=False)
class SlicedMeasurement(Measurement):
    """The readings of a space, and of every slice of its rows: what `measure(…, by=…)` returns.

    It prints a table a metric, the worst slice first. Indexing it gives the value on all rows.

    Attributes:
        readings: one for each metric on all rows, then one for each metric and slice.
        by: the columns that name the slices; empty where their values were given.
        slices: one reading for each metric and slice, the worst slice of each metric first: the lowest value
            where a high one is better, the highest where a low one is, else the largest difference.
    """

    by: tuple[str, ...] = ()
    slices: tuple[SliceReading, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "readings", self.readings + self.slices)

    def of(self, name: str) -> dict[str, SliceReading]:
        """Return a slice's readings by metric."""
        readings = {reading.metric: reading for reading in self.slices if reading.group["slice"] == name}
        if not readings:
            raise KeyError(f"there is no slice {name!r}; there are {', '.join(self._names)}")
        return readings

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values: that of all rows, and a list of the slices' readings."""
        rows = [plain(reading.row()) for reading in self.slices]
        return {**super().to_dict(), "by": list(self.by), "slices": rows}

    def _columns(self) -> dict[str, list[Any]]:
        """Return the columns of the long table: a row a slice and metric, then all rows, without a slice."""
        common = [field.name for field in fields(Reading)]
        totals = [
            SliceReading(
                **{name: getattr(reading, name) for name in common} | {"group": {"slice": None}}, n=self.n
            )
            for reading in self.of_all_rows
        ]
        rows = [reading.row() for reading in (*self.slices, *totals)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_arrow(self) -> Any:
        """Return the long table as a pyarrow table, of the same types whatever the columns hold."""
        import pyarrow as pa

        texts = dict.fromkeys(("slice", "metric", "reason"), pa.string())
        kinds = {**texts, "n": pa.float64() if isinstance(self.n, float) else pa.int64()}
        columns = self._columns()
        return pa.table({name: arrow(columns[name], kinds.get(name, pa.float64())) for name in columns})

    @property
    def title(self) -> str:
        """What was measured, and how it was sliced."""
        return f"{super().title}, by {', '.join(self.by) or 'slice'}"

    @property
    def opening(self) -> str:
        """Which slice differs most from all other rows, in standard errors of the difference."""
        tested = [reading for reading in self.slices if reading.p_value is not None]
        clear = [reading for reading in tested if (reading.p_value or 0.0) < _LEVEL]
        if not tested:
            is_unique = len(self.slices) > 0 and all(reading.n == 1 for reading in self.slices)
            return "every slice has one row: slice by values that repeat" if is_unique else ""
        if not clear:
            return "no slice differs clearly from all other rows"
        most = max(clear, key=lambda one: abs(one.difference or 0.0) / (one.difference_error or 1.0))
        name, value = most.group["slice"], most.value or 0.0
        rest = value - (most.difference or 0.0)
        others = dict.fromkeys(one.group["slice"] for one in clear if one.group["slice"] != name)
        also = f"; also clearly different: {listed(others)}" if len(self._names) > 2 and others else ""
        if len(self._names) > 2 and len(others) == len(self._names) - 1:
            also = "; every other slice differs clearly too"
        return (
            f"{name} stands out: {most.metric} {_of_size(value, rest)} against {_of_size(rest, value)} "
            f"in all other rows{also}"
        )

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(reading.group["slice"] for reading in self.slices))

    def grids(self) -> Iterable[Grid]:
        """Return a table a metric: all rows, then a row a slice."""
        heads = ("slice", "n", "value", "± 95 %", "difference", "± 95 % ", "p")
        for whole_reading in self.of_all_rows:
            metric, half = whole_reading.metric, shown_half_width(whole_reading)
            rows = [_cells(reading) for reading in self.slices if reading.metric == metric]
            yield with_total(metric, heads, rows, (self.n, whole_reading.value, half, "", "", ""), heads[4:])

    def lines(self) -> list[str]:
        """Return what the columns are, and the notes."""
        tests = zip(self.slices, tests_of(self.slices), strict=True)
        n_tests = len({test for reading, test in tests if reading.p_value is not None})
        metrics = [registered()[name] for name in self if name in registered()]
        directed = [metric for metric in metrics if metric.better]
        order = "the worst slice comes first" if directed else "the largest difference comes first"
        if directed and len(directed) < len(metrics):
            undirected = ", ".join(metric.name for metric in metrics if not metric.better)
            order += f" (for {undirected}: the largest difference)"
        lines = [f"difference: from all other rows; {order}"]
        if n_tests:
            many = f", adjusted for the {n_tests:,} differences tested (Holm)" if n_tests > 1 else ""
            lines.append(f"p: of no difference{many}")
        for metric in metrics:
            if metric.biased_by_rows:
                instead = "it is not tested"
                if metric.fair:
                    measured = metric.fair in set(self)
                    instead = (
                        f"{metric.fair} is tested instead" if measured else f"measure {metric.fair} to test"
                    )
                lines.append(f"{metric.name} depends on the number of rows: {instead}")
        return [*lines, *super().lines()]


def _of_size(value: float, other: float) -> str:
    """Return a value to the fourth digit of the larger of two, so that noise beside it is 0."""
    largest = max(abs(value), abs(other))
    digits = 3 - math.floor(math.log10(largest)) if largest > 0 else 0
    return shown(round(value, digits) + 0.0)


def tests_of(readings: Sequence[SliceReading]) -> list[tuple[str, ...]]:
    """Return the test of each reading: two slices are one test, seen from both sides."""
    is_two = len({reading.group["slice"] for reading in readings}) == 2
    return [(reading.metric,) if is_two else (reading.metric, reading.group["slice"]) for reading in readings]


def with_total(
    title: str,
    heads: tuple[str, ...],
    slices: Sequence[Sequence[Cell]],
    total: Sequence[Cell],
    numbers: tuple[str, ...] = (),
) -> Grid:
    """Return a table of slices: the first of them, by name, and a row of all rows."""
    rows: list[Sequence[Cell]] = [(_slice_name(str(name)), *cells) for name, *cells in slices[:_SHOWN]]
    if len(slices) > _SHOWN:
        rows.append((f"… {len(slices) - _SHOWN:,} more", *("" for _ in heads[1:])))
    rows.append((_ALL_ROWS, *total))
    return Grid(title, heads, rows, numbers=numbers)


def _slice_name(name: str) -> str:
    """Return the name of a slice, in quotes where it could be taken for that of all rows."""
    return repr(name) if name == _ALL_ROWS else name


def shown_p_value(p_value: float | None) -> str:
    """Return a p-value as tables show it."""
    return "" if p_value is None else "<0.0001" if p_value < 1e-4 else f"{p_value:.4f}"


def _cells(reading: SliceReading) -> tuple[Cell, ...]:
    name = reading.group["slice"]
    if reading.value is None:
        return name, reading.n, None, "", reading.reason or "", "", ""
    half = f"± {shown(reading.difference_half_width)}" if reading.difference_half_width else ""
    return (
        name,
        reading.n,
        reading.value,
        shown_half_width(reading),
        signed(reading.difference),
        half,
        shown_p_value(reading.p_value),
    )
