"""PostgreSQL with pgvector: a table at postgresql://USER@HOST/DATABASE, read only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from isoscope.errors import FileError, InputError, not_installed
from isoscope.io.duckdb_files import quoted
from isoscope.io.files import reason
from isoscope.io.store_addresses import StoreAddress
from isoscope.io.store_tables import StoreTable, the_only

_VECTORS = {"vector": ">f4", "halfvec": ">f2"}  # pgvector's types: two int16, then the numbers
_HEAD_BYTES = 4
_ARRAYS = {"_float4": "real", "_float8": "double precision"}
_TABLES = """
    SELECT n.nspname, c.relname, a.attname, t.typname, a.atttypmod
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    ORDER BY 1, 2, a.attnum
"""
# the same order in each pass: no scan that begins in the middle or runs in several processes
_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
_INTEGERS = ("int2", "int4", "int8")
_NUMBERS = ("float4", "float8", "numeric")
_TEXTS = ("text", "varchar", "bpchar", "name", "uuid", "date", "timestamp", "timestamptz")


class PostgresqlTable(StoreTable):
    """The table that `key` names, or the only one with a column of vectors or arrays of numbers.

    Rows come in the order in which they are stored. Columns of other types than texts, numbers, dates and
    vectors are left out.
    """

    path: StoreAddress

    @cached_property
    def schema(self) -> Any:
        """The columns of the table as Arrow would have them."""
        import pyarrow as pa

        return pa.schema([(name, _arrow_type(held)) for name, held in self._columns.items()])

    def count(self) -> int:
        """Return the number of rows."""
        with self._connected() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        import pyarrow as pa

        schema = pa.schema([self.schema.field(place) for place in places])
        selected = ", ".join(_selected(name, self._columns[name]) for name in schema.names)
        with self._connected() as connection, connection.cursor("isoscope", binary=True) as cursor:
            cursor.itersize = n_rows
            cursor.execute(f"SELECT {selected} FROM {self._table}")
            while rows := cursor.fetchmany(n_rows):
                columns = [
                    _column(values, field)
                    for values, field in zip(zip(*rows, strict=True), schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    @cached_property
    def _found(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Every table by its name, with how SQL writes it and the types of its columns."""
        tables: dict[str, tuple[str, dict[str, str]]] = {}
        with self._connected() as connection:
            for schema, table, column, held, _ in connection.execute(_TABLES):
                name = table if schema == "public" else f"{schema}.{table}"
                place = f"{quoted(schema)}.{quoted(table)}"
                tables.setdefault(name, (place, {}))[1][column] = held
        return tables

    @cached_property
    def _name(self) -> str:
        key = self.wanted.key
        vectors = {*_VECTORS, *_ARRAYS}
        names = [name for name, (_, held) in self._found.items() if key or vectors & set(held.values())]
        return the_only(names, key, self.path, what="table")

    @property
    def _table(self) -> str:
        return self._found[self._name][0]

    @cached_property
    def _columns(self) -> dict[str, str]:
        known = {*_VECTORS, *_ARRAYS, *_INTEGERS, *_NUMBERS, *_TEXTS, "bool"}
        return {name: held for name, held in self._found[self._name][1].items() if held in known}

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            import psycopg
        except ImportError as error:
            raise not_installed(f"{self.path}", "psycopg", extra="stores", error=FileError) from error
        try:
            connection = psycopg.connect(self.path.place)
        except psycopg.Error as error:
            raise FileError(f"{self.path} cannot be reached: {reason(error)}") from None
        with connection:
            for setting in _SETTINGS:
                connection.execute(setting)
            _read_vectors(connection)
            yield connection


def _read_vectors(connection: Any) -> None:
    """Have vectors and arrays arrive as NumPy arrays, from their binary form."""
    from psycopg.adapt import Loader

    def loader(kind: str, head: int) -> type[Any]:
        class Numbers(Loader):  # type: ignore[misc]
            format = 1  # binary

            def load(self, data: Any) -> np.ndarray:
                return np.frombuffer(data, kind, offset=head)

        return Numbers

    oids = connection.execute("SELECT typname, oid FROM pg_type WHERE typname IN ('vector', 'halfvec')")
    for name, oid in oids.fetchall():
        connection.adapters.register_loader(oid, loader(_VECTORS[name], _HEAD_BYTES))


def _selected(name: str, held: str) -> str:
    column = quoted(name)
    if held == "numeric":
        return f"{column}::double precision"
    return f"{column}::text" if held in _TEXTS else column


def _arrow_type(held: str) -> Any:
    import pyarrow as pa

    if held in _VECTORS or held in _ARRAYS:
        return pa.list_(pa.float64() if held == "_float8" else pa.float32())
    if held in _INTEGERS:
        return pa.int64()
    if held == "bool":
        return pa.bool_()
    return pa.float64() if held in _NUMBERS else pa.string()


def _column(values: tuple[Any, ...], field: Any) -> Any:
    import pyarrow as pa

    if not pa.types.is_list(field.type):
        return pa.array(values, type=field.type)
    missing = [value is None for value in values]
    rows = [np.empty(0) if value is None else np.asarray(value, dtype=np.float64) for value in values]
    if any(row.ndim != 1 for row in rows):
        raise InputError(f"{field.name!r} has arrays of several axes", argument="vectors")
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    numbers = pa.array(np.concatenate(rows).astype(field.type.value_type.to_pandas_dtype()))
    return pa.ListArray.from_arrays(pa.array(ends), numbers, mask=pa.array(missing) if any(missing) else None)
