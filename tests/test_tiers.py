"""The tiers of tests: what `--quick` chooses, and that it reaches every module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytest_plugins = ["pytester"]
CASES = """
import pytest

@pytest.mark.parametrize("n", [1, 2, 3])
def test_once(n): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.nightly
def test_nightly(): ...

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_the_first_that_is_not_nightly(n): ...
"""


@pytest.mark.parametrize(
    ("options", "n_tests"), [(["--quick"], 2), (["-m", "not nightly"], 5), ([], 7)], ids=str
)
def test_each_tier_has_its_tests(pytester: pytest.Pytester, options: list[str], n_tests: int) -> None:
    pytester.makeconftest((ROOT / "conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers =\n    slow: …\n    nightly: …\n")
    pytester.makepyfile(CASES)
    result = pytester.runpytest_inprocess("-p", "no:zarr", "-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=n_tests, deselected=7 - n_tests)


@pytest.mark.nightly
def test_quick_tests_reach_every_module(tmp_path: Path) -> None:
    report = tmp_path / "coverage.json"
    options = ["--quick", "-q", "-p", "no:cacheprovider", "--cov=isoscope", f"--cov-report=json:{report}"]
    environment = os.environ | {"COVERAGE_FILE": str(tmp_path / "coverage")}
    subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    shares = {
        file: counts["summary"]["percent_covered"]
        for file, counts in json.loads(report.read_text())["files"].items()
        if not file.endswith("__main__.py")
    }
    assert len(shares) > 200
    assert {file: share for file, share in shares.items() if share < 30} == {}
