"""What a run of a model's training leaves behind, in memory and in its folder.

config.json             settings, fingerprints of model and data, versions
result.json             losses, scores, geometry; written last: a run that has it is done
trajectory.parquet      the rows of the geometry, or of the epochs
model/                  the model and its tokenizer
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isoscope._version import __version__
from isoscope.encoders.folders import new_folder
from isoscope.encoders.language_models import quiet_loading
from isoscope.encoders.sentences import package_version
from isoscope.errors import FileError
from isoscope.io.atomic import why, write_atomically
from isoscope.measurement import shown
from isoscope.training.encoder_checkpoint import Checkpoints
from isoscope.training.encoder_run import EncoderRun
from isoscope.training.journal import Journal
from isoscope.training.trajectory import Trajectory

RESULT, ROWS, MODEL = "result.json", "trajectory.parquet", "model"


def keep(
    folder: Path, result: Mapping[str, Any], trajectory: Trajectory, save_model: Callable[[Path], object]
) -> Path:
    """Write what a run has come to, the result last, and let its checkpoints go; where the model is."""
    place = folder / MODEL
    try:
        with new_folder(place) as beside, quiet_loading():
            save_model(beside)
    except (OSError, RuntimeError) as error:
        raise FileError(
            f"{place} cannot be written: {why(error)}; the last checkpoint is kept in {folder}, to be resumed"
        ) from error
    trajectory.save(folder / ROWS)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    write_atomically(folder / RESULT, lambda beside: beside.write_text(text + "\n", encoding="utf-8"))
    Checkpoints(folder).clear()
    return place


def kept(folder: Path) -> tuple[dict[str, Any], Trajectory] | None:
    """The result of a run that is done; None where it is not."""
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(
            f"{path} cannot be read: {why(error)}; delete it to go on from the last checkpoint"
        ) from error
    return found, Trajectory.load(folder / ROWS)


def done(folder: Path, kind: str) -> tuple[dict[str, Any], Trajectory]:
    """The result of a run of this kind that is done; refused where it is not, or is another."""
    found = kept(folder)
    if found is None:
        raise FileError(f"{folder} holds no run that is done; continue it with resume=True")
    if not isinstance(found[0], dict) or found[0].get("configuration", {}).get("kind") != kind:
        raise FileError(f"{folder} holds another kind of run; wanted one of {kind}")
    return found


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
