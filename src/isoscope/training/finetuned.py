"""`FineTuned`: what fine-tuning a model on a task has come to."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.engine.readings import Reading, Readings
from isoscope.results import plain
from isoscope.tables import Grid, shown
from isoscope.training.encoder_result import Trained
from isoscope.training.state_geometry import ALL, QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEW = 100  # test texts: below, chance alone moves the accuracy by 0.05 and more


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FineTuned(Trained):
    """One run of `finetune`.

    Attributes:
        epochs: a row for each epoch: epoch, step, loss (its mean), and all scores on the test texts.
        geometry: a row for each layer above the embedding layer, and one for "all" of them, of the test
            texts' token states: isoscore_star, isoscore_debiased, mean_cosine, twonn.
        losses: of each update: "loss", its parts "task" and, with a regulariser, "penalty".
        trajectory: the rows of the tracker; without one, one row an epoch.
        configuration: every setting, and what the run was made on.
        stopped: why it ended early; None where it did not.
        folder: the run's; None where none was asked for.
        model, tokenizer: where they are at hand; else in `folder/model`.
    """

    kind = "finetune"
    epochs: Sequence[Mapping[str, Any]]
    geometry: Sequence[Mapping[str, Any]]

    @property
    def metric(self) -> str:
        """What `score` is: "accuracy", "f1" (macro) or "matthews"."""
        return str(self.configuration["metric"])

    @property
    def score(self) -> float:
        """The metric on the test texts after the last epoch."""
        return float(self.epochs[-1][self.metric])

    @property
    def isoscore_star(self) -> float:
        """IsoScore* of all layers' states together."""
        return self._whole("isoscore_star")

    @property
    def isoscore_debiased(self) -> float:
        """The debiased IsoScore of all layers' states together."""
        return self._whole("isoscore_debiased")

    @property
    def mean_cosine(self) -> float:
        """The mean cosine of all layers' states together."""
        return self._whole("mean_cosine")

    @property
    def twonn(self) -> float:
        """The intrinsic dimension of a sample of all layers' states."""
        return self._whole("twonn")

    def _whole(self, name: str) -> float:
        return float(next(row[name] for row in self.geometry if row["layer"] == ALL))

    @property
    def readings(self) -> Readings:
        """The loss and the scores by `epoch`, and the geometry by `layer`."""
        rows = [
            Reading(name, value, space=self.configuration["model"], group={key: row[key]})
            for key, table in (("epoch", self.epochs), ("layer", self.geometry))
            for row in table
            for name, value in row.items()
            if name not in (key, "step")
        ]
        return Readings(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, losses left out; what has no value is None."""
        return {
            "metric": self.metric,
            "score": self.score,
            **{name: plain(self._whole(name)) for name in QUANTITIES},
            "epochs": plain(self.epochs),
            "geometry": plain(self.geometry),
            "stopped": self.stopped,
            "configuration": dict(self.configuration),
        }

    def _settings(self) -> str:
        penalty, strength = self.configuration["regularizer"], self.configuration["strength"]
        added = f"{penalty}, λ = {strength:g}" if penalty else "no regulariser"
        return f"{self.configuration['model']}: {self.metric} {shown(self.score)}; {added}"

    def grids(self) -> Iterable[Grid]:
        """Return the scores by epoch, and the geometry by layer."""
        about = self.configuration
        penalized = about["regularizer"] and about["strength"]
        loss = "training loss, with penalty" if penalized else "training loss"
        names = ("accuracy", "f1", "matthews", "loss")
        scores = [(f"{row['epoch']:g}", *(row[name] for name in names)) for row in self.epochs]
        heads = ("epoch", "accuracy", "macro-F1", "Matthews", loss)
        yield Grid("test texts, after each epoch", heads, scores)
        layers = [(str(row["layer"]), *(row[name] for name in QUANTITIES)) for row in self.geometry]
        yield Grid("their token states", ("layer", "IsoScore*", "debiased", "mean cosine", "TwoNN"), layers)

    def lines(self) -> list[str]:
        """Return how many texts the scores rest on, and a warning where they are few."""
        n_train, n_test = self.configuration["n_train"], self.configuration["n_test"]
        lines = [f"trained on {n_train:,} texts, scored on {n_test:,}"]
        if n_test < _FEW:
            # √(p(1 − p)/n) is largest at p = ½
            error = 0.5 / math.sqrt(n_test)
            lines.append(
                f"note: {n_test} test text{'s are' if n_test > 1 else ' is'} few: "
                f"the standard error of the accuracy is up to {error:.2f}"
            )
        return [*lines, *([f"stopped: {self.stopped}"] if self.stopped else [])]

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The loss, the scores and the layers; see `draw_finetuned`."""
        from isoscope.training.encoder_figure import draw_finetuned

        return draw_finetuned([self], path)
