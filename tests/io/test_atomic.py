"""Files and folders are there whole or not at all, whatever happens to the process or the disk."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from isoscope.errors import FileError
from isoscope.io.atomic import beside, check_place, new_folder, scratch_folder, sweep, write_atomically


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Leave behind what a process that has ended was writing."""

    def leave(path: Path) -> Path:
        with subprocess.Popen(["true"]) as process:
            ended = process.pid
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: ended)
            return beside(path)

    return leave


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, lambda place: place.write_text("old"))

    def fail(place: Path) -> None:
        place.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(FileError, match=r"a\.txt cannot be written: No space left on device"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_goes_when_the_same_is_written(
    tmp_path: Path, killed: Callable[[Path], Path]
) -> None:
    other = killed(tmp_path / "other")
    other.mkdir()
    (other / "half").touch()
    killed(tmp_path / "out").touch()
    check_place(tmp_path / "third")
    assert len(list(tmp_path.iterdir())) == 2
    write_atomically(tmp_path / "out", Path.touch)
    assert {path.name for path in tmp_path.iterdir()} == {other.name, "out"}
    with new_folder(tmp_path / "other"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"other", "out"}
    killed(tmp_path / "out").touch()
    check_place(tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"other", "out"}
    killed(tmp_path / "any").touch()
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"other", "out"}
    with scratch_folder(tmp_path) as scratch:
        killed(tmp_path / "isoscope-scratch").mkdir()
        with scratch_folder(tmp_path):
            assert scratch.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"other", "out"}


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    mine = beside(tmp_path / "out")
    mine.touch()
    elsewhere = tmp_path / ".out.000000-1-01234567.tmp"  # of another machine
    strangers = tmp_path / ".out.tmp"
    for path in (elsewhere, strangers):
        path.touch()
    check_place(tmp_path / "out")
    assert set(tmp_path.iterdir()) == {mine, elsewhere, strangers}
    sweep(tmp_path, alone=True)
    assert list(tmp_path.iterdir()) == [strangers]


def test_a_folder_appears_only_when_filled(tmp_path: Path) -> None:
    place = tmp_path / "model"

    def stop_half_way() -> None:
        with new_folder(place) as folder:
            (folder / "half").touch()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stop_half_way()
    assert list(tmp_path.iterdir()) == []
    for name in ("first", "second"):
        with new_folder(place) as folder:
            (folder / name).touch()
    assert [path.name for path in place.iterdir()] == ["second"]


def test_a_folder_made_by_another_in_the_meantime_stays(tmp_path: Path) -> None:
    place = tmp_path / "model"
    with new_folder(place, unless=lambda path: (path / "whole").exists()) as mine:
        (mine / "mine").touch()
        with new_folder(place) as others:
            (others / "whole").touch()
    assert [path.name for path in place.iterdir()] == ["whole"]
    with new_folder(place, unless=lambda path: (path / "better").exists()) as mine:
        (mine / "mine").touch()
    assert [path.name for path in place.iterdir()] == ["mine"]
    assert list(tmp_path.iterdir()) == [place]


def test_a_place_that_cannot_be_taken_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model").touch()
    with pytest.raises(OSError, match="model"), new_folder(tmp_path / "model"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("place", [".", "/"])
def test_a_path_without_a_name_cannot_be_written(place: str) -> None:
    with pytest.raises(FileError, match="cannot be written: Is a directory"):
        write_atomically(Path(place), lambda path: path.write_text("x"))


def test_a_device_or_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for attempt in (check_place, lambda path: write_atomically(path, lambda place: place.write_text("x"))):
        with pytest.raises(FileError, match="a device, a pipe or a socket"):
            attempt(pipe)
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
