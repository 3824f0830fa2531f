"""A folder for one process at a time; the system frees it when the process ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isoscope.errors import FileError
from isoscope.io.atomic import sweep, why

if sys.platform != "win32":
    import fcntl


@contextmanager
def only_user(folder: Path, *, what: str) -> Iterator[None]:
    """Make a folder if needed, and lock out other processes until the block ends.

    What a killed process was still writing there is removed. Where the file system has no locks, nobody is
    kept out.

    Raises:
        FileError: the folder cannot be made, or is in use.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{what} {folder} cannot be made: {why(error)}", wanted="a folder") from error
    if sys.platform == "win32":  # which has no locks on a folder
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise FileError(f"{what} {folder} cannot be read: {why(error)}", wanted="a folder") from error
    try:
        if _locked(handle, f"{what} {folder}"):
            sweep(folder, alone=True)
        yield
    finally:
        os.close(handle)


def _locked(handle: int, named: str) -> bool:
    """Lock an open folder; return False where the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(
            f"{named} is in use by another process", hint=["wait until it ends", "name another folder"]
        ) from None
    except OSError:
        return False
    return True
