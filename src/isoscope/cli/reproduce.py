"""`isoscope reproduce PAPER`: one command a paper."""

from __future__ import annotations

import typer

from isoscope.cli.reproduce_classifiers import classifiers
from isoscope.cli.reproduce_contrastive import contrastive
from isoscope.cli.reproduce_corrections import corrections
from isoscope.cli.reproduce_istar import istar
from isoscope.cli.reproduce_manifolds import manifolds
from isoscope.cli.reproduce_theory import theory

reproduce = typer.Typer(
    name="reproduce",
    help="Run a paper's experiments and print our figures beside the published ones.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@reproduce.callback()
def _papers() -> None:
    """Run a paper's experiments and print our figures beside the published ones."""


reproduce.command("classifiers")(classifiers)
reproduce.command("contrastive")(contrastive)
reproduce.command("corrections")(corrections)
reproduce.command("istar")(istar)
reproduce.command("manifolds")(manifolds)
reproduce.command("theory")(theory)
