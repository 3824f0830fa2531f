from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = (rng.normal(size=(300, 8)) + 2 * np.eye(8)[np.arange(300) % 3]).astype(np.float32)
    np.save("v.npy", X)
    np.save("q.npy", X[:20] + 0.01)
    iso.save(iso.Space(X, labels=[f"l{i % 3}" for i in range(300)]), "t.parquet")
    Path("pairs.csv").write_text("query,document\n" + "\n".join(f"{i},{i}" for i in range(20)) + "\n")
    return tmp_path


def test_json_is_what_the_function_says(folder: Path, command) -> None:
    done = command("compress", "v.npy", "--methods", "int8,binary", "-k", "5", "--json")
    assert done.code == 0, done.err
    wanted = iso.compress("v.npy", methods=["int8", "binary"], k=5).to_dict()
    found = json.loads(done.out)
    for content in (found, wanted):
        content.pop("seconds")
    assert found == wanted


def test_own_queries(folder: Path, command) -> None:
    own = ("--queries", "q.npy", "--relevance", "pairs.csv")
    found = json.loads(command("compress", "v.npy", *own, "--methods", "int8", "--json").out)
    assert found["n_queries"] == 20
    assert found["score_name"] == "nDCG@10"
    assert found["exact_score"] > 0.9


@pytest.mark.slow
def test_files_are_written(folder: Path, command) -> None:
    pytest.importorskip("matplotlib")
    words = ("compress", "t.parquet", "--labels", "label", "--methods", "int8", "--methods", "int4")
    done = command(*words, "--target", "0.5", "--save", "m.safetensors", "--figure", "f.png", "-o", "r.json")
    assert done.code == 0, done.err
    assert "wrote m.safetensors" in done.out
    assert "wrote f.png" in done.out
    assert iso.load_correction("m.safetensors").encode(np.load("v.npy")).shape == (300, 4)
    assert json.loads(Path("r.json").read_text())["score_name"] is not None
    done = command(*words, "--target", "1", "--oversample", "1", "--save", "n.safetensors")
    assert "nothing saved: No method holds 1" in done.out
