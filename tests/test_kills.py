"""The harness of `python -m tests.kills` on a few kills of each command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_commands_that_are_killed_come_back_to_the_same_files() -> None:
    pytest.importorskip("transformers", reason="needs the extra `text`")
    pytest.importorskip("matplotlib", reason="needs the extra `plot`")
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills", "--kills", "12"],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    kills, hindered = (
        [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
        for table in done.stdout.split("On full disks")
    )
    assert len(kills) == len(hindered) == 6
    assert sum(int(row[1]) for row in kills) == 12
    assert sum(int(row[6]) for row in kills) < 12  # not all came too late
    assert all(int(row[1]) >= 3 for row in hindered)  # commands that noticed
