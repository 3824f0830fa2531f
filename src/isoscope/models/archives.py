"""A zip archive in parts, unpacked without trusting it: sizes and checksums hold, and no path leads out."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from isoscope.errors import FileError
from isoscope.io.atomic import new_folder
from isoscope.io.sealed import check_folder, seal_folder
from isoscope.io.structure import MAX_GROWTH

_CHUNK_BYTES = 2**20


class Parts(io.RawIOBase):
    """Several files, one after another, read as one; nothing is copied to join them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self._paths = list(paths)
        self._starts = [0]
        for path in self._paths:
            self._starts.append(self._starts[-1] + path.stat().st_size)
        self._at = 0

    @property
    def n_bytes(self) -> int:
        """The size of all parts together."""
        return self._starts[-1]

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place from the start, the present place or the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.n_bytes}[whence]
        if base + offset < 0:
            raise ValueError(f"place {base + offset} is before the start")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: object) -> int:
        """Fill the buffer from the part the place lies in; 0 at the end."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        for path, start, stop in zip(self._paths, self._starts, self._starts[1:], strict=False):
            if start <= self._at < stop:
                with path.open("rb") as file:
                    file.seek(self._at - start)
                    n_read = file.readinto(view[: stop - self._at])
                self._at += n_read
                return n_read
        return 0


def unpack(parts: Sequence[Path], place: Path, *, n_bytes: int) -> None:
    """Unpack an archive in parts into a folder: all of it, checked, or nothing.

    A folder that another process has completed in the meantime is left as it is: a model in it may be in use.

    Raises:
        FileError: a part is absent, the parts have another size together, a checksum does not hold,
            or a member's path leads out of the folder.
    """
    for part in parts:
        if not part.is_file():
            raise FileError(f"{part} does not exist; wanted a part of {place.name}: install it again")
    joined = Parts(parts)
    if joined.n_bytes != n_bytes:
        raise FileError(
            f"the {len(parts)} parts of {place.name} have {joined.n_bytes:,} bytes; "
            f"wanted {n_bytes:,}: install them again"
        )
    try:
        with (
            zipfile.ZipFile(io.BufferedReader(joined, _CHUNK_BYTES)) as archive,
            new_folder(place, unless=is_complete) as folder,
        ):
            _check_members(archive.infolist(), n_bytes, place.name)
            for member in archive.infolist():
                if not member.is_dir():
                    _write(archive, member, folder)
            seal_folder(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"the parts of {place.name} are damaged: {error}; install them again") from error
    except OSError as error:
        raise FileError(
            f"{place} cannot be written: {error.strerror or error}; "
            f"it takes {n_bytes / 2**20:.0f} MB: set ISOSCOPE_CACHE to a folder with room"
        ) from error


def unpack_tar(packed: Path, place: Path, *, also: Sequence[Path] = ()) -> None:
    """Unpack a .tar.gz of plain files into a folder, with copies of further files: all of it, or nothing.

    Raises:
        FileError: it is damaged, too large for its size, or a member is a link or leads out of the folder.
    """
    n_bytes = packed.stat().st_size
    try:
        with tarfile.open(packed) as archive, new_folder(place, unless=is_complete) as folder:
            members = archive.getmembers()
            for member in members:
                path = PurePosixPath(member.name)
                if not member.isfile() or path.is_absolute() or ".." in path.parts or ":" in member.name:
                    raise FileError(
                        f"the archive of {place.name} has a member {member.name!r} that is no plain file"
                    )
            if sum(member.size for member in members) > MAX_GROWTH * n_bytes:
                raise FileError(
                    f"the archive of {place.name} would grow to more than {MAX_GROWTH} times its size"
                )
            archive.extractall(folder, members, filter="data")
            for beside in also:
                shutil.copyfile(beside, folder / beside.name)
            seal_folder(folder)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise FileError(f"{packed} is damaged: {error}; install it again") from error
    except OSError as error:
        raise FileError(
            f"{place} cannot be written: {error.strerror or error}; set ISOSCOPE_CACHE to a folder with room"
        ) from error


def is_complete(place: Path) -> bool:
    """Whether a folder was unpacked to the end and still has every file as it was unpacked."""
    try:
        check_folder(place)
    except FileError:
        return False
    return True


def root(place: Path) -> Path:
    """The unpacked model itself: the topmost folder with a config.json."""
    found = sorted(place.rglob("config.json"), key=lambda path: len(path.parts))
    if not found:
        raise FileError(f"{place} has no config.json; wanted a model: remove the folder and try again")
    return found[0].parent


def _check_members(members: list[zipfile.ZipInfo], n_bytes: int, name: str) -> None:
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        is_link = (member.external_attr >> 16) & 0o170000 == 0o120000
        if path.is_absolute() or ".." in path.parts or ":" in member.filename or is_link:
            raise FileError(f"the archive of {name} has a member {member.filename!r} that leads out of it")
    if sum(member.file_size for member in members) > MAX_GROWTH * n_bytes:
        raise FileError(f"the archive of {name} would grow to more than {MAX_GROWTH} times its size")


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> None:
    """Write one member, read to its end so that zipfile compares size and CRC."""
    path = folder / member.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    n_written = 0
    with archive.open(member) as source, path.open("xb") as target:
        while chunk := source.read(_CHUNK_BYTES):
            n_written += target.write(chunk)
    if n_written != member.file_size:
        raise FileError(f"{member.filename} has {n_written:,} of its {member.file_size:,} bytes")
