"""A quick share of the fuzzing suite, and that its judges see what they are there for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.case import Case
from tests.fuzz.judges import FAULTS, Verdict, judge_ending, judge_folder, judge_numbers, judge_same
from tests.fuzz.processes import Ended
from tests.fuzz.suite import Result
from tests.fuzz.tally import Tally

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("n_cases", [40, pytest.param(1000, marks=pytest.mark.nightly)])
def test_quick_cases(n_cases: int, tmp_path: Path) -> None:
    options = f"--quick --cases {n_cases} --seed 1 --json {tmp_path / 'found.json'}".split()
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *options], cwd=ROOT, capture_output=True, text=True
    )
    assert (tmp_path / "found.json").exists(), done.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["n_cases"] == n_cases
    assert found["faults"] == []
    answered = sum(counts.get("right", 0) for counts in found["counts"].values())
    assert answered > n_cases / 10  # not all can be refused


def ended(code: int = 0, out: str = "", err: str = "", over: str = "") -> Ended:
    return Ended(code, out.encode(), err.encode(), 0.1, 100.0, over)


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        (ended(1, err="Traceback (most recent call last):\n  …\nKeyError: 'a'\n"), "traceback"),
        (ended(-11), "traceback"),
        (ended(-9, over="time"), "hang"),
        (ended(-9, over="memory"), "memory"),
        (ended(out="a\x1b[31mb"), "escape"),
        (ended(2, err="isoscope: error: \u202eabc\n"), "escape"),
        (ended(2, err="isoscope: error: a\nb\n"), "not one line"),
        (ended(2, err="Usage: isoscope\n"), "not one line"),
        (ended(1, err="isoscope: error: a\n"), "exit code"),
        (ended(2, err="isoscope: error: no such file\n"), None),
        (ended(out="{}\n"), None),
    ],
)
def test_endings(what: Ended, fault: str | None) -> None:
    verdict = judge_ending(what, may_fail=False)
    assert (verdict and verdict.kind) == fault
    assert fault is None or fault in FAULTS


def test_what_is_left_behind(tmp_path: Path) -> None:
    assert judge_folder({"a.npy"}, {"a.npy", "out.npy"}, tmp_path) is None
    assert judge_folder({"a.npy"}, {"a.npy", ".out.npy.1f.tmp"}, tmp_path).kind == "left behind"
    (tmp_path / "x").touch()
    assert judge_folder(set(), set(), tmp_path).kind == "left behind"


def test_numbers_out_of_range_and_changed(tmp_path: Path) -> None:
    ranges = {"isoscore": (0.0, 1.0)}
    assert judge_numbers({"metrics": {"isoscore": {"value": 0.5}}}, ranges) is None
    assert judge_numbers({"metrics": {"isoscore": {"value": 1.5}}}, ranges).kind == "wrong answer"
    nowhere = tmp_path / "out.npy"
    assert (
        judge_same({"a": [1.0], "seconds": 1}, {"a": [1.0], "seconds": 2}, nowhere, nowhere).kind == "right"
    )
    assert judge_same({"a": [1.0]}, {"a": [1.0 + 1e-8]}, nowhere, nowhere).kind == "wrong answer"


_LIMITS = """
import json, sys, time
from pathlib import Path
from tests.fuzz import processes
processes.SECONDS, processes.MEGABYTES = 0.3, 300.0
folder = Path(sys.argv[1])
def busy():
    while True: pass
def large():
    kept = bytearray(400 * 2**20)
    time.sleep(5)
def fails():
    raise KeyError("a")
def ends():
    print("out"); sys.exit(2)
for work in (busy, large, fails, ends):
    ended = processes.forked(work, folder)
    print(json.dumps([ended.code, ended.over, ended.out.decode(), "Traceback" in ended.err.decode()]))
"""


@pytest.mark.slow
def test_limits_and_endings_of_a_child(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITS, str(tmp_path)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [
        [-9, "time", "", False],
        [-9, "memory", "", False],
        [1, "", "", True],
        [2, "", "out\n", False],
    ]


def test_the_table_has_its_place_on_the_page(tmp_path: Path) -> None:
    tally = Tally(seed=3)
    for number, kind in enumerate(("right", "refused", "hang")):
        tally.add(Result(number, Case(".npy", ["measure", "a.npy"]), Verdict(kind), 1.0 + number, 100.0))
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- table -->\nold\n<!-- end of table -->\nAfter.\n")
    tally.write_page(page)
    tally.write_json(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["counts"] == {
        ".npy": {"right": 1, "refused": 1, "hang": 1}
    }
    tally.write_page(page)  # once more changes nothing
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("Before.", "After.")
    assert "old" not in lines
    assert "3 cases of seed 3: 1 faults. The slowest took 3.0 s of CPU time, the largest 100 MB." in lines[3]
    assert "| .npy | 3 | 1 | 0 | 1 | 0 | 1 | 1 |" in lines
    assert "<!-- table -->" in (ROOT / "docs" / "security.md").read_text()
