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


def why(error: Exception) -> str:
    """What went wrong, in a few words: the system's own for a full disk, a folder closed to us."""
    system = error.strerror if isinstance(error, OSError) else None
    return system or reason(error)
