from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def test_export_writes_the_table_and_prints_the_command(command, tmp_path: Path, rng, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", rng.normal(size=(40, 5)))
    Path("labels.txt").write_text("\n".join("ab"[i % 2] for i in range(40)))
    Path("texts.txt").write_text("\n".join(f"text {i}" for i in range(40)))
    options = ("--labels", "labels.txt", "--texts", "texts.txt", "-k", "3", "--metric", "euclidean")
    printed = command("export", "v.npy", "--atlas", "a.parquet", *options)
    assert printed.code == 0, printed.err
    assert "embedding-atlas a.parquet --text text --x projection_x" in printed.out
    table = pq.read_table("a.parquet")
    assert table["label"].to_pylist() == ["a", "b"] * 20
    assert table["text"][7].as_py() == "text 7"
    assert len(table["neighbors"][0].as_py()["ids"]) == 3


def test_nothing_is_written_over_what_is_read(command, tmp_path: Path, rng, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", rng.normal(size=(10, 3)))
    assert command("export", "v.npy").code == 2
    assert "--atlas" in command("export", "v.npy").err
    assert command("export", "v.npy", "--atlas", "v.npy").code == 2
    assert np.load("v.npy").shape == (10, 3)


def test_zero_vectors_are_noted(command, tmp_path: Path, rng, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(10, 3))
    X[4] = 0
    np.save("v.npy", X)
    printed = command("export", "v.npy", "--atlas", "a.parquet")
    assert printed.code == 0, printed.err
    assert "note: 1 row has no neighbours: a zero vector" in printed.out
