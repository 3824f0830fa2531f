from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli import app

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(90, 5)) + np.repeat(np.eye(5)[:3] * 4, 30, axis=0)
    np.save("vectors.npy", X)
    Path("labels.txt").write_text("\n".join("abc"[i // 30] for i in range(90)) + "\n")
    Path("texts.txt").write_text("\n".join(f"text {i}" for i in range(90)) + "\n")
    space = iso.Space(X, labels=[i // 30 for i in range(90)], texts=[f"own {i}" for i in range(90)])
    iso.save(space, "t.parquet")
    np.savez("two.npz", first=X, second=X[:, :2])
    return tmp_path


def run(*arguments: str):
    return runner.invoke(app, ["report", *arguments])


def said(*arguments: str) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_writes_the_page_and_says_so(folder: Path) -> None:
    result = run("vectors.npy", "-l", "labels.txt", "-o", "page.html")
    assert result.exit_code == 0, result.output
    assert "of 5 dimensions carry it (IsoScore" in result.output
    assert "wrote page.html (" in result.output
    made = iso.report(iso.open_vectors("vectors.npy", labels="labels.txt"))
    assert Path("page.html").read_text(encoding="utf-8") == made.html


def test_json_has_the_measurement(folder: Path) -> None:
    found = said("vectors.npy", "-l", "labels.txt")
    assert found["page"] == "report.html"
    assert found["n_bytes"] == Path("report.html").stat().st_size
    measured = iso.measure(np.load("vectors.npy"), labels=["abc"[i // 30] for i in range(90)])
    assert {name: entry["value"] for name, entry in found["measurement"]["metrics"].items()} == dict(measured)


def test_json_has_the_thresholds_of_the_page(folder: Path) -> None:
    found = said("vectors.npy", "-l", "labels.txt")["thresholds"]
    made = iso.report(iso.open_vectors("vectors.npy", labels="labels.txt"))
    assert found == made.thresholds
    assert found["one_percent"] == made.contents["cosines"]["one_percent"]
    assert {"threshold", "same_above", "other_above", "auc", "precision"} <= set(found["best"])
    assert found["is_exact"]
    assert found["n_pairs"]["random"] == 4005
    assert found["one_permille"] is None  # 4,005 pairs are too few to know it
    assert said("vectors.npy")["thresholds"]["best"] is None


@pytest.mark.slow
def test_every_flag_changes_something(folder: Path) -> None:
    assert "silhouette" not in said("vectors.npy")["measurement"]["metrics"]
    assert said("two.npz", "--key", "second")["measurement"]["d"] == 2
    assert said("t.parquet", "--vectors", "vector", "-l", "label")["measurement"]["n_labels"] == 3
    said("vectors.npy", "--texts", "texts.txt", "--title", "My space", "--seed", "3")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<title>My space</title>" in page
    assert "text 17" in page
    assert '"seed":3' in page
    found = said("vectors.npy", "--figures", "figures")
    assert "figures/spectrum.pdf" in found["figures"]
    columns = {"seed": np.zeros(2, int), "step": np.arange(2), "loss": np.array([2.0, 1.0])}
    iso.Trajectory(columns, {}, 1).save("trajectory.parquet")
    said("vectors.npy", "--run", ".")
    assert '"trajectory":{' in Path("report.html").read_text(encoding="utf-8")


def test_texts_from_a_column_of_the_file_or_of_another(folder: Path) -> None:
    Path("notes.csv").write_text("who,note\n" + "".join(f"w{i},note {i}\n" for i in range(90)))
    said("vectors.npy", "--texts", "notes.csv:note")
    assert "note 17" in Path("report.html").read_text(encoding="utf-8")
    said("t.parquet", "--texts", "text")
    assert "own 17" in Path("report.html").read_text(encoding="utf-8")


def test_texts_are_encoded(folder: Path, tiny_model: Path) -> None:
    Path("some.txt").write_text("the cat sat\nthe dog ran\na cat ran to the dog\nthe dog sat\n")
    said("some.txt", "--model", str(tiny_model))
    assert "a cat ran to the dog" in Path("report.html").read_text(encoding="utf-8")


def test_bad_input(folder: Path, fail) -> None:
    assert "Create it first" in fail("report", "vectors.npy", "-o", "nowhere/page.html")
    assert "a name that ends in .html" in fail("report", "vectors.npy", "-o", "page.pdf")
    assert "absent.npy" in fail("report", "absent.npy")
    assert "is not a training run" in fail("report", "vectors.npy", "--run", "nowhere")
    assert "--texts goes with vectors" in fail("report", "texts.txt", "--texts", "x", "--model", "m")
    assert "texts has 89 entries for 90 vectors" in fail("report", "vectors.npy", "--texts", few(folder))
    assert not Path("report.html").exists()


def few(folder: Path) -> str:
    (folder / "few.txt").write_text("\n".join(f"text {i}" for i in range(89)) + "\n")
    return "few.txt"


def test_queries_have_thresholds_of_their_own(folder: Path, rng) -> None:
    X = np.load("vectors.npy")
    np.save("queries.npy", X[:60] + 0.1 * rng.normal(size=(60, 5)))
    Path("pairs.csv").write_text("query,document\n" + "".join(f"{i},{i}\n" for i in range(60)))
    alone = said("vectors.npy")
    asked = said("vectors.npy", "--queries", "queries.npy")
    known = said("vectors.npy", "--queries", "queries.npy", "--relevance", "pairs.csv")
    assert alone["thresholds"]["queries"] is None
    assert asked["thresholds"]["queries"] != known["thresholds"]["queries"]
    assert "find a relevant document" in " ".join(known["headline"])
    assert "--queries" in str(run("vectors.npy", "--relevance", "pairs.csv").exception)
