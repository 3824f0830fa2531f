"""`isoscope reproduce STUDY`: one command for each study."""

from __future__ import annotations

import typer

from isoscope.cli import Command, Commands
from isoscope_papers.command import command, index

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


reproduce.command("classifiers", cls=Command)(command("classifiers"))
reproduce.command("contrastive", cls=Command)(command("contrastive"))
reproduce.command("corrections", cls=Command)(command("corrections"))
reproduce.command("dynamics", cls=Command)(command("dynamics"))
reproduce.command("istar", cls=Command)(command("istar"))
reproduce.command("manifolds", cls=Command)(command("manifolds"))
reproduce.command("theory", cls=Command)(command("theory"))
reproduce.command("index", cls=Command)(index)
