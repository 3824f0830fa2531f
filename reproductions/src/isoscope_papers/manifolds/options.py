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

from isoscope_papers import options

DEFAULT = ("minilm", "glove")
_LAYERS = "Which, comma-separated: 0 is the embedding layer, -1 the last. [default: all]"


@dataclass(frozen=True)
class Options(options.Options):
    """What the command takes beside what all studies take."""

    model: options.ModelsOrVectors = None
    max_tokens: Annotated[
        int | None, typer.Option(help="At most so many tokens. [default: the whole split]", metavar="N")
    ] = None
    split: Annotated[str, typer.Option(help="Of WikiText-2: test, valid or train.")] = "test"
    layers: Annotated[str | None, typer.Option(help=_LAYERS, metavar="NUMBERS")] = None
    seed: options.Seed = 0
