"""The harness of `python -m tests.kills` on a few kills of each command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


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
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:] if line.startswith("|")]
    assert len(rows) == 6
    n_too_late = sum(int(row[6]) for row in rows)
    assert sum(int(row[1]) for row in rows) == 12
    assert n_too_late < 12
