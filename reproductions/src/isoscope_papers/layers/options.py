"""Measure every layer of four models: along depth, over training, and in bfloat16.

It is a study of our own: a claim is what its runs show, with a verdict for each model. With --output, runs
are saved, and the page covers all runs in the folder. The masked model is trained first, and saved.

**Examples**

One model, quickly: `isoscope reproduce layers --setup minilm --max-tokens 2000 --data data`

All models, with the page: `isoscope reproduce layers --setup all --data data -o results`

Your own model in the same figure: `isoscope reproduce layers --model ./my-model --data data -o results`

Only the page, from saved runs: `isoscope reproduce layers --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope_papers import options

DEFAULT = ("minilm",)


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    model: options.Models = None
    max_tokens: Annotated[
        int | None, typer.Option(help="At most so many tokens. [default: 8192]", metavar="N")
    ] = None
    seed: options.Seed = 0
