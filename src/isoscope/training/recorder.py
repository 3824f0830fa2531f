"""`Recorder`: collect the measurements of a run, fetched from the device in chunks."""

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

Row = dict[str, Any]  # seed, step, loss, accuracy, and one value per metric
Listener = Callable[[Row], object]
_CHUNK = 64  # measurements that stay on the device before they are fetched together


class Recorder:
    """The rows of all seeds, and which seeds have ended.

    A seed ends when its loss did not improve by `min_improvement` for `patience` updates, when its accuracy
    reaches `target_accuracy`, or when `callback` returns True.
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
        """All rows so far as columns."""
        return as_columns(self.rows, self._order)

    def drop(self, seed: int, since: int) -> None:
        """Drop the rows of a seed from step `since` on, which will be measured again."""
        self.rows = [row for row in self.rows if row["seed"] != seed or row["step"] < since]
        self._losses[seed] = [(step, loss) for step, loss in self._losses.get(seed, []) if step < since]

    def steps(self, seed: int) -> set[int]:
        """Return the steps at which a seed was measured."""
        return {step for step, _ in self._losses.get(seed, [])}

    def _note(self, row: Row) -> None:
        self._losses.setdefault(row["seed"], []).append((row["step"], row["loss"]))

    def add(self, step: int, seeds: list[int], values: dict[str, Tensor]) -> None:
        """Add one measurement of several seeds, with (B,) values per column."""
        self._waiting.append((step, seeds, values))
        at_once = self._configuration.stops_early or self._callback is not None
        if at_once or len(self._waiting) >= _CHUNK:
            self.fetch()

    def fetch(self) -> None:
        """Fetch the pending measurements, and pass each row to the logger and the callback."""
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
                    self._record({"seed": seed, "step": step, **row})

    def _record(self, row: Row) -> None:
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
        """Return whether a seed ended before its last step."""
        return seed in self._ended
