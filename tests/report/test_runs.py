from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import FileError
from isoscope.report.runs import curves, load_run


@pytest.fixture
def run() -> iso.Trajectory:
    steps = np.tile(np.arange(1000), 2)
    columns = {
        "seed": np.repeat([0, 1], 1000),
        "step": steps,
        "loss": 1.0 / (1 + steps) + np.repeat([0.0, 0.2], 1000),
        "isoscore": np.where(steps < 10, np.nan, 0.5),
        "never": np.full(2000, np.nan),
    }
    return iso.Trajectory(columns, {}, 4)


def test_curves_are_means_and_bands_over_seeds(run: iso.Trajectory) -> None:
    found = curves(run)
    assert found["n_seeds"] == 2
    assert len(found["steps"]) == 400
    assert (found["steps"][0], found["steps"][-1]) == (0, 999)
    loss, score = found["series"]
    assert (loss["name"], score["name"]) == ("loss", "isoscore")  # what never has a value is left out
    assert (loss["low"][0], loss["mean"][0], loss["high"][0]) == pytest.approx((1.0, 1.1, 1.2))
    assert score["mean"][0] is None
    assert score["mean"][-1] == 0.5


def test_a_folder_or_a_file_is_read(run: iso.Trajectory, tmp_path: Path) -> None:
    run.save(tmp_path / "trajectory.parquet")
    for place in (tmp_path, tmp_path / "trajectory.parquet", run):
        np.testing.assert_array_equal(load_run(place)["loss"], run["loss"])
    with pytest.raises(FileError, match="is not a training run"):
        load_run(tmp_path / "none")
