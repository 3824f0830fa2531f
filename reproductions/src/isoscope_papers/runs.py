"""Save a run (a dataclass of plain values and other dataclasses) as JSON, and read it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import cattrs

from isoscope.errors import FileError, InputError
from isoscope.io import read_json, write_json
from isoscope_papers.page import make_folder

R = TypeVar("R")
_CONVERTER = cattrs.Converter()


def as_plain(run: Any) -> Any:
    """Return a dataclass as dictionaries and lists, JSON-ready."""
    return _CONVERTER.unstructure(run)


def from_plain(content: Any, kind: type[R]) -> R:
    """Return the dataclass of the output of `as_plain`."""
    return _CONVERTER.structure(content, kind)


def keep(run: Any, path: Path) -> Path:
    """Write a run atomically, and return its path."""
    make_folder(path.parent)
    return write_json(path, as_plain(run), indent=1)


def read(path: Path, kind: type[R]) -> R:
    """Read a run that `keep` wrote."""
    try:
        return from_plain(read_json(path, sealed=False), kind)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError) as error:
        raise FileError(f"{path} does not hold a run of this study: {_reason(error)}") from error


def read_all(folder: Path, study: str, kind: type[R], setups: Iterable[str] = ()) -> list[R]:
    """Read the files STUDY-SETUP.json of a study: declared setups in order, then others by name."""
    order = {f"{study}-{setup}.json": place for place, setup in enumerate(setups)}
    paths = sorted(folder.glob(f"{study}-*.json"), key=lambda path: (order.get(path.name, len(order)), path))
    if not paths:
        raise InputError(
            f"{folder} has no runs of {study}", wanted=f"{study}-….json, as --output writes them"
        )
    return [read(path, kind) for path in paths]


def _reason(error: Exception) -> str:
    """Return the error in one line; the messages of cattrs have many."""
    if isinstance(error, cattrs.BaseValidationError):
        return "; ".join(cattrs.transform_error(error)[:2])
    return f"{type(error).__name__}: {error}"
