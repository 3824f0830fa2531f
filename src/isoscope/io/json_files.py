"""JSON and JSON lines as tables: objects, lists of numbers, or columns of values."""

from __future__ import annotations

import itertools
import json
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import FileError, Setting, ShapeError
from isoscope.io.files import open_bytes, text_lines
from isoscope.io.structure import parse_json
from isoscope.io.table import Table, Wanted
from isoscope.table_columns import (
    LISTS,
    N_JUDGED,
    NUMBERS,
    OTHER,
    TEXTS,
    VECTORS,
    Column,
    are_truth_values,
    check_n_columns,
    whole_numbers,
)

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

_MAX_JSON_BYTES = 64 * 2**20
_MAX_INNER, _MAX_NAME = 1000, 100  # entries of an inner object, letters of its name
_MOST_ROWS = 1024  # parsed at a time: as Python's numbers they take several times their size


class JsonColumns(Table):
    """Columns of Python's values."""

    can_rewrite = False

    def __init__(self, path: FilePath, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        self._heads = self._first_cells()
        self.written = tuple(name for name in self._heads if name is not None)
        check_n_columns(len(self.written), path)

    @abstractmethod
    def _first_cells(self) -> dict[str | None, list[Any]]:
        """Return the first values of every column by name; None is the name of a column without one."""

    @abstractmethod
    def _groups(self, names: list[str], n_rows: int) -> Iterator[list[list[Any]]]:
        """Yield the values of some columns, about n_rows at a time."""

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """By the first values."""
        return tuple(_holds(self._heads[name]) for name in self.written)

    def numbers(self) -> list[Column]:
        """Return the columns, judged by their first values; truth values are numbers where all are such."""
        told = [[cell for cell in self._heads[name] if cell is not None] for name in self.written]
        are_truths = [bool(cells) and set(map(type, cells)) == {bool} for cells in told]
        taken = [kind == NUMBERS for kind in self.kinds]
        if are_truth_values(self.written, are_truths):
            taken = are_truths
        wholes = [all(isinstance(cell, int) for cell in cells) for cells in told]
        return [
            Column(name, True, whole, whole_numbers(cells) if whole else np.array(cells, dtype=float))
            if is_taken
            else Column(name, is_number=False)
            for name, is_taken, whole, cells in zip(self.written, taken, wholes, told, strict=True)
        ]

    def batches(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Yield float64 numbers, lists of them, or strings."""
        import pyarrow as pa

        lists = pa.list_(pa.float64())
        types = {NUMBERS: pa.float64(), VECTORS: lists, LISTS: lists, TEXTS: pa.string(), OTHER: pa.bool_()}
        names = [self.written[place] for place in places]
        start = 0
        for group in self._groups(names, n_rows):
            arrays = [
                self._array(name, types[self.kinds[place]], cells, start)
                for name, place, cells in zip(names, places, group, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=names)
            start += len(group[0])

    def _array(self, name: str, of: Any, cells: list[Any], start: int) -> Any:
        import pyarrow as pa

        if pa.types.is_list(of):
            cells = [_vector_in(cell) for cell in cells]
        try:
            return _typed(cells, of)
        except (pa.ArrowException, OverflowError):
            for row, cell in enumerate(cells, start):
                try:
                    _typed([cell], of)
                except (pa.ArrowException, OverflowError) as error:
                    wanted = "a list of numbers" if pa.types.is_list(of) else "a number"
                    raise FileError(
                        f"{self.path} has {str(cell)[:40]!r} in {self.place(row)}, column {name!r}",
                        wanted="a string" if of == pa.string() else wanted,
                    ) from error
            raise  # pragma: no cover - each alone is what all are


class JsonTable(JsonColumns):
    """A .json file: a list of objects, of lists or of values; or an object of lists."""

    unit = "entry"

    def count(self) -> int:
        """Return the number of rows, if all columns have as many."""
        lengths = {len(values) for values in self._columns.values()}
        if len(lengths) > 1:
            raise FileError(
                f"{self.path} is an object without lists of one length",
                wanted=f"{self.wanted.what} in a list, one entry a row",
            )
        return lengths.pop()

    def values(self, place: int) -> list[Any]:
        """Read a whole column."""
        return list(self._columns.values())[place]

    def doubt(self, places: list[int]) -> FileError | None:
        """Return a question where named lists of numbers may be columns or vectors."""
        n_lists = len(self.written)
        if not self._is_object or n_lists < 2 or len(places) < n_lists:
            return None
        return FileError(
            f"{self.path} has {n_lists:,} lists of {self.count():,} numbers by name: {n_lists:,} columns, "
            f"or {n_lists:,} vectors?",
            hint=[Setting("columns", ":", to="take columns"), "save vectors as a list of lists"],
        )

    def _first_cells(self) -> dict[str | None, list[Any]]:
        return {name: values[:N_JUDGED] for name, values in self._columns.items()}

    def _groups(self, names: list[str], n_rows: int) -> Iterator[list[list[Any]]]:
        for start in range(0, self.count(), n_rows):
            yield [self._columns[name][start : start + n_rows] for name in names]

    @cached_property
    def _columns(self) -> dict[str | None, list[Any]]:
        found = _load(self.path)
        self._is_object = False
        if isinstance(found, dict):
            lists = {name: values for name, values in found.items() if isinstance(values, list) and values}
            if not lists:
                raise ShapeError(f"{self.path} is an object without a list of {self.wanted.what}")
            (only, *others) = lists.values()
            if others or not _are_objects(only):
                self._is_object = True
                return dict(lists)
            found = only  # {"data": [{"embedding": …}, …], "model": …}
        if not isinstance(found, list):
            raise FileError(
                f"{self.path} holds one {type(found).__name__}", wanted=f"a list of {self.wanted.what}"
            )
        if _are_objects(found):
            rows = [_flat(row) for row in found]
            names = dict.fromkeys(name for row in rows for name in row)
            check_n_columns(len(names), self.path)
            return {name: [row.get(name) for row in rows] for name in names}
        if self.wanted.lone is not None and not (found and all(isinstance(row, list) for row in found)):
            raise FileError(
                f"{self.path} has no {self.wanted.what}",
                wanted="a list of lists of numbers, or of objects that have some",
            )
        return {self.wanted.lone: found}


class JsonLinesTable(JsonColumns):
    """A .jsonl file: an object or a list of numbers a line."""

    unit, first = "line", 1

    def values(self, place: int) -> list[Any]:
        """Read a whole column, with None where a row has no value."""
        name = self.written[place] if self.written else None
        return [row.get(name) for row in self._rows()]

    def _first_cells(self) -> dict[str | None, list[Any]]:
        rows = list(itertools.islice(self._rows(), N_JUDGED))
        names = dict.fromkeys(name for row in rows for name in row)
        check_n_columns(len(names), self.path)
        return {name: [row.get(name) for row in rows] for name in names}

    def _groups(self, names: list[str], n_rows: int) -> Iterator[list[list[Any]]]:
        rows = self._rows()
        while held := list(itertools.islice(rows, min(n_rows, _MOST_ROWS))):
            yield [[row.get(name) for row in held] for name in names]

    def _rows(self) -> Iterator[dict[str | None, Any]]:
        blank = 0
        for number, line in enumerate(text_lines(self.path, what=self.wanted.what), start=1):
            if not line.strip():
                blank = blank or number
                continue
            if blank:  # at the end of the file it would do no harm
                raise FileError(
                    f"{self.path} has no JSON in line {blank}, which is blank",
                    wanted="an object in each line",
                )
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                why = getattr(error, "msg", "it is nested too deep, or has too long a number")
                raise FileError(
                    f"{self.path} has no JSON in line {number}: {why}", wanted="an object in each line"
                ) from error
            if isinstance(row, list) and self.wanted.lone is not None:
                row = {self.wanted.lone: row}
            if not isinstance(row, dict):
                raise FileError(
                    f"{self.path} has no object in line {number}", wanted="{column: value} in each"
                )
            yield _flat(row)


def _load(path: FilePath) -> Any:
    """Load a .json file, perhaps gzipped. A large one is refused: it takes many times its size in memory."""
    with open_bytes(path) as file:
        raw = file.read(_MAX_JSON_BYTES + 1)
    if len(raw) > _MAX_JSON_BYTES:
        raise FileError(
            f"{path} has too much JSON",
            wanted=f"at most {_MAX_JSON_BYTES:,} bytes",
            hint="save it as .jsonl, one row in each line",
        )
    return parse_json(raw, str(path), max_bytes=_MAX_JSON_BYTES).value


def _are_objects(rows: list[Any]) -> bool:
    return bool(rows) and all(isinstance(row, dict) for row in rows)


def _flat(row: dict[str, Any]) -> dict[str | None, Any]:
    """Return a row with the values of inner objects under dotted names.

    Long names and large inner objects stay as they are: their dotted names would take too much memory.
    """
    values: dict[str | None, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and len(value) <= _MAX_INNER and len(name) <= _MAX_NAME:
            values |= {f"{name}.{inner}": cell for inner, cell in value.items()}
        else:
            values[name] = value
    return values


def _holds(cells: list[Any]) -> str:
    """Return what a column holds; for lists, what most of them are, so that a single bad list is an error."""
    told = [cell for cell in _vectors_in(cells) if cell is not None]
    types = set(map(type, told))
    if types == {str}:
        return TEXTS
    if types and types <= {int, float}:
        return NUMBERS
    lists = [cell for cell in told if isinstance(cell, list)]
    numbers = [type(number) for cell in lists for number in cell]
    if 2 * len(lists) <= len(told) or 2 * sum(of in (int, float) for of in numbers) <= len(numbers):
        return OTHER
    if float in numbers:
        return VECTORS
    return LISTS if len({len(cell) for cell in lists}) == 1 else OTHER  # those of many lengths are tokens


def _vectors_in(cells: list[Any]) -> list[Any]:
    """Return the numbers of strings such as "[0.5, 1]" where all cells are such strings, else the cells."""
    told = [cell for cell in cells if cell is not None]
    if not told or not all(isinstance(cell, str) and cell[:1] == "[" for cell in told):
        return cells
    numbers = [None if cell is None else _vector_in(cell) for cell in cells]
    types = {type(number) for vector in numbers if isinstance(vector, list) for number in vector}
    return numbers if all(isinstance(one, list | None) for one in numbers) and float in types else cells


def _vector_in(cell: Any) -> Any:
    """Return the numbers of a string such as "[0.5, 1]", or the cell where it is anything else."""
    if not isinstance(cell, str):
        return cell
    try:
        numbers = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    is_vector = isinstance(numbers, list) and set(map(type, numbers)) <= {int, float}
    return numbers if is_vector else cell


def _typed(values: list[Any], of: Any) -> Any:
    """Return an Arrow array of a type; Arrow alone would take true as 1."""
    import pyarrow as pa

    array = pa.array(values, of)
    if of != pa.string() and of != pa.bool_():
        for value in values:
            if bool in set(map(type, value if isinstance(value, list) else [value])):
                raise pa.ArrowTypeError("a truth value among numbers")
    return array
