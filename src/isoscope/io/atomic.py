"""Files written all or nothing: beside their place first, then moved into it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from isoscope.errors import FileError
from isoscope.io.files import reason


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to, moved into it once the block ends without an error."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_atomically(path: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` make a file, then put it in place; a failure leaves what was there as it was."""
    from safetensors import SafetensorError

    try:
        with replacing(path) as beside:
            write(beside)
    except (OSError, SafetensorError) as error:
        raise FileError(f"{path} cannot be written: {why(error)}") from error
    return path


def check_place(path: Path) -> None:
    """Raise FileError unless a file can be made there: tried, so that it is known before long work begins."""
    if path.is_dir():
        raise FileError(f"{path} is a folder; wanted the name of a file in it")
    if not path.parent.is_dir():
        raise FileError(f"{path.parent} is no folder to write {path.name} to; make it first")
    trial = path.with_name(f".{secrets.token_hex(4)}.tmp")
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise FileError(
            f"{path.parent} cannot be written to, and {path.name} is to lie there: {why(error)}"
        ) from error


def why(error: Exception) -> str:
    """What went wrong, in a few words: the system's own for a full disk, a folder closed to us."""
    system = error.strerror if isinstance(error, OSError) else None
    return system or reason(error)
