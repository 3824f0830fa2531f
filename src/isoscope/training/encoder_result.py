"""The result of training a model, in memory and in the folder of its run.

config.json             settings, fingerprints of model and data, versions
result.json             losses, scores, geometry; written last, so a run that has it is finished
trajectory.parquet      the rows of the geometry tracker, or of the epochs
model/                  the model and its tokenizer
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from isoscope._version import __version__
from isoscope.engine.readings import Readings, View
from isoscope.errors import FileError, Setting
from isoscope.io.atomic import failures, new_folder, why
from isoscope.io.run_folder import RunFolder
from isoscope.io.sealed import check_folder, check_owner, read_json, seal_folder, write_json
from isoscope.models.language_models import quiet_loading
from isoscope.models.sentences import package_version
from isoscope.results import plain
from isoscope.tables import Grid
from isoscope.tracking.run_rows import as_rows
from isoscope.tracking.trajectory import Trajectory
from isoscope.training.checkpoint import Checkpoints, warn_dropped

_N_ROWS = 12  # rows of a trajectory in a table
RESULT, ROWS, MODEL = "result.json", "trajectory.parquet", "model"


def keep(
    run: RunFolder, result: Mapping[str, Any], trajectory: Trajectory, save_model: Callable[[Path], object]
) -> None:
    """Save the model, the rows and, last, the result of a run; delete its checkpoints."""
    place = run.path / MODEL
    try:
        with new_folder(place) as beside, quiet_loading():
            save_model(beside)
            seal_folder(beside, of=run.identity)
    except failures() as error:
        raise FileError(
            f"{place} cannot be written: {why(error)}; resume the run from the last checkpoint in {run.path}"
        ) from error
    trajectory.save(run.path / ROWS)
    write_json(run.path / RESULT, result, indent=1)
    Checkpoints(run).clear()


def finished(run: RunFolder) -> bool:
    """Return whether a run is finished; if so, delete checkpoints that a kill left behind.

    A damaged result, or damaged rows, raise a warning and count as absent.

    Raises:
        FileError: the model was changed after the run. It is not trained again, since the change may be
            intended.
    """
    path = run.path / RESULT
    if not path.exists():
        return False
    try:
        result, _ = _read(run.path)
        check_owner(path, RunFolder(run.path, result["configuration"]).identity, run.identity)
    except FileError as error:
        warn_dropped(error, "the run resumes from its last checkpoint, or from the start")
        return False
    if (run.path / MODEL).exists():
        try:
            check_folder(run.path / MODEL, of=run.identity)
        except FileError as error:
            raise error.advise(
                [f"delete {run.path / MODEL} to use only the result", f"{RESULT} to train again"]
            ) from error
    Checkpoints(run).clear()
    return True


def _done(folder: Path, kind: str) -> tuple[dict[str, Any], Trajectory]:
    """Return the result and the rows of a finished run of this kind; else raise FileError."""
    if not (folder / RESULT).exists():
        raise FileError(f"{folder} has no finished run", hint=Setting("resume", True, to="continue it"))
    result, trajectory = _read(folder)
    if result["configuration"].get("kind") != kind:
        raise FileError(f"{folder} has a run of another kind", wanted=f"a run of {kind}")
    return result, trajectory


def _read(folder: Path) -> tuple[dict[str, Any], Trajectory]:
    """Return the result and the rows, after checking that they are of the same run."""
    result, trajectory = read_json(folder / RESULT), Trajectory.load(folder / ROWS, sealed=True)
    if not isinstance(result.get("configuration"), dict):
        raise FileError(f"{folder / RESULT} has no configuration", wanted="the result of a run")
    wanted = RunFolder(folder, result["configuration"]).identity
    check_owner(folder / ROWS, RunFolder(folder, trajectory.configuration).identity, wanted)
    return result, trajectory


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Trained(View):
    """The fields that the results of `finetune`, `contrast` and `train_masked_lm` share."""

    kind: ClassVar[str]
    losses: Mapping[str, np.ndarray]
    trajectory: Trajectory
    configuration: Mapping[str, Any]
    stopped: str | None = None
    folder: Path | None = None
    model: Any = field(default=None, repr=False)
    tokenizer: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, result: Mapping[str, Any], trajectory: Trajectory, **others: Any) -> Self:
        """Return the result with the content of a run's result file."""
        names = {one.name for one in fields(cls)}
        values = {name: value for name, value in result.items() if name in names}
        losses = {name: np.array(values) for name, values in result["losses"].items()}
        return cls(**values | {"losses": losses, "trajectory": trajectory} | others)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a finished run from its folder, without the model."""
        result, trajectory = _done(Path(folder), cls.kind)
        return cls.of(result, trajectory, folder=Path(folder))

    @property
    def loss(self) -> np.ndarray:
        """(steps,) the minimised loss of every update."""
        return self.losses["loss"]

    @property
    def title(self) -> str:
        """The settings, the number of updates and the seed."""
        about = self.configuration
        return f"{self._settings()}; {len(self.loss):,} updates, seed {about['seed']}"

    def _settings(self) -> str:
        """Return the settings that the title names."""
        return self.kind

    @property
    def readings(self) -> Readings:
        """The trajectory, by `seed` and `step`."""
        return self.trajectory.readings

    def rows(self) -> list[dict[str, float]]:
        """Return the trajectory row by row: step, loss and every metric."""
        names = ("step", "loss", *(name for name in self.trajectory.metrics if name != "epoch"))
        return as_rows({name: self.trajectory[name] for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, without the losses of single updates; undefined values are None."""
        return {
            "rows": plain(self.rows()),
            "first_loss": float(self.loss[0]),
            "last_loss": float(self.loss[-1]),
            "stopped": self.stopped,
            "configuration": dict(self.configuration),
        }

    def grids(self) -> Iterable[Grid]:
        """Return the table of the trajectory, with at most twelve rows."""
        rows = self.rows()
        heads = [name.replace("_", " ") for name in rows[0]]
        return [Grid("", heads, [list(rows[place].values()) for place in _spread(len(rows))])]

    def lines(self) -> list[str]:
        """Return the number of rows shown, and why the run ended early."""
        n, n_shown = len(self.trajectory), len(_spread(len(self.trajectory)))
        few = [f"{n_shown} of {n:,} measurements shown"] if n_shown < n else []
        return few + ([f"stopped: {self.stopped}"] if self.stopped else [])

    @property
    def model_folder(self) -> Path | None:
        """The folder of the model, for transformers; that of an encoder also for sentence-transformers."""
        return None if self.folder is None else self.folder / MODEL


def versions() -> dict[str, str]:
    """Return the versions that the run used; they are recorded but not compared."""
    return {
        "isoscope": __version__,
        "torch": torch.__version__,
        "transformers": package_version("transformers"),
    }


def _spread(n: int) -> list[int]:
    """Return evenly spaced row numbers, with the first and the last."""
    places: list[int] = np.unique(np.linspace(0, n - 1, _N_ROWS).round().astype(int)).tolist()
    return places


def tracked(tracker: Any) -> dict[str, Any] | None:
    """Return the settings of a tracker for the configuration of a run, or None."""
    if tracker is None:
        return None
    return {
        "n_items": len(tracker.probe),
        "every": tracker.every,
        "columns": list(tracker.columns),
        "pooling": tracker.pooling,
        "stop_below": dict(tracker.stop_below),
    }


def texts_fingerprint(*columns: Sequence[Any]) -> str:
    """Return a hash of lists of texts and labels."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(f"{len(column)}\n".encode())
        for entry in column:
            text = str(entry).encode("utf-8", "surrogatepass")
            digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()
