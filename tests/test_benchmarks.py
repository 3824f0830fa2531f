"""The benchmarks of a GPU run where there is none, and pages say when a figure was measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import gpu, stamps  # noqa: E402

QUICK = ["hard", "neighbors", "audit", "file"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param(QUICK, marks=pytest.mark.slow),
        pytest.param(list(gpu.SECTIONS), marks=pytest.mark.nightly),
    ],
    ids=["quick", "all"],
)
def test_sections_run_with_tiny_sizes_on_the_cpu(sections: list[str]) -> None:
    done = run("--small", "--seconds", "1000000", *sections)
    assert done.returncode == 0, done.stderr
    assert all(f"… {name}\n" in done.stdout for name in sections)


@pytest.mark.slow
def test_what_is_done_in_a_folder_is_not_in_the_plan(tmp_path: Path) -> None:
    (tmp_path / "gpu.json").write_text(
        '{"hard": [], "measured": {"hard": {"at": "2026-11-19T00:00:00+00:00"}}}'
    )
    lines = run("--plan", "--out", str(tmp_path)).stdout.splitlines()
    assert next(line for line in lines if line.startswith("hard")).endswith("done")
    assert next(line for line in lines if line.startswith("calls")).endswith(" s")
    assert sum(expected for expected, _ in gpu.SECTIONS.values()) <= gpu.SECONDS


def test_a_section_says_when_it_was_measured_and_before_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "CHANGES", {"calls": (("2026-11-10T00:00:00+00:00", "steps were recorded"),)})
    old, new = ({"at": f"2026-11-{day}T00:00:00+00:00", "commit": "abc"} for day in ("09", "11"))
    assert stamps.lines("calls", old)[1] == "Measured on 2026-11-09 (abc), before steps were recorded."
    assert stamps.lines("calls", new)[1] == "Measured on 2026-11-11 (abc)."
    assert "before figures carried a date" in stamps.lines("calls", None)[1]
