"""`RunRows`: the rows of a tracker, in memory and in a file that is complete at any moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import FileError, InputError, Setting
from isoscope.io.atomic import why, write_atomically
from isoscope.tracking.trajectory import Trajectory

_FILE = "trajectory.parquet"
_KEYS = ("seed", "step", "loss", "accuracy")


class RunRows:
    """Rows sorted by step, one for each step; they are written to `folder` whenever they change.

    Args:
        columns: the columns of the metrics.
        trajectory: returns the trajectory that is written.
        seed: the seed of the rows.
        folder: the folder of the file; None keeps the rows in memory only.
        resume: start with the rows of an existing file, which raises an error otherwise.
    """

    def __init__(
        self,
        columns: Sequence[str],
        trajectory: Callable[[], Trajectory],
        *,
        seed: int,
        folder: str | os.PathLike[str] | None,
        resume: bool,
    ) -> None:
        self.columns = (*_KEYS, *columns)
        self.rows: list[dict[str, Any]] = []
        self._seed, self._trajectory = seed, trajectory
        self._file = None if folder is None else Path(folder) / _FILE
        if self._file is not None:
            self._open(self._file, resume=resume)

    def _open(self, file: Path, *, resume: bool) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"run folder {file.parent} cannot be created: {why(error)}") from error
        if not file.exists():
            return
        if not resume:
            raise InputError(
                f"run folder {file.parent} already has a trajectory",
                hint=[Setting("resume", True, to="continue it"), "choose another folder"],
            )
        loaded = Trajectory.load(file).columns
        self.load(list(loaded), as_rows(loaded))

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row; it replaces a row of the same step."""
        others = [other for other in self.rows if other["step"] != row["step"]]
        self.rows = sorted([*others, dict(row)], key=lambda one: one["step"])
        self._write()

    def note(self, step: int, values: Mapping[str, float]) -> None:
        """Change values in the row of a step, if there is one."""
        for row in self.rows:
            if row["step"] == step and values:
                row.update(values)
                self._write()

    def truncate(self, step: int) -> None:
        """Remove the rows after a step."""
        rows = [row for row in self.rows if row["step"] <= step]
        if len(rows) < len(self.rows):
            self.rows = rows
            self._write()

    def load(self, columns: Any, rows: Any) -> None:
        """Replace the rows; raise InputError unless they have the same columns and seed."""
        if not isinstance(columns, list) or not isinstance(rows, list):
            raise InputError(
                "the state has no columns and rows", wanted="the result of GeometryTracker.state_dict"
            )
        expected = set(self.columns) - set(_KEYS)
        if (metrics := set(columns) - set(_KEYS)) != expected:
            raise InputError(
                f"the rows have the metrics {', '.join(sorted(metrics)) or 'none'}",
                wanted=f"those of the tracker: {', '.join(sorted(expected))}",
            )
        if not all(isinstance(row, Mapping) and set(self.columns) <= row.keys() for row in rows):
            raise InputError(f"the rows lack some of {', '.join(_KEYS)}", wanted="those of a GeometryTracker")
        if any(row["seed"] != self._seed for row in rows):
            raise InputError(f"the rows have seed {rows[0]['seed']}", wanted=f"the tracker's, {self._seed}")
        ordered = [{name: row[name] for name in self.columns} for row in rows]
        self.rows = sorted(ordered, key=lambda row: row["step"])

    def _write(self) -> None:
        if self._file is not None and _is_first_process():
            write_atomically(self._file, self._trajectory().write_parquet)


def as_rows(columns: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return the rows of columns, as Python numbers."""
    lists = (values.tolist() for values in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def as_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return rows as columns: int64 for seed and step, float64 for the others."""
    kinds: dict[str, Any] = {"seed": np.int64, "step": np.int64}
    return {name: np.array([row[name] for row in rows], kinds.get(name, np.float64)) for name in names}


def _is_first_process() -> bool:
    from torch import distributed

    return not (distributed.is_available() and distributed.is_initialized()) or distributed.get_rank() == 0
