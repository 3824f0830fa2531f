"""The columns of a table beside its vectors, which are kept when the table is written again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TableRows:
    """The columns of a file of vectors that are not its vectors, row by row, and where the vectors stand.

    Attributes:
        names: all columns, in order.
        vectors: those that hold the vectors: one of lists, or one of numbers for each dimension.
        list_type: the Arrow type of the column of lists; None where each dimension is a column.
        has_labels: whether the labels of the rows are among the columns.
        read: the other columns as Arrow record batches, from the first row on.
        pandas: what pandas noted in the file, which of the columns is the index among it.
    """

    names: tuple[str, ...]
    vectors: tuple[str, ...]
    list_type: Any
    has_labels: bool
    read: Callable[[], Iterator[Any]]
    pandas: bytes | None = None

    @property
    def others(self) -> list[str]:
        """The columns that do not hold the vectors."""
        return [name for name in self.names if name not in self.vectors]

    def where(self, n_dims: int) -> dict[str, Any]:
        """Return the options that read vectors of n_dims from the table after it is written."""
        if self.list_type is None and n_dims == len(self.vectors):
            return {"columns": self.vectors}
        return {"vectors": self._list_name}

    def tables(self, blocks: Iterator[np.ndarray]) -> Iterator[Any]:
        """Yield tables of the columns in their order, with blocks of new vectors in place of the old ones."""
        import pyarrow as pa

        beside = _Taken(self.read()) if len(self.names) > len(self.vectors) else None
        for vectors in blocks:
            others = None if beside is None else beside.take(len(vectors))
            new = self._columns(vectors)
            columns: dict[str, Any] = {}
            for name in self.names:
                if others is not None and name not in self.vectors:
                    columns[name] = others.column(name)
                elif name == self.vectors[0]:
                    columns.update(new)
            order = [name for name in self.names if name in columns]
            order = order if set(new) <= set(order) else list(columns)
            noted = {b"pandas": self.pandas} if self.pandas and set(order) == set(self.names) else None
            yield pa.table({name: columns[name] for name in order}).replace_schema_metadata(noted)

    @property
    def _list_name(self) -> str:
        name = self.vectors[0] if self.list_type is not None else "vector"
        while self.list_type is None and name in self.names:
            name += "_"
        return name

    def _columns(self, vectors: np.ndarray) -> dict[str, Any]:
        import pyarrow as pa

        if "columns" in self.where(vectors.shape[1]):
            return {name: pa.array(column) for name, column in zip(self.vectors, vectors.T, strict=True)}
        return {self._list_name: list_column(vectors, self.list_type)}


class _Taken:
    """Rows of record batches, so many at a time."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._held: list[Any] = []

    def take(self, n_rows: int) -> Any:
        """Return the next n_rows as a table."""
        import pyarrow as pa

        while sum(map(len, self._held)) < n_rows and (batch := next(self._batches, None)) is not None:
            self._held.append(batch)
        table = pa.Table.from_batches(self._held)
        self._held = table.slice(n_rows).to_batches()
        return table.slice(0, n_rows)


def list_column(vectors: np.ndarray, like: Any = None) -> Any:
    """Return vectors as an Arrow column of lists, of fixed length or of the type `like`."""
    import pyarrow as pa

    values = pa.array(vectors.ravel())
    if like is None or pa.types.is_fixed_size_list(like):
        return pa.FixedSizeListArray.from_arrays(values, vectors.shape[1])
    kind, offset = (pa.LargeListArray, np.int64) if pa.types.is_large_list(like) else (pa.ListArray, np.int32)
    ends = np.arange(len(vectors) + 1) * vectors.shape[1]
    return kind.from_arrays(pa.array(ends.astype(offset)), values)
