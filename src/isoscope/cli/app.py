"""The `isoscope` command: each command is imported when it is asked for."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from isoscope._version import __version__
from isoscope.cli.commands import Command, Commands, flat, run
from isoscope.plugins import commands, missing
from isoscope.terminal import guarded, say

# as the help lists them; the command NAME is the function NAME of the module isoscope.cli.NAME
COMMANDS = (
    "measure",
    "correct",
    "compare",
    "advise",
    "report",
    "frontier",
    "layers",
    "metrics",
    "train",
    "finetune",
    "contrast",
)
REPRODUCE = "reproduce"


class MissingCommand(Command):
    """A command whose package is not installed: whatever follows it, the answer is how to get it."""

    def invoke(self, ctx: Any) -> Any:
        """Raise InputError with the package to install."""
        del ctx
        raise missing(f"`isoscope {self.name}`")


_NO_PAPERS = MissingCommand(
    REPRODUCE,
    short_help="Run a paper's experiments (needs the package isoscope-papers).",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)


class AllCommands(Commands):
    """The commands of isoscope and those of other packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names; `reproduce` among them where its package is absent, to say how to get it."""
        del ctx
        return [*COMMANDS, *sorted({*commands(), REPRODUCE})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command by its name; None where there is none."""
        del ctx
        if cmd_name in COMMANDS:
            return _built(cmd_name)
        if cmd_name in commands():
            return typer.main.get_command(commands()[cmd_name].load())
        return _NO_PAPERS if cmd_name == REPRODUCE else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; other packages are not imported for it, and say in one line what they are."""
        listing = _Listing(name=self.name, help=self.help, params=self.params)
        super(AllCommands, listing).format_help(ctx, formatter)


class _Listing(AllCommands):
    """The commands as the help lists them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = commands().get(cmd_name)
        if found is None or found.dist is None:
            return super().get_command(ctx, cmd_name)
        return Command(cmd_name, short_help=found.dist.metadata["Summary"])


def _built(name: str) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    alone.command(name, cls=Command)(flat(getattr(import_module(f"isoscope.cli.{name}"), name)))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="isoscope",
    cls=AllCommands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"isoscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    """Measure how an embedding space is shaped: isotropy, clusters, spectrum, manifold."""


def main() -> None:
    """Run the command; what goes wrong becomes one line on standard error."""
    with guarded():
        code = run(app)
    if code:
        sys.exit(code)
