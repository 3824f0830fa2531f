"""What the command line prints: one border, where control characters are spelled out whoever prints them.

Inside `guarded()`, standard output and standard error spell out every character that does not print. Only
`isoscope.console` writes past them, because it has to style what it shows, and spells out the texts itself.
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
    r"""A text stream that spells out what does not print, line ends aside.

    It has no `buffer` to write bytes to and is no terminal, so that other libraries leave their styles out.

    Attributes:
        inner: the stream that it writes to.

    >>> import io
    >>> page = io.StringIO()
    >>> _ = Spelled(page).write("a\x1b[31mb\n")
    >>> page.getvalue()
    'a\\u001b[31mb\n'
    """

    def __init__(self, inner: TextIO | None) -> None:
        self.inner = io.StringIO() if inner is None else inner  # None: closed before Python started
        if isinstance(self.inner, io.TextIOWrapper):
            # a terminal without × or ± shows ? instead of failing; a descriptor may have become a pipe since
            with suppress(OSError):
                self.inner.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        """Write the text, spelled out."""
        self.inner.write(printable(text, keep="\n"))
        return len(text)

    def flush(self) -> None:
        """Flush the stream behind."""
        self.inner.flush()

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor of the stream behind."""
        return self.inner.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only in Python's own class too
        """The encoding of the stream behind."""
        return self.inner.encoding or "utf-8"


@contextmanager
def guarded() -> Iterator[None]:
    """Spell out what does not print in everything written inside: prints, warnings, logs."""
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
    """Return the stream behind the border, for what isoscope styles itself."""
    return stream.inner if isinstance(stream, Spelled) else stream


def say(line: str, *, err: bool = False) -> None:
    """Print one line, whatever is in it, to standard output or standard error."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(line) + "\n")
    stream.flush()


def show(block: str) -> None:
    """Print lines that isoscope has laid out."""
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
    """What is logged, in one line."""

    def getMessage(self) -> str:  # noqa: N802  logging's own name
        return printable(super().getMessage())
