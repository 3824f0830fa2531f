from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isoscope as iso

from .conftest import Printed

ROWS = [("a cat sat", "p"), ("the dog ran to the cat", "p"), ("dog", "q"), ("the cat", "q")]
TEXTS = [text for text, _ in ROWS]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("texts.txt").write_text("\n".join(TEXTS))
    Path("texts.csv").write_text("id,body,kind\n" + "\n".join(f"7,{text},{kind}" for text, kind in ROWS))


def test_one_vector_for_each_text(command: Callable[..., Printed], tiny_model: Path) -> None:
    done = command("encode", "texts.txt", "--model", tiny_model, "-o", "v.npy")
    assert done.code == 0, done.err
    assert "v.npy" in done.out
    assert "4 vectors" in done.out
    assert np.array_equal(np.load("v.npy"), iso.encode(TEXTS, model=tiny_model).numpy())


def test_parquet_keeps_every_column(command: Callable[..., Printed], tiny_model: Path) -> None:
    done = command(
        "encode", "texts.csv", "--text-column", "body", "--labels", "kind", "--model", tiny_model, "-o",
        "v.parquet", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    table = pq.read_table("v.parquet").to_pydict()
    assert list(zip(table["text"], table["label"], strict=True)) == ROWS
    assert (list(table), table["id"]) == (["vector", "label", "text", "id"], [7] * 4)
    about = json.loads(done.out)
    assert (about["n_rows"], about["n_dims"], about["output"]) == (4, len(table["vector"][0]), "v.parquet")


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_columns_keep_their_types_and_names_that_are_taken_are_changed(
    command: Callable[..., Printed], tiny_model: Path, suffix: str
) -> None:
    columns = {
        "text": TEXTS,
        "year": [1, 2, 3, 4],
        "label": ["a", None, "b", "c"],
        "vector": [[1], [2], [3], [4]],
    }
    if suffix == ".parquet":
        pq.write_table(pa.table(columns), "in.parquet")
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("kinds.txt").write_text("\n".join(kind for _, kind in ROWS))
    done = command("encode", f"in{suffix}", "--labels", "kinds.txt", "--model", tiny_model, "-o", "v.parquet")
    assert done.code == 0, done.err
    table = pq.read_table("v.parquet").to_pydict()
    assert np.array_equal(table.pop("vector"), iso.encode(TEXTS, model=tiny_model).numpy())
    taken = {"text": TEXTS, "year": columns["year"], "label_": columns["label"], "vector_": columns["vector"]}
    assert table == {"label": [kind for _, kind in ROWS], **taken}


@pytest.mark.parametrize(
    "options", [("--pooling", "max"), ("--prefix", "the "), ("--no-normalize",), ("--normalize",)]
)
def test_every_option_changes_the_vectors(
    command: Callable[..., Printed], tiny_model: Path, options: tuple[str, ...]
) -> None:
    for name, own in (("a.npy", ("--pooling", "cls")), ("b.npy", options)):
        done = command("encode", "texts.txt", "--model", tiny_model, "-o", name, *own)
        assert done.code == 0, done.err
    assert not np.array_equal(np.load("a.npy"), np.load("b.npy"))


def test_what_is_passed_on(
    command: Callable[..., Printed], tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of a batch and the device change no vector: they reach the function that uses them."""
    arguments = {}
    monkeypatch.setattr("isoscope.models.open_texts", lambda *_, **options: arguments.update(options))
    words = ("--batch-size", 3, "--device", "cpu", "--download", "--model", tiny_model)
    command("encode", "texts.txt", "-o", "v.npy", *words)
    assert (arguments["batch_size"], arguments["device"], arguments["download"]) == (3, "cpu", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("texts.txt",), "--output"),
        (("texts.txt", "-o", "v.xyz"), "v.xyz"),
        (("texts.csv", "-o", "v.npy", "--labels", "kind"), "--labels"),
        (("texts.csv", "-o", "nowhere/v.npy"), "nowhere"),
        (("texts.parquet", "-o", "texts.parquet"), "texts.parquet"),
        (("nowhere.txt", "-o", "v.npy"), "nowhere.txt"),
        (("vectors.npy", "-o", "v.npy"), "contains vectors"),
    ],
)
def test_bad_arguments(command: Callable[..., Printed], arguments: tuple[str, ...], words: str) -> None:
    np.save("vectors.npy", np.eye(3))
    pq.write_table(pq.read_table(_parquet()), "texts.parquet")
    done = command("encode", *arguments)
    assert done.code == 2
    assert words in done.err
    assert not Path("v.npy").exists()


def _parquet() -> str:
    pq.write_table(pa.table({"text": TEXTS}), "own.parquet")
    return "own.parquet"
