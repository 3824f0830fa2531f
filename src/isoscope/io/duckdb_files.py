"""DuckDB: a table of a .duckdb file, read only. Nothing outside the file is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from isoscope.errors import FileError, not_installed
from isoscope.io.store_tables import StoreTable, the_only

# a view in a stranger's file could name other files, addresses, or extensions to load
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_WITH_LISTS = (
    "SELECT DISTINCT schema_name, table_name FROM duckdb_columns() "
    "WHERE NOT internal AND data_type LIKE '%]' ORDER BY ALL"
)
_DEFAULT_SCHEMA = "main"


class DuckdbTable(StoreTable):
    """The table that `key` names, or the only one with a column of lists."""

    @cached_property
    def schema(self) -> Any:
        """The columns of the table, as Arrow has them."""
        with self._rows("*", 1) as reader:
            return reader.schema

    def count(self) -> int:
        """Return the number of rows."""
        with self._connected() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        with self._rows(", ".join(quoted(self.written[place]) for place in places), n_rows) as reader:
            yield from reader

    @cached_property
    def _table(self) -> str:
        with self._connected() as connection:
            found = connection.execute(_WITH_LISTS).fetchall()
            everything = connection.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        key = self.wanted.key
        tables = {_name(*row): row for row in (found if key is None else [*found, *everything])}
        schema, table = tables[the_only(list(tables), key, self.path, what="table")]
        return f"{quoted(schema)}.{quoted(table)}"

    @contextmanager
    def _rows(self, columns: str, n_rows: int) -> Iterator[Any]:
        with self._connected() as connection:
            yield connection.sql(f"SELECT {columns} FROM {self._table}").to_arrow_reader(n_rows)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            import duckdb
        except ImportError as error:
            raise not_installed(f"{self.path}", "duckdb", extra="stores", error=FileError) from error
        with duckdb.connect(str(self.path), read_only=True, config=_CLOSED) as connection:
            yield connection


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has.

    >>> print(quoted('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def _name(schema: str, table: str) -> str:
    return table if schema == _DEFAULT_SCHEMA else f"{schema}.{table}"
