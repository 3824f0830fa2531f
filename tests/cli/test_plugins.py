"""Commands and corpora of other packages: found where installed, named where not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

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
