"""The `isoscope` command. Each subcommand is imported when it is used."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any

import typer

from isoscope._version import __version__
from isoscope.cli.commands import Command, Commands, flat, run
from isoscope.cli.usage import is_input, no_such_command
from isoscope.errors import InputError
from isoscope.plugins import commands, missing
from isoscope.terminal import guarded, say

_PANELS = {  # of the help; commands of no panel come last
    "Vectors in a file": (
        *("look", "audit", "measure", "compare", "drift", "sides", "migrate", "correct", "advise"),
        "compress",
        "threshold",
        "report",
        "frontier",
        "export",
    ),
    "Models and texts": ("encode", "layers"),
    "Training": ("train", "finetune", "contrast"),
    "More": ("metrics", "cite", "mcp"),
}  # fmt: skip
_FIRST = tuple(name for names in _PANELS.values() for name in names)
_NO_COMMANDS = {"app", "commands", "corpora", "inputs", "mcp_server", "options", "usage"}
REPRODUCE = "reproduce"
_REPRODUCE_HELP = "Run the experiments of four papers, and compare the results with the published figures."


@cache
def own_commands() -> tuple[str, ...]:
    """Return the commands of isoscope: the modules of this package, each with a function of its name."""
    names = {module.name for module in iter_modules([os.path.dirname(__file__)])} - _NO_COMMANDS
    return (*_FIRST, *sorted(names - set(_FIRST)))


class MissingCommand(Command):
    """A command whose package is not installed: whatever follows it, the answer is how to get it."""

    def invoke(self, ctx: Any) -> Any:
        """Raise InputError with the package to install."""
        del ctx
        raise missing(f"`isoscope {self.name}`")


_NO_PAPERS = MissingCommand(
    REPRODUCE,
    short_help=f"{_REPRODUCE_HELP} Needs the package isoscope-papers.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)


class AllCommands(Commands):
    """The commands of isoscope and those of other packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names; `reproduce` among them where its package is absent, to say how to get it."""
        del ctx
        return [*own_commands(), *sorted({*commands(), REPRODUCE})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command by its name; None where there is none."""
        del ctx
        if cmd_name in own_commands():
            return build(getattr(import_module(f"isoscope.cli.{cmd_name}"), cmd_name))
        if cmd_name in commands():
            return typer.main.get_command(commands()[cmd_name].load())
        return _NO_PAPERS if cmd_name == REPRODUCE else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command and its arguments; a file in place of a command is looked at."""
        known, (first, *rest) = self.list_commands(ctx), args
        if first in known:
            return super().resolve_command(ctx, args)
        if not is_input(first):
            raise no_such_command(first, rest, known)
        if rest and rest[0] in known and not os.path.exists(rest[0]):
            hint = shlex.join(["isoscope", rest[0], first, *rest[1:]])
            raise InputError(f"The command {rest[0]} must come before {first}", hint=hint)
        return super().resolve_command(ctx, ["look", *args])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; other packages are not imported for it, and say in one line what they are."""
        listing = _Listing(**{name: getattr(self, name) for name in _SHOWN})
        super(AllCommands, listing).format_help(ctx, formatter)


_SHOWN = ("name", "help", "params", "rich_markup_mode", "subcommand_metavar")  # by the help


class _Listing(AllCommands):
    """The commands as the help lists them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = commands().get(cmd_name)
        if found is None or found.dist is None:
            command = super().get_command(ctx, cmd_name)
        else:
            summary = _REPRODUCE_HELP if cmd_name == REPRODUCE else found.dist.metadata["Summary"]
            command = Command(cmd_name, short_help=summary)
        command.rich_help_panel = next((name for name, of in _PANELS.items() if cmd_name in of), "More")
        return command


def build(function: Callable[..., None]) -> Any:
    """Build a command from its function: the parameters are its options, the docstring is its help."""
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    alone.command(function.__name__, cls=Command)(flat(function))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="isoscope",
    cls=AllCommands,
    no_args_is_help=True,
    subcommand_metavar="FILE | COMMAND …",
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
    """Measure how an embedding space is shaped: isotropy, clusters, spectrum, neighbours.

    Start with a first look at a file of vectors: it says what stands out and what to try next.

    **Examples**

    A first look: `isoscope vectors.npy`

    Texts, encoded by a model: `isoscope reviews.txt --model all-MiniLM-L6-v2`

    The options of a command: `isoscope measure --help`
    """


def main() -> None:
    """Run the command; what goes wrong becomes one line on standard error."""
    with guarded():
        code = run(app)
    if code:
        sys.exit(code)
