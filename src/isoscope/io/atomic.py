"""Files and folders written all or nothing: beside their place first, then moved into it.

What a killed process was writing stays behind under the name `.NAME.HOST-PID-HEX.tmp`, and is removed when
the same file is written again, or when the folder is next opened by the one process that may use it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from isoscope.errors import FileError
from isoscope.io.files import reason

_TEMPORARY = re.compile(r"\.(?P<name>.*)\.(?P<host>[0-9a-f]{6})-(?P<process>\d+)-[0-9a-f]{8}\.tmp", re.DOTALL)
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")  # all that NumPy says of a full disk


def beside(path: Path) -> Path:
    """Return a new name in the folder of `path` for what will be moved there."""
    if not path.name:  # "." and "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")


def sweep(folder: Path, name: str | None = None, *, alone: bool = False) -> None:
    """Remove temporary files that ended processes of this machine left in a folder.

    Args:
        folder: where to look; not below it.
        name: remove only what was to become the file or folder of this name.
        alone: remove what any process was writing; for a folder that no other process may use.
    """
    try:
        entries = [Path(entry) for entry in os.scandir(folder) if entry.name.endswith(".tmp")]
    except OSError:
        return
    for entry in entries:
        found = _TEMPORARY.fullmatch(entry.name)
        if found and name in (None, found["name"]) and (alone or _has_ended(found)):
            remove(entry)


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, if the system allows it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a place beside `path` to write to, moved into it once the block ends without an error."""
    check_replaceable(path)
    place = beside(path)
    try:
        yield place
        os.replace(place, path)
    finally:
        remove(place)


def check_replaceable(path: Path) -> None:
    """Raise FileError over a device, a pipe or a socket, which moving a file there would destroy."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FileError(f"{path} is a device, a pipe or a socket", wanted="the name of a file")


def _never(_path: Path) -> bool:
    return False


@contextmanager
def new_folder(path: Path, *, unless: Callable[[Path], bool] = _never) -> Iterator[Path]:
    """Yield an empty folder to fill that takes the place of `path` once the block ends without an error.

    What stands at `path` by then and satisfies `unless` is left alone: another process was faster.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent, path.name)
    place = beside(path)
    try:
        place.mkdir()
        yield place
        _put(place, path, unless)
    finally:
        remove(place)


@contextmanager
def scratch_folder(folder: Path | None = None) -> Iterator[Path]:
    """Yield an empty folder below `folder`, or below the system's for temporary files, removed afterwards."""
    place = (Path(tempfile.gettempdir()) if folder is None else folder) / "isoscope-scratch"
    sweep(place.parent, place.name)
    scratch = beside(place)
    try:
        scratch.mkdir(mode=0o700)
        yield scratch
    finally:
        remove(scratch)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system raises when `path` is written into one FileError that names it."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        raise FileError(f"{path} cannot be written: {why(error)}") from error


def failures() -> tuple[type[Exception], ...]:
    """Return what Python, torch and safetensors raise where a model cannot be written."""
    from safetensors import SafetensorError

    return OSError, RuntimeError, SafetensorError, FileError


def write_atomically(path: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` make a temporary file, then move it into place; a failure leaves the old file as it was."""
    sweep(path.parent, path.name)
    with writing(path), replacing(path) as place:
        write(place)
    return path


def check_place(path: Path) -> None:
    """Raise FileError unless a file can be made there: tried, so that it is known before long work begins."""
    if path.is_dir():
        raise FileError(f"{path} is a folder", wanted="the name of a file in it")
    if not path.parent.is_dir():
        raise FileError(
            f"{path.name} cannot be written: {path.parent} is not a folder", hint="create it first"
        )
    check_replaceable(path)
    sweep(path.parent, path.name)
    trial = beside(path)
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise FileError(f"{path.name} cannot be written to the folder {path.parent}: {why(error)}") from error


def why(error: Exception) -> str:
    """Return what went wrong in a few words, those of the operating system where it has any."""
    system = error.strerror if isinstance(error, OSError) else None
    if not system and _CUT_SHORT.fullmatch(str(error)):
        return "no space is left, or files may not grow further"
    return system or reason(error)


def _put(place: Path, path: Path, unless: Callable[[Path], bool]) -> None:
    """Move a folder into place; the move fails where something is already there."""
    try:
        os.replace(place, path)
    except OSError:
        if not unless(path):
            shutil.rmtree(path, ignore_errors=True)
            os.replace(place, path)


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]


def _has_ended(found: re.Match[str]) -> bool:
    """Whether the process of a temporary file ran on this machine and is gone."""
    if found["host"] != _host() or sys.platform == "win32":  # where signal 0 is no question
        return False
    try:
        os.kill(int(found["process"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
