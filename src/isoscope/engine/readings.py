"""`Readings`: one long table for every result, one row a reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from isoscope.errors import InputError, UndefinedError
from isoscope.results import Result, arrow, plain
from isoscope.tables import span

_Z95 = 1.959964  # two-sided 95 % point of the normal distribution
_COLUMNS = ("metric", "value", "standard_error", "low", "high", "ceiling", "reason")
_TEXTS = ("space", "metric", "reason")


@dataclass(frozen=True)
class Reading:
    """One metric's value on one space, or on one group of its rows.

    Attributes:
        metric: the metric's name in the registry.
        value: the number, or None where it is undefined.
        standard_error: of the value, where one is known.
        ceiling: the largest value these labels allow, where that is known.
        meaning: what the value says, in words; the reason where it is undefined.
        range: the smallest and the largest possible value.
        interval: the 95 % interval, kept inside the range; from the standard error where it is not given.
        space: what was measured.
        group: the part of it, such as {"layer": 3, "view": "all tokens"}.
    """

    metric: str
    value: float | None
    standard_error: float | None = None
    ceiling: float | None = None
    meaning: str = ""
    range: tuple[float, float] = (-math.inf, math.inf)
    interval: tuple[float, float] | None = None
    space: str | None = None
    group: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.value is not None and math.isnan(self.value):
            object.__setattr__(self, "value", None)
        if self.interval is None and self.value is not None and self.standard_error is not None:
            half = _Z95 * self.standard_error
            inside = max(self.value - half, self.range[0]), min(self.value + half, self.range[1])
            object.__setattr__(self, "interval", inside)

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric

    @property
    def low(self) -> float | None:
        """The lower end of the 95 % interval."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """The upper end of the 95 % interval."""
        return None if self.interval is None else self.interval[1]

    @property
    def half_width(self) -> float | None:
        """Half the width of the 95 % interval that follows from the standard error."""
        return None if self.standard_error is None else _Z95 * self.standard_error

    @property
    def number(self) -> float:
        """The value as a table of floats holds it: NaN where there is none."""
        return math.nan if self.value is None else float(self.value)

    @property
    def reason(self) -> str | None:
        """Why there is no value; None where there is one."""
        return None if self.value is not None else self.meaning or "undefined"

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as JSON-ready values; infinities as None."""
        return {
            "value": plain(self.value),
            "standard_error": plain(self.standard_error),
            "interval": plain(self.interval),
            "ceiling": self.ceiling,
            "meaning": self.meaning,
        }


def taken(name: str, compute: Callable[[Any], Any], shelf: Any, **about: Any) -> Reading:
    """Return the reading of a metric on a shelf of statistics: its value, or the reason why it has none.

    Args:
        name: the metric's.
        compute: the value from the shelf; counts stay whole numbers.
        shelf: the statistics.
        about: further fields of the reading, such as space and group.
    """
    value, reason = value_or_reason(compute, shelf)
    return Reading(name, value, meaning=reason, **about)


def value_or_reason(compute: Callable[[Any], Any], shelf: Any) -> tuple[float | None, str]:
    """Return a metric's value and "", or None and the reason why the metric is undefined."""
    try:
        value = compute(shelf)
    except (UndefinedError, InputError) as reason:  # the space is valid: the metric has no value on it
        return None, reason.problem
    return value if isinstance(value, int) else float(value), ""


@dataclass(frozen=True, repr=False)
class Readings(Result):
    """A long table: one row a reading, with the columns

    space, the columns of the groups (layer, view, slice, seed, step), metric, value, standard_error, low,
    high, ceiling, reason.

    Attributes:
        rows: the readings.

    >>> table = Readings([Reading("isoscore", 0.2, group={"layer": n}) for n in (0, 1)])
    >>> table.where(layer=1)["value"], table.groups
    ([0.2], ('layer',))
    """

    rows: Sequence[Reading]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The columns that say which part of a space was measured, in the order they first occur."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.group))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in order."""
        return ("space", *self.groups, *_COLUMNS)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self.rows)

    def __add__(self, other: Iterable[Reading]) -> Readings:
        return Readings((*self.rows, *other))

    @overload
    def __getitem__(self, key: int) -> Reading: ...
    @overload
    def __getitem__(self, key: slice) -> Readings: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Reading | Readings | list[Any]:
        """Return a reading by its place, several as a table, or a column by its name."""
        if isinstance(key, str):
            self._check([key])
            return [_cell(row, key) for row in self.rows]
        return Readings(self.rows[key]) if isinstance(key, slice) else self.rows[key]

    def where(self, **wanted: Any) -> Readings:
        """Return the readings whose columns have these values; a list, tuple or set stands for any of them.

        Raises:
            InputError: a column is not known.
        """
        self._check(wanted)
        return Readings(
            [row for row in self.rows if all(_matches(_cell(row, name), v) for name, v in wanted.items())]
        )

    def _check(self, names: Collection[str]) -> None:
        known = self.names
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError(f"there is no column {unknown[0]!r}; there are {', '.join(self.names)}")

    def _columns(self) -> dict[str, list[Any]]:
        return {name: self[name] for name in self.names}

    def to_arrow(self) -> Any:
        """Return a pyarrow table, of the same types whatever the columns hold."""
        import pyarrow as pa

        fixed = {name: pa.string() if name in _TEXTS else pa.float64() for name in ("space", *_COLUMNS)}
        return pa.table({name: arrow(values, fixed.get(name)) for name, values in self._columns().items()})

    def wide(self) -> dict[str, list[Any]]:
        """Return one row a group, one column a metric: the values alone."""
        keys = ("space", *self.groups)
        by_group: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self.rows:
            by_group.setdefault(tuple(_cell(row, key) for key in keys), {})[row.metric] = row.value
        metrics = dict.fromkeys(row.metric for row in self.rows)
        columns = {key: [group[place] for group in by_group] for place, key in enumerate(keys)}
        return columns | {name: [values.get(name) for values in by_group.values()] for name in metrics}

    def to_dict(self) -> dict[str, Any]:
        """Return the columns as JSON-ready values; infinities as None."""
        return plain(self._columns())

    def _printed(self) -> dict[str, list[Any]]:
        """Return the columns without those that are empty, each interval in one."""
        columns = {name: ["" if v is None else v for v in self[name]] for name in ("space", *self.groups)}
        columns["metric"] = self["metric"]
        columns["value"] = self["value"]
        columns["95 % interval"] = [span(row.interval) for row in self.rows]
        for name in ("ceiling", "reason"):
            columns[name] = ["" if value is None else value for value in self[name]]
        always = ("metric", "value")
        return {name: cells for name, cells in columns.items() if name in always or set(cells) != {""}}


class View(Result):
    """A result whose numbers are a table of readings, with words and figures of its own."""

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def readings(self) -> Readings:
            """Every number of the result, one row a reading."""

    def to_arrow(self) -> Any:
        """Return `readings` as a pyarrow table."""
        return self.readings.to_arrow()


def _cell(row: Reading, name: str) -> Any:
    return getattr(row, name) if name == "space" or name in _COLUMNS else row.group.get(name)


def _matches(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list | tuple | set | range) else value == wanted
