"""What the commands of all papers share: setups one after another, and the folder of a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer

from isoscope.cli.options import as_typed
from isoscope.errors import InputError
from isoscope.terminal import say, unguarded

FAILED = 1  # exit code where a published figure was not reproduced

Fetch = Annotated[
    bool, typer.Option("--download", help="Fetch texts and models that are not on this machine.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder for runs, figures, results and pages.", metavar="FOLDER"),
]


class Named(Protocol):
    """A setup."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...


S = TypeVar("S", bound=Named)
R = TypeVar("R")


def each(setups: Iterable[S], run: Callable[[S], R], *, keep_going: bool) -> Iterator[R]:
    """What every setup comes to; one that cannot be run ends it, or is named and left out."""
    n_run = 0
    for setup in setups:
        if unguarded(sys.stderr).isatty():  # texts and model are loaded before there is a bar to show
            say(f"{setup.name} …", err=True)
        try:
            with as_typed():
                found = run(setup)
        except InputError as error:
            if not keep_going:
                raise
            say(f"{setup.name}: not run: {error}", err=True)
            continue
        n_run += 1
        yield found
    if not n_run:
        raise InputError("no setup could be run")


def runs_of(output: Path | None) -> Path:
    """The folder of the runs that --report-only reports on."""
    if output is None:
        raise InputError("--report-only goes with --output, the folder that holds the runs")
    return output / "runs"
