"""Reproduce Mickus, Grönroos and Attieh 2024: isotropy against clusters while a linear classifier trains.

With --output, runs are saved, finished runs are not repeated, and the page covers all runs in the folder. The
exit code is 1 if a comparable published value was not reproduced.

**Examples**

Setups that need no data folder: `isoscope reproduce classifiers --setup pos,supersense`

All setups: `isoscope reproduce classifiers --setup all --data data -o results`

Another encoder: `isoscope reproduce classifiers --setup cola,rte --encoder all-mpnet-base-v2`

On a GPU: `isoscope reproduce classifiers --setup polarity --device cuda -o results`

Quickly, with estimated silhouettes: `isoscope reproduce classifiers --setup polarity --tolerance 0.0002`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope.cli import Every, Log, Seeds
from isoscope_papers import options

DEFAULT = ("polarity", "snli", "pos", "supersense")


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    encoder: Annotated[
        str | None, typer.Option(help="A model, its folder, or a file of word vectors.", metavar="NAME")
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="Updates. [default: the paper's: 1,000, or 250 for GLUE]", min=1)
    ] = None
    seeds: Seeds = "5"
    every: Every = 1
    tolerance: Annotated[
        float | None, typer.Option(help="Estimate silhouettes to ± this instead of exactly.")
    ] = None
    log: Log = None
