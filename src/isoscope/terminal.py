"""Printing to the terminal with control characters escaped, whatever prints them.

Inside `guarded()`, standard output and standard error escape every character that is not printable. Only
`isoscope.console` bypasses this, because it prints styles; it escapes the texts itself.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from isoscope.printable import printable


class Spelled(io.TextIOBase):
    r"""A text stream that escapes characters that are not printable, except line ends.

    It has no `buffer` and is not a terminal, so that other libraries print no styles.

    Attributes:
        inner: the stream it writes to.

    >>> import io
    >>> page = io.StringIO()
    >>> _ = Spelled(page).write("a\x1b[31mb\n")
    >>> page.getvalue()
    'a\\u001b[31mb\n'
    """

    def __init__(self, inner: TextIO | None) -> None:
        self.inner = io.StringIO() if inner is None else inner  # None: closed before Python started
        if isinstance(self.inner, io.TextIOWrapper):
            # a terminal without × or ± shows ? instead of raising an error
            with suppress(OSError):
                self.inner.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        self.inner.write(printable(text, keep="\n"))
        return len(text)

    def flush(self) -> None:
        """Flush the inner stream."""
        self.inner.flush()

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor of the inner stream."""
        return self.inner.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only in Python's own class too
        """The encoding of the inner stream."""
        return self.inner.encoding or "utf-8"


@contextmanager
def guarded() -> Iterator[None]:
    """Escape unprintable characters in everything written inside: prints, warnings, logs."""
    before = sys.stdout, sys.stderr, warnings.showwarning, logging.getLogRecordFactory()
    sys.stdout, sys.stderr = Spelled(sys.stdout), Spelled(sys.stderr)
    warnings.showwarning = _warn
    logging.setLogRecordFactory(_Record)
    try:
        yield
    finally:
        sys.stdout, sys.stderr, warnings.showwarning = before[:3]
        logging.setLogRecordFactory(before[3])


def unguarded(stream: TextIO) -> TextIO:
    """Return the inner stream, for output that isoscope styles itself."""
    return stream.inner if isinstance(stream, Spelled) else stream


def say(line: str, *, err: bool = False) -> None:
    """Print one line to standard output or standard error."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(line) + "\n")
    stream.flush()


def show(block: str) -> None:
    """Print a block of lines."""
    sys.stdout.write(printable(block, keep="\n") + "\n")


def show_json(content: Any) -> None:
    """Print the content as strict JSON."""
    show(as_json(content))


def as_json(content: Any) -> str:
    """Return the content as strict JSON."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False, default=str)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"isoscope: warning: {' '.join(str(message).split())}", err=True)


class _Record(logging.LogRecord):
    """A log record whose message is one line."""

    def getMessage(self) -> str:  # noqa: N802  logging's own name
        return printable(super().getMessage())
