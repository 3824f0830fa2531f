"""Plugins of other packages, found by their entry points: named corpora, commands and metrics.

    isoscope.corpora     a module with text_names, load_texts, pair_names, load_pairs, load_task
    isoscope.commands    Typer apps, each under the name of its entry point
    isoscope.metrics     modules that register metrics

The package `isoscope-papers` (in Python `isoscope_papers`) provides corpora and commands.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from isoscope.errors import InputError, not_installed


def commands() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name, without importing them."""
    return {entry.name: entry for entry in entry_points(group="isoscope.commands")}


def corpora() -> Any | None:
    """Return the module of named corpora, or None if no package provides one."""
    entry = next(iter(entry_points(group="isoscope.corpora")), None)
    return None if entry is None else entry.load()


def has_metrics() -> bool:
    """Return whether a package adds metrics, without importing them."""
    return bool(entry_points(group="isoscope.metrics"))


def missing(what: str) -> InputError:
    """Return the error for a part of the package isoscope-papers, if it is not installed."""
    return not_installed(what, "isoscope-papers")
