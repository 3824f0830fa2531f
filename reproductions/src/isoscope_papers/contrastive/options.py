"""Reproduce Xiao, Long and Al Moubayed 2023: the geometry of contrastively trained sentence encoders.

Every layer of a model over the sentences of STS-B, by the paper's protocol and by clean definitions. What the
paper says of training is in `isoscope reproduce dynamics`. With --output each run is kept, and the page is of
all runs the folder holds. Exit code 1 if a figure that can be compared was not reproduced.

**Examples**

The smaller of the paper's models: `isoscope reproduce contrastive --setup minilm --data data`

All, with figures and pages: `isoscope reproduce contrastive --data data -o results`

Before training, too: `isoscope reproduce contrastive --setup mpnet,mpnet-vanilla --download -o results`

Your own model by the same protocol: `isoscope reproduce contrastive --model path/to/model`

The pages again: `isoscope reproduce contrastive --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.cli import Seeds
from isoscope_papers import options
from isoscope_papers.contrastive.setups import N_SEEDS

DEFAULT = ("minilm", "mpnet", "smollm2")


@dataclass(frozen=True)
class Options(options.Options):
    """What the command takes beside what all studies take."""

    model: options.Models = None
    seeds: Seeds = str(N_SEEDS)
