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
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not (active and is_main) or before is signal.SIG_IGN:  # a job in the background ignores Ctrl-C
        yield heard.is_set
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        if heard.is_set():
            raise KeyboardInterrupt
        heard.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield heard.is_set
    finally:
        signal.signal(signal.SIGINT, before)
