"""Vectors in JSON and JSON lines: lists in a column of objects, lists of numbers, or columns of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from isoscope.errors import FileError
from isoscope.io.arrow_files import ArrowReader
from isoscope.io.arrow_tables import Table, column_values
from isoscope.io.columns import flat, json_rows, load_json, vector_in, vectors_in
from isoscope.io.files import kind, reason
from isoscope.table_columns import N_JUDGED, check_n_columns

_LONE = "vector"  # the column of lists that have no name
_MOST_ROWS = 1024  # parsed at a time: as Python's numbers they take several times their size


class JsonReader(ArrowReader):
    """A .json or .jsonl file, perhaps gzipped, read as a table."""

    @property
    def opener(self) -> Callable[[Path], Table]:
        """A list of rows is parsed whole, lines as they come."""
        return JsonLinesTable if kind(self.path) == ".jsonl" else JsonTable

    def open(self) -> None:
        """Choose the columns, unless lists of numbers by name may be columns or vectors."""
        super().open()
        request, table = self.request, self._table
        is_said = any(
            of is not None for of in (request.columns, request.exclude, request.labels, request.weights)
        )
        if isinstance(table, JsonTable) and table.is_object and not self._is_list and not is_said:
            n_lists, length = len(self.columns), table.count()
            if n_lists == len(self._columns) and n_lists > 1:
                raise FileError(
                    f"{self.path} has {n_lists:,} lists of {length:,} numbers by name: {n_lists:,} "
                    f"columns, or {n_lists:,} vectors? say columns=':' for columns; "
                    "save vectors as a list of lists"
                )

    def table_rows(self) -> None:
        """None: what is in a row beside its vector may be of another type in each."""
        return


class JsonTable(Table):
    """A .json file: a list of lists, a list of objects, or an object of lists."""

    is_object = False  # known once it is parsed

    @cached_property
    def _table(self) -> Any:
        import pyarrow as pa

        found = load_json(self.path)
        columns = _columns(self.path, found)
        self.is_object = isinstance(found, dict) and columns.keys() <= found.keys()
        arrays = {name: _array(self.path, name, values) for name, values in columns.items()}
        return pa.table(arrays)

    @cached_property
    def schema(self) -> Any:
        """The schema, by what the columns hold."""
        return self._table.schema

    def count(self) -> int:
        """The rows."""
        return int(self._table.num_rows)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        """Slices of the table."""
        yield from self._table.select(columns).combine_chunks().to_batches(max_chunksize=n_rows)

    def column(self, name: str) -> Any:
        """One whole column, as labels."""
        return column_values(self._table.column(name))


def _columns(path: Path, found: Any) -> dict[str, list[Any]]:
    """Columns of equal length, by name, whatever way the rows are written."""
    if isinstance(found, dict):
        lists = {name: values for name, values in found.items() if isinstance(values, list) and values}
        rows = [name for name, values in lists.items() if all(isinstance(row, dict) for row in values)]
        if len(rows) == 1:  # {"data": [{"embedding": …}, …], "model": …}
            return _columns(path, lists[rows[0]])
        if len({len(values) for values in lists.values()}) == 1:
            check_n_columns(len(lists), path)
            return lists
        raise FileError(
            f"{path} is an object without lists of one length; wanted vectors in a list, one entry a row"
        )
    if isinstance(found, list) and found:
        if all(isinstance(row, dict) for row in found):
            found = [flat(row) for row in found]
            names = dict.fromkeys(name for row in found for name in row)
            check_n_columns(len(names), path)
            return {name: [row.get(name) for row in found] for name in names}
        if all(isinstance(row, list) for row in found):
            return {_LONE: found}
    raise FileError(f"{path} has no vectors; wanted a list of lists of numbers, or of objects that have some")


def _array(path: Path, name: str, values: list[Any]) -> Any:
    """A column as Arrow holds it; one of mixed types is no vector and no label, unless it begins as one."""
    import pyarrow as pa

    try:
        return _typed(vectors_in(values))
    except (pa.ArrowException, OverflowError) as error:
        if isinstance(values[0], list):
            raise FileError(
                f"{path} has lists in {name!r} that are not all of numbers: {reason(error)}"
            ) from error
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _typed(values: list[Any], of: Any = None) -> Any:
    """Return an Arrow array of a type, or of the one the values have; Arrow alone would take true as 1."""
    import pyarrow as pa

    array = pa.array(values, of)
    inner = array.type.value_type if pa.types.is_list(array.type) else array.type
    if pa.types.is_floating(inner):
        for value in values:
            if bool in set(map(type, value if isinstance(value, list) else [value])):
                raise pa.ArrowTypeError("a truth value among numbers")
    return array


class JsonLinesTable(Table):
    """A .jsonl file: an object or a list of numbers a line."""

    @cached_property
    def schema(self) -> Any:
        """The schema, by the first rows; numbers in lists are fractions, which later ones may have."""
        import pyarrow as pa

        rows = [row for _, row in itertools.islice(json_rows(self.path, "vectors"), N_JUDGED)]
        arrays = {name: _array(self.path, name, values) for name, values in _columns(self.path, rows).items()}
        return pa.schema([pa.field(name, _widened(array.type)) for name, array in arrays.items()])

    def count(self) -> None:
        """Only the end of the file tells."""
        return

    def batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        """Lines parsed as they are asked for."""
        import pyarrow as pa

        types = [self.schema.field(name).type for name in columns]
        types = [pa.float64() if pa.types.is_integer(of) else of for of in types]
        rows = json_rows(self.path, "vectors")
        while held := list(itertools.islice(rows, min(n_rows, _MOST_ROWS))):
            arrays = [self._array(name, of, held) for name, of in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)

    def column(self, name: str) -> Any:
        """One whole column, as labels."""
        return [_cell(row, name) for _, row in json_rows(self.path, "labels")]

    def _array(self, name: str, of: Any, rows: list[tuple[int, Any]]) -> Any:
        import pyarrow as pa

        cells = [_cell(row, name) for _, row in rows]
        if pa.types.is_list(of):
            cells = [vector_in(cell) for cell in cells]
        try:
            return _typed(cells, of)
        except (pa.ArrowException, OverflowError):
            for (line, _), cell in zip(rows, cells, strict=True):
                try:
                    _typed([cell], of)
                except (pa.ArrowException, OverflowError) as error:
                    raise FileError(
                        f"{self.path} has {str(cell)[:40]!r} in line {line}, column {name!r}; "
                        f"wanted {_spelled(of)}"
                    ) from error
            raise  # pragma: no cover - each alone is what all are


def _cell(row: Any, name: str) -> Any:
    """A value of a row, None where it has none; a row without names is its own."""
    return row.get(name) if isinstance(row, dict) else row if name == _LONE else None


def _widened(of: Any) -> Any:
    import pyarrow as pa

    return pa.list_(pa.float64()) if pa.types.is_list(of) and pa.types.is_integer(of.value_type) else of


def _spelled(of: Any) -> str:
    import pyarrow as pa

    if pa.types.is_list(of):
        return "a list of numbers"
    return "a number" if pa.types.is_floating(of) else f"a {of}"
