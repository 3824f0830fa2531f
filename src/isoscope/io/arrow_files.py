"""Parquet and Arrow IPC files as tables; nothing is read but the columns that are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import FileError
from isoscope.frames import arrow_columns, arrow_kind, column_values
from isoscope.io.files import first_bytes, is_gzip
from isoscope.io.table import ROWS_BESIDE, Table, Wanted
from isoscope.list_columns import are_lists, parsed_lists
from isoscope.table_columns import (
    LISTS,
    N_JUDGED,
    NUMBERS,
    OTHER,
    TEXTS,
    VECTORS,
    Column,
    names_no_dimension,
)

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

_N_FIRST = 20  # rows that columns of strings are judged by
_VALUE_BYTES = 8  # of a value in memory, at least
_BUFFER_BYTES = 64 * 2**20  # of all columns together, read ahead at an address
_HOLDS = {"f": NUMBERS, "i": NUMBERS, TEXTS: TEXTS, VECTORS: VECTORS, LISTS: LISTS}


class ArrowTable(Table):
    """A columnar file with a schema."""

    def __init__(self, path: FilePath, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        if is_gzip(path):
            raise FileError(
                f"{path} is compressed, which its format does within the file", hint="gunzip it first"
            )
        self.written = tuple(self.schema.names)
        self.pandas = (self.schema.metadata or {}).get(b"pandas")

    @cached_property
    @abstractmethod
    def schema(self) -> Any:
        """The Arrow schema."""

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """By the columns' types; of strings, by the first rows."""
        return tuple(
            VECTORS if place in self._written_lists else held for place, held in enumerate(self._types)
        )

    @cached_property
    def _types(self) -> tuple[str, ...]:
        return tuple(_HOLDS.get(arrow_kind(field.type), OTHER) for field in self.schema)

    @cached_property
    def _written_lists(self) -> frozenset[int]:
        """The columns of strings that hold vectors, such as "[0.5, 1]".

        Their first rows are read only where no other column can hold vectors, or the caller names one.
        """
        types, named = self._types, self.wanted.named
        strings = [place for place, held in enumerate(types) if held == TEXTS]
        n_numbers = sum(
            held == NUMBERS and not names_no_dimension(name)
            for name, held in zip(self.written, types, strict=True)
        )
        if VECTORS in types or LISTS in types or n_numbers > 1:
            strings = [place for place in strings if self.written[place] in named]
        if not strings or (first := next(self._stored(strings, _N_FIRST), None)) is None:
            return frozenset()
        cells = (column.to_pylist() for column in first.columns)
        return frozenset(place for place, some in zip(strings, cells, strict=True) if are_lists(some))

    def batches(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Yield batches as the file has them; vectors that are written as strings are parsed."""
        import pyarrow as pa

        lists = self._written_lists & set(places)
        start = 0
        for batch in self._stored(places, n_rows):
            if not lists:
                yield batch
                continue
            columns = [
                parsed_lists(column, self.path, start=start, error=FileError) if place in lists else column
                for place, column in zip(places, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
            start += len(batch)

    @abstractmethod
    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Yield batches as the file has them."""

    def beside(self, places: list[int]) -> Iterator[Any]:
        """Yield columns as the file has them."""
        return self._stored(places, ROWS_BESIDE)

    def type_of(self, place: int) -> Any:
        """Return the Arrow type; of vectors that are written as strings, the type that they are read as."""
        import pyarrow as pa

        return pa.list_(pa.float64()) if place in self._written_lists else self.schema.field(place).type

    def n_numbers(self, place: int) -> int:
        """Return the list length of the type, else the length of the first list."""
        import pyarrow as pa

        of = self.type_of(place)
        return int(of.list_size) if pa.types.is_fixed_size_list(of) else super().n_numbers(place)

    def numbers(self) -> list[Column]:
        """Return the columns, judged by type, with the first values of those that hold numbers."""
        return arrow_columns(self.schema, lambda places: next(self.batches(places, N_JUDGED), None))

    def values(self, place: int) -> Any:
        """Read a whole column."""
        import pyarrow as pa

        self.check_growth((self.count() or 0) * _VALUE_BYTES)
        chunks = [batch.column(0) for batch in self.batches([place], 2**16)]
        return column_values(pa.chunked_array(chunks, type=self.type_of(place)))


class ParquetTable(ArrowTable):
    """A .parquet file."""

    @cached_property
    def schema(self) -> Any:
        """The schema, from the footer."""
        return self._metadata.schema.to_arrow_schema()

    def count(self) -> int:
        """Return the number of rows, from the footer."""
        return int(self._metadata.num_rows)

    def n_numbers(self, place: int) -> int:
        """Return the length of the first list; at an address it is computed from the counts in the footer."""
        n_rows, name = self.count(), self.written[place]
        is_nested = place not in self._written_lists and self.type_of(place).num_fields == 1
        if isinstance(self.path, Path) or not n_rows or not is_nested:
            return super().n_numbers(place)
        groups = map(self._metadata.row_group, range(self._metadata.num_row_groups))
        chunks = (group.column(at) for group in groups for at in range(group.num_columns))
        of_column = (chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] == name)
        n_dims, rest = divmod(sum(chunk.num_values for chunk in of_column), n_rows)
        return n_dims if n_dims and not rest else super().n_numbers(place)

    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Decode batches as they are asked for."""
        columns = [self.written[place] for place in places]
        with self._opened(self._metadata, n_columns=len(columns)) as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=columns, use_threads=False):
                batch.validate(full=True)
                yield batch.select(columns)

    @cached_property
    def _metadata(self) -> Any:
        with self._opened(None) as file:
            return file.metadata

    @contextmanager
    def _opened(self, metadata: Any, n_columns: int = 1) -> Iterator[Any]:
        import pyarrow.parquet as pq

        ahead = 0 if isinstance(self.path, Path) else max(2**18, _BUFFER_BYTES // max(1, n_columns))
        with arrow_input(self.path) as source:
            yield pq.ParquetFile(
                source, metadata=metadata, buffer_size=ahead, page_checksum_verification=True
            )


class IpcTable(ArrowTable):
    """A .arrow or .feather file, in either of Arrow's layouts: the file and the stream."""

    @cached_property
    def schema(self) -> Any:
        """The schema, at the head of either layout."""
        with self._opened(None) as file:
            return file.schema

    def count(self) -> int | None:
        """Return the number of rows; None at an address, where counting would fetch all of it."""
        from pyarrow import dataset

        if not isinstance(self.path, Path):
            return None
        if not self._is_file:  # mapped: little more than the headers of the batches is read
            with self._opened([0]) as stream:
                return sum(map(len, stream))
        # the dataset counts by the batches' headers; asking the batches would decompress them
        return int(dataset.dataset(self.path, format="ipc").count_rows())

    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        """Yield the batches of the file, cut to size; they are mapped unless they are compressed."""
        chosen = [sorted(places).index(place) for place in places]
        with self._opened(sorted(places)) as file:
            stored = map(file.get_batch, range(file.num_record_batches)) if self._is_file else iter(file)
            for batch in stored:
                batch.validate(full=True)  # offsets from a stranger could point anywhere
                for start in range(0, len(batch), n_rows):
                    yield batch.select(chosen).slice(start, n_rows)

    @cached_property
    def _is_file(self) -> bool:
        return first_bytes(self.path, 6) == b"ARROW1"

    @contextmanager
    def _opened(self, places: list[int] | None) -> Iterator[Any]:
        import pyarrow as pa

        read = pa.ipc.open_file if self._is_file else pa.ipc.open_stream
        with arrow_input(self.path) as source:
            yield read(source, options=pa.ipc.IpcReadOptions(included_fields=places))


def arrow_input(path: FilePath) -> Any:
    """Open a file for Arrow: mapped into memory, or read by ranges at an address."""
    import pyarrow as pa

    return pa.memory_map(str(path)) if isinstance(path, Path) else pa.PythonFile(path.open("rb"), mode="r")


def table_array(batch: Any) -> np.ndarray:
    """Return columns of numbers as (n, d), NaN where one is missing; float32 where that loses nothing."""
    import pyarrow as pa

    narrow = (pa.bool_(), pa.float16(), pa.float32(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16())
    target = pa.float32() if all(field.type in narrow for field in batch.schema) else pa.float64()
    columns = [
        column if column.type == target else column.cast(target, safe=False) for column in batch.columns
    ]
    same = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
    return np.asarray(same.to_tensor(null_to_nan=True, row_major=True).to_numpy())
