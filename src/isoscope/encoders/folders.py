"""Where isoscope keeps what it can make again: vectors of texts, models put together from their parts."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from isoscope.io.atomic import replacing

CACHE_VARIABLE = "ISOSCOPE_CACHE"


def cache_folder() -> Path:
    """The folder named by ISOSCOPE_CACHE, else `isoscope` in the platform's folder for caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else _platform_caches() / "isoscope"


def _platform_caches() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG specification has relative paths ignored
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, then move it there: a reader sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside:
        beside.write_bytes(content)


def _never(_path: Path) -> bool:
    return False


@contextmanager
def new_folder(path: Path, *, unless: Callable[[Path], bool] = _never) -> Iterator[Path]:
    """An empty folder to fill that takes the place of `path` once the block ends without an error.

    What stands at `path` by then and satisfies `unless` is left alone: another was faster.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    beside.mkdir()
    try:
        yield beside
        _put(beside, path, unless)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _put(beside: Path, path: Path, unless: Callable[[Path], bool]) -> None:
    """Move a folder to its place. The move itself refuses a place taken, so none is removed unlooked at."""
    try:
        os.replace(beside, path)
    except OSError:
        if not unless(path):
            shutil.rmtree(path, ignore_errors=True)
            os.replace(beside, path)
