"""Records of a text file, one a line, exactly as written: JSON lines, a table with tabs, plain text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from isoscope.errors import FileError
from isoscope.io.files import MAX_LINE_BYTES, check_file, kind, listed, open_bytes, reading

Record = dict[str, Any]


def read_rows(path: Path, fields: Sequence[str]) -> Iterator[tuple[int, Record]]:
    """Line numbers, from 1, and records that have all the fields; `.jsonl`, `.tsv` or `.txt`, perhaps
    with `.gz`. Of plain text, each line that is not blank is a record with one field, `text`.

    Raises:
        FileError: the file is absent, of another kind or broken; the message names the line.
    """
    check_file(path, what="labelled texts")
    parse = _PARSERS.get(kind(path))
    if parse is None:
        raise FileError(f"{path} is of an unknown kind {kind(path)!r}; wanted one of {listed(_PARSERS)}")
    with reading(path):
        n_rows = 0
        for number, record in parse(path):
            absent = [field for field in fields if field not in record]
            if absent:
                raise FileError(
                    f"{path} has no {absent[0]!r} in line {number}; it has {listed(record)}, "
                    f"and wanted is {listed(fields)}"
                )
            n_rows += 1
            yield number, record
        if not n_rows:
            raise FileError(f"{path} has no rows; wanted at least one labelled text")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines without their ends. Only a line feed ends one: texts hold other characters that look like it."""
    with open_bytes(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) >= MAX_LINE_BYTES:
                raise FileError(
                    f"{path} is not text in lines: line {number} has no end within {MAX_LINE_BYTES:,} bytes"
                )
            try:
                text = line.removesuffix(b"\n").decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise FileError(f"{path} is not UTF-8 in line {number}: {error.reason}") from error
            yield number, text.removesuffix("\r")


def _json_lines(path: Path) -> Iterator[tuple[int, Record]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileError(f"{path} has no JSON in line {number}: {error.msg}") from error
        if not isinstance(record, dict):
            raise FileError(f"{path} has no object in line {number}; wanted {{field: value}} in each")
        yield number, record


def _tab_lines(path: Path) -> Iterator[tuple[int, Record]]:
    header: list[str] | None = None
    for number, line in _lines(path):
        cells = line.split("\t")
        if header is None:
            header = cells
            continue
        if len(cells) != len(header):
            raise FileError(
                f"{path} has {len(cells)} cells in line {number}; wanted {len(header)}, as in its header"
            )
        yield number, dict(zip(header, cells, strict=True))


def _plain_lines(path: Path) -> Iterator[tuple[int, Record]]:
    for number, line in _lines(path):
        if line.strip():
            yield number, {"text": line.strip()}


_PARSERS: dict[str, Callable[[Path], Iterator[tuple[int, Record]]]] = {
    ".jsonl": _json_lines,
    ".tsv": _tab_lines,
    ".txt": _plain_lines,
}
