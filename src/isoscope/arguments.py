"""Arguments that many functions share: their former names, and sizes of memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from warnings import warn

from isoscope.errors import InputError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_MOST_BYTES = 2**63  # what an address can reach


def renamed(
    convert: Callable[[Any], Any] | None = None, **names: str
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function so that it takes arguments by their former names too, with a DeprecationWarning.

    Args:
        convert: make the value of the new argument from that of the old one.
        **names: the new name of each former one.

    >>> import warnings
    >>> @renamed(max_steps="max_iter")
    ... def cluster(X, *, max_iter=300):
    ...     return max_iter
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     cluster([], max_steps=2)
    2
    >>> print(caught[0].message)
    The argument `max_steps` of `cluster` is deprecated: use `max_iter`.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        known = {**getattr(function, "former_names", {}), **names}
        converts = {**getattr(function, "converts", {}), **dict.fromkeys(names, convert)}
        if hasattr(function, "former_names"):  # decorated twice: one call converts all names
            function = function.__wrapped__  # type: ignore[attr-defined]

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for old in known.keys() & kwargs.keys():
                new = known[old]
                if new in kwargs:
                    raise InputError(f"is the former name of {new}; give only one", argument=old)
                where = f"The argument `{old}` of `{function.__name__}`"
                warn(f"{where} is deprecated: use `{new}`.", DeprecationWarning, stacklevel=2)
                value = kwargs.pop(old)
                change = converts[old]
                kwargs[new] = value if change is None else change(value)
            return function(*args, **kwargs)

        call.former_names, call.converts = known, converts  # type: ignore[attr-defined]
        return call

    return decorate


def as_mebibytes(megabytes: Any) -> str | None:
    """Return the size that the former argument `memory_mb` meant; None stays None."""
    return None if megabytes is None else f"{megabytes}MiB"


def parse_memory(memory: str | float | None) -> int | None:
    """Return the bytes of a size such as "2GB", "512 MiB" or a number of bytes; None stays None.

    >>> parse_memory("2GB"), parse_memory("1.5 MiB"), parse_memory(10)
    (2000000000, 1572864, 10)
    """
    if memory is None:
        return None
    size = _SIZE.fullmatch(str(memory))
    unit = None if size is None else _UNITS.get(size[2].upper())
    n_bytes = 0.0 if size is None or unit is None or isinstance(memory, bool) else float(size[1]) * unit
    if not 1 <= n_bytes < _MOST_BYTES:
        raise InputError(argument="memory", got=memory, wanted="a size such as 2GB or 500MB")
    return int(n_bytes)
