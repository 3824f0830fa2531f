"""What `measure` returns: readings, as a table, a dict, JSON, or HTML in a notebook."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__

if TYPE_CHECKING:
    from rich.table import Table

_Z95 = 1.959964  # two-sided 95 % point of the normal distribution
_TABLE_WIDTH = 110


@dataclass(frozen=True)
class Reading:
    """One metric's value on one space.

    Attributes:
        name: the metric's name in the registry.
        value: the number, or None where it is undefined.
        standard_error: of the value, where one is known.
        ceiling: the largest value these labels allow, where that is known.
        meaning: what the value says, in words; the reason where it is undefined.
        range: smallest and largest possible value.
    """

    name: str
    value: float | None
    standard_error: float | None
    ceiling: float | None
    meaning: str
    range: tuple[float, float]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, kept inside the metric's range."""
        if self.value is None or self.standard_error is None:
            return None
        half = _Z95 * self.standard_error
        return max(self.value - half, self.range[0]), min(self.value + half, self.range[1])

    def to_dict(self) -> dict[str, Any]:
        """The reading as JSON-ready values; infinities as None."""
        return {
            "value": _plain(self.value),
            "standard_error": _plain(self.standard_error),
            "interval": list(self.interval) if self.interval else None,
            "ceiling": self.ceiling,
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class Measurement:
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

    readings: tuple[Reading, ...]
    name: str | None
    n: int
    d: int
    n_labels: int | None
    dtype: str
    device: str
    notes: tuple[str, ...]
    seed: int
    seconds: float

    def __getitem__(self, name: str) -> float | None:
        for reading in self.readings:
            if reading.name == name:
                return reading.value
        raise KeyError(f"{name!r} was not measured; here are {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (reading.name for reading in self.readings)

    def __len__(self) -> int:
        return len(self.readings)

    def keys(self) -> list[str]:
        """The names of what was measured, so that dict(measurement) works."""
        return list(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready values."""
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
            "metrics": {reading.name: reading.to_dict() for reading in self.readings},
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as strict JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        labels = f", {self.n_labels:,} labels" if self.n_labels else ""
        return f"{self.name or 'space'}: {self.n:,} vectors × {self.d:,} dimensions ({self.dtype}){labels}"

    def table(self) -> Table:
        """A rich table for terminals."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(self.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("metric", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("± 95 %", no_wrap=True)
        table.add_column("what it means", overflow="fold")
        for reading in self.readings:
            table.add_row(
                Text(reading.name), shown(reading.value), shown_half_width(reading), Text(sentence(reading))
            )
        return table

    def __str__(self) -> str:
        from isoscope.console import Terminal

        page = StringIO()
        console = Terminal(width=_TABLE_WIDTH, file=page, no_color=True, force_terminal=False)
        console.print(self.table())
        for note in self.notes:
            console.say(f"note: {note}")
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in ("metric", "value", "± 95 %", "what it means"))
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{side}">{html.escape(cell)}</td>'
                for side, cell in (
                    ("left", reading.name),
                    ("right", shown(reading.value)),
                    ("left", shown_half_width(reading)),
                    ("left", sentence(reading)),
                )
            )
            + "</tr>"
            for reading in self.readings
        )
        notes = "".join(f"<p>note: {html.escape(note)}</p>" for note in self.notes)
        caption = html.escape(self.title)
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table>{notes}"
        )


def shown(value: float | None) -> str:
    """A value as tables show it: counts whole, else four decimals, fewer if large; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == int(value) and 1 < size < 1e6:
        return f"{int(value):,}"
    if size >= 1e6 or 0 < size < 1e-4:
        return f"{value:.3e}"
    if size >= 1000:
        return f"{value:,.1f}"
    return f"{value:.4f}" if size < 100 else f"{value:.2f}"


def shown_half_width(reading: Reading) -> str:
    """Half the width of the 95 % interval as tables show it."""
    return "" if reading.standard_error is None else f"± {shown(_Z95 * reading.standard_error)}"


def sentence(reading: Reading) -> str:
    """The meaning, with the ceiling where there is one."""
    if reading.ceiling is None or reading.value is None:
        return reading.meaning
    return f"{reading.meaning}; these labels allow at most {shown(reading.ceiling)}"


def _plain(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
