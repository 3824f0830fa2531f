"""Ctrl-C between two updates, not inside one: what is kept is then whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupt(active: bool) -> Iterator[Callable[[], bool]]:
    """A function that tells whether Ctrl-C has come since; a second one interrupts at once.

    Only where `active` and in the main thread, which alone hears signals; elsewhere nothing is changed.
    """
    heard = threading.Event()
    if not active or threading.current_thread() is not threading.main_thread():
        yield heard.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def note(_number: int, _frame: FrameType | None) -> None:
        if heard.is_set():
            raise KeyboardInterrupt
        heard.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield heard.is_set
    finally:
        signal.signal(signal.SIGINT, before)
