"""The `isoscope` command and how it fails: one clear line, exit code 2."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from isoscope._version import __version__
from isoscope.cli.advise import advise
from isoscope.cli.compare import compare
from isoscope.cli.contrast import contrast
from isoscope.cli.correct import correct
from isoscope.cli.finetune import finetune
from isoscope.cli.frontier import frontier
from isoscope.cli.layers import layers
from isoscope.cli.measure import measure
from isoscope.cli.metrics import metrics
from isoscope.cli.report import report
from isoscope.cli.reproduce import reproduce
from isoscope.cli.train import train
from isoscope.errors import InputError, IsoscopeError
from isoscope.printable import printable

BAD_INPUT = 2


class OneFile(TyperCommand):
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


app = typer.Typer(
    name="isoscope",
    help="Measure how an embedding space is shaped: isotropy, clusters, spectrum, manifold.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=OneFile)(measure)
app.command(cls=OneFile)(correct)
app.command()(compare)
app.command(cls=OneFile)(advise)
app.command(cls=OneFile)(report)
app.command(cls=OneFile)(frontier)
app.command()(layers)
app.command()(metrics)
app.command()(train)
app.command()(finetune)
app.command()(contrast)
app.add_typer(reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isoscope {__version__}")
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
    """Run the command; errors isoscope raises on purpose become one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × or ± shows ? instead of failing
    try:
        _run()
    except IsoscopeError as error:
        line = printable(" ".join(str(error).split()))
        typer.echo(f"isoscope: error: {line}", err=True)
        sys.exit(BAD_INPUT)
    except BrokenPipeError:  # `isoscope … | head` is no error
        _forget_output()
    except OSError as error:  # a full disk behind the output, say
        _forget_output()
        typer.echo(f"isoscope: error: cannot write the output: {error.strerror}", err=True)
        sys.exit(BAD_INPUT)


def _run() -> None:
    try:
        app()
    finally:
        sys.stdout.flush()  # here, where a failure can still be told


def _forget_output() -> None:
    """What could not be written shall not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
