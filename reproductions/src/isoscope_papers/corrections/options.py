"""Test every correction on sentence and word similarity, classification and clustering.

Do similarity tasks gain from isotropy, and do tasks with labels lose (Mu and Viswanath 2018, Su et al. 2021,
Rajaee and Pilehvar 2021, Mickus et al. 2024)? Prints the claims with our values, the gain of each correction,
and the best correction for each encoder and kind of task.

**Examples**

Word vectors, minutes on a CPU: `isoscope reproduce corrections --setup glove --data data`

All encoders, with the page: `isoscope reproduce corrections --setup all --data data -o results`

A linear probe whose penalty is chosen in a wide range: `isoscope reproduce corrections --setup minilm-probe`

Your own model on sentence similarity: `isoscope reproduce corrections --model my-model -d sentences`

Only the page, from saved runs: `isoscope reproduce corrections --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from isoscope_papers import options
from isoscope_papers.corrections.setups import DATASETS, FOLDS, MAX_PAIRS, MAX_ROWS, REPEATS

DEFAULT = ("minilm", "glove")
_SETS = f"{', '.join(DATASETS)}; or sentences, words, labels. [default: all]"


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    model: options.ModelsOrVectors = None
    dataset: Annotated[list[str] | None, typer.Option("--dataset", "-d", help=_SETS, metavar="NAMES")] = None
    max_pairs: Annotated[
        int, typer.Option(min=1, help="Pairs of each data set, drawn at random.", metavar="N")
    ] = MAX_PAIRS
    max_rows: Annotated[
        int, typer.Option(min=1, help="Labelled texts of each data set, drawn at random.", metavar="N")
    ] = MAX_ROWS
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.", metavar="N")] = FOLDS
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of the cross-validation.", metavar="N")] = (
        REPEATS
    )
    seed: options.Seed = 0
