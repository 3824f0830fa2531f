"""Reproduce Rudman and Eickhoff 2024: isotropy of mini-batches, and isotropy as a penalty in fine-tuning.

With --output, every finished run is saved. An interrupted sweep continues where it stopped, and several
processes may use the same folder. The page covers all runs in the folder. The setup "estimators" is one run
of about twenty minutes on two cores; a task is a sweep over λ and seeds.

**Examples**

Mini-batch estimates against the truth (figure 4): `isoscope reproduce istar --setup estimators -o results`

The sweep on two tasks, on a GPU: `isoscope reproduce istar --setup rte,mrpc --device cuda -o results`

A few strengths, one seed: `isoscope reproduce istar -s rte --strengths -1,-0.1,0.1,1 --seeds 1`

The paper's own model: `isoscope reproduce istar -s rte --model google-bert/bert-base-cased
--learning-rate 1e-5 --download -o results`

Only the page, from saved runs: `isoscope reproduce istar --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope.cli import Seeds
from isoscope_papers import options
from isoscope_papers.istar.setups import MODEL, STRENGTHS, Settings

_USUAL = Settings()
_STRENGTHS = "λ, comma-separated; 0 is always run. [default: 15 from -5 to 5 for istar, 3 or 4 else]"
_REGULARIZERS = f"Some of {', '.join(STRENGTHS)}. [default: all; with --strengths istar]"
_TEXTS = "Train on so many texts, drawn once. [default: 10000 of sst2, all of others]"


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    strengths: Annotated[str | None, typer.Option(help=_STRENGTHS, metavar="NUMBERS")] = None
    regularizers: Annotated[str | None, typer.Option(help=_REGULARIZERS, metavar="NAMES")] = None
    seeds: Seeds = "3"
    model: Annotated[
        str, typer.Option(help="What is fine-tuned: a name, a folder, or a hub id.", metavar="NAME")
    ] = MODEL
    epochs: Annotated[int, typer.Option(help="Passes over the texts.")] = _USUAL.epochs
    batch_size: Annotated[int, typer.Option(help="Texts an update.")] = _USUAL.batch_size
    learning_rate: Annotated[float, typer.Option(help="Of AdamW, constant. The paper has 1e-5 for BERT.")] = (
        _USUAL.learning_rate
    )
    max_length: Annotated[
        int, typer.Option(help="Tokens of a text or pair; longer ones are cut, and counted.")
    ] = _USUAL.max_length
    max_train: Annotated[int | None, typer.Option(help=_TEXTS, metavar="N")] = None
