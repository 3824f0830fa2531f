"""A run that was killed goes on from its folder, to the same bits; a full disk loses nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import FileError
from isoscope.io import atomic
from isoscope.scale import separation
from isoscope.scale.checkpoint import Checkpoint
from isoscope.scale.tasks import Outcome, PassTask, RowLabels
from isoscope.statistics.groups import GroupDirections

STATISTICS = {
    "moments": iso.Moments.of(np.random.default_rng(0).normal(size=(4, 9))),
    "many": iso.Moments.of(np.random.default_rng(1).normal(size=(40, 9))),
    "directions": iso.Directions.of(np.random.default_rng(0).normal(size=(4, 9))),
    "types": GroupDirections.of(np.eye(3), ["a", "b", "b"]),
    "labels": RowLabels((1, 5), torch.tensor([0, 1, 1])),
}


def test_outcomes_come_back_as_they_were(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "new" / "folder", {"files": ["a"], "seed": 0})
    kept.save("one", Outcome(STATISTICS, {3: 40, 1: 2}, {2: "broken"}))
    again = Checkpoint(tmp_path / "new" / "folder", {"files": ["a"], "seed": 0}).load("one")
    assert again is not None
    assert (again.rows, again.bad) == ({3: 40, 1: 2}, {2: "broken"})
    for name, statistic in STATISTICS.items():
        for field, value in vars(statistic).items():
            if field in type(statistic).__dataclass_fields__:
                found = getattr(again.found[name], field)
                assert torch.equal(found, value) if isinstance(value, torch.Tensor) else found == value, field


def test_another_run_is_refused(tmp_path: Path) -> None:
    Checkpoint(tmp_path, {"files": ["a"], "seed": 0})
    with pytest.raises(FileError, match=r"holds another run's checkpoint \(seed differ\)"):
        Checkpoint(tmp_path, {"files": ["a"], "seed": 1})
    (tmp_path / "checkpoint.json").write_text("{")
    with pytest.raises(FileError, match=r"checkpoint\.json cannot be read"):
        Checkpoint(tmp_path, {"files": ["a"], "seed": 1})
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        Checkpoint(tmp_path / "file" / "folder", {})


class Killed(BaseException):
    """As kill -9 would: nothing of isoscope catches it."""


def interrupted(monkeypatch: Any, after: int) -> None:
    """Die in the middle of some part."""
    real, count = PassTask.__call__, [0]

    def call(self: PassTask, *arguments: Any) -> Outcome:
        count[0] += 1
        if count[0] > after:
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(PassTask, "__call__", call)


@pytest.mark.parametrize("after", [0, 3, 7, 10])
def test_resumed_is_the_same(shards: Path, tmp_path: Path, monkeypatch: Any, after: int) -> None:
    def measured() -> Any:
        source = iso.open_vectors(shards, key="vectors", labels="labels")
        return iso.measure(source, checkpoint=tmp_path / "kept")

    expected = iso.measure(
        iso.open_vectors(shards, key="vectors", labels="labels"), checkpoint=tmp_path / "other"
    )
    interrupted(monkeypatch, after)
    with pytest.raises(Killed):
        measured()
    assert not list((tmp_path / "kept").glob(".*"))
    monkeypatch.undo()
    found = measured()
    assert found.readings == expected.readings
    resumed = [note for note in found.notes if "were taken from" in note]
    assert [note.split()[0] for note in resumed] == ([str(after)] if after else [])


def test_finished_work_is_not_done_again(shards: Path, tmp_path: Path, monkeypatch: Any) -> None:
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    first = iso.measure(source, checkpoint=tmp_path / "kept")
    interrupted(monkeypatch, 0)
    again = iso.measure(source, checkpoint=tmp_path / "kept")
    assert again.readings == first.readings
    (shards / "part-0.safetensors").touch()
    with pytest.raises(FileError, match="holds another run's checkpoint"):
        iso.measure(source, checkpoint=tmp_path / "kept")


def test_a_full_disk_keeps_what_is_done(shards: Path, tmp_path: Path, monkeypatch: Any) -> None:
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if target.name == "first-00004.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", replace)
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    with pytest.raises(FileError, match=r"first-00004.* cannot be written: No space left.*is kept in"):
        iso.measure(source, checkpoint=tmp_path / "kept")
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == ["checkpoint.json", *(f"first-{i:05}.safetensors" for i in range(4))]
    monkeypatch.undo()
    found = iso.measure(source, checkpoint=tmp_path / "kept")
    assert any(note.startswith("4 finished pieces") for note in found.notes)


@pytest.mark.parametrize("gone", [[0], [3, 4], [8]])
def test_strips_are_resumed_wherever_they_are_missing(
    shards: Path, tmp_path: Path, monkeypatch: Any, gone: list[int]
) -> None:
    monkeypatch.setattr(separation, "STRIP_ROWS", 30)
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    first = iso.measure(source, checkpoint=tmp_path / "kept")
    for number in gone:
        (tmp_path / "kept" / f"strip-{number:06}.safetensors").unlink()
    assert iso.measure(source, checkpoint=tmp_path / "kept").readings == first.readings
