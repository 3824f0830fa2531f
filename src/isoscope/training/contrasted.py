"""`Contrasted`: what training an encoder on pairs has come to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.training.encoder_result import Trained, shown_or_dash

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 100
_ROWS = 12  # of a trajectory shown in a table


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def rows(self) -> list[dict[str, float]]:
        """The trajectory row by row: step, loss and every metric."""
        names = ("step", "loss", *(name for name in self.trajectory.metrics if name != "epoch"))
        columns = [self.trajectory[name].tolist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, the losses of single updates left out; what has no value is None."""
        rows = [
            {name: None if value != value else value for name, value in row.items()} for row in self.rows()
        ]
        return {
            "rows": rows,
            "first_loss": float(self.loss[0]),
            "last_loss": float(self.loss[-1]),
            "stopped": self.stopped,
            "configuration": dict(self.configuration),
        }

    def summary(self) -> str:
        """The geometry along the run, as a table."""
        from rich.table import Table

        from isoscope.console import Terminal

        about, rows = self.configuration, self.rows()
        title = (
            f"{about['model']}: τ = {about['temperature']:g}, batches of {about['batch_size']}, "
            f"{about['pooling']} pooling; {len(self.loss):,} updates, seed {about['seed']}"
        )
        table = Table(*(name.replace("_", " ") for name in rows[0]))
        places = np.unique(np.linspace(0, len(rows) - 1, _ROWS).round().astype(int))
        for place in places:
            step, *values = rows[place].values()
            table.add_row(f"{int(step):,}", *(shown_or_dash(value) for value in values))
        out = StringIO()
        console = Terminal(file=out, width=_WIDTH)
        console.say(title)
        console.print(table)
        if len(places) < len(rows):
            console.say(f"{len(places)} of {len(rows):,} measurements shown")
        if self.stopped:
            console.say(f"stopped: {self.stopped}")
        return out.getvalue().rstrip()

    def __str__(self) -> str:
        return self.summary()

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The loss and every metric along the run; see `draw_contrasted`."""
        from isoscope.training.encoder_figure import draw_contrasted

        return draw_contrasted(self, path)
