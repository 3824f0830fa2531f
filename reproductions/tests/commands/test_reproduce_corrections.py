from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from isoscope.cli import app
from isoscope.errors import InputError

WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay", "kit", "lark"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{word} " + " ".join(f"{x:.4f}" for x in rng.normal(size=5)) for word in WORDS]
    Path("table.txt").write_text("\n".join(rows) + "\n")
    for file in ("sts12", "sts13"):
        path = Path("data") / "sts" / f"{file}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        records = [
            {
                "sentence1": " ".join(rng.choice(WORDS, 4)),
                "sentence2": " ".join(rng.choice(WORDS, 4)),
                "score": float(rng.uniform(0, 5)),
            }
            for _ in range(50)
        ]
        path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in records).encode()))
    return tmp_path


BASE = ("--model", "table.txt", "--data", "data", "--repeats", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", "corrections", *arguments])


def test_text_runs_and_pages(folder: Path) -> None:
    result = run(*BASE, "-d", "sts12", "-o", "out", "--page", "page.md")
    assert result.exit_code == 0, result.output
    assert "table.txt" in result.output
    assert "Before you whiten" in result.output
    assert Path("out/runs/corrections-table.txt.json").exists()
    assert "Should I whiten?" in Path("page.md").read_text()
    more = run(*BASE, "-d", "sts13", "-o", "out", "--json")
    assert more.exit_code == 0, more.output
    assert json.loads(more.stdout)["runs"]["table.txt"]["repeats"] == 1
    kept = json.loads(Path("out/runs/corrections-table.txt.json").read_text())
    assert [one["dataset"] for one in kept["results"]] == ["sts12", "sts13"]
    again = run("--report-only", "-o", "out")
    assert again.exit_code == 0
    assert "STS13" in Path("out/should-i-whiten.md").read_text()


def test_every_flag_changes_something(folder: Path) -> None:
    def about(*arguments: str) -> dict:
        result = run(*BASE, "-d", "sts12", *arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["runs"]["table.txt"]

    assert about("--folds", "4")["folds"] == 4
    assert about("--max-pairs", "30")["max_pairs"] == 30
    assert about("--max-rows", "60")["max_rows"] == 60
    assert about("--seed", "5")["seed"] == 5


def test_bad_input(folder: Path) -> None:
    assert isinstance(run("--setup", "none").exception, InputError)
    assert isinstance(run(*BASE, "-d", "sts99").exception, InputError)
    assert isinstance(run("--report-only").exception, InputError)
    result = run(*BASE, "-d", "sts14", "--keep-going")
    assert isinstance(result.exception, InputError)
    assert "no setup could be run" in str(result.exception)
