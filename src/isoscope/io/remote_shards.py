"""`RemoteShard`: one file of vectors at an address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.io.addresses import fetched, shown
from isoscope.io.identity import of_address, of_knowledge
from isoscope.io.sources import open_file
from isoscope.labels import Labels
from isoscope.space import Space

_WIDENED = 2  # times the bytes of the file: half precision is read as float32


class RemoteShard:
    """One file at an address: fetched each time it is read, and let go afterwards.

    Attributes:
        title: the address, for messages.
        n_rows: unknown before it is read.
    """

    n_rows: int | None = None
    device = torch.device("cpu")
    notes: tuple[str, ...] = ()

    def __init__(self, address: str, options: dict[str, Any], listing: dict[str, Any]) -> None:
        self._address, self._options, self._listing = address, options, listing
        self.title = shown(address)
        self.name: str | None = options.get("name")

    @property
    def n_bytes(self) -> int | None:
        """At most about so many in memory, as float32, by the length of the file; None where none is told."""
        size = self._listing.get("size")
        return _WIDENED * size if size and self._listing.get("type") == "file" else None

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the file as it was listed, and what is read of it."""
        asked = [
            of_knowledge(value) if name in ("labels", "weights") else value
            for name, value in sorted(self._options.items())
        ]
        return [self.title, *of_address(self._listing), *asked]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Its rows in order."""
        with fetched(self._address) as path:
            yield from open_file(path, **self._options).blocks(n_rows)

    def load(self) -> Space:
        """All its rows: the file is gone when they are used, so nothing stays mapped."""
        with fetched(self._address) as path:
            space = open_file(path, **self._options).load()
            return space.with_vectors(space.vectors.clone())

    @cached_property
    def n_dims(self) -> int:
        """How many dimensions it has."""
        with fetched(self._address) as path:
            return open_file(path, **self._options).n_dims

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names in the file that can be asked for as labels."""
        with fetched(self._address) as path:
            return open_file(path, **self._options).columns

    def column(self, name: str) -> Sequence[Any]:
        """One value a row of a column of the file."""
        with fetched(self._address) as path:
            return open_file(path, **self._options).column(name)

    @property
    def labels(self) -> Labels | None:
        """The labels of its rows; nothing is fetched where none were named."""
        known: Labels | None = self._known("labels")
        return known

    @property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts; nothing is fetched where no weights were named."""
        known: Tensor | None = self._known("weights")
        return known

    def _known(self, what: str) -> Any:
        if self._options.get(what) is None:
            return None
        with fetched(self._address) as path:
            return getattr(open_file(path, **self._options), what)

    def parts(self, n_rows: int) -> list[RemoteShard]:
        """Itself: a file that is fetched whole is read whole."""
        del n_rows
        return [self]
