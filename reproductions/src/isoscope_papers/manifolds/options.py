"""Reproduce Cai, Huang, Bian and Church 2021: clusters and manifolds in the layers of language models.

With --output, runs are saved, and the page covers all runs in the folder. The exit code is 1 if a comparable
published value was not reproduced.

**Examples**

A quick run on the CPU: `isoscope reproduce manifolds --setup minilm,glove --max-tokens 10000 --data data`

All of WikiText-2's test split, on a GPU: `isoscope reproduce manifolds --setup all --device cuda -o results`

The paper's own model, downloaded: `isoscope reproduce manifolds --model openai-community/gpt2 --download`

Only the page, from saved runs: `isoscope reproduce manifolds --report-only -o results`
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
    """The options of this study."""

    model: options.ModelsOrVectors = None
    max_tokens: Annotated[
        int | None, typer.Option(help="At most so many tokens. [default: the whole split]", metavar="N")
    ] = None
    split: Annotated[str, typer.Option(help="Of WikiText-2: test, valid or train.")] = "test"
    layers: Annotated[str | None, typer.Option(help=_LAYERS, metavar="NUMBERS")] = None
    seed: options.Seed = 0
