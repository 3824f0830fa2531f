"""What a reader is: rows of a file in pieces, cut again into blocks of the size that was asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from isoscope.errors import FileError, Setting, ShapeError
from isoscope.io.addresses import FilePath
from isoscope.io.table_rows import TableRows
from isoscope.printable import listed

# the options of `Request` that a caller has, beside labels and weights
WHERE = ("key", "vectors", "columns", "exclude", "header", "delimiter", "decimal", "unpack_bits", "by")


@dataclass(frozen=True)
class Request:
    """What is asked of a file: which array or column holds the vectors, and perhaps the labels."""

    path: FilePath
    key: str | None = None
    vectors: str | None = None
    columns: tuple[str, ...] | None = None  # those that are dimensions
    exclude: tuple[str, ...] | None = None  # those that are none
    header: bool | None = None  # whether a delimited file begins with names; None is for the reader to judge
    delimiter: str | None = None
    decimal: str | None = None
    unpack_bits: bool | None = None  # whether bytes are eight dimensions each
    by: tuple[str, ...] | None = None  # columns that name slices, where the file has them: no dimensions
    labels: str | None = None  # a column's name if the file has such a column, else not the reader's business
    weights: str | None = None  # likewise
    uncached: bool = False  # whether rows are let go from the system's cache

    @property
    def apart(self) -> set[str | None]:
        """Columns that say something of a row and are no dimensions of it: its label, weight and slice."""
        return {self.labels, self.weights, *(self.by or ())}

    def where(self) -> dict[str, Any]:
        """The options that say where in the file the vectors are, and how they are written."""
        return {name: getattr(self, name) for name in WHERE}


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows: an (m, d) array or tensor, and each row's text where the file has one."""

    vectors: Any
    texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, start: int, stop: int) -> Chunk:
        """Rows start … stop−1, without a copy."""
        return Chunk(self.vectors[start:stop], None if self.texts is None else self.texts[start:stop])


@dataclass
class Reader(ABC):
    """One file of one format, opened far enough to know its shape.

    Attributes:
        request: what was asked for.
        n_rows: how many vectors the file says it has; None where only reading it to its end tells.
        n_dims: how many dimensions.
        columns: the names that can be asked for as labels.
        notes: what a user should know about how the file was taken.
        seeks: whether `rows` begins anywhere without reading what lies before.
    """

    request: Request
    n_rows: int | None = None
    n_dims: int = 0
    columns: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    seeks: bool = False

    def __post_init__(self) -> None:
        self.open()

    @property
    def path(self) -> FilePath:
        """The file."""
        return self.request.path

    @property
    def here(self) -> Path:
        """The file of a format that is not read by ranges: it lies here."""
        assert isinstance(self.path, Path)
        return self.path

    @abstractmethod
    def open(self) -> None:
        """Look at the file and set n_rows, n_dims, columns and notes; no vectors are read."""

    @abstractmethod
    def pieces(self) -> Iterator[Chunk]:
        """All rows from the first on, in pieces of any size that fits in memory."""

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Rows start … stop−1, or to the end; `step` is about how many to read at a time."""
        del step
        at = 0
        for piece in self.pieces():
            first, last = max(start - at, 0), len(piece) if stop is None else min(stop - at, len(piece))
            if first < last:
                yield piece.rows(first, last)
            at += len(piece)
            if stop is not None and at >= stop:
                return

    def label_values(self, column: str) -> Any:
        """The whole column of labels, one value a row."""
        raise FileError(f"{self.path} has no column {column!r}")  # pragma: no cover - columns is empty then

    def table_rows(self) -> TableRows | None:
        """The other columns of a table, row by row; None of a file that is none."""
        return None

    def label_column(self) -> str | None:
        """The asked-for label column, if this file has it."""
        return self.request.labels if self.request.labels in self.columns else None


class _Rows(Protocol):
    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> Self: ...


T = TypeVar("T", bound=_Rows)


def regroup(pieces: Iterable[T], n_rows: int, join: Callable[[list[T]], T]) -> Iterator[T]:
    """The same rows in blocks of exactly n_rows, the last one perhaps shorter."""
    held: list[T] = []
    n_held = 0
    for piece in pieces:
        start = 0
        while n_held + len(piece) - start >= n_rows:
            stop = start + n_rows - n_held
            yield join([*held, piece.rows(start, stop)])
            held, n_held, start = [], 0, stop
        if start < len(piece):
            held.append(piece.rows(start, len(piece)))
            n_held += len(piece) - start
    if held:
        yield join(held)


def stack(pieces: list[Chunk]) -> Chunk:
    """Pieces end to end; one piece alone is returned as it is, memory map and all. Empties the list.

    Each piece is let go as soon as it is copied, so the peak is one copy of the data, not two.
    """
    if len(pieces) == 1:
        return pieces[0]
    n_rows, n_dims = sum(map(len, pieces)), pieces[0].vectors.shape[1]
    vectors = np.empty((n_rows, n_dims), dtype=np.result_type(*{piece.vectors.dtype for piece in pieces}))
    texts: list[str] | None = None if pieces[0].texts is None else []
    start = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        vectors[start : start + len(piece)] = piece.vectors
        start += len(piece)
        if texts is not None:
            texts += piece.texts or []
    return Chunk(vectors, texts)


def check_shape(shape: tuple[int, ...], what: str) -> tuple[int, int]:
    """The (n, d) of an array with two axes and at least one number, else ShapeError."""
    if len(shape) != 2:
        hint = (
            "X[None, :] for one vector, X[:, None] for one column" if len(shape) == 1 else "X.reshape(-1, d)"
        )
        raise ShapeError(
            f"has shape {shape}; wanted two axes (n, d), one vector a row: save {hint}", argument=what
        )
    if 0 in shape:
        raise ShapeError(f"is empty, shape {shape}; wanted at least one vector", argument=what)
    return shape[0], shape[1]


def choose(request: Request, shapes: dict[str, tuple[int, ...]], candidates: list[str]) -> str:
    """Which of a file's named arrays holds the vectors: the key asked for, or the only candidate."""
    path, key = request.path, request.key
    held = listed(f"{name!r} {shape}" for name, shape in shapes.items())
    if key is not None:
        if key not in shapes:
            raise FileError(f"{path} has no array {key!r}; it holds {held or 'none'}")
        return key
    candidates = [name for name in candidates if name not in request.apart]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise ShapeError(
            f"{path} has no 2-d array of numbers; it holds {held or 'nothing'}; wanted one (n, d) array"
        )
    which = Setting("key", to="say which")
    raise FileError(f"{path} has {len(candidates)} arrays of two axes: {held}", hint=which)
