from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from isoscope.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    monkeypatch.chdir(tmp_path)
    A, B = rng.normal(size=(2, 400, 5))
    np.save("a.npy", A)
    np.save("same.npy", B)
    B[:100] += 3
    np.save("b.npy", B)
    Path("texts.txt").write_text("".join(f"the item {i}\n" for i in range(400)))
    lines = [f"2024-05-{1 + i // 20:02},item {i},{','.join(map(str, B[-i]))}" for i in range(400)]
    Path("days.csv").write_text("day,text,d0,d1,d2,d3,d4\n" + "\n".join(lines) + "\n")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["drift", *arguments, "--permutations", "19"])


def test_an_alarm_is_exit_code_1(folder: Path) -> None:
    result = run("a.npy", "b.npy", "--texts", "texts.txt", "--show", "2", "-o", "found.json")
    assert result.exit_code == 1, result.output
    assert "drift above what is tolerated" in result.stdout
    assert "the item" in result.stdout
    found = json.loads(Path("found.json").read_text())
    assert found["alarm"]
    assert len(found["strange_rows"]) == 4
    assert run("a.npy", "same.npy").exit_code == 0
    assert run("a.npy", "b.npy", "--tolerate", "0.5").exit_code == 0


def test_gates_are_further_conditions(folder: Path) -> None:
    result = run("a.npy", "same.npy", "--gate", "separability<=0.4")
    assert result.exit_code == 1
    assert "gate FAIL: separability<=0.4" in result.stdout


def test_days_are_kept_and_compared_later(folder: Path) -> None:
    assert run("a.npy", "--keep", "days").exit_code == 0
    result = run("days", "b.npy", "--keep", "days", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["a"]["n"] == 400
    assert sorted(path.name for path in Path("days").iterdir()) == ["a.safetensors", "b.safetensors"]
    again = run("days/a.safetensors", "days/b.safetensors", "--json")
    assert json.loads(again.stdout)["drift"] == json.loads(result.stdout)["drift"]


def test_windows_of_time(folder: Path) -> None:
    result = run("days.csv", "--date", "day", "--every", "week", "--texts", "text", "--figure", "d.png")
    assert result.exit_code == 1, result.output
    assert "2024-05-20" in result.stdout
    assert "above" in result.stdout
    assert Path("d.png").exists()
    names = ["2024-04-29", "2024-05-06", "2024-05-13", "2024-05-20"]
    result = run("days.csv", "--date", "day", "--against", "previous", "--keep", "weeks", "--json")
    assert [one["a"]["name"] for one in json.loads(result.stdout)["windows"]] == names[:-1]
    assert sorted(path.stem for path in Path("weeks").iterdir()) == names


@pytest.mark.parametrize(
    "arguments",
    [
        ("a.npy",),
        ("a.npy", "b.npy", "--date", "day"),
        ("a.npy", "b.npy", "--gate", "isoscore<=0.4"),
        ("days.csv", "--date", "day", "--gate", "drift<=1"),
        ("days.csv", "--date", "nothing"),
        ("days.csv", "--date", "day", "--every", "hour"),
        ("a.npy", "b.npy", "--every", "month"),
        ("a.npy", "b.npy", "--against", "previous"),
        ("a.npy", "--keep", "kept", "--figure", "d.png"),
        ("a.npy", "b.npy", "--keep", "texts.txt"),
        ("a.npy", "b.npy", "--sample", "0"),
        ("a.npy", "days.csv", "--tolerate", "2"),
    ],
)
def test_what_cannot_be(folder: Path, command, arguments: tuple[str, ...]) -> None:
    result = command("drift", *arguments)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
