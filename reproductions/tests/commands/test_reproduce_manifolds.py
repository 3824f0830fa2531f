"""`isoscope reproduce manifolds`: flags that change something, runs kept, pages made again, bad input."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from isoscope.cli import app


@pytest.fixture
def data(tmp_path: Path) -> Path:
    words = ["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat"]
    rng = np.random.default_rng(0)
    for split, n_lines in (("test", 30), ("valid", 20)):
        lines = [" ".join(rng.choice(words, 12)) for _ in range(n_lines)]
        folder = tmp_path / "data" / "wikitext2"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"wikitext2_{split}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path / "data"


def run(*arguments: object) -> str:
    found = CliRunner().invoke(app, ["reproduce", "manifolds", *map(str, arguments)])
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.slow
def test_json_of_a_model_of_ones_own(tiny_bert: Path, data: Path) -> None:
    facts = json.loads(run("--model", tiny_bert, "--data", data, "--json"))
    about = facts["runs"][tiny_bert.name]
    assert about["n_tokens"] == 360
    assert len(facts["layers"][tiny_bert.name]["all"]) == 3
    other = json.loads(
        run(
            "--model",
            tiny_bert,
            "--data",
            data,
            "--split",
            "valid",
            "--max-tokens",
            120,
            "--seed",
            3,
            "--json",
        )
    )["runs"][tiny_bert.name]
    assert (other["split"], other["n_tokens"], other["seed"]) == ("valid", 110, 3)
    few = json.loads(run("--model", tiny_bert, "--data", data, "--layers", "0,-1", "--json"))
    assert few["runs"][tiny_bert.name]["layers"] == [0, 2]


@pytest.mark.slow
def test_runs_are_kept_and_pages_made_from_all_of_them(tiny_bert: Path, data: Path, tmp_path: Path) -> None:
    table = tmp_path / "words.txt"
    rows = np.random.default_rng(1).normal(size=(200, 3))
    table.write_text("".join(f"w{i} {' '.join(map(str, row))}\n" for i, row in enumerate(rows)))
    out = tmp_path / "out"
    run("--model", table, "-o", out)
    text = run("--model", tiny_bert, "--data", data, "-o", out)
    assert "LID, 1 − cos" in text
    assert "against" in text.split("by Euclidean distance too.")[1]
    page = (out / "manifolds.md").read_text()
    assert "360 tokens of 10 types" in page
    (out / "manifolds.md").unlink()
    assert "words.txt\n  LID, 1 − cos" in run("--report-only", "-o", out)
    assert (out / "manifolds.md").read_text() == page


def test_bad_input_is_one_line(fail: Callable[..., str], tmp_path: Path, tiny_bert: Path, data: Path) -> None:
    reproduce = ("reproduce", "manifolds")
    assert "has no wikitext2/" in fail(*reproduce, "--setup", "minilm", "--data", str(tmp_path))
    model = ("--model", str(tiny_bert), "--data", str(data))
    assert "--split must be one of test" in fail(*reproduce, *model, "--split", "dev")
    assert "--max-tokens must be at least 24" in fail(*reproduce, *model, "--max-tokens", "5")
    assert "--layers must be numbers from 0 (the" in fail(*reproduce, *model, "--layers", "9")
    assert "--layers must be comma-separated whole numbers" in fail(*reproduce, *model, "--layers", "x")
    assert "--device must be a device such as" in fail(*reproduce, *model, "--device", "mars")
