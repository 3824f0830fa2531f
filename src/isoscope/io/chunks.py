"""`Reader`, the base class of all readers of vectors; rows in pieces, regrouped into blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch

from isoscope.arrays import LARGEST_BYTE
from isoscope.errors import FileError, Setting, ShapeError
from isoscope.io.addresses import FilePath
from isoscope.io.table_rows import TableRows
from isoscope.printable import listed

# the options of `Request` that a caller has, beside labels and weights
WHERE = ("key", "vectors", "columns", "exclude", "header", "delimiter", "decimal", "unpack_bits", "by")


@dataclass(frozen=True)
class Request:
    """The options a file is read with: which array or column holds the vectors, and perhaps the labels."""

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
        """Return the options that say where in the file the vectors are, and how they are written."""
        return {name: getattr(self, name) for name in WHERE}


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows: an (m, d) array or tensor, and each row's text where the file has one."""

    vectors: Any
    texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, start: int, stop: int) -> Chunk:
        """Return rows start … stop−1 without a copy."""
        return Chunk(self.vectors[start:stop], None if self.texts is None else self.texts[start:stop])


@dataclass
class Reader(ABC):
    """A file of one format whose shape is known.

    Attributes:
        request: the options it is read with.
        n_rows: the number of vectors, or None where it is known only at the end of the file.
        n_dims: the number of dimensions.
        columns: the names that labels may have.
        notes: how the file was read.
        seeks: whether `rows` can begin anywhere without reading what comes before.
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
        """Yield all rows in pieces of any size that fits in memory."""

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Yield rows start … stop−1, or to the end, reading about `step` rows at a time."""
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
        """Read a whole column, one value a row."""
        raise FileError(f"{self.path} has no column {column!r}")  # pragma: no cover - columns is empty then

    def table_rows(self) -> TableRows | None:
        """Return the other columns of a table; None for a file that is no table."""
        return None

    def label_column(self) -> str | None:
        """Return the name of the label column, if the file has it."""
        return self.request.labels if self.request.labels in self.columns else None


class _Rows(Protocol):
    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> Self: ...


T = TypeVar("T", bound=_Rows)


def regroup(pieces: Iterable[T], n_rows: int, join: Callable[[list[T]], T]) -> Iterator[T]:
    """Yield the same rows in blocks of exactly n_rows; the last block may be shorter."""
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
    """Concatenate pieces and empty the list; a single piece is returned as it is, even if it is a memory map.

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
    """Return (n, d) of an array; raise ShapeError unless it has two axes and at least one number."""
    if len(shape) != 2:
        one = ["save X[None, :] for one vector", "X[:, None] for one column"]
        raise ShapeError(
            f"has shape {shape}",
            argument=what,
            wanted="two axes (n, d), one vector a row",
            hint=one if len(shape) == 1 else "save X.reshape(-1, d)",
        )
    if 0 in shape:
        raise ShapeError(f"is empty, shape {shape}", argument=what, wanted="at least one vector")
    return shape[0], shape[1]


def choose(request: Request, shapes: dict[str, tuple[int, ...]], candidates: list[str]) -> str:
    """Return the name of the array that holds the vectors: the key asked for, or the only candidate."""
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
        raise ShapeError(f"{path} has no (n, d) array of numbers; it holds {held or 'nothing'}")
    which = Setting("key", to="say which")
    raise FileError(f"{path} has {len(candidates)} arrays of two axes: {held}", hint=which)


def as_coordinates(vectors: Any, request: Request) -> Any:
    """Return rows as they are, or with bits unpacked where the request says so; ambiguous bytes are an error.

    Bits are unpacked from the highest down, as `numpy.packbits` packs them. Signed bytes (int8) count from
    −128, as sentence-transformers and others write binary embeddings.
    """
    is_bytes = vectors.dtype in (np.uint8, torch.uint8)
    if request.unpack_bits is None:
        largest = int(vectors.max()) if is_bytes and len(vectors) else 0
        if largest > LARGEST_BYTE:
            raise FileError(
                f"{request.path} holds bytes (uint8) up to {largest}: packed bits, or whole numbers?",
                hint=[Setting("unpack_bits", True), Setting("unpack_bits", False)],
            )
        return vectors
    if not request.unpack_bits:
        if not is_bytes:
            return vectors
        return vectors.astype(np.float32) if isinstance(vectors, np.ndarray) else vectors.float()
    array = np.asarray(vectors)
    if array.dtype == np.int8:
        array = (array.astype(np.int16) + 128).astype(np.uint8)
    if array.dtype != np.uint8:
        raise FileError(
            f"{request.path} holds {array.dtype} numbers",
            wanted="bytes (uint8 or int8) to unpack",
            hint=Setting("unpack_bits", True, verb="leave out"),
        )
    return np.unpackbits(array, axis=1)
