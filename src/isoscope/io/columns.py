"""A file as columns: what they are called, what they hold, and one of them read whole.

Labels and texts are read from the same kinds of files; this is what they share.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoscope.errors import FileError, ShapeError
from isoscope.io import arrow_tables, delimited
from isoscope.io.delimited_layout import Layout, layout
from isoscope.io.files import MAX_LINE_BYTES, check_text, check_utf8, kind, listed, open_bytes
from isoscope.io.structure import parse_json
from isoscope.table_columns import N_JUDGED, NUMBERS, OTHER, TEXTS, VECTORS

_MAX_JSON_BYTES = 64 * 2**20
_MAX_INNER, _MAX_NAME = 1000, 100  # entries of an inner object, letters of its name


@dataclass(frozen=True)
class Columns:
    """The columns of a file, of which no more than the first rows has been looked at.

    path: the file.
    holds: what each column holds, by its name; empty where the file has one value a row and no names.
    read: one column whole, by its name, or None where there are no names; a missing value is None or "".
    unit, first: how a row is called in messages, and the number of the first.
    is_typed: whether values have types; where not, all are strings as they stand.
    """

    path: Path
    holds: Mapping[str, str]
    read: Callable[[str | None], Any]
    unit: str = "row"
    first: int = 0
    is_typed: bool = True

    @property
    def names(self) -> list[str]:
        """The columns' names, in order."""
        return list(self.holds)

    def place(self, row: int) -> str:
        """Where the row with this index is, for a message."""
        return f"{self.unit} {row + self.first}"

    def check(self, column: str) -> None:
        """Raise FileError unless there is such a column."""
        if not self.holds:
            raise FileError(f"{self.path} has no columns, so no {column!r}; leave the column out")
        if column not in self.holds:
            raise FileError(f"{self.path} has no column {column!r}; it has {listed(self.names)}")


def open_columns(
    path: Path, *, what: str, heads: Collection[str] = (), named: Collection[str] = ()
) -> Columns | None:
    """The columns of a file by its suffix; None where no such file has columns or values a line.

    Args:
        path: a file that is there.
        what: what is looked for, in the plural, for messages.
        heads: how a column of these is called, in lower case: such a word over words is a header.
        named: the columns the caller asks for: whoever names one says that there is a header.
    """
    form = kind(path)
    if form in (".csv", ".tsv"):
        return _delimited(path, heads, named)
    opener = _OPENERS.get(form)
    return opener(path, what) if opener else None


def text_lines(path: Path, *, what: str) -> Iterator[str]:
    """The lines of a UTF-8 file without their ends, each of bounded length."""
    with open_bytes(path) as file, io.TextIOWrapper(file, "utf-8-sig", "surrogateescape") as text:
        for number in itertools.count(1):
            line = text.readline(MAX_LINE_BYTES)
            if not line:
                return
            check_text(line, path, what=what)
            check_utf8(line, path, number)
            yield line.rstrip("\n")


def _lines(path: Path, what: str) -> Columns:
    def read(_: str | None) -> list[str]:
        lines = list(text_lines(path, what=what))
        while lines and not lines[-1].strip():
            lines.pop()
        return lines

    return Columns(path, {}, read, unit="line", first=1)


def _delimited(path: Path, heads: Collection[str], named: Collection[str]) -> Columns:
    shape = layout(path)
    if not shape.n_header_lines and _names_columns(shape, heads, named):
        shape = layout(path, header=True)
    holds: dict[str, str] = {}
    for name, held in zip(shape.names, shape.holds, strict=True):
        holds[name if name not in holds else f"{name} ({len(holds)})"] = held  # two of one name are two

    def read(name: str | None) -> list[str]:
        return delimited.read_cells(path, shape, list(holds).index(name or ""))

    return Columns(path, holds, read, is_typed=False)


def _names_columns(shape: Layout, heads: Collection[str], named: Collection[str]) -> bool:
    """Whether a first row that looks like any other is a header: over words, a header looks like words."""
    if named:
        return not set(named) <= set(shape.names)
    if len(shape.names) == 1:
        return shape.rows[0][0].strip().lower() in heads
    return NUMBERS not in shape.holds


def _table(path: Path, _: str) -> Columns:
    table = arrow_tables.open_table(path)

    def read(name: str | None) -> Any:
        return table.column(str(name))

    return Columns(path, {field.name: _arrow_holds(field.type) for field in table.schema}, read)


def _arrow_holds(of: Any) -> str:
    if arrow_tables.is_text(of):
        return TEXTS
    if arrow_tables.is_vector(of):
        return VECTORS
    return NUMBERS if arrow_tables.is_number(of) else OTHER


def _json(path: Path, what: str) -> Columns:
    found = load_json(path)
    if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
        return _records(path, lambda: enumerate(found), unit="entry", first=0)
    columns = found if isinstance(found, dict) else {}

    def read(name: str | None) -> list[Any]:
        values = found if name is None else columns[name]
        if not isinstance(values, list):
            raise FileError(f"{path} holds one {type(values).__name__}; wanted a list of {what}")
        return values

    holds = {
        name: _json_holds(values[:N_JUDGED]) if isinstance(values, list) else OTHER
        for name, values in columns.items()
    }
    if isinstance(found, dict) and not found:
        raise ShapeError(f"{path} has no {what}; it is an empty object")
    return Columns(path, holds, read, unit="entry")


def load_json(path: Path) -> Any:
    """The content of a .json file, perhaps gzipped; larger ones take many times their size in memory."""
    with open_bytes(path) as file:
        raw = file.read(_MAX_JSON_BYTES + 1)
    if len(raw) > _MAX_JSON_BYTES:
        raise FileError(
            f"{path} has more than {_MAX_JSON_BYTES:,} bytes of JSON; wanted fewer: "
            "save it as .jsonl, a row a line"
        )
    value = parse_json(raw, str(path), max_bytes=_MAX_JSON_BYTES).value
    return [flat(row) for row in value] if isinstance(value, list) else value


def json_rows(path: Path, what: str) -> Iterator[tuple[int, Any]]:
    """What each line of a .jsonl file holds, with the line's number."""
    blank = 0
    for number, line in enumerate(text_lines(path, what=what), start=1):
        if not line.strip():
            blank = blank or number
            continue
        if blank:  # at the end of the file it would do no harm
            raise FileError(f"{path} has no JSON in line {blank}: it is blank; wanted an object a line")
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = getattr(error, "msg", "it is nested too deep, or has too long a number")
            raise FileError(f"{path} has no JSON in line {number}: {why}; wanted an object a line") from error
        yield number, flat(row)


def flat(row: Any) -> Any:
    """Return a row with the values of inner objects under dotted names.

    Long names and large inner objects stay as they are: their dotted names would take too much memory.
    """
    if not isinstance(row, dict):
        return row
    values: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and len(value) <= _MAX_INNER and len(name) <= _MAX_NAME:
            values |= {f"{name}.{inner}": cell for inner, cell in value.items()}
        else:
            values[name] = value
    return values


def vectors_in(cells: list[Any]) -> list[Any]:
    """Return the numbers of strings such as "[0.5, 1]" where all cells are such strings, else the cells."""
    told = [cell for cell in cells if cell is not None]
    if not told or not all(isinstance(cell, str) and cell[:1] == "[" for cell in told):
        return cells
    numbers = [None if cell is None else vector_in(cell) for cell in cells]
    types = {type(number) for vector in numbers if isinstance(vector, list) for number in vector}
    return numbers if all(isinstance(one, list | None) for one in numbers) and float in types else cells


def vector_in(cell: Any) -> Any:
    """Return the numbers of a string such as "[0.5, 1]", or the cell where it is anything else."""
    try:
        numbers = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError):
        return cell
    is_vector = isinstance(numbers, list) and set(map(type, numbers)) <= {int, float}
    return numbers if is_vector else cell


def _json_lines(path: Path, what: str) -> Columns:
    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, row in json_rows(path, what):
            if not isinstance(row, dict):
                raise FileError(f"{path} has no object in line {number}; wanted {{column: value}} in each")
            yield number, row

    return _records(path, rows, unit="line", first=1)


def _records(
    path: Path, rows: Callable[[], Iterator[tuple[int, dict[str, Any]]]], *, unit: str, first: int
) -> Columns:
    """Columns of objects, one a row, each under its keys."""
    cells: dict[str, list[Any]] = {}
    for _, row in itertools.islice(rows(), N_JUDGED):
        for name, cell in row.items():
            cells.setdefault(name, []).append(cell)

    def read(name: str | None) -> list[Any]:
        return [_cell(path, row, str(name), f"{unit} {place}") for place, row in rows()]

    return Columns(path, {name: _json_holds(values) for name, values in cells.items()}, read, unit, first)


def _cell(path: Path, row: dict[str, Any], name: str, where: str) -> Any:
    if name not in row:
        raise FileError(f"{path} has no column {name!r}; it has {listed(row) or 'none'} in {where}")
    return row[name]


def _json_holds(cells: list[Any]) -> str:
    told = [cell for cell in vectors_in(cells) if cell is not None]
    for holds, types in ((TEXTS, str), (NUMBERS, int | float)):
        if told and all(isinstance(cell, types) for cell in told):
            return holds
    if told and all(isinstance(cell, list) and cell for cell in told):
        numbers = [type(number) for cell in told for number in cell]
        # lists of whole numbers and of many lengths are tokens, or the like
        if set(numbers) <= {int, float} and (float in numbers or len({len(cell) for cell in told}) == 1):
            return VECTORS
    return OTHER


_OPENERS: dict[str, Callable[[Path, str], Columns]] = {
    ".txt": _lines,
    ".json": _json,
    ".jsonl": _json_lines,
    ".parquet": _table,
    ".arrow": _table,
    ".feather": _table,
}
KINDS = (".txt", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".json", ".jsonl")
