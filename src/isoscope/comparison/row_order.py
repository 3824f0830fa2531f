"""Whether two spaces have the same rows in another order: by a column of both, or by equal vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isoscope.arrays import blocks
from isoscope.engine.on_device import OnDevice
from isoscope.errors import InputError
from isoscope.frames import Frame, as_frame
from isoscope.io.shards import VectorShards
from isoscope.io.sources import open_vectors
from isoscope.io.vector_files import LateFile, VectorFile
from isoscope.measurement import Measurement
from isoscope.space import Space
from isoscope.table_columns import TEXTS

KEEP_ORDER = "none"  # as `ids`
_ID_NAMES = (
    "id",
    "ids",
    "_id",
    "key",
    "uuid",
)  # rows are matched by such a column without being asked
_HEAD = 100  # rows by which a column is judged before it is read

_LEAST = 2  # rows; and half of those that differ
_LOOKED_AT = 1000  # rows, to choose the dimension by which rows are looked up


def order_note(A: Tensor, B: Tensor) -> str:
    """Return a note where rows of A are equal to other rows of B; "" where they are not.

    Args:
        A, B: (n, d) and (n, e) vectors.
    """
    if A.shape != B.shape:
        return ""
    B = B.to(A.device)
    moved = [(a != b).any(dim=1) & (a != 0).any(dim=1) for a, b in zip(blocks(A), blocks(B), strict=True)]
    differs = torch.cat(moved).nonzero().flatten()
    if len(differs) < _LEAST:
        return ""
    # few rows are equal in the dimension with the most values
    some = A[differs[:: max(1, len(differs) // _LOOKED_AT)]].sort(dim=0).values
    dimension = int((some[1:] != some[:-1]).sum(dim=0).argmax())
    kind = torch.promote_types(A.dtype, B.dtype)
    a, b = A[differs, dimension].to(kind), B[:, dimension].to(kind)
    places = torch.isin(a, b).nonzero().flatten()
    least = max(_LEAST, len(differs) / 2)
    if len(places) < least:
        return ""
    rows_of_b = set(_as_bytes(B[torch.isin(b, a[places])]))
    n_equal = sum(row in rows_of_b for row in _as_bytes(A[differs[places]]))
    if n_equal < least:
        return ""
    return (
        f"rows seem to be in another order: {n_equal:,} of the {len(A):,} rows of A are equal to another row "
        "of B; pass ids to match them"
    )


class Reordered(NamedTuple):
    """A column that has the same unique values in A and B, in another order, and these values."""

    name: str
    values: tuple[list[Any], list[Any]]

    @property
    def is_id(self) -> bool:
        """Whether the column is named as one of ids."""
        return self.name in _ID_NAMES

    @property
    def note(self) -> str:
        """What is done about it."""
        if self.is_id:
            return (
                f"rows are matched by column {self.name!r}, which is in another order in B; "
                f"ids={KEEP_ORDER!r} (--ids {KEEP_ORDER}) keeps the order"
            )
        return (
            f"column {self.name!r} has the same values in A and B in another order; "
            f"ids={self.name!r} (--ids {self.name}) matches rows by it"
        )


def reordered_column(
    A: Any, B: Any, *, vectors: tuple[str | None, str | None] = (None, None), apart: Sequence[str] = ()
) -> Reordered | None:
    """Return a column with the same unique values in another order in B, one of ids first.

    Args:
        A, B: as `compare` takes them; arrays have no columns.
        vectors: the columns of A and B that hold the vectors.
        apart: other columns that are no dimensions.
    """
    if A is B:
        return None
    first, second = (_columns(X, column, apart) for X, column in zip((A, B), vectors, strict=True))
    shared = [name for name in first if name in second]
    for name in sorted(shared, key=lambda name: name not in _ID_NAMES):
        heads = [columns[name](_HEAD) for columns in (first, second)]
        if not all(map(_are_unique, heads)) or (name not in _ID_NAMES and heads[0] == heads[1]):
            continue
        a, b = (columns[name](None) for columns in (first, second))
        if len(a) == len(b) and a != b and _are_unique(a) and set(map(str, a)) == set(map(str, b)):
            return Reordered(name, (a, b))
    return None


def _are_unique(values: Sequence[Any]) -> bool:
    """Return whether values are texts or whole numbers, each once."""
    return all(isinstance(value, str | int) for value in values) and len(set(values)) == len(values)


def _columns(
    X: Any, vectors: str | None, apart: Sequence[str]
) -> dict[str, Callable[[int | None], list[Any]]]:
    """Return how the first values, or all, of each column beside the vectors are read."""
    try:
        if isinstance(X, Measurement):
            X = None if X._kept is None else X._kept.vectors()
        if isinstance(X, str | os.PathLike):
            X = open_vectors(X, vectors=vectors, by=tuple(apart) or None)
    except InputError:  # raised again where the vectors are read
        return {}
    if isinstance(X, OnDevice):
        X = X.source
    if isinstance(X, Space):
        texts = X.texts
        return {} if texts is None else {"texts": lambda n: list(texts[:n])}
    if (frame := as_frame(X)) is not None:
        names = [column.name for column in frame.columns if column.holds == TEXTS or column.name in _ID_NAMES]
        return {name: partial(_of_frame, frame, name) for name in names}
    if not isinstance(X, VectorFile | LateFile | VectorShards):
        return {}
    table = X.table_rows()
    if table is not None and table.others:
        head = next(table.read(), None)
        return {} if head is None else {name: partial(_of_file, X, head, name) for name in table.others}
    names = [] if isinstance(X, LateFile) else [name for name in X.columns if name in _ID_NAMES]
    return {name: partial(_of_file, X, None, name) for name in names}


def _of_frame(frame: Frame, name: str, n: int | None) -> list[Any]:
    return _plain(frame.values(name)[:n])


def _of_file(X: VectorFile | LateFile | VectorShards, head: Any, name: str, n: int | None) -> list[Any]:
    if head is None or n is None:
        return _plain(X.column(name))[:n]
    cells: list[Any] = head.column(name)[:n].to_pylist()
    return cells


def _plain(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _as_bytes(rows: Tensor) -> list[bytes]:
    """Return each row as bytes, alike in every type of numbers."""
    values = rows.cpu().double() + 0.0  # no −0
    return [row.tobytes() for row in values.numpy()]
