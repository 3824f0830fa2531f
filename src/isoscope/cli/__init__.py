"""The command line: parse, call, print; one file a command."""

from __future__ import annotations

import sys

try:
    from isoscope.cli.app import app, main
except KeyboardInterrupt:  # importing takes a second or two, and nobody wants a traceback of it
    sys.stderr.write("isoscope: interrupted\n")
    sys.exit(130)

__all__ = ["app", "main"]
