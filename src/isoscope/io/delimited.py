"""CSV and TSV as tables: what the columns hold is told by the first rows, the rest is streamed by Arrow."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from isoscope.errors import FileError, Setting, ShapeError
from isoscope.io.arrow_files import arrow_input
from isoscope.io.delimited_layout import MISSING, NULLS, Layout, is_number, layout, long_cells
from isoscope.io.files import check_utf8, is_gzip, open_bytes, reason
from isoscope.io.structure import check_growth
from isoscope.io.table import Table, Wanted
from isoscope.list_columns import is_list, parsed_lists
from isoscope.printable import listed
from isoscope.table_columns import NUMBERS, VECTORS, Column

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

_BLOCK_BYTES = 2**20  # Arrow reads up to 32 of these ahead; a row may be no longer
_TEXT_BLOCK_BYTES = 8 * 2**20
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")


class DelimitedTable(Table):
    """A .csv or .tsv file, perhaps gzipped; how many rows there are is known only at the end."""

    is_typed = False

    def __init__(self, path: FilePath, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        shape = layout(path, header=wanted.header, delimiter=wanted.delimiter, decimal=wanted.decimal)
        if wanted.heads is None and shape.questions:
            raise shape.questions[0]
        if not shape.n_header_lines and _names_columns(shape, wanted):
            shape = layout(path, header=True)
        self._layout, self.written = shape, shape.names
        self.can_rewrite = len(set(shape.names)) == len(shape.names)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the columns, judged by their first rows."""
        return self._layout.holds

    def type_of(self, place: int) -> Any:
        """Return what most cells hold; for lists, the Arrow type."""
        import pyarrow as pa

        return pa.list_(pa.float64()) if self.kinds[place] == VECTORS else self.kinds[place]

    def numbers(self) -> list[Column]:
        """Return the columns, judged by their first rows."""
        shape = self._layout
        return [
            Column(name, held == NUMBERS, shape.is_written_whole(place), shape.numbers(place))
            for place, (name, held) in enumerate(zip(shape.names, shape.holds, strict=True))
        ]

    def batches(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Yield float64 numbers, truth values, lists or strings, as many rows as Arrow parses at a time."""
        import pyarrow as pa

        del n_rows
        lists = [place for place in places if self.kinds[place] == VECTORS]
        number = pa.bool_() if self._layout.is_boolean else pa.float64()
        types = {place: number if self.kinds[place] == NUMBERS else pa.string() for place in places}
        start = 0
        for batch in self._read(types):
            columns = [
                parsed_lists(column, self.path, start=start, error=FileError) if place in lists else column
                for place, column in zip(places, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[self.written[place] for place in places])
            start += len(batch)

    def beside(self, places: list[int]) -> Iterator[Any]:
        """Yield columns as strings."""
        import pyarrow as pa

        names = [self.written[place] for place in places]
        for batch in self._read(dict.fromkeys(places, pa.string())):
            yield pa.RecordBatch.from_arrays(batch.columns, names=names)

    def values(self, place: int) -> list[str]:
        """Read a whole column, with its cells as they are written."""
        return list(
            itertools.chain.from_iterable(batch.column(0).to_pylist() for batch in self.beside([place]))
        )

    def n_numbers(self, place: int) -> int:
        """Return the length of the first list among the first rows."""
        cell = next(cell for cell in self._layout.cells(place) if is_list(cell))
        numbers = cell.strip("[]").replace(",", " ").split()
        if "..." in numbers:
            raise FileError(
                f"{self.path} has lists cut short by NumPy ('...') in column {self.written[place]!r}",
                wanted="every number",
                hint=["save the vectors as .npy", "write them as lists (X.tolist())"],
            )
        return len(numbers)

    def no_dimensions(self) -> FileError:
        """Name the columns; of texts, say what can be done with them."""
        shape = self._layout
        if NUMBERS in shape.holds:
            names = listed(name for name in shape.names if name)
            return FileError(
                f"{self.path} has no column of dimensions; it has {names}",
                hint=Setting("columns", to="name those that are"),
            )
        heads = (
            shape.names if shape.n_header_lines else shape.rows[0]
        )  # over words, a header looks like a row
        held = listed(repr(head[:40]) for head in heads)
        return FileError(
            f"{self.path} has no column of numbers, only texts (its first line has {held})",
            wanted="a column for each dimension",
            hint="encode the texts with a model first (isoscope.encode)",
        )

    def _read(self, types: dict[int, Any]) -> Iterator[Any]:
        """Yield Arrow record batches of some columns, each with its type."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        path, shape = self.path, self._layout
        # columns go by their place, so that two of one name do no harm
        smallest = _TEXT_BLOCK_BYTES if pa.string() in types.values() else _BLOCK_BYTES
        try:
            with _stream(path) as file:
                batches = arrow_csv.open_csv(
                    file,
                    read_options=arrow_csv.ReadOptions(
                        column_names=[str(place) for place in range(len(shape.names))],
                        skip_rows=shape.n_header_lines,
                        block_size=max(smallest, 4 * shape.longest_line),
                    ),
                    parse_options=arrow_csv.ParseOptions(delimiter=shape.delimiter, newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(
                        include_columns=[str(place) for place in types],
                        column_types={str(place): of for place, of in types.items()},
                        null_values=NULLS,
                        decimal_point=shape.decimal,
                    ),
                )
                n_cells, packed = 0, path.stat().st_size
                for batch in batches:
                    n_cells += len(batch) * len(shape.names)  # each of a byte or more
                    check_growth(n_cells, packed, str(path), "gunzip it first")
                    if len(batch):
                        yield batch
        except pa.ArrowInvalid as error:
            _explain(path, shape, [place for place, of in types.items() if of == pa.float64()], error)


def _names_columns(shape: Layout, wanted: Wanted) -> bool:
    """Whether a first row that looks like any other is a header: over words, a header looks like words."""
    if wanted.heads is None:
        return False
    if wanted.named:
        return not set(wanted.named) <= set(shape.names)
    if len(shape.names) == 1:
        return shape.rows[0][0].strip().lower() in wanted.heads
    return NUMBERS not in shape.holds


def _stream(path: FilePath) -> Any:
    """Open a file by Arrow itself, since its reading thread may outlive an error and the interpreter."""
    import pyarrow as pa

    packing = "gzip" if is_gzip(path) else None
    if isinstance(path, Path):
        return pa.input_stream(path, compression=packing)
    return pa.CompressedInputStream(arrow_input(path), packing) if packing else arrow_input(path)


def integers_or_strings(cells: list[str]) -> list[str] | np.ndarray:
    """Return cells as integers where every cell is one, else as stripped strings; "007" is a string."""
    cells = [cell.strip() for cell in cells]
    if cells and all(map(_INTEGER.fullmatch, cells)):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    return cells


def _explain(path: FilePath, shape: Layout, places: list[int], error: Exception) -> NoReturn:
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
                    f"{path} has {len(row)} cells in line {reader.line_num}",
                    wanted=f"{len(shape.names)} in every line",
                ) from error
            for place in places:
                if not is_number(row[place], shape.decimal) and row[place].strip().lower() not in MISSING:
                    raise FileError(
                        f"{path} has {row[place][:40]!r} in line {reader.line_num}, "
                        f"column {shape.names[place]!r}",
                        wanted="a number",
                        hint=["correct it", "remove the line"],
                    ) from error
    raise FileError(f"{path} cannot be read as delimited text: {reason(error)}") from error
