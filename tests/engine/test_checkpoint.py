"""A run that was killed goes on from its folder, to the same bits; a full disk loses nothing."""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tests.raising import raises

import isoscope as iso
from isoscope.engine import strips
from isoscope.engine.checkpoint import Checkpoint
from isoscope.engine.passes import Outcome, PassTask, RowLabels
from isoscope.errors import FileError
from isoscope.io import atomic
from isoscope.statistics.groups import GroupDirections

STATISTICS = {
    "moments": iso.Moments.of(np.random.default_rng(0).normal(size=(4, 9))),
    "many": iso.Moments.of(np.random.default_rng(1).normal(size=(40, 9))),
    "directions": iso.statistics.Directions.of(np.random.default_rng(0).normal(size=(4, 9))),
    "types": GroupDirections.of(np.eye(3), ["a", "b", "b"]),
    "labels": RowLabels((1, 5), torch.tensor([0, 1, 1])),
}


RUN: dict[str, Any] = {"files": ["a"], "seed": 0}


def test_outcomes_come_back_as_they_were(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "new" / "folder", RUN) as kept:
        kept.save("one", Outcome(STATISTICS, {3: 40, 1: 2}, {2: "broken"}))
    with Checkpoint(tmp_path / "new" / "folder", RUN) as kept:
        again = kept.load("one")
    assert again is not None
    assert (again.rows, again.bad) == ({3: 40, 1: 2}, {2: "broken"})
    for name, statistic in STATISTICS.items():
        for field, value in vars(statistic).items():
            if field in type(statistic).__dataclass_fields__:
                found = getattr(again.statistics[name], field)
                assert torch.equal(found, value) if isinstance(value, torch.Tensor) else found == value, field


def begun(folder: Path, run: dict[str, Any]) -> None:
    with Checkpoint(folder, run):
        pass


def test_another_run_is_refused(tmp_path: Path) -> None:
    begun(tmp_path, RUN)
    for other in (RUN | {"seed": 1}, RUN | {"more": 1}):
        with pytest.raises(FileError, match=r"holds a run of another configuration \((seed|more) was"):
            begun(tmp_path, other)
    for content in ("{", "[]", "{}", "", "\0"):
        (tmp_path / "checkpoint.json").write_text(content)
        with pytest.raises(FileError, match=r"checkpoint\.json.*, so it is unknown which run it is of"):
            begun(tmp_path, RUN)
    (tmp_path / "file").write_text("")
    with raises(FileError, message=r"cannot be made: .*", wanted=r"a folder"):
        begun(tmp_path / "file" / "folder", RUN)


def test_a_piece_belongs_to_its_run_and_its_place(tmp_path: Path) -> None:
    outcome = Outcome({"moments": STATISTICS["moments"]})
    for folder, run in (("a", RUN), ("b", RUN | {"seed": 1})):
        with Checkpoint(tmp_path / folder, run) as kept:
            for name in ("one", "two"):
                kept.save(name, outcome)
    shutil.copy(tmp_path / "b" / "one.safetensors", tmp_path / "a" / "one.safetensors")
    with Checkpoint(tmp_path / "a", RUN) as kept:
        assert kept.load("one") is None
        assert kept.load("two") is not None
        shutil.copy(tmp_path / "a" / "two.safetensors", tmp_path / "a" / "one.safetensors")
        assert kept.load("one") is None
        assert len(kept.damaged) == 2
        assert [note.split(":")[0] for note in kept.notes()[:2]] == ["computed again"] * 2
    (tmp_path / "a" / "checkpoint.json").unlink()  # what is finished is still known by its run
    with Checkpoint(tmp_path / "a", RUN | {"seed": 1}) as kept:
        assert kept.load("two") is None


def test_one_process_at_a_time(shards: Path, tmp_path: Path) -> None:
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    (tmp_path / "kept").mkdir()
    code = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "kept")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(FileError, match=r"checkpoint .*kept is in use by another process"):
            iso.measure(source, checkpoint=tmp_path / "kept")
        other.kill()  # the system frees what it held
        other.wait()
    found = iso.measure(source, checkpoint=tmp_path / "kept")
    assert found.readings == iso.measure(source, checkpoint=tmp_path / "other").readings


@pytest.mark.parametrize("damage", ["flip", "cut", "swap", "remove", "empty"])
def test_no_damaged_piece_changes_a_number(shards: Path, tmp_path: Path, damage: str) -> None:
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    folder = tmp_path / "kept"

    def measured() -> Any:
        return iso.measure(source, metrics="isoscore,mean_cosine,silhouette", checkpoint=folder)

    expected = measured()
    pieces = {path: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}
    rng = np.random.default_rng(0)
    for number in range(12):
        path = list(pieces)[number % len(pieces)]
        content = bytearray(pieces[path])
        at = int(rng.integers(len(content)))
        content[at] ^= 1 << int(rng.integers(8))
        if damage == "flip":
            path.write_bytes(content)
        elif damage == "cut":
            path.write_bytes(pieces[path][:at])
        elif damage == "swap":
            path.write_bytes(pieces[list(pieces)[number - 1]])
        elif damage == "remove":
            path.unlink()
        else:
            path.write_bytes(b"")
        found = measured()
        assert found.readings == expected.readings, (path, at)
        told = [note for note in found.notes if note.startswith(f"computed again: {path} ")]
        assert len(told) == (0 if damage == "remove" else 1) or damage == "flip"
        assert path.read_bytes() == pieces[path] or damage == "flip"  # written again
        path.write_bytes(pieces[path])


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
    with pytest.raises(FileError, match="holds a run of another configuration"):
        iso.measure(source, checkpoint=tmp_path / "kept")


def test_a_full_disk_keeps_what_is_done(shards: Path, tmp_path: Path, monkeypatch: Any) -> None:
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if target.name == "first-00004.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", replace)
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    with pytest.raises(
        FileError, match=r"first-00004.* cannot be written: No space left.*continue from what is in"
    ):
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
    monkeypatch.setattr(strips, "STRIP_ROWS", 30)
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    first = iso.measure(source, checkpoint=tmp_path / "kept")
    for number in gone:
        sorted((tmp_path / "kept").glob("strip-*"))[number].unlink()
    assert iso.measure(source, checkpoint=tmp_path / "kept").readings == first.readings


def test_other_labels_are_another_run(shards: Path, tmp_path: Path, labels: np.ndarray) -> None:
    """A column, a file, values at hand: whatever says what the rows are."""
    for path in shards.iterdir():
        arrays = load_file(path)
        save_file({**arrays, "other": arrays["labels"] // 2}, path)
    lines = tmp_path / "labels.txt"
    lines.write_text("\n".join(map(str, labels)))

    def measured(**asked: Any) -> Any:
        source = iso.open_vectors(shards, key="vectors", **asked)
        return iso.measure(source, metrics="isoscore,between_share", checkpoint=tmp_path / "kept")

    first = measured(labels="labels")
    assert measured(labels="labels").readings == first.readings
    for others in ({"labels": "other"}, {"labels": str(lines)}, {"labels": "labels", "weights": "other"}):
        with pytest.raises(FileError, match=r"configuration \(files, labels or weights.* differ\)"):
            measured(**others)


@pytest.mark.parametrize("many", [True, False], ids=["shards", "a file cut into parts"])
def test_a_file_of_labels_written_since(
    tmp_path: Path, vectors: np.ndarray, labels: np.ndarray, many: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(
        importlib.import_module("isoscope.engine.run"), "PART_BYTES", 4 * vectors.shape[1] * 50
    )
    np.save(tmp_path / "a.npy", vectors)
    lines = tmp_path / "labels.txt"

    def measured() -> Any:
        place = f"{tmp_path}/*.npy" if many else tmp_path / "a.npy"
        source = iso.open_vectors(place, labels=str(lines))
        return iso.measure(source, metrics="isoscore,silhouette", checkpoint=tmp_path / "kept")

    lines.write_text("\n".join(map(str, labels)))
    assert measured()["silhouette"] == pytest.approx(iso.silhouette_score(vectors, labels), rel=1e-9)
    lines.write_text("\n".join(map(str, labels // 2)))
    with pytest.raises(FileError, match="files, labels or weights differ"):
        measured()


def test_other_rows_of_a_dask_array(tmp_path: Path, vectors: np.ndarray, labels: np.ndarray) -> None:
    da = pytest.importorskip("dask.array", reason="dask is not installed")

    def measured(X: np.ndarray, **known: Any) -> Any:
        return iso.measure(da.from_array(X), metrics="isoscore", checkpoint=tmp_path / "kept", **known)

    first = measured(vectors, labels=labels)
    assert measured(vectors, labels=labels)["isoscore"] == first["isoscore"]
    for X, known in ((vectors[::-1], labels), (vectors, labels[::-1])):
        with pytest.raises(FileError, match="files, labels or weights differ"):
            measured(X, labels=known)


def test_strips_of_another_bound_are_not_mixed_in(shards: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Memory decides how many rows a strip has: strips of other rows are computed anew."""
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    asked: dict[str, Any] = {"metrics": "silhouette", "errors": False, "checkpoint": tmp_path / "kept"}
    expected = iso.measure(source, **asked)["silhouette"]
    for rows in (13, 100, 29):
        monkeypatch.setattr(strips, "STRIP_ROWS", rows)
        for path in sorted((tmp_path / "kept").glob("strip-*"))[1::2]:
            path.unlink()
        assert iso.measure(source, **asked)["silhouette"] == pytest.approx(expected, rel=1e-12)


def test_a_zarr_folder_written_since(tmp_path: Path, vectors: np.ndarray) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    array = zarr.open_array(tmp_path / "a.zarr", mode="w", shape=vectors.shape, dtype="f8", chunks=(50, 6))
    array[:] = vectors
    iso.measure(iso.open_vectors(tmp_path / "a.zarr"), metrics="isoscore", checkpoint=tmp_path / "kept")
    array[0] = 7
    with pytest.raises(FileError, match="files, labels or weights differ"):
        iso.measure(iso.open_vectors(tmp_path / "a.zarr"), metrics="isoscore", checkpoint=tmp_path / "kept")
