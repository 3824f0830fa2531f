"""The `isoscope` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope._version import __version__
from isoscope.cli.advise import advise
from isoscope.cli.commands import Command, Commands, run
from isoscope.cli.compare import compare
from isoscope.cli.contrast import contrast
from isoscope.cli.correct import correct
from isoscope.cli.finetune import finetune
from isoscope.cli.frontier import frontier
from isoscope.cli.layers import layers
from isoscope.cli.measure import measure
from isoscope.cli.metrics import metrics
from isoscope.cli.report import report
from isoscope.cli.train import train
from isoscope.errors import InputError
from isoscope.plugins import commands, missing
from isoscope.terminal import guarded, say

REPRODUCE = "reproduce"


class OneFile(Command):
    """A command of one FILE: of more, a pattern that the shell has spread is the likeliest reason."""

    allow_extra_args = True  # refused below, in words of ours

    def invoke(self, ctx: Any) -> Any:
        """Run it, unless more files came than one."""
        if ctx.args:
            raise InputError(_too_many(ctx.params.get("file"), ctx.args))
        return super().invoke(ctx)


def _too_many(file: str | Path | None, more: list[str]) -> str:
    if file is None or not all(Path(name).exists() for name in (file, *more)):
        return f"{more[0]!r} is one argument too many; wanted one FILE, then options"
    pattern = Path(file).parent / f"*{Path(file).suffix}"
    return (
        f"{len(more) + 1} files came, {file} to {more[-1]}; wanted one FILE: the shell spreads a pattern "
        f"that has no quotes, so write '{pattern}' with them, or name the folder"
    )


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


class WithPlugins(Commands):
    """The commands of isoscope and those of other packages, which are imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names; `reproduce` among them where its package is absent, to say how to get it."""
        return [*super().list_commands(ctx), *sorted({*commands(), REPRODUCE})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or None."""
        found = commands().get(cmd_name)
        if found is not None:
            return typer.main.get_command(found.load())
        return _NO_PAPERS if cmd_name == REPRODUCE else super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="isoscope",
    cls=WithPlugins,
    help="Measure how an embedding space is shaped: isotropy, clusters, spectrum, manifold.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=OneFile)(measure)
app.command(cls=OneFile)(correct)
app.command(cls=Command)(compare)
app.command(cls=OneFile)(advise)
app.command(cls=OneFile)(report)
app.command(cls=OneFile)(frontier)
app.command(cls=Command)(layers)
app.command(cls=Command)(metrics)
app.command(cls=Command)(train)
app.command(cls=Command)(finetune)
app.command(cls=Command)(contrast)


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
