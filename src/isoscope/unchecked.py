"""`unchecked`: numbers that are not finite are accepted, for a caller that looks for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

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


def is_unchecked() -> bool:
    """Return whether numbers that are not finite are accepted."""
    return getattr(_thread, "unchecked", False)
