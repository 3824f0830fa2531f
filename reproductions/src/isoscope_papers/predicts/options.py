"""Ask which metrics of geometry predict how well a space serves a task, and whether one can choose a layer.

Every layer, checkpoint and correction of several models is measured without labels and scored on tasks of the
same texts. It is a study of our own: a claim is what its runs show. All numbers are kept in one table,
runs/predicts.parquet, from which the page is written; each model replaces its own rows there.

**Examples**

One model: `isoscope reproduce predicts --setup minilm --data data -o results`

All models, with the page: `isoscope reproduce predicts --setup all --data data -o results`

Only the page, from the table: `isoscope reproduce predicts --report-only -o results`
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

    materials: Annotated[
        list[str] | None,
        typer.Option("--material", help="Only these texts; may be repeated. [default: all]", metavar="NAME"),
    ] = None
