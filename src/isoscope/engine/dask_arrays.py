"""A dask array as a source: a chunk of rows is a part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.source import Source, Wrapped
from isoscope.errors import InputError, ShapeError
from isoscope.io.identity import of_knowledge
from isoscope.io.row_knowledge import known_rows
from isoscope.labels import Labels, as_labels
from isoscope.space import Space, as_weights, weighted


def is_dask_array(X: Any) -> bool:
    """Whether X is a dask array, without importing dask."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "to_delayed")


def chunk_as_part(title: str, rows: Any, row_columns: dict[str, Any]) -> Wrapped:
    """Return a computed chunk as a part, made on the worker that has the rows."""
    weights = row_columns.get("weights")
    space = Space(rows, **{name: value for name, value in row_columns.items() if name != "weights"})
    return Wrapped(space if weights is None else weighted(space, weights), title)


class DaskChunk(Wrapped):
    """A chunk of rows that is computed when it is read, and let go afterwards."""

    name = None
    n_bytes = None
    notes: tuple[str, ...] = ()
    n_rows: int | None = None
    n_dims = 0

    def __init__(
        self, title: str, delayed: Any, shape: tuple[int | None, int], row_columns: dict[str, Any]
    ) -> None:
        self._title = title
        self.n_rows, self.n_dims = shape
        self.delayed, self.row_columns = delayed, row_columns

    @property
    def source(self) -> Source:  # type: ignore[override]
        """The rows, computed here."""
        return chunk_as_part(self.title, self.delayed.compute(), self.row_columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is known of each row."""
        return tuple(self.row_columns)

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the key dask has for them, and what is known of each."""
        identities = [[name, of_knowledge(value)] for name, value in sorted(self.row_columns.items())]
        return [self.title, str(self.delayed.key), *identities]

    def on(self, client: Any) -> Any:
        """Return a future of the rows as a part, on the client's workers."""
        return client.submit(
            chunk_as_part, self.title, client.compute(self.delayed), self.row_columns, pure=False
        )


class DaskVectors:
    """A dask array of shape (n, d), chunk by chunk of rows; never whole in memory.

    Attributes:
        n_rows, n_dims: its shape; n_rows is None where chunks do not say how long they are.
        client: the workers that compute it, if there is a client; else it is computed in this process.
    """

    notes: tuple[str, ...] = ()
    title = "X"
    name = None
    device = torch.device("cpu")

    def __init__(self, array: Any, **row_columns: Any) -> None:
        if array.ndim != 2:
            raise ShapeError(
                f"has shape {array.shape}", argument="X", wanted="two axes (n, d), one vector per row"
            )
        self._array = array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
        sizes = [float(size) for size in self._array.chunks[0]]
        self.n_dims = int(array.shape[1])
        self.n_rows = None if any(size != size for size in sizes) else int(sum(sizes))
        self._row_columns = self._checked(
            {name: value for name, value in row_columns.items() if value is not None}
        )

    def _checked(self, row_columns: dict[str, Any]) -> dict[str, Any]:
        if row_columns and self.n_rows is None:
            raise InputError(
                f"{next(iter(row_columns))} cannot be matched to chunks of unknown length; "
                "call X.compute_chunk_sizes() first"
            )
        made: dict[str, Any] = {}
        for name, value in row_columns.items():
            if name == "partners":
                raise InputError("partners goes with an array in memory; X is a dask array")
            make = as_weights if name == "weights" else as_labels
            made[name] = make(value, n=self.n_rows or 0, name=name)
        return made

    @cached_property
    def client(self) -> Any:
        """The client that is current, if any."""
        try:
            from distributed import get_client

            return get_client()
        except (ImportError, ValueError):
            return None

    def parts(self, n_rows: int) -> list[DaskChunk]:
        """One a chunk of rows."""
        del n_rows
        chunks, start = [], 0
        for number, delayed in enumerate(self._array.to_delayed().ravel()):
            stop = start + int(self._array.chunks[0][number]) if self._row_columns else 0
            row_columns = {name: known_rows(value, start, stop) for name, value in self._row_columns.items()}
            shape = (None if self.n_rows is None else int(self._array.chunks[0][number]), self.n_dims)
            chunks.append(DaskChunk(f"chunk {number} of X", delayed, shape, row_columns))
            start = stop
        return chunks

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32."""
        return None if self.n_rows is None else 4 * self.n_rows * self.n_dims

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: that of every chunk."""
        return [chunk.identity for chunk in self.parts(0)]

    @property
    def labels(self) -> Labels | None:
        """The label of every row, as the caller gave it."""
        return self._row_columns.get("labels")

    @property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts, as the caller gave it."""
        return self._row_columns.get("weights")

    @property
    def columns(self) -> tuple[str, ...]:
        """What the caller gave of each row."""
        return tuple(self._row_columns)

    def column(self, name: str) -> list[Any]:
        """One value a row of what the caller gave."""
        if name not in self._row_columns:
            raise InputError(f"X has no column {name!r}; it has {', '.join(self._row_columns) or 'none'}")
        values = self._row_columns[name]
        return (
            [values.names[code] for code in values.codes] if isinstance(values, Labels) else values.tolist()
        )

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """All rows in order, a chunk in memory at a time."""
        for part in self.parts(0):
            yield from part.blocks(n_rows)

    def load(self) -> Space:
        """All rows in memory."""
        return Space(self._array.compute(), **self._row_columns)
