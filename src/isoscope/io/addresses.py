"""Files at an address (s3://, gs://, memory://, …) through fsspec: listed, and fetched one at a time."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from isoscope.errors import FileError, IsoscopeError, not_installed
from isoscope.io.atomic import why
from isoscope.io.files import FOLDERS, kind

_SECRET = re.compile(r"(?<=://)[^/@]*@")


class Address:
    """A file at an address, of which readers take the ranges they need; used as a Path is.

    Attributes:
        name: the file's own.
        listing: what the file system says of it: its length, perhaps when it was written.
    """

    def __init__(self, address: str, listing: Mapping[str, Any]) -> None:
        self._address = address
        self.name = PurePosixPath(address.rstrip("/")).name
        self.listing = listing

    def __str__(self) -> str:
        return shown(self._address)

    @property
    def suffix(self) -> str:
        """As of a Path."""
        return PurePosixPath(self.name).suffix

    def stat(self) -> os.stat_result:
        """Return its length as `st_size`: 0 for a folder, or where it is unknown. Nothing else is set."""
        n_bytes = self.listing.get("size") if self.listing.get("type") == "file" else 0
        return os.stat_result((0,) * 6 + (int(n_bytes or 0),) + (0,) * 3)

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open its bytes, which are fetched as they are read and not cached."""
        files, path = self.within()
        with _reaching(self._address):
            file: BinaryIO = files.open(path, mode, cache_type="none")
            return file

    def within(self) -> tuple[Any, str]:
        """Return the file system and the path in it."""
        return _file_system(self._address)


FilePath = Path | Address


def is_address(path: object) -> bool:
    """Whether a path is an address: it names a protocol."""
    return isinstance(path, str) and "://" in path


def is_many(path: Any) -> bool:
    """Whether a path names many files: an address, a folder that is not one array, or a pattern."""
    if is_address(path):
        return True
    here = Path(path)
    if here.is_dir():
        return kind(here) not in FOLDERS
    return any(mark in here.name or mark in str(here.parent) for mark in "*?[") and not here.exists()


def shown(address: str) -> str:
    """Return an address for a message, without the user and password in it."""
    return _SECRET.sub("…@", address)


def local_path(address: str) -> str | None:
    """Return the path behind a file:// address, or None for any other address."""
    head, _, path = address.partition("://")
    return path if head in ("file", "local") else None


def listed_addresses(address: str) -> dict[str, Address]:
    """Return the files that an address names: one file, those of a folder, or those that match a pattern."""
    files, path = _file_system(address)
    with _reaching(address):
        if any(mark in path for mark in "*?["):
            found = list(files.glob(path, detail=True).values())
        elif not files.exists(path):
            raise FileError(f"{shown(address)} does not exist", wanted="files of vectors")
        elif files.isdir(path) and kind(Path(path)) not in FOLDERS:
            found = files.ls(path, detail=True)
        else:
            found = [files.info(path)]
        places = {str(files.unstrip_protocol(entry["name"])): entry for entry in found}
        return {place: Address(place, _plain(entry)) for place, entry in places.items()}


@contextmanager
def fetched(address: Address) -> Iterator[Path]:
    """Fetch the file at an address, yield its path, and delete it afterwards; errors name the address."""
    files, path = address.within()
    with tempfile.TemporaryDirectory(prefix="isoscope-") as folder:
        here = Path(folder) / address.name
        with _reaching(str(address)):
            files.get(path, str(here), recursive=files.isdir(path))
        try:
            yield here
        except IsoscopeError as error:
            raise type(error)(str(error).replace(str(here), str(address))) from error


def _plain(listing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts and numbers of a listing, which can be sent to another process."""
    told = {name: value for name, value in listing.items() if value is not None}
    return {name: value if isinstance(value, int) else str(value) for name, value in told.items()}


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise not_installed(
            f"{shown(address)}, an address,", "fsspec", extra="scale", error=FileError
        ) from error
    with _reaching(address):
        files, path = url_to_fs(address)
        return files, str(path)


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    """Turn any exception of a file system into one line that names the address."""
    try:
        yield
    except IsoscopeError:
        raise
    except Exception as error:
        raise FileError(f"{shown(address)} cannot be reached: {shown(why(error))}") from error
