"""What runs elsewhere: the workflow on the page about CI, and the file for conda."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent


def workflow() -> dict[str, Any]:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), flags=re.DOTALL)
    return yaml.safe_load(block)


def commands() -> list[list[str]]:
    """The words of every command of isoscope in the workflow, in order."""
    steps = workflow()["jobs"]["gate"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("isoscope ")]


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    y = np.repeat([0, 1, 2], 40)
    old = rng.normal(size=(120, 8)) + 3 * np.eye(8)[y]
    np.save(tmp_path / "old.npy", old)
    np.save(tmp_path / "new.npy", old + 0.05 * rng.normal(size=old.shape))
    (tmp_path / "labels.txt").write_text("\n".join("abc"[k] for k in y))
    return tmp_path


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_commands_of_the_workflow_run(folder: Path) -> None:
    assert [words[1] for words in commands()] == ["compare", "report"]
    for words in commands():
        done = run(words, folder)
        assert done.returncode == 0, done.stderr
    uploaded = workflow()["jobs"]["gate"]["steps"][-1]["with"]["path"].split()
    assert all((folder / name).stat().st_size > 0 for name in uploaded)


@pytest.mark.slow
def test_the_gate_of_the_workflow_stops_a_worse_model(folder: Path, rng: np.random.Generator) -> None:
    np.save(folder / "new.npy", rng.normal(size=(120, 8)))
    done = run(commands()[0], folder)
    assert done.returncode == 1
    assert "overlap" in done.stdout


def named(requirement: str) -> tuple[str, str]:
    name, bound = re.fullmatch(r"([\w.-]+?)((?:[=><!].*)?)", requirement).groups()
    return {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}.get(name, name), bound


def test_the_environment_has_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (of_pip,) = (one["pip"] for one in listed if isinstance(one, dict))
    have = dict(named(one) for one in listed if isinstance(one, str))
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(one for name in ("text", "figures", "frames") for one in extras[name]),
    ]
    assert have.pop("pip") == ""
    assert have.pop("python") == f"{project['requires-python']},<3.15"
    assert have == dict(map(named, wanted))
    assert of_pip == ["isoscope", *extras["models"]]


def test_the_classifiers_name_the_versions_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [one.rpartition(" ")[2] for one in project["classifiers"] if "Python :: 3." in one]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
