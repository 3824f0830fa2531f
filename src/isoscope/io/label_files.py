"""Labels from a file of their own: one a line, an array, or one column of a table."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isoscope.errors import FileError, LabelError, ShapeError
from isoscope.io import arrow_tables, delimited, numpy_files
from isoscope.io.files import check_file, is_gzip, kind, listed, reading

T = TypeVar("T", list[Any], list[str], np.ndarray, list[str] | np.ndarray)

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
    read = _READERS.get(kind(path))
    if read is None:
        raise FileError(f"{path} is of an unknown kind {kind(path)!r}; wanted labels in {listed(_READERS)}")
    with reading(path):
        labels: list[Any] | np.ndarray = read(path, column)
        return labels


def split_column(name: str) -> tuple[Path, str | None]:
    """`file.csv:topic` as the file and its column; a path that exists as it stands has no column."""
    head, colon, column = name.rpartition(":")
    if colon and head and not Path(name).exists() and Path(head).exists():
        return Path(head), column
    return Path(name), None


def _read_lines(path: Path, column: str | None) -> list[str]:
    _refuse_column(path, column)
    lines = [line.strip() for line in _text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        raise LabelError(f"{path} has no label in line {lines.index('') + 1}; wanted one in every line")
    return _some(lines, path)


def _read_npy(path: Path, column: str | None) -> np.ndarray:
    _refuse_column(path, column)
    return np.array(_some(numpy_files.map_npy(path), path))


def _read_npz(path: Path, column: str | None) -> np.ndarray:
    members = numpy_files.npz_members(path)
    fallback = "labels" if "labels" in members else None
    chosen = _pick(path, list(members), column, fallback)
    return _some(numpy_files.read_member(path, members[chosen]), path)


def _read_delimited(path: Path, column: str | None) -> list[str] | np.ndarray:
    shape = delimited.layout(path)
    if column is None and len(shape.names) == 1:
        return _one_column(path, shape)
    if not shape.n_header_lines and column not in shape.names:
        # over columns of words a header looks like a row of words: whoever names a column says it is one
        shape = delimited.layout(path, header=True)
    names = list(shape.names)
    return delimited.read_column(path, shape, names.index(_pick(path, names, column)))


def _one_column(path: Path, shape: delimited.Layout) -> list[str] | np.ndarray:
    cells = delimited.read_column(path, shape, 0)
    if isinstance(cells, list) and not shape.n_header_lines and cells[0].lower() in _HEADS:
        cells = delimited.integers_or_strings(cells[1:])
    return _some(cells, path)


def _read_table(path: Path, column: str | None) -> Any:
    table = arrow_tables.open_table(path)
    return _some(table.column(_pick(path, table.schema.names, column)), path)


def _read_json(path: Path, column: str | None) -> list[Any]:
    labels = json.loads(_text(path))
    if isinstance(labels, dict):
        labels = labels[_pick(path, list(labels), column)]
    else:
        _refuse_column(path, column)
    if not isinstance(labels, list):
        raise FileError(
            f"{path} holds one {type(labels).__name__}; wanted a list with one label for each vector"
        )
    return _complete(labels, path, "entry", 0)


def _read_json_lines(path: Path, column: str | None) -> list[Any]:
    labels = []
    for number, line in enumerate(_text(path).rstrip().split("\n"), start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileError(
                f"{path} has no JSON in line {number}: {error.msg}; wanted an object a line"
            ) from error
        if not isinstance(row, dict):
            raise FileError(f"{path} has no object in line {number}; wanted {{column: label}} in each")
        name = _pick(path, list(row), column)
        labels.append(row[name])
    return _complete(labels, path, "line", 1)


_READERS: dict[str, Callable[[Path, str | None], Any]] = {
    ".txt": _read_lines,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".parquet": _read_table,
    ".arrow": _read_table,
    ".feather": _read_table,
    ".json": _read_json,
    ".jsonl": _read_json_lines,
}


def _pick(path: Path, names: list[str], column: str | None, fallback: str | None = None) -> str:
    """The asked-for column, or the only one."""
    if column is not None:
        if column not in names:
            raise FileError(f"{path} has no column {column!r}; it has {listed(names)}")
        return column
    if len(names) == 1 or fallback:
        return fallback or names[0]
    raise FileError(
        f"{path} has {len(names)} columns: {listed(names)}; say which holds the labels: {path}:COLUMN"
    )


def _refuse_column(path: Path, column: str | None) -> None:
    if column is not None:
        raise FileError(f"{path} has no columns, so no {column!r}; leave the column out")


def _complete(labels: list[Any], path: Path, unit: str, first: int) -> list[Any]:
    for place, label in enumerate(labels, start=first):
        if label is None or label == "":
            raise LabelError(f"{path} has no label in {unit} {place}; wanted one for each vector")
    return _some(labels, path)


def _some(labels: T, path: Path) -> T:
    if len(labels) == 0:
        raise ShapeError(f"{path} has no labels; wanted one for each vector")
    return labels


def _text(path: Path) -> str:
    opened = gzip.open if is_gzip(path) else open
    with opened(path, "rt", encoding="utf-8-sig") as file:
        return str(file.read())
