"""The same training with several seeds: mean and deviation of what each run came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.results import Result
from isoscope.tables import Grid
from isoscope.training.finetuned import FineTuned

_NAMES = ("score", "isoscore_star", "isoscore_debiased", "mean_cosine", "twonn")


@dataclass(frozen=True, repr=False)
class OverSeeds(Result):
    """Runs of `finetune` that differ in their seed alone.

    Attributes:
        runs: one a seed.
    """

    runs: Sequence[FineTuned]

    def _columns(self) -> dict[str, list[Any]]:
        metric = self.runs[0].metric
        values = np.array([[getattr(run, name) for run in self.runs] for name in _NAMES])  # (names, seeds)
        return {
            "": [metric if name == "score" else name for name in _NAMES],
            "mean": values.mean(axis=1).tolist(),
            "sd": values.std(axis=1, ddof=1).tolist(),
            **{f"seed {run.configuration['seed']}": values[:, i].tolist() for i, run in enumerate(self.runs)},
        }

    def grids(self) -> Iterable[Grid]:
        """Return one table, a row a quantity."""
        columns = self._columns()
        yield Grid("", list(columns), list(zip(*columns.values(), strict=True)))
