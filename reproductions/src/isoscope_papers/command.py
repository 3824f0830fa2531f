"""`isoscope reproduce`: one command per study, built from its options, and one for the index."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli import Command, Commands, Data, Device, Json, KeepGoing, ReportOnly, options_in
from isoscope.errors import InputError, Setting
from isoscope.terminal import say, show, show_json, unguarded
from isoscope_papers.study import STUDIES, Place, Study, study

FAILED = 1  # exit code where a published figure was not reproduced


@dataclass(frozen=True)
class Shared:
    """The options of the commands of all studies."""

    setup: list[str] | None = None  # its help is made from the setups of the study
    data: Data = None
    download: Annotated[
        bool, typer.Option("--download", help="Fetch texts and models that are not on this machine.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for runs, figures, results and pages.", metavar="FOLDER"),
    ] = None
    page: Annotated[
        Path | None,
        typer.Option(help="Write the Markdown page here. [default: into --output]", metavar="FILE"),
    ] = None
    device: Device = None
    keep_going: KeepGoing = False
    report_only: ReportOnly = False
    json: Json = False


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
    """Build the command of a study from its own options and the shared ones."""
    options = import_module(f"isoscope_papers.{name}.options")
    setups = import_module(f"isoscope_papers.{name}.setups").SETUPS
    names = getattr(options, "NAMES", ", ".join(setups))
    default = ", ".join(getattr(options, "DEFAULT", ("all",)))
    about = f"{names}, or all; comma-separated or repeated. [default: {default}]"
    choice = typer.Option("--setup", "-s", help=about, metavar="NAMES")
    own, shared = ({one.name: one for one in options_in(of)} for of in (options.Options, Shared))
    shared["setup"] = shared["setup"].replace(annotation=Annotated[list[str] | None, choice])
    taken = {"setup": shared["setup"]} | own | shared

    def run(**given: Any) -> None:
        chosen = options.Options(**{key: given[key] for key in own})
        _reproduce(study(name), chosen, Shared(**{key: given[key] for key in shared}))

    run.__doc__ = options.__doc__
    run.__name__ = name
    run.__signature__ = inspect.Signature(list(taken.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {key: one.annotation for key, one in taken.items()}
    return run


def _reproduce(chosen: Study[Any, Any], options: Any, given: Shared) -> None:
    """Run the setups or read saved runs, print the results, write the pages, and set the exit code."""
    output = given.output
    for flag, is_given in (("--page", given.page is not None), ("--report-only", given.report_only)):
        if is_given and output is None:
            raise InputError(f"{flag} needs the folder of the runs", hint=Setting("output", to="name it"))
    folder = None if output is None else output / "runs"
    if not given.report_only:
        place = Place(given.data, given.download, given.device, folder)
        runs = [run for own in _each(chosen, options, place, given) for run in own]
    if folder is not None:  # the runs of earlier calls stay on the page
        runs = chosen.read(folder)
    if given.json:
        show_json(chosen.as_dict(runs))
    else:
        show(chosen.as_text(runs) if given.report_only else chosen.claims_text(runs))
    if output is not None:
        written = chosen.write(runs, output, page=given.page)
        say("wrote " + ", ".join(map(str, written)), err=given.json)
    if chosen.differs(runs):
        raise typer.Exit(FAILED)


def _each(chosen: Study[Any, Any], options: Any, place: Place, given: Shared) -> Iterator[Sequence[Any]]:
    """Run every setup; one that cannot be run ends the command, or is skipped with a note."""
    n_run = 0
    for setup in chosen.chosen(given.setup or (), options):
        if unguarded(sys.stderr).isatty():  # texts and model are loaded before there is a bar to show
            say(f"{setup.name} …", err=True)
        try:
            runs = chosen.run_and_keep(setup, options, place)
        except InputError as error:
            if not given.keep_going:
                raise
            say(f"{setup.name}: not run: {error.problem}", err=True)
            continue
        n_run += 1
        if not given.json and (text := chosen.rows_text(runs)):
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

    say("wrote " + ", ".join(map(str, write_index(output, readme=readme))))


for _name in sorted(STUDIES):
    reproduce.command(_name, cls=Command)(command(_name))
