"""Which table a file is, by its suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope.io.arrow_files import IpcTable, ParquetTable
from isoscope.io.chroma import ChromaTable
from isoscope.io.delimited import DelimitedTable
from isoscope.io.duckdb_files import DuckdbTable
from isoscope.io.files import FOLDERS, check_file, kind, no_such_format, reading, text_lines
from isoscope.io.json_files import JsonLinesTable, JsonTable
from isoscope.io.lance_files import LanceTable
from isoscope.io.numpy_files import map_npy, npz_members, read_member
from isoscope.io.postgresql import PostgresqlTable
from isoscope.io.qdrant import QdrantTable
from isoscope.io.table import Table, Wanted

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath


class LinesTable(Table):
    """A .txt file: one value a line, without a name."""

    unit, first = "line", 1

    def values(self, place: int) -> list[str]:
        """Read the lines, without blank ones at the end."""
        del place
        lines = list(text_lines(self.path, what=self.wanted.what))
        while lines and not lines[-1].strip():
            lines.pop()
        return lines


class ArraysTable(Table):
    """A .npz file, each of its arrays a column; or a .npy file, which is one without a name."""

    def __init__(self, path: FilePath, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        self._members = npz_members(path) if kind(path) == ".npz" else {}
        self.written = tuple(self._members)

    def values(self, place: int) -> np.ndarray:
        """Read a whole array."""
        assert isinstance(self.path, Path)
        if not self.written:
            return np.array(map_npy(self.path))
        return read_member(self.path, self._members[self.written[place]])


_TABLES: dict[str, type[Table]] = {
    ".txt": LinesTable,
    ".csv": DelimitedTable,
    ".tsv": DelimitedTable,
    ".parquet": ParquetTable,
    ".arrow": IpcTable,
    ".feather": IpcTable,
    ".json": JsonTable,
    ".jsonl": JsonLinesTable,
    ".npy": ArraysTable,
    ".npz": ArraysTable,
    ".duckdb": DuckdbTable,
    ".lance": LanceTable,
    ".chroma": ChromaTable,
    ".postgresql": PostgresqlTable,
    ".qdrant": QdrantTable,
}
ARRAYS = (".npy", ".npz")
STORES = (".chroma", ".postgresql", ".qdrant")  # which no file has
DATABASES = (".duckdb", ".lance", *STORES)
KINDS = tuple(
    suffix for suffix in _TABLES if suffix not in (*ARRAYS, *DATABASES)
)  # of files that may hold texts


def open_table(path: FilePath, wanted: Wanted, kinds: tuple[str, ...] = KINDS) -> Table:
    """Return the columns of a file; raise FileError where it is absent, broken, or of none of the kinds."""
    if not (kind(path) in FOLDERS and isinstance(path, Path) and path.is_dir()):
        check_file(path, what=wanted.what)
    if kind(path) not in kinds:
        raise no_such_format(path, kinds, what=wanted.what)
    with reading(path):
        return _TABLES[kind(path)](path, wanted)
