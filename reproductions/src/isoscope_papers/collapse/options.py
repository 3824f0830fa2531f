"""Train labelled vectors with a classifier, and compare where IsoScore went with what was predicted.

It is a study of our own: `iso.predict_collapse` predicts every run before it begins, from the vectors, the
labels and the learning rate. A setup is a data set with its labels; it is run with every encoder, length of
the vectors and learning rate. With --output, runs are saved as they finish, finished ones are not repeated,
and the page covers all runs in the folder.

**Examples**

One data set, which needs no data folder: `isoscope reproduce collapse --setup digits`

Two labels and all: `isoscope reproduce collapse --setup banking77-2,banking77-77 --data data`

Every data set, with the page: `isoscope reproduce collapse --setup all --data data -o results`

Only the page, from saved runs: `isoscope reproduce collapse --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.cli import Seeds
from isoscope_papers import options

DEFAULT = ("digits",)


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    seeds: Seeds = "5"
