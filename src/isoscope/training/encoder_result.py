"""What a run of a model's training leaves behind, in memory and in its folder.

config.json             settings, fingerprints of model and data, versions
result.json             losses, scores, geometry; written last: a run that has it is done
trajectory.parquet      the rows of the geometry, or of the epochs
model/                  the model and its tokenizer
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isoscope._version import __version__
from isoscope.errors import FileError
from isoscope.io.atomic import failures, new_folder, why
from isoscope.io.sealed import check_folder, check_owner, read_json, seal_folder, write_json
from isoscope.models.language_models import quiet_loading
from isoscope.models.sentences import package_version
from isoscope.tables import shown
from isoscope.tracking.trajectory import Trajectory
from isoscope.training.checkpoint import RunFolder, warn_dropped
from isoscope.training.encoder_checkpoint import Checkpoints
from isoscope.training.encoder_run import EncoderRun
from isoscope.training.journal import Journal

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
            f"{place} cannot be written: {why(error)}; the last checkpoint is kept in {run.path}, to be "
            "resumed"
        ) from error
    trajectory.save(run.path / ROWS)
    write_json(run.path / RESULT, result, indent=1)
    Checkpoints(run).clear()


def finished(run: RunFolder) -> bool:
    """Return whether a run is done; where it is, delete the checkpoints that it was killed before deleting.

    A damaged result or damaged rows are said, and count as not there.

    Raises:
        FileError: the model has been changed since; it may be another's work, so it is not trained again.
    """
    path = run.path / RESULT
    if not path.exists():
        return False
    try:
        result, _ = _read(run.path)
        check_owner(path, RunFolder(run.path, result["configuration"]).identity, run.identity)
    except FileError as error:
        warn_dropped(error, "the run goes on from its last checkpoint, or from the start")
        return False
    if (run.path / MODEL).exists():
        try:
            check_folder(run.path / MODEL, of=run.identity)
        except FileError as error:
            raise FileError(
                f"{error}; delete {run.path / MODEL} to have the result alone, or {RESULT} to train it again"
            ) from error
    Checkpoints(run).clear()
    return True


def done(folder: Path, kind: str) -> tuple[dict[str, Any], Trajectory]:
    """The result of a run of this kind that is done; refused where it is not, or is another."""
    if not (folder / RESULT).exists():
        raise FileError(f"{folder} holds no run that is done; continue it with resume=True")
    result, trajectory = _read(folder)
    if result["configuration"].get("kind") != kind:
        raise FileError(f"{folder} holds another kind of run; wanted one of {kind}")
    return result, trajectory


def _read(folder: Path) -> tuple[dict[str, Any], Trajectory]:
    """The result and the rows, both of the same run."""
    result, trajectory = read_json(folder / RESULT), Trajectory.load(folder / ROWS, sealed=True)
    if not isinstance(result.get("configuration"), dict):
        raise FileError(f"{folder / RESULT} has no configuration; wanted the result of a run")
    wanted = RunFolder(folder, result["configuration"]).identity
    check_owner(folder / ROWS, RunFolder(folder, trajectory.configuration).identity, wanted)
    return result, trajectory


class Trained:
    """What every result of a model's training has: its losses, and where the model lies."""

    losses: Mapping[str, np.ndarray]
    folder: Path | None

    @property
    def loss(self) -> np.ndarray:
        """(steps,) what was minimised, update by update."""
        return self.losses["loss"]

    @property
    def model_folder(self) -> Path | None:
        """Where the model was saved, to be loaded by transformers, an encoder by sentence-transformers."""
        return None if self.folder is None else self.folder / MODEL


def run_trajectory(run: EncoderRun, journal: Journal, about: Mapping[str, Any]) -> Trajectory:
    """The rows of the tracker, or where there is none those of the epochs."""
    n_parameters = sum(p.numel() for p in run.model.parameters() if p.requires_grad)
    if run.tracker is None:
        return Trajectory(_epoch_columns(journal.epochs, run.settings.seed), about, n_parameters)
    return Trajectory(run.tracker.trajectory.columns, about, n_parameters)


def _epoch_columns(epochs: Sequence[Mapping[str, Any]], seed: int) -> dict[str, np.ndarray]:
    found = epochs[0] if epochs else {}
    names = ["step", "loss", *(name for name in found if name not in ("step", "loss"))]
    columns = {name: np.array([row[name] for row in epochs]) for name in names}
    return {"seed": np.full(len(epochs), seed), "accuracy": np.full(len(epochs), np.nan)} | columns


def versions() -> dict[str, str]:
    """What a run was made with: noted, not compared."""
    return {
        "isoscope": __version__,
        "torch": torch.__version__,
        "transformers": package_version("transformers"),
    }


def shown_or_dash(value: float) -> str:
    """A number for a table; a dash where there is none."""
    return "–" if math.isnan(value) else shown(value)


def tracked(tracker: Any) -> dict[str, Any] | None:
    """How the geometry is followed, for the run's configuration; None where it is not."""
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
    """A hash of lists of texts and labels, entry by entry."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(f"{len(column)}\n".encode())
        for entry in column:
            text = str(entry).encode("utf-8", "surrogatepass")
            digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()
