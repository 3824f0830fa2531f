"""A dask array as a source: a chunk of rows is a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from isoscope.errors import InputError, ShapeError
from isoscope.io.identity import of_knowledge
from isoscope.io.row_knowledge import known_rows
from isoscope.labels import as_labels
from isoscope.space import Space, as_weights, weighted


def is_dask_array(X: Any) -> bool:
    """Whether X is a dask array, without importing dask."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "to_delayed")


@dataclass(frozen=True, eq=False)
class HeldPart:
    """Rows in memory, as a part; made where the rows are."""

    title: str
    space: Space

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """The rows in order."""
        return self.space.blocks(n_rows)


@dataclass(frozen=True, eq=False)
class DaskChunk:
    """A chunk of rows that is computed when it is read, and let go afterwards."""

    title: str
    delayed: Any
    known: dict[str, Any] = field(default_factory=dict)

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """The rows in order, computed here."""
        yield from held(self.title, self.delayed.compute(), self.known).blocks(n_rows)

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the key dask has for them, and what is known of each."""
        known = [[name, of_knowledge(value)] for name, value in sorted(self.known.items())]
        return [self.title, str(self.delayed.key), *known]

    def on(self, client: Any) -> Any:
        """A future of the rows as a part, on the client's workers."""
        return client.submit(held, self.title, client.compute(self.delayed), self.known, pure=False)


def held(title: str, rows: Any, known: dict[str, Any]) -> HeldPart:
    """A computed chunk as a part."""
    weights = known.get("weights")
    space = Space(rows, **{name: value for name, value in known.items() if name != "weights"})
    return HeldPart(title, space if weights is None else weighted(space, weights))


class DaskVectors:
    """A dask array of shape (n, d), chunk by chunk of rows; never whole in memory.

    Attributes:
        n_rows, n_dims: its shape; n_rows is None where chunks do not say how long they are.
        client: the workers that compute it, if there is a client; else it is computed in this process.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, array: Any, **known: Any) -> None:
        if array.ndim != 2:
            raise ShapeError(f"X has shape {array.shape}; wanted two axes (n, d), one vector a row")
        self._array = array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
        sizes = [float(size) for size in self._array.chunks[0]]
        self.n_dims = int(array.shape[1])
        self.n_rows = None if any(size != size for size in sizes) else int(sum(sizes))
        self._known = self._checked({name: value for name, value in known.items() if value is not None})

    def _checked(self, known: dict[str, Any]) -> dict[str, Any]:
        if known and self.n_rows is None:
            raise InputError(
                f"{next(iter(known))} cannot be matched to chunks of unknown length; "
                "call X.compute_chunk_sizes() first"
            )
        made: dict[str, Any] = {}
        for name, value in known.items():
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
        chunks = self._array.to_delayed().ravel()
        parts = [DaskChunk(f"chunk {number} of X", chunk) for number, chunk in enumerate(chunks)]
        if not self._known:
            return parts
        start, told = 0, []
        for part, size in zip(parts, self._array.chunks[0], strict=True):
            stop = start + int(size)
            rows = {name: known_rows(value, start, stop) for name, value in self._known.items()}
            told.append(replace(part, known=rows))
            start = stop
        return told

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """All rows in order, a chunk in memory at a time."""
        for part in self.parts(0):
            yield from part.blocks(n_rows)

    def load(self) -> Space:
        """All rows in memory."""
        return Space(self._array.compute(), **self._known)
