"""Read the records of a declared corpus from a file or from the hub."""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from isoscope.errors import FileError, InputError, Setting
from isoscope_papers.corpora.registry import Hub

DATA_VARIABLE = "ISOSCOPE_DATA"
MAX_LINE_BYTES = 16 * 2**20
Record = dict[str, Any]
Rows = Iterator[tuple[str, Record]]  # where it stands, for messages, and the record


def data_folder(data: str | os.PathLike[str] | None) -> Path | None:
    """Return the given folder, or that of ISOSCOPE_DATA, or None."""
    named = os.fspath(data) if data is not None else os.environ.get(DATA_VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        asked = "data" if data is not None else DATA_VARIABLE
        raise FileError(
            f"names {folder}, which is no folder", argument=asked, wanted="the folder of the corpora"
        )
    return folder


def read_rows(path: Path, fields: Sequence[str]) -> Rows:
    """Yield the records of a `.jsonl`, `.tsv`, `.csv` or `.txt` file, also with `.gz`, that have all fields.

    In plain text, each line that is not blank is a record with one field, `text`.

    Raises:
        FileError: the file is absent, of another kind or broken; the message names the line.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in _PARSERS:
        raise FileError(f"{path} has the suffix {suffix!r}", wanted=f"one of {', '.join(_PARSERS)}")
    number = 0
    for number, record in _PARSERS[suffix](path):
        if absent := [field for field in fields if field not in record]:
            has = f"it has {', '.join(record)}, and wanted is {', '.join(fields)}"
            raise FileError(f"{path} has no {absent[0]!r} in line {number}; {has}")
        yield f"{path}, line {number}", record
    if not number:
        raise FileError(f"{path} has no rows", wanted="at least one")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines without line feeds; other line separators are part of a text."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if len(line) >= MAX_LINE_BYTES:
                    raise FileError(f"{path}: line {number} has no end within {MAX_LINE_BYTES:,} bytes")
                text = line.removesuffix(b"\n").decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.removesuffix("\r")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 in line {number}: {error.reason}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path} cannot be read: {error}", hint="check that it is not truncated") from error


def _json_lines(path: Path) -> Iterator[tuple[int, Record]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileError(f"{path} has no JSON in line {number}: {error.msg}") from error
        if not isinstance(record, dict):
            raise FileError(f"{path} has no object in line {number}", wanted="{field: value} in each")
        yield number, record


def _tab_lines(path: Path) -> Iterator[tuple[int, Record]]:
    return _cells(path, lambda line: line.split("\t"))


def _comma_lines(path: Path) -> Iterator[tuple[int, Record]]:
    return _cells(path, lambda line: next(csv.reader([line]), []))


def _cells(path: Path, split: Callable[[str], list[str]]) -> Iterator[tuple[int, Record]]:
    """Yield the lines of a table, each a record with the names in its first line."""
    lines = _lines(path)
    header = split(next(lines, (0, ""))[1])
    for number, line in lines:
        cells = split(line)
        if len(cells) != len(header):
            raise FileError(f"{path} has {len(cells)} cells in line {number}", wanted=f"{len(header)}")
        yield number, dict(zip(header, cells, strict=True))


def _plain_lines(path: Path) -> Iterator[tuple[int, Record]]:
    return ((number, {"text": line.strip()}) for number, line in _lines(path) if line.strip())


_PARSERS: dict[str, Callable[[Path], Iterator[tuple[int, Record]]]] = {
    ".jsonl": _json_lines,
    ".tsv": _tab_lines,
    ".csv": _comma_lines,
    ".txt": _plain_lines,
}


def hub_rows(hub: Hub, splits: Sequence[str], fields: Sequence[str]) -> Rows:
    """Download the splits of a dataset, and yield the fields of their records in order."""
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"{hub.path} needs datasets, which is not installed", hint="pip install 'isoscope-papers[hub]'"
        ) from None
    for split in splits:
        try:
            rows: Any = datasets.load_dataset(hub.path, hub.config, split=split)
        except Exception as error:  # many kinds, by the library's version: absent, refused, no connection
            reason = str(error).partition("\n")[0][:160].rstrip(" .;:")
            raise InputError(
                f"{hub.path} cannot be fetched: {reason}", hint=Setting("data", to="read a folder")
            ) from error
        if absent := [field for field in fields if field not in rows.column_names]:
            raise FileError(f"{hub.path} has no column {absent[0]!r}; it has {', '.join(rows.column_names)}")
        for number, record in enumerate(rows.select_columns(list(fields))):
            yield f"{hub.path}, row {number}", record
