"""The command line: parse, call, print; one file a command."""

from __future__ import annotations

from isoscope.cli.app import app, main

__all__ = ["app", "main"]
