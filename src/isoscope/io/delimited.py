"""CSV and TSV: which columns are numbers is told by the first rows, the rest is streamed by Arrow."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from isoscope.errors import FileError, ShapeError
from isoscope.io.chunks import Chunk, Reader
from isoscope.io.files import (
    MAX_LINE_BYTES,
    check_utf8,
    doubtful_dimensions,
    is_gzip,
    kind,
    listed,
    open_bytes,
    reason,
    sample_lines,
)

_BLOCK_BYTES = 2**20  # Arrow reads up to 32 of these ahead; a row may be no longer
_TEXT_BLOCK_BYTES = 8 * 2**20
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_NULLS = ["", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "None", "none"]
_MISSING = {null.lower() for null in _NULLS} | {"inf", "-inf", "+inf", "infinity", "-infinity"}


@dataclass(frozen=True)
class Layout:
    """How a delimited file is written, judged by its first rows."""

    delimiter: str
    names: tuple[str, ...]
    is_number: tuple[bool, ...]
    n_header_lines: int  # physical lines up to the first row of data
    first_row: tuple[str, ...]
    longest_line: int


class DelimitedReader(Reader):
    """A .csv or .tsv file, perhaps gzipped: its numeric columns are the dimensions."""

    def open(self) -> None:
        """Judge the layout; how many rows there are is known only at the end."""
        self._layout = layout(self.path)
        self.columns = self._layout.names
        places = [place for place, name in enumerate(self.columns) if name not in self.apart()]
        numeric = [place for place in places if self._layout.is_number[place]]
        texts = [place for place in places if place not in numeric]
        if texts:
            left_out = listed(self.columns[place] for place in texts)
            self.notes.append(f"left out non-numeric columns: {left_out}")
        if _has_index(self._layout) and 0 in numeric:
            numeric.remove(0)
            self.notes.append("left out the unnamed first column, a row index")
        if not numeric:
            raise FileError(_no_numbers(self.path, self._layout, texts))
        self.notes += doubtful_dimensions(
            (self.columns[place] for place in numeric), labelled=self.label_column() is not None
        )
        self._places = numeric
        self.n_dims = len(numeric)

    def pieces(self) -> Iterator[Chunk]:
        """Rows as Arrow parses them, float64."""
        from isoscope.io.arrow_tables import table_array

        for batch in read_batches(self.path, self._layout, self._places, "double"):
            if len(batch):
                yield Chunk(table_array(batch))

    def label_values(self, column: str) -> Any:
        """The whole column, as integers where every cell is one."""
        return read_column(self.path, self._layout, self.columns.index(column))


def _no_numbers(path: Path, shape: Layout, texts: list[int]) -> str:
    """Why a file without a dimension cannot be read as vectors, in words that name its columns."""
    if not texts:
        return f"{path} has no column of numbers beside {listed(shape.names)}; wanted one a dimension"
    heads = shape.names if shape.n_header_lines else shape.first_row  # over words, a header looks like a row
    held = listed(repr(heads[place][:40]) for place in texts if place < len(heads))
    return (
        f"{path} has no column of numbers, only texts (its first line has {held}); "
        "wanted a column for each dimension: encode texts by a model first (isoscope.encode)"
    )


def read_column(path: Path, shape: Layout, place: int) -> list[str] | np.ndarray:
    """One column of a delimited file: an integer array where every cell is one, else strings."""
    return integers_or_strings(read_cells(path, shape, place))


def read_cells(path: Path, shape: Layout, place: int) -> list[str]:
    """One column of a delimited file, its cells as they stand."""
    batches = read_batches(path, shape, [place], "string")
    return list(itertools.chain.from_iterable(batch.column(0).to_pylist() for batch in batches))


def integers_or_strings(cells: list[str]) -> list[str] | np.ndarray:
    """Cells without the blanks around them. Integers sort as numbers; "007" is a name, not a number."""
    cells = [cell.strip() for cell in cells]
    if cells and all(map(_INTEGER.fullmatch, cells)):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    return cells


def read_batches(path: Path, shape: Layout, places: list[int], type_name: str) -> Iterator[Any]:
    """Arrow record batches of some columns, all of one type."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # columns go by their place, so that two of one name do no harm
    columns = [str(place) for place in places]
    kind_of_value = pa.type_for_alias(type_name)
    smallest = _BLOCK_BYTES if type_name == "double" else _TEXT_BLOCK_BYTES
    try:
        # Arrow's own file, not Python's: its reading thread may outlive an error, and the interpreter
        with pa.input_stream(path, compression="gzip" if is_gzip(path) else None) as file:
            yield from arrow_csv.open_csv(
                file,
                read_options=arrow_csv.ReadOptions(
                    column_names=[str(place) for place in range(len(shape.names))],
                    skip_rows=shape.n_header_lines,
                    block_size=max(smallest, 4 * shape.longest_line),
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=shape.delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=columns,
                    column_types=dict.fromkeys(columns, kind_of_value),
                    null_values=_NULLS,
                ),
            )
    except pa.ArrowInvalid as error:
        _explain(path, shape, places if type_name == "double" else [], error)


def layout(path: Path, *, header: bool | None = None) -> Layout:
    """The layout of a delimited file, from its first rows; `header` says so where the caller knows."""
    rows, ends, longest, delimiter = _sample(path)
    if not rows:
        raise FileError(f"{path} has no rows, only blank lines; wanted at least one")
    header = _is_header(rows) if header is None else header
    data = rows[1:] if header else rows
    if not data:
        raise ShapeError(f"{path} has a header but no rows; wanted at least one row")
    names = rows[0] if header else [str(place) for place in range(len(rows[0]))]
    width = len(names)
    is_number = tuple(
        _mostly_numbers(row[place] for row in data if len(row) > place) for place in range(width)
    )
    return Layout(delimiter, tuple(names), is_number, ends[0] if header else 0, tuple(data[0]), longest)


def _sample(path: Path) -> tuple[list[list[str]], list[int], int, str]:
    """The first rows, the line each ends in, the longest line seen, and the delimiter."""
    lines = [line.decode("utf-8-sig", "replace") for line in sample_lines(path, what="delimited numbers")]
    delimiter = _delimiter(path, next((line for line in lines if line.strip()), ""))
    reader = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter)
    rows, ends = [], []
    with _long_cells():
        for row in reader:
            if row:
                rows.append(row)
                ends.append(reader.line_num)
    return rows, ends, max(map(len, lines), default=0), delimiter


@contextmanager
def _long_cells() -> Iterator[None]:
    """Cells as long as a line may be: Python's csv stops at 131,072 letters, and a text may be longer."""
    before = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter(path: Path, line: str) -> str:
    """Tabs for .tsv; for .csv a comma, semicolon or tab, else blanks between bare numbers."""
    candidates = "\t" if kind(path) == ".tsv" else ",;\t"
    found = next((candidate for candidate in candidates if candidate in line), None)
    if found is None and " " in line.strip() and all(map(_is_number, line.split())):
        return " "
    return found or candidates[0]


def _is_header(rows: list[list[str]]) -> bool:
    """Whether the first row names columns: words, or 0 … d−1, over columns of numbers."""
    first, rest = rows[0], rows[1:]
    if not rest:
        return not any(map(_is_number, first))
    places = [
        place for place in range(len(first)) if _mostly_numbers(r[place] for r in rest if len(r) > place)
    ]
    if not places:
        return False
    heads = [first[place].strip() for place in places]
    if sum(not _is_number(head) for head in heads) * 2 > len(heads):
        return True
    # pandas names columns by number, and leaves the name over its row index empty
    counted = [head for head in heads if head]
    ranges = ([str(i) for i in range(len(counted))], [str(i) for i in range(1, len(counted) + 1)])
    cells = [row[place].strip() for row in rest for place in places if len(row) > place]
    return counted in ranges and not all(map(_INTEGER.fullmatch, cells))


def _has_index(shape: Layout) -> bool:
    """Whether the first column has no name and counts from nought, as pandas writes its row index."""
    return (
        shape.n_header_lines > 0
        and len(shape.names) > 1
        and shape.names[0] == ""
        and shape.first_row[0] == "0"
    )


def _mostly_numbers(cells: Iterator[str]) -> bool:
    """More numbers than other cells, so that one slip is an error and not a column of text."""
    votes = [_is_number(cell) for cell in cells if cell.strip().lower() not in _MISSING]
    return bool(votes) and 2 * sum(votes) > len(votes)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, Arrow does not


def _explain(path: Path, shape: Layout, places: list[int], error: Exception) -> NoReturn:
    """Find the line that Arrow could not parse and say what is wrong with it."""
    with open_bytes(path) as file, _long_cells():
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
        reader = csv.reader(text, delimiter=shape.delimiter)
        for row in reader:
            if reader.line_num <= shape.n_header_lines or not row:
                continue
            check_utf8("".join(row), path, reader.line_num)
            if len(row) != len(shape.names):
                raise ShapeError(
                    f"{path} has {len(row)} cells in line {reader.line_num}; "
                    f"wanted {len(shape.names)} in every line"
                ) from error
            for place in places:
                if not _is_number(row[place]) and row[place].strip().lower() not in _MISSING:
                    raise FileError(
                        f"{path} has {row[place][:40]!r} in line {reader.line_num}, "
                        f"column {shape.names[place]!r}; wanted a number: correct it or take the line out"
                    ) from error
    raise FileError(f"{path} cannot be read as delimited text: {reason(error)}") from error
