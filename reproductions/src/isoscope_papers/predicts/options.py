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

from isoscope_papers.options import Options

__all__ = ["Options"]
DEFAULT = ("minilm",)
