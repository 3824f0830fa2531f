"""Parts that other packages add, found by their entry points: named corpora and commands.

    isoscope.corpora     a module with text_names, load_texts, pair_names, load_pairs, load_task
    isoscope.commands    Typer apps, each under the name of its entry point

The package `isoscope-papers` provides both.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from isoscope.errors import InputError

_INSTALL = "pip install isoscope-papers"


def commands() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name, not yet imported."""
    return {found.name: found for found in entry_points(group="isoscope.commands")}


def corpora() -> Any | None:
    """Return the module of named corpora, or None where no package provides one."""
    found = next(iter(entry_points(group="isoscope.corpora")), None)
    return None if found is None else found.load()


def missing(what: str) -> InputError:
    """Return the error for a part that is not installed."""
    return InputError(f"is part of isoscope-papers, which is not installed: {_INSTALL}", argument=what)
