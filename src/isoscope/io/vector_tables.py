"""Vectors in a table: in a column of lists, or one column of numbers a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, InputError, Setting, ShapeError
from isoscope.io.arrow_files import table_array
from isoscope.io.chunks import Chunk, Reader, Request
from isoscope.io.delimited import integers_or_strings
from isoscope.io.formats import reads
from isoscope.io.table import Wanted
from isoscope.io.table_rows import TableRows
from isoscope.io.tables import DATABASES, KINDS, STORES, open_table
from isoscope.list_columns import lists_array
from isoscope.printable import listed
from isoscope.table_columns import (
    LISTS,
    TEXTS,
    VECTORS,
    Column,
    check_n_columns,
    dimensions_among,
    left_out,
    no_column,
    places_of,
)
from isoscope.unchecked import is_unchecked

TEXT_COLUMN = "text"
_TABLES = ("vectors", "columns", "exclude")  # the options that every table takes


@reads(".json", ".jsonl", takes=_TABLES)
@reads(".csv", ".tsv", takes=(*_TABLES, "header", "delimiter", "decimal"))
@reads(".parquet", ".arrow", ".feather", takes=(*_TABLES, "unpack_bits"))
@reads(".duckdb", takes=(*_TABLES, "key"), by_ranges=False)
@reads(".lance", takes=_TABLES, by_ranges=False)
@reads(*STORES, takes=("vectors", "key"), is_store=True)
class TableReader(Reader):
    """A table of any kind; a string column `text` beside vectors becomes texts."""

    def open(self) -> None:
        """Choose the columns; a list's length is that of its first row."""
        asked = self.request
        written = {"header": asked.header, "delimiter": asked.delimiter, "decimal": asked.decimal}
        named = () if asked.vectors is None else (asked.vectors,)
        self._table = table = open_table(
            self.path,
            Wanted("vectors", heads=None, named=named, lone="vector", key=asked.key, **written),  # type: ignore[arg-type]
            (*KINDS, *DATABASES),
        )
        check_n_columns(len(table.written), self.path)
        self.columns = table.written
        self._check_known()
        lists = self._lists()
        if len(lists) > 1:
            raise FileError(
                f"{self.path} has {len(lists)} columns of vectors: "
                f"{listed(table.written[place] for place in lists)}",
                hint=Setting("vectors", to="say which"),
            )
        self._is_list = bool(lists)
        self._places = lists or self._dimensions()
        self._texts = [table.places[TEXT_COLUMN]] if lists and self._has_texts() else []
        self.n_rows = table.count()
        if self.n_rows == 0:
            raise ShapeError(f"{self.path} has no rows", wanted="at least one vector")
        self.n_dims = table.n_numbers(lists[0]) if lists else len(self._places)
        if self.n_dims == 0:
            raise ShapeError(
                f"{self.path} has vectors of 0 dimensions in column {table.written[lists[0]]!r}",
                wanted="at least 1",
            )
        if self.n_rows is not None:
            table.check_growth(4 * self.n_rows * self.n_dims)

    def pieces(self) -> Iterator[Chunk]:
        """Yield the vectors batch by batch."""
        start = 0
        for batch in self._table.batches([*self._places, *self._texts], block_rows(self.n_dims)):
            if self._is_list:
                if batch.column(0).null_count and not is_unchecked():
                    raise self._table.without_vectors(self._places[0])
                vectors = lists_array(batch.column(0), self.path, self.n_dims, start)
            else:
                vectors = _as_bytes(table_array(batch), batch)
            texts = [text or "" for text in batch.column(1).to_pylist()] if self._texts else None
            yield Chunk(vectors, texts)
            start += len(batch)

    def label_values(self, column: str) -> Any:
        """Read a whole column; in a file without types, as integers where every cell is one."""
        values = self._table.read(column)
        return values if self._table.is_typed else integers_or_strings(values)

    def table_rows(self) -> TableRows | None:
        """Return the columns that are not vectors; None where they cannot be written again."""
        table = self._table
        if not table.can_rewrite:
            return None
        vectors = set(self._places)
        others = [place for place in range(len(table.written)) if place not in vectors]
        return TableRows(
            table.written,
            tuple(table.written[place] for place in self._places),
            table.type_of(self._places[0]) if self._is_list else None,
            self.label_column() is not None,
            partial(table.beside, others),
            table.pandas,
        )

    def _check_known(self) -> None:
        """Raise FileError where labels or weights name one of several columns of that name."""
        for name in (self.request.labels, self.request.weights):
            if name is not None and self.columns.count(name) > 1:
                raise FileError(
                    f"{self.path} has {self.columns.count(name)} columns named {name!r}", wanted="only one"
                )

    def _lists(self) -> list[int]:
        """Return the columns of lists that may hold vectors; none where columns of numbers are dimensions."""
        asked, table = self.request.vectors, self._table
        lists = [place for place, held in enumerate(table.kinds) if held in (VECTORS, LISTS)]
        if asked is not None:
            if asked not in table.written:
                raise no_column(asked, table.written, argument="vectors", of=self.path, error=FileError)
            all_lists, lists = lists, [place for place in lists if table.written[place] == asked]
            if not lists:
                held = table.type_of(table.places[asked])
                raise FileError(
                    f"{self.path} has {held} in column {asked!r}",
                    wanted="lists of numbers, one vector a row",
                    hint=[Setting("vectors", table.written[place]) for place in all_lists[:1]],
                )
            return lists
        if self.request.columns is not None:
            for name in (table.written[place] for place in lists):
                if name in self.request.columns:
                    raise InputError(
                        f"has {name!r}, which holds a vector in each row",
                        argument="columns",
                        hint=Setting("vectors", name),
                    )
            return []
        out = _excluded(self.request, table.written)
        lists = [
            place for place in lists if place not in out and table.written[place] not in self.request.apart
        ]
        # beside a column of float vectors, lists of integers are token ids or the like
        return [place for place in lists if table.kinds[place] == VECTORS] or lists

    def _dimensions(self) -> list[int]:
        request, table = self.request, self._table
        places, notes = choose_dimensions(request, table.numbers())
        if not places:
            raise table.no_dimensions()
        self.notes += notes
        said = (request.columns, request.exclude, request.labels, request.weights, request.by)
        if all(of is None for of in said) and (question := table.doubt(places)):
            raise question
        return places

    def _has_texts(self) -> bool:
        return self.label_column() != TEXT_COLUMN and self._table.holds.get(TEXT_COLUMN) == TEXTS


def _as_bytes(vectors: np.ndarray, batch: Any) -> np.ndarray:
    """Return columns that are all bytes as bytes, which may be packed bits."""
    import pyarrow as pa

    are_bytes = all(field.type == pa.uint8() for field in batch.schema)
    return vectors.astype(np.uint8) if are_bytes and np.isfinite(vectors).all() else vectors


def _excluded(request: Request, names: Sequence[str]) -> set[int]:
    return set(places_of(request.exclude or (), names, argument="exclude"))


def choose_dimensions(request: Request, columns: Sequence[Column]) -> tuple[list[int], list[str]]:
    """Return the places of the dimensions, and notes on columns that were left out unasked.

    Labels and weights are no dimensions, nor what is excluded. A column that may be one or not is an error
    that asks.
    """
    names = [column.name for column in columns]
    out = _excluded(request, names)
    rest = [place for place, name in enumerate(names) if place not in out and name not in request.apart]
    if request.columns is not None:
        return _asked(request, columns, rest)
    taken, doubtful, notes = dimensions_among(columns, rest)
    if doubtful:
        raise _question(request, names, doubtful, taken)
    return taken, notes


def _asked(request: Request, columns: Sequence[Column], rest: list[int]) -> tuple[list[int], list[str]]:
    """Return the columns asked for, which must hold numbers; within a range, others are left out."""
    asked = request.columns or ()
    chosen = places_of(asked, [column.name for column in columns], argument="columns")
    chosen = [place for place in chosen if place in set(rest)]
    others = [columns[place].name for place in chosen if not columns[place].is_number]
    if others and not any(":" in item for item in asked):
        raise InputError(
            f"has {others[0]!r}, which holds no numbers in {request.path}",
            argument="columns",
            hint="leave it out",
        )
    return [place for place in chosen if columns[place].is_number], left_out(others)


def _question(request: Request, names: list[str], doubtful: list[int], taken: list[int]) -> FileError:
    several = len(doubtful) > 1
    shown = listed((repr(names[place]) for place in doubtful), at_most=4)
    # a column without a name goes by its place, unless another has that number for a name
    words = [names[place] if names[place].strip() else str(place) for place in doubtful]
    if any(not names[place].strip() and str(place) in names for place in doubtful) and taken:
        answer = Setting("columns", f"{names[taken[0]]}:{names[taken[-1]]}", to="leave out")
    else:
        answer = Setting("exclude", f"{','.join(words[:4])}{',…' if several and len(words) > 4 else ''}")
    return FileError(
        f"{request.path} has whole numbers in column{'s' if several else ''} {shown} "
        f"that may be identifiers, labels or times: {'dimensions' if several else 'a dimension'} or not?",
        hint=[answer, Setting("columns", ":", to="take all")],
    )
