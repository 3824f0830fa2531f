"""`Journal`: the loss of every update of a run, and the scores at the end of every epoch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import NotFiniteError

_AT_ONCE = 32  # number of losses that stay on a CUDA device before they are fetched together
_FILE = "journal.json"


class Journal:
    """The losses and epochs of a run.

    Losses stay on the device until several are fetched together, so that no update waits for its own.

    Attributes:
        losses: the parts of the loss by name, one value per update; "loss" is their sum, which is minimised.
        epochs: one row per finished epoch.
        stopped: why the run ended before its last update; None where it did not.
    """

    def __init__(self) -> None:
        self.losses: dict[str, list[float]] = {}
        self.epochs: list[dict[str, Any]] = []
        self.stopped: str | None = None
        self._pending: list[Tensor] = []
        self._names: tuple[str, ...] = ()

    def add(self, parts: dict[str, Tensor]) -> None:
        """Add the parts of the loss of one update."""
        self._names = tuple(parts)
        self._pending.append(torch.stack([part.detach().float() for part in parts.values()]))
        if not self._pending[-1].is_cuda or len(self._pending) >= _AT_ONCE:
            self.fetch()

    def fetch(self) -> None:
        """Fetch the pending losses; raise NotFiniteError for the first update whose loss is not finite."""
        if not self._pending:
            return
        rows = torch.stack(self._pending).cpu().double().tolist()
        self._pending = []
        for row in rows:
            step = self.n_steps + 1
            if not all(map(math.isfinite, row)):
                named = ", ".join(f"{n} {v}" for n, v in zip(self._names, row, strict=True))
                raise NotFiniteError(f"the loss became {row[0]} at step {step:,} ({named})")
            for name, value in zip(self._names, row, strict=True):
                self.losses.setdefault(name, []).append(value)

    @property
    def n_steps(self) -> int:
        """Number of updates whose loss was fetched."""
        return len(self.losses.get("loss", ()))

    def mean_loss(self, last: int) -> float:
        """Return the mean loss of the last updates."""
        self.fetch()
        return float(np.mean(self.losses["loss"][-last:]))

    def write(self, folder: Path) -> None:
        """Write the journal into a checkpoint."""
        self.fetch()
        values = {"losses": self.losses, "epochs": self.epochs, "stopped": self.stopped}
        (folder / _FILE).write_text(json.dumps(values), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Journal:
        """Read the journal of a checkpoint."""
        values = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        journal = cls()
        journal.losses, journal.epochs, journal.stopped = (
            values["losses"],
            values["epochs"],
            values["stopped"],
        )
        return journal
