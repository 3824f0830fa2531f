"""`Journal`: the losses of a run update by update, and what was found at the end of its epochs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import NotFiniteError

_AT_ONCE = 32  # updates whose losses wait on a CUDA device, to be fetched together
_FILE = "journal.json"


class Journal:
    """Losses stay on the device until some are fetched together: no update waits for its own.

    Attributes:
        losses: of each update, its parts by name; "loss" is what was minimised.
        epochs: a row for each epoch that ended.
        stopped: why the run ended before its last update; None where it did not.
    """

    def __init__(self) -> None:
        self.losses: dict[str, list[float]] = {}
        self.epochs: list[dict[str, Any]] = []
        self.stopped: str | None = None
        self._pending: list[Tensor] = []
        self._names: tuple[str, ...] = ()

    def add(self, parts: dict[str, Tensor]) -> None:
        """The loss of one more update, in its parts."""
        self._names = tuple(parts)
        self._pending.append(torch.stack([part.detach().float() for part in parts.values()]))
        if not self._pending[-1].is_cuda or len(self._pending) >= _AT_ONCE:
            self.fetch()

    def fetch(self) -> None:
        """Take what waits on the device; raises NotFiniteError with the first update that has no loss."""
        if not self._pending:
            return
        rows = torch.stack(self._pending).cpu().double().tolist()
        self._pending = []
        for row in rows:
            step = self.n_steps + 1
            if not all(map(math.isfinite, row)):
                named = ", ".join(f"{n} {v}" for n, v in zip(self._names, row, strict=True))
                raise NotFiniteError(f"the loss has turned {row[0]} at step {step:,} ({named})")
            for name, value in zip(self._names, row, strict=True):
                self.losses.setdefault(name, []).append(value)

    @property
    def n_steps(self) -> int:
        """Updates whose loss is known here."""
        return len(self.losses.get("loss", ()))

    def mean_loss(self, last: int) -> float:
        """Over the last updates."""
        self.fetch()
        return float(np.mean(self.losses["loss"][-last:]))

    def write(self, folder: Path) -> None:
        """Into a checkpoint."""
        self.fetch()
        held = {"losses": self.losses, "epochs": self.epochs, "stopped": self.stopped}
        (folder / _FILE).write_text(json.dumps(held), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Journal:
        """From a checkpoint."""
        held = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        journal = cls()
        journal.losses, journal.epochs, journal.stopped = held["losses"], held["epochs"], held["stopped"]
        return journal
