"""Collections of stores as tables: which of several it is, and pages of points as columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from isoscope.errors import FileError, Setting
from isoscope.io.arrow_files import ArrowTable
from isoscope.printable import listed, nearest

_N_FIRST = 100  # points whose fields say which columns there are
ID = "id"


def the_only(names: Sequence[str], key: str | None, of: object, *, what: str) -> str:
    """Return the collection or table that `key` names, or the only one there is."""
    if key is not None and key not in names:
        raise FileError(
            f"{of} has no {what} {key!r}; it has {listed(names) or 'none'}",
            argument="key",
            hint=nearest(key, names),
        )
    if key is None and len(names) != 1:
        hint = Setting("key", names[0], to="choose one") if names else "add vectors to one"
        raise FileError(f"{of} has {len(names)} {what}s with vectors: {listed(names) or 'none'}", hint=hint)
    return key or names[0]


class StoreTable(ArrowTable):
    """A table that another program keeps: its size says nothing of what its rows take in memory."""

    def check_growth(self, n_bytes: int) -> None:
        """Do nothing: rows are stored, not unpacked."""


@dataclass(frozen=True)
class Page:
    """Some points of a store.

    Attributes:
        ids: their identifiers.
        vectors: (m, d); None where they were not asked for.
        fields: the other values of each point, by name.
    """

    ids: Sequence[Any]
    vectors: np.ndarray | None
    fields: Sequence[Mapping[str, Any]]


class PointsTable(StoreTable):
    """A store whose points are fetched page by page, each with a vector and fields of any names.

    Its columns are the identifier, the vector, and the fields of the first points that hold one text, number
    or truth value.
    """

    vector_column = "vector"

    @abstractmethod
    def pages(self, n_rows: int, vectors: str | None) -> Iterator[Page]:
        """Yield all points in the store's order, n_rows at a time; `vectors` is the column to fetch."""

    @cached_property
    @abstractmethod
    def vector_columns(self) -> Mapping[str, int]:
        """The dimensions of each kind of vector that a point has, by the name of its column."""

    @cached_property
    def schema(self) -> Any:
        """The columns, judged by the first points."""
        import pyarrow as pa

        first = next(self.pages(_N_FIRST, None), Page((), None, ()))
        lists = {name: pa.list_(pa.float32(), n_dims) for name, n_dims in self.vector_columns.items()}
        names = dict.fromkeys(name for fields in first.fields for name in fields)
        types = {name: _type(fields.get(name) for fields in first.fields) for name in names}
        others = {name: held for name, held in types.items() if held is not None and name not in (ID, *lists)}
        return pa.schema({ID: _type(first.ids) or pa.string(), **others, **lists})

    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        import pyarrow as pa

        schema = pa.schema([self.schema.field(place) for place in places])
        wanted = next((name for name in schema.names if name in self.vector_columns), None)
        for page in self.pages(n_rows, wanted):
            columns = [self._column(page, field) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, page: Page, field: Any) -> Any:
        import pyarrow as pa

        if field.name in self.vector_columns:
            assert page.vectors is not None
            rows = np.ascontiguousarray(page.vectors, dtype=np.float32)
            if rows.ndim != 2 or rows.shape[1] != field.type.list_size:
                raise FileError(f"{self.path} has points without a vector {field.name!r}")
            return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
        values: Sequence[Any] = (
            page.ids if field.name == ID else [fields.get(field.name) for fields in page.fields]
        )
        if pa.types.is_string(field.type):
            values = [None if value is None else str(value) for value in values]
        return pa.array(values, type=field.type)


def _type(values: Iterable[Any]) -> Any:
    """Return the Arrow type of a column by its first values; None unless they are texts or numbers."""
    import pyarrow as pa

    kinds = {type(value) for value in islice(values, _N_FIRST) if value is not None}
    if not kinds or not kinds <= {str, int, float, bool}:
        return None
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds <= {int, float} else pa.string()
