"""`Result`: the outputs that every result has, written once: text, HTML, JSON, data frames."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.errors import not_installed
from isoscope.printable import nearest
from isoscope.tables import Cell, Grid, escaped

if TYPE_CHECKING:
    from isoscope.console import Terminal

_INSTEAD = {
    "plot": "The figures of isoscope.plots are drawn from vectors, such as isoscope.plots.plot_spectrum(X).",
    "save": "Use to_json(path), to_csv(path) or to_html(path).",
    "to_latex": "Use to_pandas().to_latex().",
    "to_markdown": "Use to_pandas().to_markdown().",
}
_WIDTH = 110
_MOST, _ENDS = 60, 10  # rows that are printed; of more, so many at either end


class Result:
    """A result that prints as tables, shows itself in a notebook, and converts to JSON and data frames.

    A subclass defines `_columns`, the columns of its data frame. Where it has more to say it defines `title`,
    `opening` (a line above the tables), `grids` (the tables that are printed) and `lines` (the text below).
    """

    @property
    def title(self) -> str:
        """What the result is of, in one line."""
        return ""

    @property
    def opening(self) -> str:
        """What stands out, in one line between the title and the tables."""
        return ""

    def grids(self) -> Iterable[Grid]:
        """Return the tables; of a long one, both ends."""
        columns = self._printed()
        rows: list[Sequence[Cell]] = [[_cell(value) for value in row] for row in _rows(columns)]
        if len(rows) > _MOST:
            between = [f"… {len(rows) - 2 * _ENDS:,} more", *["…"] * (len(columns) - 1)]
            rows = [*rows[:_ENDS], between, *rows[-_ENDS:]]
        return [Grid("", list(columns), rows)]

    def lines(self) -> list[str]:
        """Return the lines below the tables."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return every field as JSON-ready values, unrounded; what has no finite value is None."""
        return _fields(self)

    def to_json(self, path: str | os.PathLike[str] | None = None, *, indent: int | None = 2) -> str:
        """Return `to_dict` as strict JSON, and write it to a file if there is a path."""
        return _written(json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False), path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the columns of the data frame as CSV, and write it to a file if there is a path."""
        import pyarrow as pa
        from pyarrow import csv

        text = pa.BufferOutputStream()
        csv.write_csv(self.to_arrow(), text)
        return _written(str(text.getvalue().to_pybytes(), "utf-8"), path)

    def to_arrow(self) -> Any:
        """Return a pyarrow table."""
        import pyarrow as pa

        return pa.table({name: arrow(values) for name, values in self._columns().items()})

    def to_pandas(self) -> Any:
        """Return a pandas data frame."""
        _library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a polars data frame."""
        return _library("polars").from_arrow(self.to_arrow())

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as HTML, every text escaped, and write it to a file if there is a path."""
        return _written(self._html(), path)

    def _html(self) -> str:
        """Return the title, tables and lines as HTML."""
        title = f"<p><strong>{escaped(self.title)}</strong></p>" if self.title else ""
        opening = f"<p>{escaped(self.opening)}</p>" if self.opening else ""
        lines = "".join(f"<p>{escaped(line)}</p>" for line in self.lines())
        return title + opening + "".join(grid.to_html() for grid in self.grids()) + lines

    def show(self, console: Terminal | None = None) -> None:
        """Print the title, tables and lines to the terminal, at its width."""
        from isoscope.console import Terminal

        console = console or Terminal()
        if self.title:
            console.say(self.title, style="bold")
        if self.opening:
            console.say(self.opening)
        for grid in self.grids():
            console.print(grid.to_rich(console.width))
        for line in self.lines():
            console.say(line)

    def summary(self) -> str:
        """Return what is printed."""
        return str(self)

    def __str__(self) -> str:
        from isoscope.console import Terminal

        page = StringIO()
        self.show(Terminal(width=_WIDTH, file=page, no_color=True, force_terminal=False))
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")

    def __repr__(self) -> str:
        return str(self)

    if not TYPE_CHECKING:  # to a type checker, every name would exist

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, which says what there is instead of a name that is often tried."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{message}. {hint}" if (hint := self._instead_of(name)) else message)

    def _instead_of(self, name: str) -> str:
        """Return a sentence on what to use instead of a name that the result does not have."""
        if name in _INSTEAD or name.startswith("_"):
            return _INSTEAD.get(name, "")
        return nearest(name, [known for known in dir(self) if not known.startswith("_")]).capitalize()

    def _repr_html_(self) -> str:
        return self.to_html()

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the data frame."""
        raise NotImplementedError

    def _printed(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table that is printed."""
        return self._columns()


class Record(Result):
    """A result of a few numbers: a dataclass that prints as a row a field, and is one row of a data frame."""

    def grids(self) -> Iterable[Grid]:
        """Return the fields and their values."""
        rows = [(name, _cell(value)) for name, (value,) in self._columns().items()]
        return [Grid("", ("", "value"), rows, ("value",))]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the fields that are a number or a text; an interval as its two ends."""
        found: dict[str, Any] = {}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if one.name.endswith("interval"):
                stem = one.name.removesuffix("interval")
                low, high = value or (None, None)
                found |= {f"{stem}low": [low], f"{stem}high": [high]}
            elif value is None or isinstance(value, str | int | float):
                found[one.name] = [value]
        return found


def _fields(value: Any) -> dict[str, Any]:
    return {one.name: plain(getattr(value, one.name)) for one in fields(value) if one.repr}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: of dataclasses the fields in their repr, NaN and infinities as None."""
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):  # of NumPy and torch
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def arrow(values: Sequence[Any], kind: Any = None) -> Any:
    """Return a column as an Arrow array of this type; without one, values of several types become strings."""
    import pyarrow as pa

    if kind is None and isinstance(values, list | tuple):
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int, float}:
            kind = pa.float64()
        elif len(kinds) > 1 or not kinds <= {bool, int, float, str}:
            return pa.array([None if value is None else str(value) for value in values])
    return pa.array(values, type=kind)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return the text, after it is written to a file if there is a path."""
    if path is not None:
        write_atomically = import_module("isoscope.io.atomic").write_atomically  # built on this module
        write_atomically(Path(path), lambda beside: beside.write_text(text, encoding="utf-8"))
    return text


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise not_installed(f"`to_{name}`", name, extra="frames") from None


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def _cell(value: Any) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if value is None or is_number else str(value)
