"""Commands and corpora of other packages: found where installed, named where not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from isoscope import plugins
from isoscope.cli import app

Fail = Callable[..., str]


@pytest.fixture
def none_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])


def test_without_the_package_reproduce_says_how_to_get_it(none_installed: None, fail: Fail) -> None:
    for arguments in ((), ("classifiers", "--setup", "pos"), ("--help",)):
        assert "pip install isoscope-papers" in fail("reproduce", *arguments)


def test_without_the_package_help_still_lists_reproduce(none_installed: None) -> None:
    assert "isoscope-papers" in CliRunner().invoke(app, ["--help"]).output


def test_without_the_package_a_named_task_says_how_to_get_it(none_installed: None, fail: Fail) -> None:
    assert "pip install isoscope-papers" in fail("finetune", "model", "--task", "rte")


def test_without_the_package_files_are_still_read(none_installed: None, fail: Fail, tmp_path: Path) -> None:
    message = fail("layers", "model", "--texts", str(tmp_path / "absent.txt"))
    assert "does not exist; expected a file of texts.\n" in message


def test_a_command_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = typer.Typer()

    @mine.command()
    def greet(name: str) -> None:
        typer.echo(f"hello {name}")

    class Found(EntryPoint):
        def load(self) -> Any:
            return mine

    point = Found("greet", "nowhere:mine", "isoscope.commands")
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [point] if group == "isoscope.commands" else []
    )
    assert CliRunner().invoke(app, ["greet", "you"]).output == "hello you\n"


@pytest.mark.slow
def test_a_metric_of_another_package(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import isoscope\n\n@isoscope.metric(family='isotropy')\n"
        'def my_trace(X):\n    """The total variance."""\n    return X.var(0).sum()\n'
    )
    about = tmp_path / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[isoscope.metrics]\nmine = mine\n")
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(50, 3)))
    places = os.pathsep.join([str(tmp_path), *sys.path])

    def measured(name: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "isoscope", "measure", str(tmp_path / "v.npy"), "-m", name, "--json"]
        return subprocess.run(
            words, env={**os.environ, "PYTHONPATH": places}, capture_output=True, text=True, check=False
        )

    done = measured("my_trace")
    assert done.returncode == 0, done.stderr
    assert "my_trace" in done.stdout
    assert measured("my_trice").returncode == 2
