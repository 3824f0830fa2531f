from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import isoscope as iso
from isoscope.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    monkeypatch.chdir(tmp_path)
    A = rng.normal(size=(60, 5))
    B = A + 0.2 * rng.normal(size=(60, 5)) + 1
    np.save("queries.npy", A)
    np.save("documents.npy", B)
    iso.save(iso.Space(np.vstack([A, B]), labels=["de"] * 60 + ["en"] * 60), "all.parquet")
    Path("items.txt").write_text("".join(f"item {i}\n" for i in range(60)) * 2)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sides", *arguments])


def test_two_files(folder: Path) -> None:
    result = run("queries.npy", "documents.npy", "-o", "found.json", "--figure", "s.png")
    assert result.exit_code == 0, result.output
    assert "queries (60 rows), documents (60 rows)" in result.stdout
    assert "the sides lie apart" in result.stdout
    assert json.loads(Path("found.json").read_text())["sides"] == {"queries": 60, "documents": 60}
    assert Path("s.png").exists()


def test_a_column(folder: Path) -> None:
    result = run("all.parquet", "--by", "label", "--relevance", "items.txt", "--sample", "20", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sides"] == {"de": 60, "en": 60}
    assert {row["metric"] for row in found["readings"]} > {"gap", "hit_rate@10", "centring", "asymmetry"}


def test_a_gate(folder: Path) -> None:
    assert run("queries.npy", "documents.npy", "--gate", "hit_rate>=0.1").exit_code == 0
    assert run("queries.npy", "documents.npy", "--gate", "gap<=0.01").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("queries.npy",),
        ("queries.npy", "documents.npy", "--by", "label"),
        ("queries.npy", "documents.npy", "--gate", "isoscore>=0"),
        ("queries.npy", "documents.npy", "--prefix", "a", "--prefix", "b"),
        ("all.parquet", "--by", "nothing"),
    ],
)
def test_what_cannot_be(folder: Path, command, arguments: tuple[str, ...]) -> None:
    result = command("sides", *arguments)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
