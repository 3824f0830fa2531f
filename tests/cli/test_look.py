"""`isoscope FILE` and `isoscope look FILE`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12)).astype(np.float32) + np.repeat(np.eye(12)[:4] * 3, 100, axis=0) + 2
    np.save("my vectors.npy", X)
    np.savez("two.npz", first=X, second=X[:, :6])
    Path("labels.txt").write_text("\n".join("abcd"[i // 100] for i in range(400)) + "\n")
    return tmp_path


def test_a_file_in_place_of_a_command_is_looked_at(folder: Path, command) -> None:
    found = command("my vectors.npy")
    assert (found.code, found.err) == (0, "")
    assert "400 vectors × 12 dimensions" in found.out
    assert json.loads(command("my vectors.npy", "--json").out).keys() == (
        json.loads(command("look", "my vectors.npy", "--json").out).keys()
    )


def test_json_has_the_fields_of_python(folder: Path, command) -> None:
    import isoscope as iso

    found = json.loads(command("my vectors.npy", "--labels", "labels.txt", "--json").out)
    again = iso.look("my vectors.npy", labels="labels.txt").to_dict()
    assert found | {"seconds": 0} == again | {"seconds": 0}


def test_every_command_it_suggests_works(folder: Path, command) -> None:
    suggested = set()
    for words in (
        ["my vectors.npy", "--labels", "labels.txt"],
        ["two.npz", "--key", "second"],
    ):
        for finding in json.loads(command(*words, "--json").out)["findings"]:
            suggested.add(finding["next"])
    assert {line.split()[1] for line in suggested} >= {"correct", "measure", "advise"}
    for line in sorted(suggested):
        first, *rest = shlex.split(line)
        assert first == "isoscope"
        small = ["--folds", "2", "--repeats", "1", "-c", "center"] if rest[0] == "advise" else []
        done = command(*rest, *small)
        assert done.code == 0, (line, done.err)


def test_columns_that_may_be_labels_are_named(folder: Path, command) -> None:
    import pandas as pd

    X = np.load("my vectors.npy")
    table = pd.DataFrame({"id": range(400), "topic": list("abcd") * 100, "vector": list(X), "score": 0.5})
    table.assign(ids=[[1, 2]] * 400, text=[f"text {i}" for i in range(400)]).to_parquet("t.parquet")
    line = "columns that may be labels: topic; to use one: isoscope look t.parquet --labels topic\n"
    assert command("t.parquet").out.endswith(line)
    assert "may be labels" not in command("t.parquet", "--labels", "topic").out
    assert "may be labels" not in command("t.parquet", "--json").err


def test_a_mistyped_command_is_not_a_file(folder: Path, command) -> None:
    found = command("mesure", "my vectors.npy")
    assert found.code == 2
    assert "id you mean measure?" in found.err


def test_a_missing_file_is_named(folder: Path, command) -> None:
    found = command("my_vectors.npy")
    assert found.code == 2
    assert "my_vectors.npy" in found.err


def test_options_change_something(folder: Path, command) -> None:
    def said(*words: str) -> dict:
        done = command("look", "my vectors.npy", *words, "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    assert said("--max-rows", "150")["n_sampled"] == 150
    assert said("--max-rows", "150", "--seed", "1")["findings"] != said("--max-rows", "150")["findings"]
    assert command("look", "my vectors.npy", "--memory", "1kB").code == 2
    assert said("-l", "labels.txt")["n_labels"] == 4


def test_piped_output_is_plain(folder: Path, capsys, monkeypatch) -> None:
    import sys

    from isoscope.cli import main

    monkeypatch.setattr(sys, "argv", ["isoscope", "my vectors.npy"])
    main()
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["one row", "all equal", "NaN", "one dimension"])
def test_hostile_files_end_in_one_line(folder: Path, command, name: str) -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    made = {"one row": X[:1], "all equal": X[[0] * 50], "one dimension": X[:, :1]}.get(name)
    np.save("x.npy", np.where(X > 2, np.nan, X) if made is None else made)
    done = command("x.npy")
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 1
