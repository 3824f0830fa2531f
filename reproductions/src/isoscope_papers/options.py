"""Options that several studies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope.cli import parse_seeds

_MODEL = "A model's name, folder, .gguf file or hub id{}; may be repeated."
Models = Annotated[list[str] | None, typer.Option("--model", help=_MODEL.format(""), metavar="NAME")]
ModelsOrVectors = Annotated[
    list[str] | None,
    typer.Option("--model", help=_MODEL.format(", or a file of word vectors"), metavar="NAME"),
]
Seed = Annotated[int, typer.Option(help="Of every random draw.")]


@dataclass(frozen=True)
class Options:
    """The options of a study besides the shared ones; none by default."""


def seed_list(text: str) -> list[int]:
    """Return the seeds of --seeds, which is their number or a list.

    >>> seed_list("3"), seed_list("4,9")
    ([0, 1, 2], [4, 9])
    """
    seeds = parse_seeds(text)
    return list(range(seeds)) if isinstance(seeds, int) else seeds
