"""The command line, with one module for each command.

Other packages build their commands from `Command` and the options here, for the same help and errors.
"""

from __future__ import annotations

import sys

try:
    from isoscope.cli.app import app, build, main
    from isoscope.cli.commands import Command, Commands, options_in, present
    from isoscope.cli.options import (
        Data,
        Device,
        Every,
        Json,
        KeepGoing,
        Log,
        ReportOnly,
        Seeds,
        parse_numbers,
        parse_seeds,
    )
except KeyboardInterrupt:  # one line, as later
    sys.stderr.write("isoscope: interrupted\n")
    sys.exit(130)

__all__ = [
    "Command",
    "Commands",
    "Data",
    "Device",
    "Every",
    "Json",
    "KeepGoing",
    "Log",
    "ReportOnly",
    "Seeds",
    "app",
    "build",
    "main",
    "options_in",
    "parse_numbers",
    "parse_seeds",
    "present",
]
