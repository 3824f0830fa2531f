"""`Table`: a file as columns. Vectors, labels, weights, texts and pairs are read from its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import FileError, NotFiniteError, ShapeError
from isoscope.io.structure import check_growth
from isoscope.list_columns import lists_array, no_vectors
from isoscope.printable import listed, nearest
from isoscope.table_columns import OTHER, Column

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

ROWS_BESIDE = 1024  # read at a time, each with texts of any length


@dataclass(frozen=True)
class Wanted:
    """What is looked for in a table.

    Attributes:
        what: what it is, in the plural, for messages.
        heads: usual names of such a column, in lower case, by which a header is recognised. None where
            vectors are wanted.
        named: the columns the caller names: then there is a header.
        lone: the name for lists of numbers without one; None where there may be none.
        key: the table of a database, or the collection of a store.
        header, delimiter, decimal: how a delimited file is written, as far as the caller says.
    """

    what: str
    heads: Collection[str] | None = ()
    named: Collection[str] = ()
    lone: str | None = None
    key: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None


class Table(ABC):
    """The columns of a file. Only the first rows are read when it is opened.

    Attributes:
        path: the file.
        wanted: what is looked for in it.
        written: the names of the columns, of which two may be the same; empty where the file has one value a
            row and no names.
        kinds: what each column holds (`table_columns.TEXTS`, …).
        unit, first: the word for a row in messages, and the number of the first row.
        is_typed: whether values have types; else all are strings.
        can_rewrite: whether the columns beside the vectors can be written again.
        pandas: the metadata of pandas, which names the index.
    """

    written: tuple[str, ...] = ()
    unit, first = "row", 0
    is_typed = can_rewrite = True
    pandas: bytes | None = None

    def __init__(self, path: FilePath, wanted: Wanted) -> None:
        self.path, self.wanted = path, wanted

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each column holds."""
        return (OTHER,) * len(self.written)

    @abstractmethod
    def values(self, place: int) -> Any:
        """Read a whole column: an array, or a list in which None or "" is a missing value."""

    def batches(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Yield Arrow record batches of at most n_rows: numbers, lists of numbers, or strings."""
        raise NotImplementedError  # by a table that no vectors are read from

    def numbers(self) -> list[Column]:
        """Return every column with its first numbers, which tell dimensions from identifiers."""
        raise NotImplementedError

    def count(self) -> int | None:
        """Return the number of rows, or None where it is known only at the end of the file."""
        return None

    def beside(self, places: list[int]) -> Iterator[Any]:
        """Yield record batches of columns as they are, to be written again."""
        return self.batches(places, ROWS_BESIDE)

    def type_of(self, place: int) -> Any:
        """Return the type of a column for messages; for lists, the Arrow type."""
        return self.kinds[place]

    def n_numbers(self, place: int) -> int:
        """Return the length of the first list of a column."""
        for batch in self.batches([place], 1):
            if batch.column(0).null_count:
                raise self.without_vectors(place)
            return lists_array(batch.column(0).slice(0, 1), self.path).shape[1]
        raise ShapeError(f"{self.path} has no rows", wanted="at least one vector")

    def without_vectors(self, place: int) -> NotFiniteError:
        """Return the error over nulls in a column of vectors, with their number and the first rows."""
        rows: list[int] = []
        n_rows = 0
        for batch in self.batches([place], 2**16):
            rows += (
                np.flatnonzero(batch.column(0).is_null().to_numpy(zero_copy_only=False)) + n_rows
            ).tolist()
            n_rows += len(batch)
        return no_vectors(rows, n_rows, self.path)

    def doubt(self, places: list[int]) -> FileError | None:
        """Return a question where these columns of numbers may be no dimensions; None where they are."""
        del places
        return None

    def no_dimensions(self) -> FileError:
        """Return the error over a table without vectors."""
        held = listed(f"{name} ({self.type_of(place)})" for name, place in self.places.items())
        return FileError(f"{self.path} has no column of vectors or dimensions; it has {held or 'no columns'}")

    def check_growth(self, n_bytes: int) -> None:
        """Raise FileError where rows that the file says it has take far more memory than the file."""
        check_growth(
            n_bytes, self.path.stat().st_size, str(self.path), "save it as .npy or uncompressed .arrow"
        )

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each column is, by a name of its own."""
        places: dict[str, int] = {}
        for place, name in enumerate(self.written):
            places[name if name not in places else f"{name} ({place})"] = place
        return places

    @property
    def names(self) -> list[str]:
        """The columns' names, each once."""
        return list(self.places)

    @cached_property
    def holds(self) -> dict[str, str]:
        """What each column holds, by its name."""
        return dict(zip(self.places, self.kinds, strict=True))

    def read(self, name: str | None) -> Any:
        """Read a whole column by name; the name is None where the file has no names."""
        return self.values(0 if name is None else self.places[name])

    def find(self, *heads: str, among: Collection[str] | None = None) -> list[str] | None:
        """Return the columns of these names, whatever their case; None unless all exist."""
        by_name = {name.strip().lower(): name for name in reversed(list(among or self.places))}
        return [by_name[head] for head in heads] if all(head in by_name for head in heads) else None

    def place(self, row: int) -> str:
        """Return where a row is, for a message."""
        return f"{self.unit} {row + self.first}"

    def check(self, column: str) -> None:
        """Raise FileError unless there is such a column."""
        if not self.written:
            raise FileError(f"{self.path} has no columns, so no {column!r}", hint="leave the column out")
        if column not in self.places:
            raise FileError(
                f"{self.path} has no column {column!r}; it has {listed(self.names)}",
                hint=nearest(column, self.names),
            )
