"""Labels from a file of their own: one a line, an array, or one column of a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isoscope.errors import FileError, LabelError, ShapeError
from isoscope.io import columns as io_columns
from isoscope.io import numpy_files
from isoscope.io.columns import Columns, open_columns
from isoscope.io.delimited import integers_or_strings
from isoscope.io.files import check_file, kind, listed, reading
from isoscope.table_columns import OTHER

T = TypeVar("T", list[Any], np.ndarray, list[Any] | np.ndarray)

_KINDS = (".txt", ".npy", ".npz", *io_columns.KINDS[1:])
# what a lone first cell is called when it names its column rather than the first row
_HEADS = {"label", "labels", "class", "classes", "target", "topic", "category", "cluster", "genre", "y"}


def read_labels(path: str | os.PathLike[str], *, column: str | None = None) -> list[Any] | np.ndarray:
    """The labels in a file, one for each vector, in order.

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
    check_file(path, what="labels")
    with reading(path):
        if kind(path) == ".npy":
            return _read_npy(path, column)
        if kind(path) == ".npz":
            return _read_npz(path, column)
        found = open_columns(path, what="labels", heads=_HEADS, named=() if column is None else (column,))
        if found is None:
            raise FileError(f"{path} is of an unknown kind {kind(path)!r}; wanted labels in {listed(_KINDS)}")
        return column_labels(found, _pick(found, column))


def column_labels(columns: Columns, name: str | None) -> list[Any] | np.ndarray:
    """The labels in one column of a file, none missing."""
    labels = columns.read(name)
    if isinstance(labels, np.ndarray):  # numbers without gaps
        return _some(labels, columns.path)
    if kind(columns.path) == ".txt" or not columns.is_typed:
        labels = [label.strip() if isinstance(label, str) else label for label in labels]
    for row, label in enumerate(labels):
        if label is None or label == "":
            raise LabelError(
                f"{columns.path} has no label in {columns.place(row)}; wanted one in every {columns.unit}"
            )
    return _some(labels if columns.is_typed else integers_or_strings(labels), columns.path)


def locate_labels(
    labels: str | os.PathLike[str],
    *,
    path: Path,
    columns: Collection[str],
    read: Callable[[str], Any],
    what: str = "labels",
) -> tuple[Callable[[], Any], str]:
    """How to read what `labels` names, and where that is, in words: a column of the file, else a file.

    Args:
        labels: as the caller gave it; a Path is a path, whatever columns there are.
        path: the file the rows come from.
        columns: the names of its columns.
        read: one of its columns, as labels.
        what: the argument, for messages.
    """
    if isinstance(labels, str) and labels in columns:
        return lambda: read(labels), f"{path}, column {labels!r}"
    file, column = split_column(os.fspath(labels))
    if not file.exists():
        held = f"it has {listed(columns)}" if columns else f"it has no columns of {what}"
        raise FileError(f"{what} {os.fspath(labels)!r} is neither a column of {path} ({held}) nor a file")
    check_file(file, what=what)
    return lambda: read_labels(file, column=column), str(file)


def split_column(name: str) -> tuple[Path, str | None]:
    """`file.csv:topic` as the file and its column; a path that exists as it stands has no column."""
    head, colon, column = name.rpartition(":")
    if colon and head and not Path(name).exists() and Path(head).exists():
        return Path(head), column
    return Path(name), None


def _read_npy(path: Path, column: str | None) -> np.ndarray:
    _pick(Columns(path, {}, lambda _: None), column)
    return np.array(_some(numpy_files.map_npy(path), path))


def _read_npz(path: Path, column: str | None) -> np.ndarray:
    members = numpy_files.npz_members(path)
    arrays = Columns(path, dict.fromkeys(members, OTHER), lambda _: None)
    chosen = "labels" if column is None and "labels" in members else _pick(arrays, column)
    return _some(numpy_files.read_member(path, members[str(chosen)]), path)


def _pick(columns: Columns, column: str | None) -> str | None:
    """The asked-for column, or the only one; None where the file has one value a row and no names."""
    if column is not None:
        columns.check(column)
        return column
    names = columns.names
    if len(names) > 1:
        raise FileError(
            f"{columns.path} has {len(names)} columns: {listed(names)}; "
            f"say which holds the labels: {columns.path}:COLUMN"
        )
    return names[0] if names else None


def _some(labels: T, path: Path) -> T:
    if len(labels) == 0:
        raise ShapeError(f"{path} has no labels; wanted one for each vector")
    return labels
