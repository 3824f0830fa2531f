"""Vectors in Parquet and Arrow IPC: in a column of lists, or one column of numbers a dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, ShapeError
from isoscope.io.arrow_tables import (
    Table,
    check_lists,
    is_number,
    is_text,
    is_vector,
    is_whole,
    open_table,
    refuse_nulls,
    table_array,
)
from isoscope.io.chunks import Chunk, Reader
from isoscope.io.dimension_columns import choose_dimensions, excluded
from isoscope.io.files import listed
from isoscope.io.table_rows import TableRows
from isoscope.table_columns import N_JUDGED, Column, are_truth_values, check_n_columns, whole_numbers

TEXT_COLUMN = "text"
_ROWS_BESIDE = 1024  # read at a time, each with texts of any length


class ArrowReader(Reader):
    """A .parquet, .arrow or .feather file; a string column `text` beside vectors becomes texts."""

    @property
    def opener(self) -> Callable[[Path], Table]:
        """What makes a table of the file."""
        return open_table

    def open(self) -> None:
        """Choose the columns by the schema; a list's length is that of its first row."""
        self._table = self.opener(self.path)
        schema = self._table.schema
        check_n_columns(len(schema), self.path)
        self.columns = tuple(schema.names)
        lists = self._list_columns(schema)
        if len(lists) > 1:
            raise FileError(
                f"{self.path} has {len(lists)} columns of vectors: {listed(lists)}; "
                "say which with vector_column="
            )
        self._is_list = bool(lists)
        self._columns = lists or self._number_columns(schema)
        self._has_text = bool(lists) and self.label_column() != TEXT_COLUMN and _has_text(schema)
        self.n_rows = self._table.count()
        if self.n_rows == 0:
            raise ShapeError(f"{self.path} has no rows; wanted at least one vector")
        self.n_dims = self._list_length(schema, lists[0]) if lists else len(self._columns)
        self._table.check_growth(4 * (self.n_rows or 0) * self.n_dims)

    def pieces(self) -> Iterator[Chunk]:
        """The vectors batch by batch."""
        columns = [*self._columns, TEXT_COLUMN] if self._has_text else self._columns
        start = 0
        for batch in self._table.batches(columns, block_rows(self.n_dims)):
            texts = [text or "" for text in batch.column(TEXT_COLUMN).to_pylist()] if self._has_text else None
            vectors = (
                check_lists(batch.column(0), self.path, self.n_dims, start)
                if self._is_list
                else table_array(batch)
            )
            yield Chunk(vectors if self._is_list else _as_bytes(vectors, batch), texts)
            start += len(batch)

    def label_values(self, column: str) -> Any:
        """The whole column of labels."""
        return self._table.column(column)

    def table_rows(self) -> TableRows | None:
        """The columns that are not vectors."""
        schema = self._table.schema
        vectors = set(self._columns)
        others = [name for name in self.columns if name not in vectors]
        return TableRows(
            self.columns,
            tuple(self._columns),
            schema.field(self._columns[0]).type if self._is_list else None,
            self.label_column() is not None,
            lambda: self._table.batches(others, _ROWS_BESIDE),
            (schema.metadata or {}).get(b"pandas"),
        )

    def _list_columns(self, schema: Any) -> list[str]:
        asked = self.request.vector_column
        lists = [field.name for field in schema if is_vector(field.type)]
        if asked is None:
            if self.request.columns is not None:
                return []
            out = {self.columns[place] for place in excluded(self.request, self.columns)}
            lists = [name for name in lists if name != self.label_column() and name not in out]
            # beside a column of float vectors, lists of integers are token ids or the like
            return [name for name in lists if _holds_floats(schema.field(name).type)] or lists
        if asked not in schema.names:
            raise FileError(f"{self.path} has no column {asked!r}; it has {listed(schema.names)}")
        if asked not in lists:
            kind = schema.field(asked).type
            raise FileError(
                f"{self.path} has {kind} in column {asked!r}; wanted lists of numbers, one vector a row"
            )
        return [asked]

    def _number_columns(self, schema: Any) -> list[str]:
        import pyarrow as pa

        truths = [pa.types.is_boolean(field.type) for field in schema]
        taken = (
            truths if are_truth_values(self.columns, truths) else [is_number(field.type) for field in schema]
        )
        numbers = [name for name, is_taken in zip(self.columns, taken, strict=True) if is_taken]
        first = next(iter(self._table.batches(numbers, N_JUDGED)), None) if numbers else None
        columns = [
            Column(field.name, True, is_whole(field.type), _present(first, field.name))
            if is_taken
            else Column(field.name, False)
            for field, is_taken in zip(schema, taken, strict=True)
        ]
        places, notes = choose_dimensions(self.request, columns)
        if not places:
            held = listed(f"{field.name} ({field.type})" for field in schema)
            raise FileError(
                f"{self.path} has no column of vectors or dimensions; it has {held or 'no columns'}"
            )
        self.notes += notes
        return [self.columns[place] for place in places]

    def _list_length(self, schema: Any, column: str) -> int:
        import pyarrow as pa

        kind = schema.field(column).type
        length = int(kind.list_size) if pa.types.is_fixed_size_list(kind) else self._first_length(column)
        if length == 0:
            raise ShapeError(
                f"{self.path} has vectors of no dimensions in column {column!r}; wanted at least one"
            )
        return length

    def _first_length(self, column: str) -> int:
        for batch in self._table.batches([column], 1):
            refuse_nulls(batch.column(0), self.path, 0)
            return len(batch.column(0).flatten())
        raise ShapeError(f"{self.path} has no rows; wanted at least one vector")


def _holds_floats(kind: Any) -> bool:
    """Whether a list column holds floating numbers."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind.value_type))


def _present(batch: Any, name: str) -> np.ndarray:
    """The first numbers of a column, missing ones left out."""
    if batch is None:
        return np.empty(0)
    column = batch.column(name)
    cells = column.drop_null().to_pylist()
    return whole_numbers(cells) if is_whole(column.type) else np.array(cells, dtype=float)


def _as_bytes(vectors: np.ndarray, batch: Any) -> np.ndarray:
    """Return columns that are all bytes as bytes, which may be packed bits."""
    import pyarrow as pa

    are_bytes = all(field.type == pa.uint8() for field in batch.schema)
    return vectors.astype(np.uint8) if are_bytes and np.isfinite(vectors).all() else vectors


def _has_text(schema: Any) -> bool:
    return TEXT_COLUMN in schema.names and is_text(schema.field(TEXT_COLUMN).type)
