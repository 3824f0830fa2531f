from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from isoscope.cli import main


class Printed(NamedTuple):
    code: int
    out: str
    err: str


class _Terminal(io.StringIO):
    """A stream that says it is a terminal, so that everything is styled."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def command(monkeypatch) -> Callable[..., Printed]:
    """Run a command as in a terminal: its exit code, and what it printed where."""

    def run(*arguments: object) -> Printed:
        with monkeypatch.context() as patch:
            patch.setenv("TERM", "xterm-256color")
            patch.delenv("NO_COLOR", raising=False)
            patch.setattr(sys, "argv", ["isoscope", *map(str, arguments)])
            patch.setattr(sys, "stdout", _Terminal())
            patch.setattr(sys, "stderr", _Terminal())
            out, err, code = sys.stdout, sys.stderr, 0
            try:
                main()
            except SystemExit as stop:
                code = stop.code
        return Printed(code, out.getvalue(), err.getvalue())

    return run
