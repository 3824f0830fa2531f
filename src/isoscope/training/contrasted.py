"""`Contrasted`: what training an encoder on pairs has come to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoscope.training.encoder_result import Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Contrasted(Trained):
    """One run of `contrast`.

    Attributes:
        losses: of each update, under "loss".
        trajectory: the rows of the tracker; without one, one row an epoch.
        configuration: every setting, and what the run was made on.
        stopped: why it ended early; None where it did not.
        folder: the run's; None where none was asked for.
        model, tokenizer: where they are at hand; else in `folder/model`.
    """

    kind = "contrast"

    def _settings(self) -> str:
        about = self.configuration
        return (
            f"{about['model']}: τ = {about['temperature']:g}, batches of {about['batch_size']}, "
            f"{about['pooling']} pooling"
        )

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The loss and every metric along the run; see `draw_contrasted`."""
        from isoscope.training.encoder_figure import draw_contrasted

        return draw_contrasted(self, path)
