"""Checks that numbers are finite, passed over: for a caller that looks for such numbers, or has looked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_thread = threading.local()


@contextmanager
def unchecked() -> Iterator[None]:
    """Accept numbers that are not finite, and rows without a vector, in this thread."""
    before = is_unchecked()
    _thread.unchecked = True
    try:
        yield
    finally:
        _thread.unchecked = before


@contextmanager
def known_finite(X: Any) -> Iterator[None]:
    """Pass over the checks of one array in this thread: its numbers have been found to be finite."""
    before = getattr(_thread, "finite", None)
    _thread.finite = X
    try:
        yield
    finally:
        _thread.finite = before


def is_known_finite(X: Any) -> bool:
    """Return whether this very array has been found to be finite."""
    return X is not None and getattr(_thread, "finite", None) is X


def is_unchecked() -> bool:
    """Return whether numbers that are not finite are accepted."""
    return getattr(_thread, "unchecked", False)
