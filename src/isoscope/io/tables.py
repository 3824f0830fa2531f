"""Which table a file is: by its suffix, for labels, texts and pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope.io.arrow_files import IpcTable, ParquetTable
from isoscope.io.delimited import DelimitedTable
from isoscope.io.files import kind, text_lines
from isoscope.io.json_files import JsonLinesTable, JsonTable
from isoscope.io.numpy_files import map_npy, npz_members, read_member
from isoscope.io.table import Table

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

KINDS = (".txt", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".json", ".jsonl")


def open_table(
    path: FilePath,
    *,
    what: str,
    heads: Collection[str] = (),
    named: Collection[str] = (),
    arrays: Collection[str] = (),
) -> Table | None:
    """The columns of a file by its suffix; None where no such file has columns or values a line.

    Args:
        path: a file that is there.
        what: what is looked for, in the plural, for messages.
        heads: how a column of these is called, in lower case: such a word over words is a header.
        named: the columns the caller asks for: whoever names one says that there is a header.
        arrays: kinds of files of arrays that may hold them too.
    """
    delimited = partial(DelimitedTable, heads=heads, named=named)
    openers: dict[str, Callable[..., Table]] = {
        ".txt": partial(LinesTable, what=what),
        ".csv": delimited,
        ".tsv": delimited,
        ".parquet": ParquetTable,
        ".arrow": IpcTable,
        ".feather": IpcTable,
        ".json": partial(JsonTable, what=what),
        ".jsonl": partial(JsonLinesTable, what=what),
        **dict.fromkeys(arrays, ArraysTable),
    }
    opener = openers.get(kind(path))
    return opener(path) if opener else None


class LinesTable(Table):
    """A .txt file: one value a line, without a name."""

    unit, first = "line", 1

    def __init__(self, path: FilePath, *, what: str) -> None:
        super().__init__(path)
        self._what = what

    def values(self, place: int) -> list[str]:
        """The lines, blank ones at the end left out."""
        del place
        lines = list(text_lines(self.path, what=self._what))
        while lines and not lines[-1].strip():
            lines.pop()
        return lines


class ArraysTable(Table):
    """A .npz file, each of its arrays a column; or a .npy file, which is one without a name."""

    def __init__(self, path: FilePath) -> None:
        super().__init__(path)
        self._members = npz_members(path) if kind(path) == ".npz" else {}
        self.written = tuple(self._members)

    def values(self, place: int) -> np.ndarray:
        """An array whole."""
        assert isinstance(self.path, Path)
        if not self.written:
            return np.array(map_npy(self.path))
        return read_member(self.path, self._members[self.written[place]])
