"""The formats of files of vectors: the reader of each, and the options it takes."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from isoscope.errors import FileError
from isoscope.io.addresses import FilePath
from isoscope.io.chunks import Reader, Request

_PACKAGE = "isoscope.io"
_FORMATS: dict[str, Format] = {}  # by suffix; .gz is set aside before
R = TypeVar("R", bound=type[Reader])


@dataclass(frozen=True)
class Format:
    """How files of one suffix are read.

    Attributes:
        reader: the class that reads it.
        takes: the options that say where in it the vectors are.
        by_ranges: whether it is read through `path.open`, so that only the ranges that are needed are fetched
            from an address. Else it is mapped or unpacked, and has to be on this machine.
        is_store: whether it is a store at an address of its own, and the suffix is no file's.
    """

    reader: Callable[[Request], Reader]
    takes: tuple[str, ...] = ()
    by_ranges: bool = True
    is_store: bool = False


def reads(
    *suffixes: str, takes: tuple[str, ...] = (), by_ranges: bool = True, is_store: bool = False
) -> Callable[[R], R]:
    """Declare above a Reader which files it reads; the other arguments are those of `Format`."""

    def declared(reader: R) -> R:
        _FORMATS.update(dict.fromkeys(suffixes, Format(reader, takes, by_ranges, is_store)))
        return reader

    return declared


def formats() -> Mapping[str, Format]:
    """Return every format by its suffix; those of this package are found in its modules."""
    _load()
    return _FORMATS


def file_suffixes() -> list[str]:
    """Return the suffixes of files, in order."""
    return sorted(suffix for suffix, form in formats().items() if not form.is_store)


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__):
        import_module(f"{_PACKAGE}.{module.name}")


def refuse_options(path: FilePath, form: Format, options: dict[str, Any]) -> None:
    """Raise FileError over an option that files of this kind do not take."""
    for option, value in options.items():
        if value is not None and option not in (*form.takes, "by"):
            kinds = ", ".join(suffix for suffix in file_suffixes() if option in formats()[suffix].takes)
            shown = ",".join(value) if isinstance(value, tuple) else value
            raise FileError(
                f"{shown!r} is for {kinds}, and {path} has no such choice",
                argument=option,
                hint="leave it out",
            )
