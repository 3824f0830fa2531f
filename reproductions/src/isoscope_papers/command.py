"""`isoscope reproduce STUDY`: one command for each study, made from its options, and one for the index."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from isoscope.cli import Command, Commands, Data, Device, Json, KeepGoing, ReportOnly, as_typed
from isoscope.errors import InputError
from isoscope.terminal import say, show, show_json, unguarded
from isoscope_papers.study import STUDIES, Place, Study, study

FAILED = 1  # exit code where a published figure was not reproduced

Fetch = Annotated[
    bool, typer.Option("--download", help="Fetch texts and models that are not on this machine.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder for runs, figures, results and pages.", metavar="FOLDER"),
]
Page = Annotated[
    Path | None,
    typer.Option("--page", help="Write the Markdown page here. [default: into --output]", metavar="FILE"),
]
_SHARED: dict[str, tuple[Any, Any]] = {
    "data": (Data, None),
    "download": (Fetch, False),
    "output": (Output, None),
    "page": (Page, None),
    "device": (Device, None),
    "keep_going": (KeepGoing, False),
    "report_only": (ReportOnly, False),
    "json": (Json, False),
}


reproduce = typer.Typer(
    name="reproduce",
    cls=Commands,
    help="Run a paper's experiments and print our figures beside the published ones.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@reproduce.callback()
def _papers() -> None:
    """Run a paper's experiments and print our figures beside the published ones."""


def command(name: str) -> Callable[..., None]:
    """Build the command of a study from its own options and those all studies share."""
    options = import_module(f"isoscope_papers.{name}.options")
    setups = import_module(f"isoscope_papers.{name}.setups").SETUPS
    names = getattr(options, "NAMES", ", ".join(setups))
    default = ", ".join(getattr(options, "DEFAULT", ("all",)))
    about = f"{names}, or all; comma-separated or repeated. [default: {default}]"
    choice = typer.Option("--setup", "-s", help=about, metavar="NAMES")
    hints = get_type_hints(options.Options, include_extras=True)
    own = {field.name: (hints[field.name], field.default) for field in fields(options.Options)}
    taken: dict[str, tuple[Any, Any]] = {
        "setup": (Annotated[list[str] | None, choice], None),
        **own,
        **_SHARED,
    }

    def run(**given: Any) -> None:
        chosen = options.Options(**{key: given[key] for key in own})
        _reproduce(study(name), chosen, **{key: given[key] for key in ("setup", *_SHARED)})

    run.__doc__ = options.__doc__
    run.__name__ = name
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, (kind, default) in taken.items()
        ]
    )
    run.__annotations__ = {key: kind for key, (kind, _) in taken.items()}
    return run


def _reproduce(
    chosen: Study[Any, Any],
    options: Any,
    *,
    setup: list[str] | None,
    data: Path | None,
    download: bool,
    output: Path | None,
    page: Path | None,
    device: str | None,
    keep_going: bool,
    report_only: bool,
    json: bool,
) -> None:
    """Run the setups, or read the runs there are; print, write the pages, and set the exit code."""
    if page is not None and output is None:
        raise InputError("--page goes with --output, the folder that holds the runs")
    if report_only and output is None:
        raise InputError("--report-only goes with --output, the folder that holds the runs")
    folder = None if output is None else output / "runs"
    with as_typed():
        if not report_only:
            place = Place(data, download, device, folder)
            setups = chosen.chosen(setup or (), options)
            runs = [
                run
                for one in _each(chosen, setups, options, place, keep_going=keep_going, quiet=json)
                for run in one
            ]
        if folder is not None:  # the runs of earlier calls stay on the page
            runs = chosen.read(folder)
    if json:
        show_json(chosen.as_dict(runs))
    else:
        show(chosen.as_text(runs) if report_only else chosen.claims_text(runs))
    if output is not None:
        say("wrote " + ", ".join(map(str, chosen.write(runs, output, page=page))), err=json)
    if chosen.differs(runs):
        raise typer.Exit(FAILED)


def _each(
    chosen: Study[Any, Any],
    setups: Sequence[Any],
    options: Any,
    place: Place,
    *,
    keep_going: bool,
    quiet: bool,
) -> Iterator[Sequence[Any]]:
    """Run every setup; one that cannot be run ends the command, or is named and left out."""
    n_run = 0
    for setup in setups:
        if unguarded(sys.stderr).isatty():  # texts and model are loaded before there is a bar to show
            say(f"{setup.name} …", err=True)
        try:
            with as_typed():
                runs = chosen.run_and_keep(setup, options, place)
        except InputError as error:
            if not keep_going:
                raise
            say(f"{setup.name}: not run: {error}", err=True)
            continue
        n_run += 1
        if not quiet and (text := chosen.rows_text(runs)):
            show(text + "\n")
        yield runs
    if not n_run:
        raise InputError("no setup could be run")


@reproduce.command("index", cls=Command)
def index(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder that holds the runs of all studies.", metavar="FOLDER"),
    ],
    readme: Annotated[
        Path | None, typer.Option("--readme", help="Write the short form into this README.", metavar="FILE")
    ] = None,
) -> None:
    """Write the page at a glance: every claim of every paper, with our verdict, from the kept runs.

    **Examples**

    The page of this documentation: `isoscope reproduce index -o docs/reproduction --readme README.md`
    """
    from isoscope_papers.glance import write_index

    with as_typed():
        say("wrote " + ", ".join(map(str, write_index(output, readme=readme))))


for _name in sorted(STUDIES):
    reproduce.command(_name, cls=Command)(command(_name))
