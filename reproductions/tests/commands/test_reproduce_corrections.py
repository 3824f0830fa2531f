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
    texts = [" ".join(rng.choice(WORDS, 4)) for _ in range(200)]
    pairs = [
        {"sentence1": first, "sentence2": second, "score": float(rng.uniform(0, 5))}
        for first, second in zip(texts[:100], texts[100:], strict=True)
    ]
    labelled = [{"sentence": text, "label": int(rng.integers(0, 2))} for text in texts[:80]]
    files = {"sts/sts12": pairs[:50], "sts/sts13": pairs[50:], "glue/cola_train": labelled}
    for name, records in files.items():
        path = Path("data") / f"{name}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in records).encode()))
    return tmp_path


BASE = ("--model", "table.txt", "--data", "data")
KEPT = Path("out/runs/corrections-table.txt.json")
PAGE = Path("out/should-i-whiten.md")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", "corrections", *arguments])


@pytest.mark.slow
def test_text_runs_and_pages(folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `figures`")
    result = run(*BASE, "-d", "sts12", "--repeats", "1", "-o", "out", "--page", "page.md")
    assert result.exit_code == 0, result.output
    assert result.output.startswith(("Whiten. ", "No. ", "It depends on the encoder. "))
    assert "| STS12 | similarity | 50 |" in Path("page.md").read_text()
    assert not PAGE.exists()
    more = run(*BASE, "-d", "sts13", "--repeats", "2", "-o", "out", "--json")
    assert more.exit_code == 0, more.output
    assert json.loads(more.stdout)["runs"]["table.txt"]["repeats"] == 2
    assert [one["dataset"] for one in json.loads(KEPT.read_text())["results"]] == ["sts12", "sts13"]
    PAGE.unlink()
    again = run("--report-only", "-o", "out")
    assert again.exit_code == 0
    page = PAGE.read_text()
    for name, repeats in (("STS12", 1), ("STS13", 2)):  # each with the settings it was run with
        assert f"| {name} | similarity | 50 |" in page
        assert f"{name}: at most 1,500 pairs of a set, 5 folds × {repeats} repeats, seed 0" in page


@pytest.mark.slow
def test_every_flag_changes_something(folder: Path) -> None:
    def task(*arguments: str) -> dict:
        KEPT.unlink(missing_ok=True)
        result = run(*BASE, "-o", "out", *arguments)
        assert result.exit_code == 0, result.output
        return next(iter(json.loads(KEPT.read_text())["results"][0]["tasks"].values()))

    def scores(found: dict) -> list[float]:
        return found["corrections"]["whiten"]["scores"]

    usual = task("-d", "sts12")
    assert (usual["n_items"], len(scores(usual))) == (50, 10)
    assert len(scores(task("-d", "sts12", "--folds", "4"))) == 8
    assert len(scores(task("-d", "sts12", "--repeats", "1"))) == 5
    assert task("-d", "sts12", "--max-pairs", "30")["n_items"] == 30
    assert task("-d", "cola", "--max-rows", "60", "--repeats", "1")["n_items"] == 60
    assert scores(task("-d", "sts12", "--seed", "5")) != scores(usual)


def test_bad_input(folder: Path) -> None:
    for arguments, said in (
        ((*BASE, "-d", "sts99"), "--dataset must be some of "),
        ((*BASE, "-d", "sts12", "--seed", "-1"), "--seed must be "),
    ):
        result = run(*arguments)
        assert isinstance(result.exception, InputError)
        assert said in str(result.exception)
