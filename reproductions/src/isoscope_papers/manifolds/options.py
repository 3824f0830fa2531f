"""Cai, Huang, Bian and Church 2021: clusters and manifolds in the layers of language models.

With --output, the page and its figures are of all runs the folder holds. Exit code 1 if a figure that can be
compared was not reproduced.

**Examples**

A first look on the CPU: `isoscope reproduce manifolds --setup minilm,glove --max-tokens 10000 --data data`

All of WikiText-2's test split, on a GPU: `isoscope reproduce manifolds --setup all --device cuda -o results`

The paper's own model, fetched: `isoscope reproduce manifolds --model openai-community/gpt2 --download`

The page from runs made elsewhere: `isoscope reproduce manifolds --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope.cli import parse_numbers
from isoscope_papers.manifolds.setups import SETUPS

DEFAULT = ("minilm", "glove")
SETUPS_HELP = f"{', '.join(SETUPS)}, or all; comma-separated or repeated. [default: {', '.join(DEFAULT)}]"


@dataclass(frozen=True)
class Options:
    """What the command takes beside what all studies take."""

    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="A language model's name, folder or hub id, or a file of word vectors; may be repeated.",
            metavar="NAME",
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="At most so many tokens. [default: the whole split]", metavar="N"),
    ] = None
    split: Annotated[str, typer.Option("--split", help="Of WikiText-2: test, valid or train.")] = "test"
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            help="Which, comma-separated: 0 is the embedding layer, -1 the last. [default: all]",
            metavar="NUMBERS",
        ),
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="Of the paper's draws, of k-means and samples.")] = 0

    @property
    def layer_numbers(self) -> list[int] | None:
        """The layers asked for; None for all."""
        return None if self.layers is None else parse_numbers("layers", self.layers)
