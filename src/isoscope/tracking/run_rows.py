"""`RunRows`: the rows of a tracker, kept in order and in a file that is whole at any moment."""

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
    """Rows by step, one of each; written to `folder` whenever they change.

    Args:
        columns: the metrics' columns.
        trajectory: makes what is written of the rows.
        seed: of the rows.
        folder: where the file is; None keeps the rows in memory alone.
        resume: begin with the rows in the file; else a file that is there is refused.
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
            raise FileError(f"run folder {file.parent} cannot be made: {why(error)}") from error
        if not file.exists():
            return
        if not resume:
            raise InputError(
                f"run folder {file.parent} holds a trajectory already",
                hint=[Setting("resume", True, to="continue it"), "choose another folder"],
            )
        found = Trajectory.load(file).columns
        self.load(list(found), as_rows(found))

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, in place of one of the same step."""
        others = [known for known in self.rows if known["step"] != row["step"]]
        self.rows = sorted([*others, dict(row)], key=lambda known: known["step"])
        self._write()

    def note(self, step: int, values: Mapping[str, float]) -> None:
        """Change values of the row of a step, where there is one."""
        for row in self.rows:
            if row["step"] == step and values:
                row.update(values)
                self._write()

    def truncate(self, step: int) -> None:
        """Forget the rows after a step."""
        kept = [row for row in self.rows if row["step"] <= step]
        if len(kept) < len(self.rows):
            self.rows = kept
            self._write()

    def load(self, columns: Any, rows: Any) -> None:
        """Take over rows, checked to be of the same columns."""
        if not isinstance(columns, list) or not isinstance(rows, list):
            raise InputError("the state has no columns and rows; wanted what GeometryTracker.state_dict gave")
        wanted = set(self.columns) - set(_KEYS)
        if (found := set(columns) - set(_KEYS)) != wanted:
            raise InputError(
                f"the rows are of {', '.join(sorted(found)) or 'nothing'}, the tracker follows "
                f"{', '.join(sorted(wanted))}; wanted the same metrics and layers"
            )
        if not all(isinstance(row, Mapping) and set(self.columns) <= row.keys() for row in rows):
            raise InputError(f"the rows lack some of {', '.join(_KEYS)}; wanted those of a GeometryTracker")
        if any(row["seed"] != self._seed for row in rows):
            raise InputError(f"the rows are of seed {rows[0]['seed']}, the tracker has {self._seed}")
        ordered = [{name: row[name] for name in self.columns} for row in rows]
        self.rows = sorted(ordered, key=lambda row: row["step"])

    def _write(self) -> None:
        if self._file is not None and _is_first_process():
            write_atomically(self._file, self._trajectory().write_parquet)


def as_rows(columns: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return columns row by row, in Python's own numbers."""
    lists = (values.tolist() for values in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def as_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return rows as columns: whole numbers for seed and step, float64 for the rest."""
    kinds: dict[str, Any] = {"seed": np.int64, "step": np.int64}
    return {name: np.array([row[name] for row in rows], kinds.get(name, np.float64)) for name in names}


def _is_first_process() -> bool:
    from torch import distributed

    return not (distributed.is_available() and distributed.is_initialized()) or distributed.get_rank() == 0
