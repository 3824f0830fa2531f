"""`Recorder`: what is measured, fetched from the device in chunks, row by row to whoever listens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.tracking.run_rows import as_columns, as_rows
from isoscope.training.configuration import Configuration
from isoscope.training.meter import diverged

Row = dict[str, Any]  # seed, step, loss, accuracy, and one value a metric
Listener = Callable[[Row], object]
_CHUNK = 64  # measurements left on the device before they are fetched at once


class Recorder:
    """Rows of all seeds, and which seeds have ended.

    A seed ends where its loss has not improved by `min_improvement` for `patience` updates, where its
    accuracy reaches `target_accuracy`, or where `callback` returns True.
    """

    def __init__(
        self,
        configuration: Configuration,
        names: tuple[str, ...],
        *,
        rows: Mapping[str, np.ndarray],
        log: Listener | None,
        callback: Callable[[Row], bool | None] | None,
    ) -> None:
        self._configuration = configuration
        self._names = ("loss", "accuracy", *names)
        self._log = log
        self._callback = callback
        self._waiting: list[tuple[int, list[int], dict[str, Tensor]]] = []
        self.rows: list[Row] = as_rows({name: rows[name] for name in self._order}) if rows else []
        self._losses: dict[int, list[tuple[int, float]]] = {}
        for row in self.rows:
            self._note(row)
        self._ended: set[int] = set()

    @property
    def _order(self) -> tuple[str, ...]:
        return ("seed", "step", *self._names)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """All rows so far, as columns."""
        return as_columns(self.rows, self._order)

    def keep(self, seed: int, before: int) -> None:
        """Forget a seed's rows from step `before` on: they will be measured again."""
        self.rows = [row for row in self.rows if row["seed"] != seed or row["step"] < before]
        self._losses[seed] = [known for known in self._losses.get(seed, []) if known[0] < before]

    def steps(self, seed: int) -> set[int]:
        """Return the updates a seed was measured after."""
        return {step for step, _ in self._losses.get(seed, [])}

    def _note(self, row: Row) -> None:
        self._losses.setdefault(row["seed"], []).append((row["step"], row["loss"]))

    def add(self, step: int, seeds: list[int], values: dict[str, Tensor]) -> None:
        """One measurement of several seeds, (B,) a column; fetched when enough have come."""
        self._waiting.append((step, seeds, values))
        heard = self._configuration.stops_early or self._callback is not None
        if heard or len(self._waiting) >= _CHUNK:
            self.fetch()

    def fetch(self) -> None:
        """Bring what waits on the device here, and tell who listens."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        numbers = {
            name: torch.stack([values[name].double() for _, _, values in waiting]).cpu().tolist()
            for name in self._names
        }
        for place, (step, seeds, _) in enumerate(waiting):
            for b, seed in enumerate(seeds):
                if seed not in self._ended:
                    row = {name: numbers[name][place][b] for name in self._names}
                    self._tell({"seed": seed, "step": step, **row})

    def _tell(self, row: Row) -> None:
        if not np.isfinite(row["loss"]):
            raise diverged(row["seed"], row["step"])
        self.rows.append(row)
        self._note(row)
        if self._log is not None:
            self._log(dict(row))
        stop = self._callback is not None and self._callback(dict(row)) is True
        if stop or self._stopped(row):
            self._ended.add(row["seed"])

    def _stopped(self, row: Row) -> bool:
        settings = self._configuration
        if settings.target_accuracy is not None and row["accuracy"] >= settings.target_accuracy:
            return True
        if settings.patience is None or row["step"] < settings.patience:
            return False
        since = row["step"] - settings.patience
        before = [loss for step, loss in self._losses[row["seed"]] if step <= since]
        after = [loss for step, loss in self._losses[row["seed"]] if step > since]
        gain = min(before) - min(after) if before else math.inf
        return gain <= 0 or gain < settings.min_improvement

    def ended(self, seed: int) -> bool:
        """Whether a seed has stopped before its last step."""
        return seed in self._ended
