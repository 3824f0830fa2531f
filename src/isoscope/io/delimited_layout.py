"""How a delimited file is written, judged by its first rows: delimiter, decimal mark, header, columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoscope.errors import FileError, Hint, InputError, Setting, ShapeError
from isoscope.io.files import MAX_LINE_BYTES, check_utf8, kind, sample_lines
from isoscope.list_columns import are_lists, is_list
from isoscope.table_columns import (
    MAX_COLUMNS,
    NUMBERS,
    TEXTS,
    VECTORS,
    are_truth_values,
    check_n_columns,
    whole_numbers,
)

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

_MAX_CELLS = 2**18  # looked at before anything is read
_N_LINES = 20  # compared where a line could be cut by several delimiters
_N_SHOWN = 3
_MAX_DIGITS = 40  # of a whole number that is compared exactly
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_COMMA = re.compile(r"[+-]?(\d*,\d+|\d+,)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_TRUTHS, _TRUTH_VALUES = "truths", ("true", "false")
NULLS = ["", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "None", "none"]
MISSING = {null.lower() for null in NULLS} | {"inf", "-inf", "+inf", "infinity", "-infinity"}


@dataclass(frozen=True)
class Layout:
    """How a delimited file is written, judged by its first rows.

    delimiter, decimal: the character between cells, and between a whole number and its fraction.
    names: of the columns; their places, from 0, where there is no header.
    holds: what each column holds.
    n_header_lines: physical lines up to the first row of data.
    rows: the first rows of data.
    longest_line: of those looked at, in characters.
    questions: what cannot be told and changes the numbers, as errors.
    is_boolean: whether the numbers are written as truth values.
    """

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    holds: tuple[str, ...]
    n_header_lines: int
    rows: list[list[str]]
    longest_line: int
    questions: tuple[FileError, ...]
    is_boolean: bool = False

    def cells(self, place: int) -> list[str]:
        """Return the first cells of a column that are not missing, stripped."""
        cells = (row[place].strip() for row in self.rows if len(row) > place)
        return [cell for cell in cells if cell.lower() not in MISSING]

    def numbers(self, place: int) -> np.ndarray:
        """Return the first numbers of a column."""
        cells = [cell for cell in self.cells(place) if is_number(cell, self.decimal)]
        if self.is_written_whole(place) and all(len(cell) <= _MAX_DIGITS for cell in cells):
            return whole_numbers(cells)
        return np.array([as_number(cell, self.decimal) for cell in cells])

    def is_written_whole(self, place: int) -> bool:
        """Whether the first cells of a column are written without a fraction or an exponent."""
        return all(map(INTEGER.fullmatch, self.cells(place)))


def layout(
    path: FilePath, *, header: bool | None = None, delimiter: str | None = None, decimal: str | None = None
) -> Layout:
    """Infer the layout of a delimited file from its first rows, except for what the caller says."""
    lines = _lines(path)
    between = _checked(delimiter) if delimiter is not None else _delimiter(path, lines)
    rows, ends = _rows(path, lines, between)
    if not rows:
        raise FileError(f"{path} has only blank lines", wanted="at least one row")
    mark, doubts = _decimal(path, rows, decimal)
    if header is None:
        header, doubt = _is_header(path, rows, mark)
        doubts += doubt
    data = rows[1:] if header else rows
    if not data:
        raise ShapeError(f"{path} has a header but no rows", wanted="at least one row")
    names = rows[0] if header else [str(place) for place in range(len(rows[0]))]
    columns = _columns(data, len(names))
    holds = [_holds(cells, mark) for cells in columns]
    is_boolean = are_truth_values(names, [held == _TRUTHS for held in holds])
    known = {_TRUTHS: NUMBERS if is_boolean else TEXTS}
    longest = max(map(len, lines), default=0)
    return Layout(
        between,
        mark,
        tuple(names),
        tuple(known.get(held, held) for held in holds),
        ends[0] if header else 0,
        data,
        longest,
        tuple(doubts),
        is_boolean,
    )


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is a number, as Arrow reads one."""
    if decimal == "," and "." in cell:
        return False
    try:
        as_number(cell, decimal)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, Arrow does not


def as_number(cell: str, decimal: str) -> float:
    """Return the number in a cell; raise ValueError if there is none."""
    return float(cell if decimal == "." else cell.replace(",", ".", 1))


@contextmanager
def long_cells() -> Iterator[None]:
    """Allow cells as long as a line: by default Python's csv stops at 131,072 characters."""
    before = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _lines(path: FilePath) -> list[str]:
    """Return the first lines as text; the header must be UTF-8, columns that are not read need not be."""
    raw = sample_lines(path, what="delimited numbers")
    lines = [line.decode("utf-8-sig", "surrogateescape") for line in raw]
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if first is not None:
        check_utf8(lines[first], path, first + 1)
    return lines


def _rows(path: FilePath, lines: list[str], delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Return the first rows and the number of the line in which each ends; fewer where rows are wide."""
    reader = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    ends: list[int] = []
    with long_cells():
        for row in reader:
            if not row:
                continue
            check_n_columns(len(row), path, ["save it as .npy", Setting("delimiter", to="name another")])
            rows.append(row)
            ends.append(reader.line_num)
            if len(rows) * len(row) > _MAX_CELLS and len(rows) > 1:
                break
    return rows, ends


def _checked(delimiter: str) -> str:
    named = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(delimiter, delimiter)
    if len(named) != 1 or named in '\r\n"\0' or not named.isascii():
        raise InputError(argument="delimiter", got=delimiter, wanted="one character, such as ; or tab")
    return named


def _delimiter(path: FilePath, lines: list[str]) -> str:
    """Infer the delimiter: a tab for .tsv; for .csv the comma, semicolon, tab or blanks that give numbers."""
    lines = [line for line in lines if line.strip()][:_N_LINES]
    first = lines[0] if lines else ""
    if kind(path) == ".tsv":
        return "\t"
    candidates = [mark for mark in ",;\t" if mark in first]
    n_words = len(first.split())
    if n_words > 1 and any(_are_numbers(line.split(), n_words) for line in lines[:2]):  # perhaps below names
        candidates.append(" ")
    if len(candidates) < 2:
        return candidates[0] if candidates else ","
    return max(candidates, key=lambda mark: _share_of_numbers(lines, mark))  # the first of equals


def _are_numbers(cells: list[str], n_cells: int) -> bool:
    return len(cells) == n_cells and all(is_number(cell) or _COMMA.fullmatch(cell) for cell in cells)


def _share_of_numbers(lines: list[str], delimiter: str) -> float:
    with long_cells():
        try:
            rows = list(csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter))
        except csv.Error:
            return 0.0
    cells = [cell.strip() for row in rows for cell in row[:MAX_COLUMNS]]
    return sum(is_number(cell) or _COMMA.fullmatch(cell) is not None for cell in cells) / max(len(cells), 1)


def _decimal(path: FilePath, rows: list[list[str]], asked: str | None) -> tuple[str, list[FileError]]:
    """Infer the decimal mark; also return a question where numbers have both marks or groups of thousands."""
    if asked is not None:
        if asked not in (".", ","):
            raise InputError(argument="decimal", got=asked, wanted="a point or a comma")
        return asked, []
    cells = [cell.strip() for row in rows for cell in row if "," in cell or "." in cell]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell)]
    if not commas:
        return ".", []
    points = [cell for cell in cells if "." in cell and is_number(cell)]
    hint: Hint = [Setting("decimal", to="say which"), "save it again with points"]
    if points:
        question = f"{path} has {commas[0]!r} and {points[0]!r}: is the decimal mark , or . ?"
        return ".", [FileError(question, hint=hint)]
    if all(map(_THOUSANDS.fullmatch, commas)):
        question = f"{path} has {commas[0]!r}: is the comma a decimal mark, or one of thousands?"
        return ",", [FileError(question, hint=hint)]
    return ",", []


def _is_header(path: FilePath, rows: list[list[str]], decimal: str) -> tuple[bool, list[FileError]]:
    """Whether the first row names columns, and a question where that cannot be told."""
    first, rest = rows[0], rows[1:]
    if not rest:
        return not any(is_number(cell, decimal) for cell in first), []
    columns = _columns(rest, len(first))
    places = [place for place, cells in enumerate(columns) if _holds(cells, decimal) != TEXTS]
    if not places:
        return False, []
    heads = [first[place].strip() for place in places]
    if 2 * sum(not is_number(head, decimal) and not _is_value(head) for head in heads) > len(heads):
        return True, []
    # pandas names columns by number, and leaves the name over its row index empty
    counted = [head for head in heads if head]
    are_floats = all(head.endswith(".0") for head in counted)  # pandas pivots and merges to such names
    counted = [head.removesuffix(".0") for head in counted] if are_floats else counted
    if not all(map(INTEGER.fullmatch, counted)) or len(set(counted)) < len(counted):
        return False, []
    n_whole = sum(all(map(INTEGER.fullmatch, _present(columns[place]))) for place in places[-len(counted) :])
    is_range = [int(head) - int(counted[0]) for head in counted] == list(range(len(counted)))
    if is_range and not are_floats and counted[0] in ("0", "1") and n_whole < len(counted):
        return True, []
    is_range = is_range and len(counted) > (1 if counted[0] == "0" and not are_floats else 2)
    if is_range or (len(counted) > 1 and not are_floats and _mostly_fractions(columns, places)):
        shown = ", ".join(counted[:_N_SHOWN]) + (", …" if len(counted) > _N_SHOWN else "")
        question = f"{path} begins with {shown}: names of columns, or a row?"
        hint = [Setting("header", True), Setting("header", False)]
        return is_range and counted[0] == "0", [FileError(question, hint=hint)]
    return False, []


def _mostly_fractions(columns: list[list[str]], places: list[int]) -> bool:
    """Whether whole numbers would be a strange row of these columns."""
    cells = [cell for place in places for cell in _present(columns[place])]
    return 10 * sum(map(bool, map(INTEGER.fullmatch, cells))) < len(cells)


def _columns(rows: list[list[str]], n_columns: int) -> list[list[str]]:
    return [[row[place] for row in rows if len(row) > place] for place in range(n_columns)]


def _present(cells: Iterable[str]) -> list[str]:
    return [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]


def _holds(cells: list[str], decimal: str) -> str:
    """Return what most cells of a column hold, so that a single bad cell is an error."""
    present = _present(cells)
    if 2 * sum(is_number(cell, decimal) for cell in present) > len(present):
        return NUMBERS
    if present and all(cell.lower() in _TRUTH_VALUES for cell in present):
        return _TRUTHS
    return VECTORS if are_lists(present) else TEXTS


def _is_value(cell: str) -> bool:
    """Whether a cell that is no number is no name either."""
    return is_list(cell) or cell.lower() in _TRUTH_VALUES
