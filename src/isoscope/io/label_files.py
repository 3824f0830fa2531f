"""`read_labels`: labels from lines, an array, or a column of a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import FileError, LabelError, ShapeError
from isoscope.io.delimited import integers_or_strings
from isoscope.io.files import check_file, kind, reading
from isoscope.io.table import Table, Wanted
from isoscope.io.tables import ARRAYS, KINDS, open_table
from isoscope.printable import listed
from isoscope.table_columns import no_column

_KINDS = (".txt", *ARRAYS, *KINDS[1:])
# what a lone first cell is called when it names its column rather than the first row
_HEADS = {"label", "labels", "class", "classes", "target", "topic", "category", "cluster", "genre", "y"}


def read_labels(path: str | os.PathLike[str], *, column: str | None = None) -> list[Any] | np.ndarray:
    """Read the labels in a file, one for each vector, in order.

    `.txt` has one a line; `.npy` and `.npz` an array; `.csv`, `.tsv`, `.parquet`, `.arrow` and `.jsonl`
    a column, named by `column` where there are several; `.json` a list.

    Args:
        path: the file; `.gz` is undone for the text formats.
        column: which column, or which array of a .npz.

    Raises:
        FileError: the file is missing, broken, of an unknown kind, or has no such column.
        LabelError: a label is missing; the message names its line.
    """
    path = Path(path)
    table = open_table(path, Wanted("labels", _HEADS, () if column is None else (column,)), _KINDS)
    with reading(path):
        return column_labels(table, _pick(table, column))


def column_labels(table: Table, name: str | None) -> list[Any] | np.ndarray:
    """Read the labels in one column of a file; raise LabelError where one is missing."""
    labels: list[Any] | np.ndarray = table.read(name)
    if len(labels) == 0:
        raise ShapeError(f"{table.path} has no labels", wanted="one for each vector")
    if isinstance(labels, np.ndarray):
        return labels
    if kind(table.path) == ".txt" or not table.is_typed:
        labels = [label.strip() if isinstance(label, str) else label for label in labels]
    for row, label in enumerate(labels):
        if label is None or label == "":
            raise LabelError(
                f"{table.path} has no label in {table.place(row)}", wanted=f"one in every {table.unit}"
            )
    return labels if table.is_typed else integers_or_strings(labels)


def locate(
    name: str | os.PathLike[str],
    *,
    of: object,
    columns: Sequence[str],
    read: Callable[[str], Any],
    argument: str = "labels",
    read_file: Callable[[Path, str | None], Any] | None = None,
) -> tuple[Callable[[], Any], str]:
    """Return how to read what a name stands for, a column or else a file, and where it is, in words.

    Args:
        name: as the caller gave it; a Path is a path, whatever columns there are.
        of: what the rows come from, for messages.
        columns: the names of its columns.
        read: reads one of them.
        argument: what the name was given as.
        read_file: reads a file, or one column of it; by default as labels.
    """
    if isinstance(name, str) and name in columns:
        return lambda: read(name), f"{of}, column {name!r}"
    file, column = split_column(os.fspath(name))
    if not file.exists():
        raise no_column(
            os.fspath(name), columns, argument=argument, of=of, wanted="a column or a file", error=FileError
        )
    check_file(file, what=argument)
    if read_file is not None:
        return lambda: read_file(file, column), str(file)
    return lambda: read_labels(file, column=column), str(file)


def split_column(name: str) -> tuple[Path, str | None]:
    """Split `file.csv:topic` into the file and its column; a path that exists as it stands has no column."""
    head, colon, column = name.rpartition(":")
    if colon and head and not Path(name).exists() and Path(head).exists():
        return Path(head), column
    return Path(name), None


def _pick(table: Table, column: str | None) -> str | None:
    """Return the column asked for, or the only one; None where the file has no names of columns."""
    if column is not None:
        table.check(column)
        return column
    if kind(table.path) == ".npz" and "labels" in table.written:
        return "labels"
    if len(table.names) > 1:
        raise FileError(
            f"{table.path} has {len(table.names)} columns: {listed(table.names)}",
            hint=f"name the one with the labels as {table.path}:COLUMN",
        )
    return table.names[0] if table.names else None
