"""Parquet and Arrow IPC files as tables: a schema, a number of rows, and batches of some columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import FileError, NotFiniteError, ShapeError
from isoscope.io.files import first_bytes, is_gzip, kind
from isoscope.io.structure import check_growth

_VALUE_BYTES = 8  # of a value in memory, at least


def open_table(path: Path) -> Table:
    """The table in a file, by its suffix."""
    if is_gzip(path):
        raise FileError(f"{path} is compressed from outside; gunzip it first, these formats compress within")
    return ParquetTable(path) if kind(path) == ".parquet" else IpcTable(path)


class Table(ABC):
    """A columnar file: nothing is read but what is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    @abstractmethod
    def schema(self) -> Any:
        """The Arrow schema."""

    @abstractmethod
    def count(self) -> int | None:
        """How many rows the file says it has; None where only its end tells."""

    @abstractmethod
    def batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        """Checked record batches of these columns, none longer than n_rows."""

    def check_growth(self, n_bytes: int) -> None:
        """Raise FileError where rows that the file says it has take far more memory than the file."""
        check_growth(
            n_bytes, self.path.stat().st_size, str(self.path), "save it as .npy or uncompressed .arrow"
        )

    def column(self, name: str) -> Any:
        """One whole column, as labels."""
        import pyarrow as pa

        self.check_growth((self.count() or 0) * _VALUE_BYTES)
        chunks = [batch.column(name) for batch in self.batches([name], 2**16)]
        return column_values(pa.chunked_array(chunks, type=self.schema.field(name).type))


class ParquetTable(Table):
    """A .parquet file."""

    @cached_property
    def schema(self) -> Any:
        """The schema, from the footer."""
        with self._opened() as file:
            return file.schema_arrow

    def count(self) -> int:
        """The rows, from the footer."""
        with self._opened() as file:
            return int(file.metadata.num_rows)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        """Batches decoded as they are asked for."""
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=columns, use_threads=False):
                batch.validate(full=True)
                yield batch.select(columns)

    def _opened(self) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.path, memory_map=True, page_checksum_verification=True)


class IpcTable(Table):
    """A .arrow or .feather file, in either of Arrow's layouts: the file and the stream."""

    @cached_property
    def schema(self) -> Any:
        """The schema, at the head of either layout."""
        with self._opened(None) as file:
            return file.schema

    def count(self) -> int | None:
        """The rows of a file; a stream tells only at its end."""
        from pyarrow import dataset

        # the dataset counts by the batches' headers; asking the batches would decompress them
        return int(dataset.dataset(self.path, format="ipc").count_rows()) if self._is_file else None

    def batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        """The batches the file was written in, mapped where they are not compressed, cut to size."""
        with self._opened(columns) as file:
            stored = map(file.get_batch, range(file.num_record_batches)) if self._is_file else iter(file)
            for batch in stored:
                batch.validate(full=True)  # offsets from a stranger could point anywhere
                chosen = batch.select(columns)
                for start in range(0, len(batch), n_rows):
                    yield chosen.slice(start, n_rows)

    @cached_property
    def _is_file(self) -> bool:
        return first_bytes(self.path, 6) == b"ARROW1"

    @contextmanager
    def _opened(self, columns: list[str] | None) -> Iterator[Any]:
        import pyarrow as pa

        chosen = None if columns is None else sorted(self.schema.get_field_index(name) for name in columns)
        read = pa.ipc.open_file if self._is_file else pa.ipc.open_stream
        with pa.memory_map(str(self.path)) as source:
            yield read(source, options=pa.ipc.IpcReadOptions(included_fields=chosen))


def column_values(column: Any) -> Any:
    """An Arrow column as labels: a NumPy array of numbers without gaps, else a list (None is missing)."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    ) and not column.null_count:
        return column.to_numpy()
    if not (is_text(kind) or pa.types.is_nested(kind)):
        column = column.cast(pa.string())
    return column.to_pylist()


def table_array(batch: Any) -> np.ndarray:
    """A batch of number columns as (n, d), missing numbers as NaN; float32 where nothing is lost by it."""
    import pyarrow as pa

    narrow = (pa.bool_(), pa.float16(), pa.float32(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16())
    target = pa.float32() if all(field.type in narrow for field in batch.schema) else pa.float64()
    columns = [
        column if column.type == target else column.cast(target, safe=False) for column in batch.columns
    ]
    same = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
    return np.asarray(same.to_tensor(null_to_nan=True, row_major=True).to_numpy())


def check_lists(column: Any, path: Path, n_dims: int, start: int) -> np.ndarray:
    """A column of lists as (n, d), if each has n_dims numbers; `start` is the first row's number."""
    import pyarrow.compute as pc

    refuse_nulls(column, path, start)
    ragged = pc.not_equal(pc.list_value_length(column), n_dims).index(True).as_py()
    if ragged >= 0:
        raise ShapeError(
            f"{path} has a vector of length {len(column[ragged])} in row {start + ragged}, "
            f"where the first has {n_dims}; wanted rows of one length"
        )
    values = column.flatten()
    if values.null_count:
        row = start + values.is_null().index(True).as_py() // n_dims
        raise NotFiniteError(f"{path} has missing numbers, the first in row {row}; drop or fill those rows")
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), n_dims)


def refuse_nulls(column: Any, path: Path, start: int) -> None:
    """Raise NotFiniteError over a row without a vector."""
    if column.null_count:
        row = start + column.is_null().index(True).as_py()
        raise NotFiniteError(f"{path} has no vector in row {row} (null); drop the rows without one")


def is_number(kind: Any) -> bool:
    """Whether a column of this type can be one dimension."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_whole(kind: Any) -> bool:
    """Whether a column of this type holds whole numbers."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind))


def is_vector(kind: Any) -> bool:
    """Whether a column of this type holds lists of numbers."""
    import pyarrow as pa

    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(is_list and (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)))


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds strings."""
    import pyarrow as pa

    # polars writes views
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
