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
    y = rng.integers(0, 2, 160)
    np.save("v.npy", np.c_[y + 0.3 * rng.normal(size=160), 9 * rng.normal(size=(160, 2))])
    Path("labels.txt").write_text("".join(f"label {label}\n" for label in y))
    lines = [f"{i},{i + 80},{float(y[i] == y[i + 80])}" for i in range(80)]
    Path("pairs.csv").write_text("i,j,score\n" + "\n".join(lines) + "\n")
    Path("far.csv").write_text("i,j,score\n0,1,1\n" + "2,160,3\n" * 30)
    Path("nan.csv").write_text("i,j,score\n0,1,1\n" + "2,3,nan\n" * 30)
    Path("one.txt").write_text("same\n" * 160)
    return tmp_path


FEW = ("-c", "center,whiten", "--repeats", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["advise", *arguments])


def found(*arguments: str) -> dict:
    result = run(*arguments, *FEW, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_table_and_advice(folder: Path) -> None:
    result = run("v.npy", "-l", "labels.txt", "-t", "knn", *FEW)
    assert result.exit_code == 0
    assert "knn: whiten helps" in result.output
    assert "advice: use whiten" in result.output
    assert "metrics of the space after each correction" in result.output


def test_the_command_it_gives_does_what_is_advised(folder: Path) -> None:
    import shlex

    Path("v.npy").rename("my v.npy")
    result = run("my v.npy", "-l", "labels.txt", "-t", "knn", *FEW, "--save", "c.safetensors")
    assert (
        _advised_command(result.output) == "isoscope correct 'my v.npy' --load c.safetensors -o corrected.npy"
    )
    saved = iso.load_correction("c.safetensors").transform(np.load("my v.npy"))
    for output in (result.output, run("my v.npy", "-l", "labels.txt", "-t", "knn", *FEW).output):
        done = CliRunner().invoke(app, shlex.split(_advised_command(output))[1:])
        assert done.exit_code == 0, done.output
        assert np.allclose(np.load("corrected.npy"), saved)
        Path("corrected.npy").unlink()


def _advised_command(output: str) -> str:
    before = "to apply it: "
    return next(line for line in output.splitlines() if line.startswith(before)).removeprefix(before)


def test_json_is_that_of_the_function(folder: Path) -> None:
    labels = Path("labels.txt").read_text().splitlines()
    expected = iso.advise(np.load("v.npy"), labels=labels, corrections=["center", "whiten"], repeats=1)
    assert found("v.npy", "-l", "labels.txt")["tasks"] == expected.to_dict()["tasks"]


def test_every_flag_changes_something(folder: Path) -> None:
    plain = found("v.npy", "-l", "labels.txt", "-t", "knn")
    assert list(plain["tasks"]) == ["knn"]
    assert list(found("v.npy", "--pairs", "pairs.csv")["tasks"]) == ["similarity"]
    assert found("v.npy", "-l", "labels.txt", "-t", "knn", "--folds", "4")["folds"] == 4
    small = found("v.npy", "-l", "labels.txt", "-t", "knn", "--max-rows", "100")
    assert small["tasks"]["knn"]["n_items"] == 100
    few = found("v.npy", "--pairs", "pairs.csv", "--max-pairs", "50")
    assert few["tasks"]["similarity"]["n_items"] == 50
    assert found("v.npy", "-l", "labels.txt", "-t", "knn", "--seed", "3")["tasks"] != plain["tasks"]
    found("v.npy", "-l", "labels.txt", "-t", "knn", "-o", "out.json", "--save", "c.safetensors")
    assert json.loads(Path("out.json").read_text())["tasks"] == plain["tasks"]
    saved = iso.load_correction("c.safetensors")
    assert np.allclose(np.cov(saved.transform(np.load("v.npy")).T), np.eye(3), atol=1e-6)


def test_nothing_to_save_is_said(folder: Path, rng: np.random.Generator) -> None:
    np.save("noise.npy", rng.normal(size=(160, 3)))
    result = run("noise.npy", "-l", "labels.txt", "-t", "knn", *FEW, "--save", "c.safetensors")
    assert result.exit_code == 0
    assert "nothing saved" in result.output
    assert not Path("c.safetensors").exists()


def test_pairs_of_texts(folder: Path, tiny_model: Path, rng: np.random.Generator) -> None:
    words = ["a", "the", "cat", "dog", "sat", "ran", "to"]
    texts = [" ".join(rng.choice(words, 5)) for _ in range(60)]
    records = [{"text1": texts[i], "text2": texts[i + 1], "score": i % 7} for i in range(0, 60, 2)]
    Path("pairs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    page = found("--pairs", "pairs.jsonl", "--model", str(tiny_model))
    assert page["tasks"]["similarity"]["n_items"] == 30
    Path("texts.txt").write_text("\n".join(dict.fromkeys(texts)) + "\n")
    same = found("texts.txt", "--pairs", "pairs.jsonl", "--model", str(tiny_model))
    assert same["tasks"]["similarity"]["baseline"] == page["tasks"]["similarity"]["baseline"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("v.npy",), "Pass --labels to label the rows, or --pairs"),
        ((), "FILE is missing"),
        (("--pairs", "pairs.csv"), "FILE is missing"),
        (("--pairs", "pairs.csv", "--model", "m", "-l", "labels.txt"), "--labels needs FILE"),
        (("v.npy", "-l", "absent.txt"), "absent.txt"),
        (("v.npy", "--pairs", "far.csv"), "from 0 to 159"),
        (("v.npy", "--pairs", "nan.csv"), "the score 'nan'"),
        (("v.npy", "-l", "one.txt"), "labels has only one label ('same')"),
        (("v.npy", "-l", "labels.txt", "--folds", "200"), "200 rows or more, got 0"),
        (("v.npy", "--pairs", "labels.txt"), "expected scored pairs in"),
        (("v.npy", "--pairs", "none.csv"), "none.csv"),
        (("v.npy", "--pairs", "pairs.csv:i,j"), "expected three"),
        (("v.npy", "-l", "labels.txt", "-c", "bleach"), "must be one of"),
    ],
)
def test_bad_input(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, iso.InputError), result.output
    assert said in str(result.exception)
