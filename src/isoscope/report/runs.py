"""The curves of a training run, for the page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import FileError
from isoscope.tracking.trajectory import Trajectory

FILE = "trajectory.parquet"
_MOST_STEPS = 400  # points of a curve
_MOST_CURVES = 24


def load_run(run: str | os.PathLike[str] | Trajectory) -> Trajectory:
    """Return the trajectory in the folder of a run, or in a file."""
    if isinstance(run, Trajectory):
        return run
    path = Path(run)
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        why = f"it has no {file.name}" if path.is_dir() else "it does not exist"
        raise FileError(
            f"{path} is not a training run: {why}",
            hint="pass the folder that `isoscope train`, `finetune`, `contrast` or a GeometryTracker wrote",
        )
    return Trajectory.load(file)


def curves(run: Trajectory) -> dict[str, Any]:
    """Return the steps and, for every column, the mean, lowest and highest value over seeds."""
    places = np.unique(np.linspace(0, len(run.steps) - 1, min(_MOST_STEPS, len(run.steps))).astype(int))
    names = [name for name in ("loss", "accuracy", *run.metrics) if name in run.columns]
    series = []
    for name in names:
        values = np.asarray(run.curves(name), dtype=np.float64)[:, places]
        if not np.isnan(values).all():
            series.append({"name": name, **_band(values)})
    return {
        "steps": run.steps[places].tolist(),
        "n_seeds": len(run.seeds),
        "n_left_out": max(0, len(series) - _MOST_CURVES),
        "series": series[:_MOST_CURVES],
    }


def _band(values: np.ndarray) -> dict[str, list[float | None]]:
    """Return the mean, lowest and highest value over seeds; None where a seed has no value."""
    bands = {"mean": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}
    return {name: [x if np.isfinite(x) else None for x in band.tolist()] for name, band in bands.items()}
