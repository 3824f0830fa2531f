"""`Measurement`: what `measure` returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from isoscope._version import __version__
from isoscope.engine.readings import Reading, Readings, View
from isoscope.metrics.registry import registered
from isoscope.printable import nearest
from isoscope.tables import Grid, shown


@dataclass(frozen=True, repr=False)
class Measurement(View):
    """The readings of one space.

    Index it by a metric's name for the value; print it for the table; show it in a notebook.

    Attributes:
        readings: one for each metric, in registry order.
        name: what was measured.
        n: vectors. d: dimensions. n_labels: distinct labels, or None.
        dtype, device: what the vectors were held as, and where.
        notes: what the reader should know (zero vectors, metrics left out).
        seed: of everything sampled.
        seconds: how long it took.
    """

    readings: Readings
    name: str | None
    n: int
    d: int
    n_labels: int | None
    dtype: str
    device: str
    notes: tuple[str, ...]
    seed: int
    seconds: float
    _kept: Any = field(default=None, repr=False, compare=False)  # the statistics: isoscope.engine.kept

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": None}  # which belong to this process

    def __post_init__(self) -> None:
        if any(reading.space != self.name for reading in self.readings):
            named = Readings([replace(reading, space=self.name) for reading in self.readings])
            object.__setattr__(self, "readings", named)

    @property
    def of_all_rows(self) -> tuple[Reading, ...]:
        """The readings of all rows together, without those of slices."""
        return tuple(reading for reading in self.readings if not reading.group)

    def __getitem__(self, name: str) -> float | None:
        for reading in self.of_all_rows:
            if reading.metric == name:
                return reading.value
        raise KeyError(f"{name!r} was not measured{self._why(name)}. Measured were {', '.join(self)}.")

    def _why(self, name: str) -> str:
        metric = registered().get(name)
        if metric is not None and "labels" in metric.needs and not self.n_labels:
            return ": it needs labels"
        return "" if metric is not None else f": {nearest(name, self) or 'there is no such metric'}"

    def _instead_of(self, name: str) -> str:
        return f"Use measurement[{name!r}]." if name in registered() else super()._instead_of(name)

    def __iter__(self) -> Iterator[str]:
        return (reading.metric for reading in self.of_all_rows)

    def __len__(self) -> int:
        return len(self.of_all_rows)

    def keys(self) -> list[str]:
        """Return the names of what was measured, so that dict(measurement) works."""
        return list(self)

    def values(self) -> list[float | None]:
        """Return the values, in the order of `keys`."""
        return [reading.value for reading in self.of_all_rows]

    def items(self) -> list[tuple[str, float | None]]:
        """Return the names with their values."""
        return list(zip(self.keys(), self.values(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "isoscope": __version__,
            "name": self.name,
            "n": self.n,
            "d": self.d,
            "n_labels": self.n_labels,
            "dtype": self.dtype,
            "device": self.device,
            "seed": self.seed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "metrics": {reading.metric: reading.to_dict() for reading in self.of_all_rows},
        }

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        labels = f", {self.n_labels:,} labels" if self.n_labels else ""
        return f"{self.name or 'space'}: {self.n:,} vectors × {self.d:,} dimensions ({self.dtype}){labels}"

    def grids(self) -> Iterable[Grid]:
        """Return one table, a row a metric."""
        rows = [(r.metric, r.value, shown_half_width(r), sentence(r)) for r in self.of_all_rows]
        yield Grid("", ("metric", "value", "± 95 %", "what it means"), rows)

    def lines(self) -> list[str]:
        """Return the notes, as they stand under the table."""
        return [f"note: {note}" for note in self.notes]


def shown_half_width(reading: Reading) -> str:
    """Return half the width of the 95 % interval as tables show it."""
    return "" if reading.half_width is None else f"± {shown(reading.half_width)}"


def sentence(reading: Reading) -> str:
    """Return the meaning, with the ceiling where there is one."""
    if reading.ceiling is None or reading.value is None:
        return reading.meaning
    return f"{reading.meaning}; these labels allow at most {shown(reading.ceiling)}"
