"""`FineTuned`: what fine-tuning a model on a task has come to."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from isoscope.tables import shown
from isoscope.training.encoder_result import Trained, shown_or_dash
from isoscope.training.state_geometry import ALL, QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 100
_FEW = 100  # test texts: below, chance alone moves the accuracy by 0.05 and more


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, losses left out; what has no value is None."""
        return {
            "metric": self.metric,
            "score": self.score,
            **{name: _or_none(self._whole(name)) for name in QUANTITIES},
            "epochs": [dict(row) for row in self.epochs],
            "geometry": [{key: _or_none(value) for key, value in row.items()} for row in self.geometry],
            "stopped": self.stopped,
            "configuration": dict(self.configuration),
        }

    def summary(self) -> str:
        """The scores by epoch and the geometry by layer, as tables."""
        from rich.table import Table

        from isoscope.console import Terminal

        about = self.configuration
        penalty = about["regularizer"]
        added = f"{penalty}, λ = {about['strength']:g}" if penalty else "no regulariser"
        title = (
            f"{about['model']}: {self.metric} {shown(self.score)}; {added}; "
            f"{len(self.loss):,} updates, seed {about['seed']}"
        )
        loss = "training loss, with penalty" if penalty and about["strength"] else "training loss"
        scores = Table(
            "epoch", "accuracy", "macro-F1", "Matthews", loss, title="test texts, after each epoch"
        )
        for row in self.epochs:
            cells = (row[name] for name in ("accuracy", "f1", "matthews", "loss"))
            scores.add_row(f"{row['epoch']:g}", *map(shown_or_dash, cells))
        layers = Table("layer", "IsoScore*", "debiased", "mean cosine", "TwoNN", title="their token states")
        for row in self.geometry:
            layers.add_row(str(row["layer"]), *(shown_or_dash(row[name]) for name in QUANTITIES))
        out = StringIO()
        console = Terminal(file=out, width=_WIDTH)
        for line in (title, *self._counts()):
            console.say(line)
        console.print(scores)
        console.print(layers)
        if self.stopped:
            console.say(f"stopped: {self.stopped}")
        return out.getvalue().rstrip()

    def _counts(self) -> list[str]:
        """How many texts the scores rest on, and a warning where they are few."""
        n_train, n_test = self.configuration["n_train"], self.configuration["n_test"]
        lines = [f"trained on {n_train:,} texts, scored on {n_test:,}"]
        if n_test < _FEW:
            # √(p(1 − p)/n) is largest at p = ½
            error = 0.5 / math.sqrt(n_test)
            lines.append(
                f"note: {n_test} test text{'s are' if n_test > 1 else ' is'} few: "
                f"the standard error of the accuracy is up to {error:.2f}"
            )
        return lines

    def __str__(self) -> str:
        return self.summary()

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The loss, the scores and the layers; see `draw_finetuned`."""
        from isoscope.training.encoder_figure import draw_finetuned

        return draw_finetuned([self], path)


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
