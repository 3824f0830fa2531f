"""Reproduce Xiao, Long and Al Moubayed 2023: the geometry of sentence encoders along contrastive training.

Trains encoders with the paper's temperatures, batch sizes and poolings, and tests the claims on these runs.
With --output, runs are saved, finished runs are not repeated, and the page covers all runs in the folder. For
the paper's claims on trained models, see `isoscope reproduce contrastive`.

**Examples**

All trainings: `isoscope reproduce dynamics --data data -o results --device cuda`

Some of them: `isoscope reproduce dynamics -s masked,smollm2:tau=0.1 -o results`

From your own model: `isoscope reproduce dynamics --model path/to/mpnet-base -s tau=0.05 -o results`

Only the pages: `isoscope reproduce dynamics --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope.cli import Seeds
from isoscope_papers import options
from isoscope_papers.dynamics.setups import EPOCHS, PRECISIONS, STARTS

NAMES = f"{', '.join(STARTS)}, or a run such as masked:tau=0.1, masked:batch=16, masked:pooling=cls"


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    model: Annotated[
        str | None, typer.Option(help="Begin from another model: its name or folder.", metavar="MODEL")
    ] = None
    seeds: Seeds = "1"
    epochs: Annotated[int, typer.Option(help="Passes over the pairs.", min=1)] = EPOCHS
    precision: Annotated[
        str, typer.Option(help=f"Of the training: {', '.join(PRECISIONS)}.", metavar="TYPE")
    ] = PRECISIONS[0]
