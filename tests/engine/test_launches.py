"""What a measurement launches on a CUDA device and how often it waits, counted without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LAUNCHES, MOST_WAITS = 80, 35  # from the second call with a shape on, when steps are recordings
MOST_PLAIN = 360
ROUNDING = 1e-6  # of products in float32, whose order differs
FAR = 0.01  # of the error of a score that hangs on one far row


@pytest.fixture(scope="module")
def pretended() -> dict[str, tuple[float, object]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-W", "ignore", "-m", "tests.pretend_cuda", "--check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, tuple[float, object]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_default_measurement_is_few_launches(pretended: dict[str, tuple[float, int]]) -> None:
    launches, waits = pretended["recorded"]
    assert launches <= MOST_LAUNCHES
    assert waits <= MOST_WAITS
    launches, waits = pretended["first call"]
    assert launches <= MOST_PLAIN
    assert waits <= MOST_WAITS


@pytest.mark.slow
def test_the_ways_of_a_device_give_the_numbers_of_the_cpu(pretended: dict[str, tuple[float, str]]) -> None:
    for name, (difference, whose) in pretended.items():
        if name not in ("first call", "recorded"):
            assert difference < (FAR if name == "one far row" else ROUNDING), (name, whose, difference)
