"""Ctrl-C while the command is still importing: one line, as later, and no traceback of torch."""

from __future__ import annotations

import os
import sys
from types import TracebackType

_INTERRUPTED = 130  # exit code


def _is_command() -> bool:
    """Whether `isoscope …` or `python -m isoscope …` runs; others that import isoscope have their way."""
    program = sys.argv[0] if getattr(sys, "argv", None) else ""
    if program == "-m":  # what it is while the package is looked for
        return ("-m", "isoscope") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    return os.path.splitext(os.path.basename(program))[0] == "isoscope"


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("isoscope: interrupted\n")
        sys.exit(_INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


if _is_command():
    sys.excepthook = _end
