"""What a caller passes as X, as a source: an array, a path, a data frame, an opened file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.engine.dask_arrays import DaskVectors, is_dask_array
from isoscope.engine.on_device import OnDevice, as_devices
from isoscope.engine.slice_names import By, columns_of_values, slices_of
from isoscope.engine.source import Source, Wrapped, is_source
from isoscope.errors import InputError, ShapeError
from isoscope.frames import Frame, as_frame
from isoscope.io.identity import of_knowledge
from isoscope.io.row_knowledge import at_hand
from isoscope.io.shards import VectorShards
from isoscope.io.sources import open_vectors, row_values
from isoscope.io.vector_files import LateFile, VectorFile
from isoscope.labels import Labels, as_labels
from isoscope.space import Space, as_counts, weighted

_STREAMED = ("labels", "weights")  # what a source that is read in blocks has of each row
_TEXT_COLUMN = "text"  # beside vectors, it holds what they encode


@dataclass(frozen=True)
class Input:
    """X as a source.

    Attributes:
        source: the vectors, with what is known of each row.
        by: the slices: names of columns of the source, values, or values by name.
        notes: how X was read, where the source does not say it.
        how: the options that read the vectors of X again.
    """

    source: Source
    by: Any = None
    notes: tuple[str, ...] = ()
    how: Mapping[str, Any] = field(default_factory=dict)


def as_input(
    X: Any,
    rows: Mapping[str, Any] | None = None,
    *,
    by: Any = None,
    vectors: str | None = None,
    device: Any = None,
    apart: Sequence[str] = (),
    skip_bad: bool = False,
) -> Input:
    """Return X as a source.

    Args:
        X: vectors in any array, a path, a data frame, an opened file, a dask array, or a Space.
        rows: what the caller knows of the rows: values, or names of a column of X or a file, by argument.
        by: as `measure` takes it.
        vectors: the column of a table that holds the vectors.
        device: where to compute, or several devices; by default where the vectors are.
        apart: other columns that are no dimensions.
        skip_bad: leave out files of many that cannot be opened.
    """
    rows = {name: value for name, value in (rows or {}).items() if value is not None}
    frame = as_frame(X)
    if frame is not None:
        opened = _of_frame(frame, rows, by, vectors, apart)
    elif is_dask_array(X):
        opened = Input(DaskVectors(X, **_looked_up(X, rows)), by)
    elif isinstance(X, str | os.PathLike) or (is_source(X) and not isinstance(X, Space)):
        opened = Input(_of_file(X, rows, by, vectors, apart, skip_bad=skip_bad), by)
    else:
        if vectors is not None:
            raise InputError("names a column of a table; X is an array", argument="vectors")
        columns = _looked_up(X, rows)
        space = X if isinstance(X, Space) else _space(X, columns)
        opened = Input(replace(X, **columns) if space is X and columns else space, by)
    return replace(opened, source=_placed(opened.source, device), how={**opened.how, "device": device})


def _space(X: Any, columns: Mapping[str, Any]) -> Space:
    try:
        return Space(X, **columns)
    except InputError as error:
        if error.argument == "vectors":
            as_matrix(X)  # raises the same error over X, which is the caller's name
        raise


def _looked_up(X: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row_values(X, value, name) for name, value in rows.items()}


def _placed(source: Source, device: Any) -> Source:
    """Return the source on a device, and in memory without a gradient: a measurement is numbers."""
    devices = as_devices(device)
    if len(devices) > 1 or not isinstance(source, Space):
        return OnDevice(source, devices) if devices else source
    if devices:
        source = source.with_vectors(source.vectors.to(devices[0]))
    return source.with_vectors(source.vectors.detach()) if source.vectors.requires_grad else source


def _names(by: Any, X: Frame | Source | None) -> tuple[str, ...]:
    """Return the columns that `by` names; none where it holds values, as a list may do."""
    if isinstance(by, str):
        return (by,)
    if isinstance(by, tuple) and all(isinstance(name, str) for name in by):
        return by
    if X is None or not isinstance(by, list) or not all(isinstance(name, str) for name in by):
        return ()
    columns = X.names if isinstance(X, Frame) else X.columns  # at an address they are fetched
    if len(set(by)) < len(by) or not set(by) <= set(columns):
        return ()
    n_rows = len(X.table) if isinstance(X, Frame) else X.n_rows
    return () if len(by) == n_rows else tuple(by)


def slices_by(by: Any, source: Source, *, skip_bad: bool) -> tuple[By, tuple[str, ...]]:
    """Return the slice of every row, or the columns to read it from part by part; and the columns' names."""
    if isinstance(by, Mapping):
        return slices_of(source, by), tuple(by)
    names = _names(by, source)
    if not names:
        return slices_of(source, columns_of_values(by)), ()
    if not set(names) <= set(source.columns):
        values = [row_values(source, name, "by") for name in names]
        return slices_of(source, dict(zip(names if len(names) > 1 else ("",), values, strict=True))), names
    if source.n_rows is None or skip_bad:  # known when they are read
        return names, names
    return slices_of(source, names), names


def _of_frame(
    frame: Frame, rows: Mapping[str, Any], by: Any, vectors: str | None, apart: Sequence[str]
) -> Input:
    names = _names(by, frame)
    named = [value for value in rows.values() if isinstance(value, str)]
    apart = [*apart, *named, *names]
    matrix, notes = frame.vectors(vectors, apart=apart)
    columns = {name: _column(frame, value, name) for name, value in rows.items()}
    if "texts" not in columns and frame.holds(_TEXT_COLUMN, "texts"):
        columns["texts"] = list(frame.values(_TEXT_COLUMN))
    slices = {name: _column(frame, name, "by") for name in names} if names else by
    return Input(Space(matrix, **columns), slices, tuple(notes), {"vectors": vectors, "apart": apart})


def _column(frame: Frame, value: Any, argument: str) -> Any:
    values = row_values(frame.table, value, argument)
    if argument == "texts":
        return list(values)
    return at_hand(argument, values) if argument == "weights" else values


def _of_file(
    X: Any, rows: dict[str, Any], by: Any, vectors: str | None, apart: Sequence[str], *, skip_bad: bool
) -> Source:
    """Return an opened file, or its rows in memory where more is known of them than a file has."""
    streamed = {name: value for name, value in rows.items() if name in _STREAMED}
    named = [value for name, value in rows.items() if name not in _STREAMED and isinstance(value, str)]
    options: dict[str, Any] = {name: at_hand(name, value) for name, value in streamed.items()}
    columns = (*_names(by, None if isinstance(X, str | os.PathLike) else X), *named, *apart)
    options |= {"by": columns} if columns else {}
    options |= {} if vectors is None else {"vectors": vectors}
    if isinstance(X, str | os.PathLike):
        source: Any = open_vectors(X, skip_bad=skip_bad, **options)
    elif not options:
        source = X
    elif isinstance(X, VectorFile | LateFile | VectorShards):
        source = X.reopened(**options)
    elif isinstance(X, OnDevice):
        source = OnDevice(_of_file(X.source, streamed, by, vectors, apart, skip_bad=skip_bad), X.devices)
    elif vectors is not None:
        raise InputError(f"names a column of a table; X is {type(X).__name__}", argument="vectors")
    else:
        source = WithRows(X, **streamed) if streamed else X
    others = {name: value for name, value in rows.items() if name not in _STREAMED}
    return replace(source.load(), **_looked_up(source, others)) if others else source


class WithRows(Wrapped):
    """A source with labels or weights that the caller gives."""

    def __init__(self, source: Source, *, labels: Any = None, weights: Any = None) -> None:
        super().__init__(source)
        n = source.n_rows
        labels, weights = row_values(source, labels, "labels"), row_values(source, weights, "weights")
        self._labels = source.labels if labels is None else as_labels(labels, n=n)
        self._weights = source.weights
        if weights is not None:
            counts = at_hand("weights", weights)
            self._weights = as_counts(counts, n=len(counts) if n is None else n)

    @property
    def identity(self) -> list[Any]:
        """The identity of the source, of the labels and of the weights."""
        return [*self.source.identity, of_knowledge(self._labels), of_knowledge(self._weights)]

    @property
    def labels(self) -> Labels | None:
        """The label of every row."""
        return self._labels

    @property
    def weights(self) -> Tensor | None:
        """How often each row counts."""
        return self._weights

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the rows in order."""
        start = 0
        for block in self.source.blocks(n_rows):
            yield self._with_columns(block, start, start + len(block))
            start += len(block)
        for name, values in (("labels", self._labels), ("weights", self._weights)):
            if values is not None and len(values) != start:
                raise ShapeError(
                    f"has {len(values)} entries for {start} vectors", argument=name, wanted="one for each"
                )

    def load(self) -> Space:
        """All rows."""
        space = self.source.load()
        return self._with_columns(space, 0, len(space))

    def _with_columns(self, space: Space, start: int, stop: int) -> Space:
        if self._labels is not None:
            space = replace(space, labels=self._labels.rows(start, stop))
        return space if self._weights is None else weighted(space, self._weights[start:stop])


def one_of_each(given: Any, argument: str) -> tuple[Any, Any]:
    """Return what is given for A and for B: the two of a pair, or one for both.

    >>> one_of_each("text", "texts"), one_of_each(("text", None), "texts")
    (('text', 'text'), ('text', None))
    """
    if not isinstance(given, tuple):
        return given, given
    if len(given) != 2:
        raise InputError(f"has {len(given)} entries", argument=argument, wanted="one, or a pair for A and B")
    return given[0], given[1]
