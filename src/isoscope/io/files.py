"""Checks that every reader of a file begins with, and its errors in one line."""

from __future__ import annotations

import difflib
import gzip
import io
import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from isoscope.errors import FileError, IsoscopeError
from isoscope.io.structure import BoundedStream

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

# a longer line is no row of numbers, and must not be read into memory to find that out
MAX_LINE_BYTES = 16 * 2**20
_UNPACKED_BYTES = 2**18  # at a time
_RANGE_BYTES = 2**20  # at an address, of a file that is read from its beginning
_SMALL_GZIP_BYTES = 8 * 2**20  # what it may unpack to is looked through in under a second
# formats of which a folder is one file
FOLDERS = (".zarr", ".lance")
PICKLES = (".pkl", ".pickle", ".joblib", ".p")
SAVE_AGAIN = (
    "isoscope never unpickles, since a pickle can run code: "
    "where you trust it, load it yourself and np.save a float array"
)


# what to do with formats that are not read
_INSTEAD = {
    "save the sheet as .csv": (".xlsx", ".xls", ".ods"),
    "save the array as .npy": (".mat", ".nc", ".rds", ".tfrecord", ".ckpt"),
    "save the table as .parquet": (".db", ".sqlite", ".sqlite3", ".orc", ".avro"),
    "save the vectors of the index as .npy": (".ann", ".hnsw", ".usearch"),
    "unpack it first": (".zip", ".tar", ".tgz", ".7z", ".zst", ".bz2", ".xz"),
    "save its texts as .txt, one a line": (".md", ".pdf", ".docx", ".html", ".log"),
}


def no_such_format(path: FilePath, kinds: Iterable[str], *, what: str = "vectors") -> FileError:
    """Return the error over a file of a format that is not read, with what to do instead."""
    suffix = kind(path)
    message = f"{path} has the suffix {suffix!r}" if suffix else f"{path} has no suffix"
    for hint, suffixes in _INSTEAD.items():
        if suffix in suffixes:
            return FileError(f"{message}, which is not read", hint=hint)
    return FileError(message, wanted=f"{what} in one of {', '.join(kinds)}")


def check_file(path: FilePath, *, what: str = "vectors") -> None:
    """Raise FileError unless the path is a readable, non-empty, regular file."""
    if isinstance(path, Path):
        _check_here(path, what)
    if path.stat().st_size == 0:
        hint = "check that it was written to the end"
        raise FileError(f"{path} is empty (0 bytes)", wanted=f"a file of {what}", hint=hint)
    if kind(path) in PICKLES:
        raise FileError(f"{path} is a pickle; {SAVE_AGAIN}")


def _check_here(path: Path, what: str) -> None:
    wanted = f"a file of {what}"
    if path.is_dir():
        raise FileError(f"{path} is a folder", wanted=wanted, hint=_inside(path))
    if not path.exists():
        absent = "" if path.parent.is_dir() else f", and neither does the folder {path.parent}"
        raise FileError(f"{path} does not exist{absent}", wanted=wanted, hint=_similar(path))
    if not path.is_file():
        raise FileError(f"{path} is not a regular file", wanted=wanted, hint="copy its content to one")
    if not os.access(path, os.R_OK):
        raise FileError(f"{path} is not readable", wanted="read permission", hint=f"run `chmod u+r {path}`")


def kind(path: FilePath) -> str:
    """Return the lower-case suffix that says what a file is, before any .gz: `A.CSV.gz` is `.csv`."""
    return _without_gz(path).suffix.lower()


def stem(path: FilePath) -> str:
    """Return the file's name without its suffixes, which is the name of the space in tables."""
    return _without_gz(path).stem


def is_gzip(path: FilePath) -> bool:
    """Whether the name says that the file is compressed with gzip."""
    return path.suffix.lower() == ".gz"


def open_raw(path: FilePath) -> BinaryIO:
    """Open the file's bytes as stored; at an address, buffered in ranges that are worth a request."""
    if isinstance(path, Path):
        return path.open("rb")
    return io.BufferedReader(cast(io.RawIOBase, path.open("rb")), _RANGE_BYTES)


def open_bytes(path: FilePath) -> BinaryIO:
    """Open the file's bytes; a .gz file is decompressed, up to a bound on its growth."""
    if not is_gzip(path):
        return open_raw(path)
    packed = gzip.GzipFile(path) if isinstance(path, Path) else gzip.GzipFile(fileobj=open_raw(path))
    unpacked = BoundedStream(cast(IO[bytes], packed), path.stat().st_size, str(path), "gunzip it first")
    return io.BufferedReader(unpacked, _UNPACKED_BYTES)


def first_bytes(path: FilePath, n: int = 8) -> bytes:
    """Return the first bytes as stored, which tell formats apart."""
    with path.open("rb") as file:
        return file.read(n)


def sample_lines(path: FilePath, *, what: str, n_lines: int = 100) -> list[bytes]:
    """Return the first lines of a text file, bounded in number and length whatever the file contains.

    A small .gz is unpacked to its end, so that one that swells is refused before its rows are computed with.
    """
    lines: list[bytes] = []
    with open_bytes(path) as file:
        while len(lines) < n_lines and sum(map(len, lines)) < MAX_LINE_BYTES:
            lines.append(file.readline(MAX_LINE_BYTES))
            check_text(lines[-1], path, what=what)
            if not lines[-1]:
                return lines[:-1]
        if is_gzip(path) and path.stat().st_size <= _SMALL_GZIP_BYTES:
            while file.read(_UNPACKED_BYTES):
                pass
    return lines


def check_text(line: bytes | str, path: FilePath, *, what: str) -> None:
    """Raise FileError over a line that no text file would have."""
    has_null = "\0" in line if isinstance(line, str) else b"\0" in line
    if len(line) >= MAX_LINE_BYTES or has_null:
        raise FileError(f"{path} is not text in lines", wanted=f"{what} in each line")


def check_utf8(line: str, path: FilePath, number: int) -> None:
    """Raise FileError over a line that was no UTF-8, decoded with `surrogateescape`."""
    if line.isascii():
        return
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) & 0xFF
        raise FileError(
            f"{path} is not UTF-8 in line {number} (byte 0x{byte:02x})", hint="save it as UTF-8"
        ) from None


def text_lines(path: FilePath, *, what: str) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends, each of bounded length."""
    with open_bytes(path) as file, io.TextIOWrapper(file, "utf-8-sig", "surrogateescape") as text:
        for number in itertools.count(1):
            line = text.readline(MAX_LINE_BYTES)
            if not line:
                return
            check_text(line, path, what=what)
            check_utf8(line, path, number)
            yield line.rstrip("\n")


@contextmanager
def reading(path: FilePath) -> Iterator[None]:
    """Turn whatever a library raises over a broken file into one FileError that names the file."""
    try:
        yield
    except IsoscopeError:
        raise
    except Exception as error:
        raise FileError(
            f"{path} cannot be read: {reason(error)}",
            hint="check that it is not truncated, and that its suffix names its format",
        ) from error


def reason(error: Exception) -> str:
    """Return the first line of an exception's message."""
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    lines = str(error).strip().splitlines()
    message = lines[0] if lines else type(error).__name__
    return message[:160].rstrip(" .;:")


def _without_gz(path: FilePath) -> PurePath:
    return PurePath(path.name).with_suffix("") if is_gzip(path) else PurePath(path.name)


def _similar(path: Path) -> list[str]:
    """Return the hint that names the files whose names are nearest, by what stands before the suffix."""
    names = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    by_stem: dict[str, list[str]] = {}
    for name in names:
        by_stem.setdefault(Path(name).stem.lower(), []).append(name)
    stems = difflib.get_close_matches(path.stem.lower(), by_stem, n=3, cutoff=0.7)
    close = [str(path.parent / name) for stem in stems for name in by_stem[stem]]
    close = [name for name in close if Path(name).suffix.lower() == path.suffix.lower()] or close
    return [f"did you mean {' or '.join(close[:3])}?"] if close else []


def _inside(folder: Path) -> list[str]:
    first = min((entry.name for entry in folder.iterdir() if entry.is_file()), default=None)
    return [] if first is None else [f"name a file in it, such as {folder / first}"]
