"""`Source`: what everything that has vectors can say and do; an array, a file, shards, texts, states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from isoscope.labels import Labels
from isoscope.space import Space


class Source(Protocol):
    """Vectors that can be read again and again, in blocks, in parts, or whole.

    Nothing is read before it is asked for. `is_source` says whether an object is one.
    """

    @property
    def n_rows(self) -> int | None:
        """How many vectors, or None where only reading to the end tells."""
        ...

    @property
    def n_dims(self) -> int:
        """How many dimensions."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that `column` can give."""
        ...

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32, or None where that is not known."""
        ...

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others, as JSON: a checkpoint of others is refused by it."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the vectors of its blocks live."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know about how the vectors were taken."""
        ...

    @property
    def title(self) -> str:
        """What to call it in a message."""
        ...

    @property
    def name(self) -> str | None:
        """What to call it in tables and figures."""
        ...

    @property
    def labels(self) -> Labels | None:
        """The label of every row, or None where none are known."""
        ...

    @property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts, or None where each counts once."""
        ...

    def parts(self, n_rows: int) -> Sequence[Source]:
        """Pieces of about n_rows that can each be read alone, in order."""
        ...

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the rows in order, one Space a block; each call begins at the first row."""
        ...

    def load(self) -> Space:
        """All rows as one Space."""
        ...

    def column(self, name: str) -> Sequence[Any]:
        """One value a row of what the source knows by a name."""
        ...


MEMBERS = tuple(name for name in vars(Source) if not name.startswith("_"))


def is_source(X: Any) -> bool:
    """Return whether X has every member of a Source; no member is computed to find out."""
    places = [getattr(X, "__dict__", {}), *map(vars, type(X).__mro__)]
    return all(any(name in members for members in places) for name in MEMBERS)


class Wrapped:
    """A source that passes everything on to another; a subclass changes what it is about.

    Attributes:
        source: the other.
    """

    _title: str | None = None

    def __init__(self, source: Source, title: str | None = None) -> None:
        self.source = source
        self._title = title

    @property
    def n_rows(self) -> int | None:
        """How many vectors."""
        return self.source.n_rows

    @property
    def n_dims(self) -> int:
        """How many dimensions."""
        return self.source.n_dims

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that `column` can give."""
        return self.source.columns

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory."""
        return self.source.n_bytes

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others."""
        return self.source.identity

    @property
    def device(self) -> torch.device:
        """Where the vectors live."""
        return self.source.device

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know."""
        return self.source.notes

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return self.source.title if self._title is None else self._title

    @property
    def name(self) -> str | None:
        """What to call it in tables."""
        return self.source.name

    @property
    def labels(self) -> Labels | None:
        """The label of every row."""
        return self.source.labels

    @property
    def weights(self) -> Tensor | None:
        """How often each row counts."""
        return self.source.weights

    def parts(self, n_rows: int) -> Sequence[Source]:
        """Itself: what is changed is changed of all rows."""
        del n_rows
        return [self]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the rows in order."""
        return self.source.blocks(n_rows)

    def load(self) -> Space:
        """All rows."""
        return self.source.load()

    def column(self, name: str) -> Sequence[Any]:
        """One value a row."""
        return self.source.column(name)
