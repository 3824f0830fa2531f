"""Reproduce Xiao, Long and Al Moubayed 2023: the geometry of contrastively trained sentence encoders.

Measures every layer of a model on the sentences of STS-B, by the paper's protocol and by exact definitions.
For the paper's claims on training, see `isoscope reproduce dynamics`. With --output, runs are saved, and the
page covers all runs in the folder. The exit code is 1 if a comparable published value was not reproduced.

**Examples**

The smaller of the paper's models: `isoscope reproduce contrastive --setup minilm --data data`

All models, with figures and pages: `isoscope reproduce contrastive --data data -o results`

Also before training: `isoscope reproduce contrastive --setup mpnet,mpnet-vanilla --download -o results`

Your own model by the same protocol: `isoscope reproduce contrastive --model path/to/model`

Only the pages: `isoscope reproduce contrastive --report-only -o results`
"""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.cli import Seeds
from isoscope_papers import options
from isoscope_papers.contrastive.setups import N_SEEDS

DEFAULT = ("minilm", "mpnet", "smollm2")


@dataclass(frozen=True)
class Options(options.Options):
    """The options of this study."""

    model: options.Models = None
    seeds: Seeds = str(N_SEEDS)
