"""CSV and TSV: what the columns hold is told by the first rows, the rest is streamed by Arrow."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from isoscope.errors import FileError, ShapeError
from isoscope.io.arrow_tables import check_lists, table_array
from isoscope.io.chunks import Chunk, Reader
from isoscope.io.delimited_layout import MISSING, NULLS, Layout, is_list, is_number, layout, long_cells
from isoscope.io.dimension_columns import choose_dimensions, excluded
from isoscope.io.files import check_utf8, is_gzip, listed, open_bytes, reason
from isoscope.io.structure import check_growth
from isoscope.io.table_rows import TableRows
from isoscope.table_columns import NUMBERS, VECTORS, Column

_BLOCK_BYTES = 2**20  # Arrow reads up to 32 of these ahead; a row may be no longer
_TEXT_BLOCK_BYTES = 8 * 2**20
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")


class DelimitedReader(Reader):
    """A .csv or .tsv file, perhaps gzipped: its numeric columns, or one of lists in brackets."""

    def open(self) -> None:
        """Judge the layout; how many rows there are is known only at the end."""
        request = self.request
        self._layout = shape = layout(
            self.path, header=request.header, delimiter=request.delimiter, decimal=request.decimal
        )
        self.columns = shape.names
        if shape.questions:
            raise FileError(shape.questions[0])
        self._check_known()
        vectors = self._list_place()
        self._is_list = vectors is not None
        if vectors is not None:
            self._places = [vectors]
            self.n_dims = len(_list_cells(self.path, shape, vectors))
            return
        columns = [
            Column(name, shape.holds[place] == NUMBERS, shape.is_written_whole(place), shape.numbers(place))
            for place, name in enumerate(shape.names)
        ]
        self._places, self.notes = choose_dimensions(request, columns)
        if not self._places:
            raise FileError(_no_numbers(self.path, shape, [name for name in shape.names if name]))
        self.n_dims = len(self._places)

    def pieces(self) -> Iterator[Chunk]:
        """Rows as Arrow parses them, float64."""
        start = 0
        type_name = "string" if self._is_list else "bool" if self._layout.is_boolean else "double"
        for batch in read_batches(self.path, self._layout, self._places, type_name):
            if not len(batch):
                continue
            if self._is_list:
                yield Chunk(
                    check_lists(_parsed(self.path, batch.column(0), start), self.path, self.n_dims, start)
                )
            else:
                yield Chunk(table_array(batch))
            start += len(batch)

    def table_rows(self) -> TableRows | None:
        """The columns that are not vectors, as strings; None where two have one name."""
        import pyarrow as pa

        names = self.columns
        if len(set(names)) < len(names):
            return None
        others = [place for place in range(len(names)) if place not in self._places]

        def read() -> Iterator[Any]:
            for batch in read_batches(self.path, self._layout, others, "string"):
                yield pa.RecordBatch.from_arrays(batch.columns, names=[names[place] for place in others])

        vectors = tuple(names[place] for place in self._places)
        list_type = pa.list_(pa.float64()) if self._is_list else None
        return TableRows(names, vectors, list_type, self.label_column() is not None, read)

    def label_values(self, column: str) -> Any:
        """The whole column, as integers where every cell is one."""
        return read_column(self.path, self._layout, self.columns.index(column))

    def _check_known(self) -> None:
        """Raise FileError where labels or weights name one of several columns of that name."""
        for name in (self.request.labels, self.request.weights):
            if self.columns.count(name or "") > 1 and name is not None:
                raise FileError(
                    f"{self.path} has {self.columns.count(name)} columns {name!r}; wanted one so called"
                )

    def _list_place(self) -> int | None:
        """The column of lists that holds the vectors; None where the dimensions are columns of numbers."""
        asked, shape = self.request.vector_column, self._layout
        lists = [place for place, holds in enumerate(shape.holds) if holds == VECTORS]
        if asked is not None:
            if asked not in shape.names:
                raise FileError(f"{self.path} has no column {asked!r}; it has {listed(shape.names)}")
            lists = [place for place in lists if shape.names[place] == asked]
            if not lists:
                raise FileError(
                    f"{self.path} has no lists of numbers in column {asked!r}; "
                    "wanted one vector a row, as [0.1, 0.2]"
                )
        elif self.request.columns is not None:
            return None
        out = excluded(self.request, shape.names)
        lists = [place for place in lists if place not in out and shape.names[place] not in self.apart()]
        if len(lists) > 1:
            raise FileError(
                f"{self.path} has {len(lists)} columns of vectors: "
                f"{listed(shape.names[place] for place in lists)}; say which with vector_column="
            )
        return lists[0] if lists else None


def _no_numbers(path: Path, shape: Layout, names: list[str]) -> str:
    """Why a file without a dimension cannot be read as vectors, in words that name its columns."""
    if NUMBERS in shape.holds:
        return (
            f"{path} has no column of dimensions; it has {listed(names)}: name those that are with columns="
        )
    heads = shape.names if shape.n_header_lines else shape.rows[0]  # over words, a header looks like a row
    held = listed(repr(head[:40]) for head in heads)
    return (
        f"{path} has no column of numbers, only texts (its first line has {held}); "
        "wanted a column for each dimension: encode texts by a model first (isoscope.encode)"
    )


def _list_cells(path: Path, shape: Layout, place: int) -> list[str]:
    """The numbers of the first list of a column, as they are written."""
    cell = next(cell for cell in shape.cells(place) if is_list(cell))
    numbers = cell.strip("[]").replace(",", " ").split()
    if "..." in numbers:
        raise FileError(
            f"{path} has lists cut short by NumPy ('...') in column {shape.names[place]!r}; "
            "wanted every number: save the vectors as .npy, or as lists (X.tolist())"
        )
    return numbers


def _parsed(path: Path, column: Any, start: int) -> Any:
    """Lists in brackets as an Arrow column of lists of numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.utf8_trim_whitespace(column)
    whole = pc.and_(pc.starts_with(cells, "["), pc.ends_with(cells, "]"))
    bad = pc.index(pc.fill_null(whole, False), False).as_py()
    if bad >= 0:
        raise FileError(
            f"{path} has {str(column[bad])[:40]!r} in row {start + bad}; wanted a list of numbers in brackets"
        )
    inside = pc.replace_substring(pc.utf8_trim(cells, "[]"), ",", " ")
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(inside))
    try:
        numbers = words.flatten().cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise FileError(f"{path} has a list with a word that is no number: {reason(error)}") from error
    return pa.ListArray.from_arrays(words.offsets, numbers)


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
    smallest = _TEXT_BLOCK_BYTES if type_name == "string" else _BLOCK_BYTES
    try:
        # Arrow's own file, not Python's: its reading thread may outlive an error, and the interpreter
        with pa.input_stream(path, compression="gzip" if is_gzip(path) else None) as file:
            batches = arrow_csv.open_csv(
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
                    null_values=NULLS,
                    decimal_point=shape.decimal,
                ),
            )
            n_cells, packed = 0, path.stat().st_size
            for batch in batches:
                n_cells += len(batch) * len(shape.names)  # each of a byte or more
                check_growth(n_cells, packed, str(path), "gunzip it first")
                yield batch
    except pa.ArrowInvalid as error:
        _explain(path, shape, places if type_name == "double" else [], error)


def _explain(path: Path, shape: Layout, places: list[int], error: Exception) -> NoReturn:
    """Find the line that Arrow could not parse and say what is wrong with it."""
    with open_bytes(path) as file, long_cells():
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
                if not is_number(row[place], shape.decimal) and row[place].strip().lower() not in MISSING:
                    raise FileError(
                        f"{path} has {row[place][:40]!r} in line {reader.line_num}, "
                        f"column {shape.names[place]!r}; wanted a number: correct it or take the line out"
                    ) from error
    raise FileError(f"{path} cannot be read as delimited text: {reason(error)}") from error
