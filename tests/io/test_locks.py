"""A folder has one user at a time, and is free as soon as that one has ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isoscope.errors import FileError
from isoscope.io.atomic import beside
from isoscope.io.locks import only_user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no locks on folders")
OTHER = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDONLY)
try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("refused", flush=True)
else:
    print("ready", flush=True)
    sys.stdin.read()
"""


def refuses(folder: Path, message: str) -> None:
    with pytest.raises(FileError, match=message), only_user(folder, what="run folder"):
        pass


def test_another_process_is_kept_out_until_it_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        refuses(tmp_path, r"run folder .* is in use by another process. Wait")
        other.kill()
    with only_user(tmp_path, what="run folder"):
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert done.stdout == b"refused\n"
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert done.stdout == b"ready\n"


def test_the_same_process_is_kept_out_as_well(tmp_path: Path) -> None:
    with only_user(tmp_path / "new", what="checkpoint"):
        refuses(tmp_path / "new", "in use")
    with only_user(tmp_path / "new", what="checkpoint"):
        pass
    assert list((tmp_path / "new").iterdir()) == []


def test_what_was_left_is_removed_by_the_only_user(tmp_path: Path) -> None:
    beside(tmp_path / "file").touch()
    beside(tmp_path / "folder").mkdir()
    (tmp_path / "kept").touch()
    with only_user(tmp_path, what="run folder"):
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        refuses(place, r"run folder .*file.* cannot be made: .*")
