"""Options that several commands take, and how their text is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from isoscope.errors import InputError
from isoscope.metrics.registry import FAMILIES, registered

INTERRUPTED = 130  # exit code

Device = Annotated[
    str | None, typer.Option("--device", help="Where to work: cpu, cuda, cuda:1.", metavar="DEVICE")
]
Every = Annotated[int, typer.Option("--every", help="Updates between measurements.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Which array of an .npz, .safetensors or .pt file.", metavar="NAME"),
]
Log = Annotated[str | None, typer.Option("--log", help="tensorboard, wandb or mlflow, where installed.")]
Seeds = Annotated[str, typer.Option("--seeds", help="How many, or which, comma-separated (7, or 1,2,5).")]
VectorColumn = Annotated[
    str | None,
    typer.Option("--vector-column", help="Which column of a table holds the vectors.", metavar="NAME"),
]


def complete_metrics(incomplete: str) -> list[str]:
    """Names of metrics and families that begin so, for the shell."""
    return [name for name in (*FAMILIES, "all", "default", *registered()) if name.startswith(incomplete)]


def parse_seeds(text: str) -> int | list[int]:
    """How many seeds, or with a comma, which.

    >>> parse_seeds("5"), parse_seeds("1,2,5"), parse_seeds("7,")
    (5, [1, 2, 5], [7])
    """
    numbers = parse_numbers("seeds", text)
    return numbers if "," in text else numbers[0]


def parse_numbers(name: str, text: str) -> list[int]:
    """Whole numbers with commas between them, at least one; `name` is the option's.

    >>> parse_numbers("hidden", "256, 64")
    [256, 64]
    """
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(f"--{name} is {text!r}; wanted whole numbers with commas between them")
    return numbers


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C inside says what became of the work, and ends with the shell's code for it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(f"isoscope: {stop or 'interrupted'}", err=True)
        raise typer.Exit(INTERRUPTED) from None
