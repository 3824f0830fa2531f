"""`isoscope audit FILE`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator, monkeypatch) -> Path:
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(400, 12)).astype("f4")
    X[7] = X[3]
    X[9] = np.nan
    body = [f"text {row} \x1b[31m" for row in range(400)]
    pd.DataFrame({"id": [f"d{i}" for i in range(400)], "body": body, "vector": list(X)}).to_parquet(
        "d.parquet"
    )
    queries = pd.DataFrame({"best": ["d30", "d31"], "vector": list(X[30:32])})
    queries.to_parquet("q.parquet")
    np.save("v.npy", X)
    np.save("ids.npy", np.tile(np.arange(10), (400, 1)))
    return tmp_path


def test_json_has_the_fields_of_python(folder: Path, command) -> None:
    found = json.loads(command("audit", "d.parquet", "--texts", "body", "--json").out)
    again = iso.audit("d.parquet", texts="body").to_dict()
    for one, other in zip(found["findings"], again["findings"], strict=True):
        assert one | {"next": ""} == other | {"next": ""}
    assert next(one for one in found["findings"] if one["name"] == "not_finite")["count"] == 1


def test_the_exit_code_is_that_of_the_conditions(folder: Path, command) -> None:
    assert command("audit", "v.npy").code == 0
    assert command("audit", "v.npy", "--fail-on", "duplicates>5%").code == 0
    failed = command("audit", "v.npy", "--fail-on", "duplicates>0.1%")
    assert failed.code == 1
    assert "FAIL" in failed.out
    assert command("audit", "v.npy", "--fail-on", "copies>1%").code == 2


def test_rows_are_written_with_their_texts(folder: Path, command) -> None:
    assert command("audit", "d.parquet", "--texts", "body", "--rows", "rows.csv").code == 0
    with open("rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    copies = [one for one in rows if one["finding"] == "duplicates"]
    assert [one["row"] for one in copies] == ["3", "7"]
    assert copies[0]["text"].startswith("text 3")


def test_queries_are_read_beside_the_documents(folder: Path, command) -> None:
    found = command("audit", "d.parquet", "--queries", "q.parquet", "--relevance", "best=id", "--json")
    assert json.loads(found.out)["retrieval"]["mrr"]["value"] == 1.0
    assert command("audit", "d.parquet", "--relevance", "best=id").code == 2
    assert command("audit", "d.parquet", "--queries", "q.parquet", "--relevance", "nothing").code == 2
    assert command("audit", "d.parquet", "--queries", "q.parquet", "--query-prefix", "x").code == 2


def test_the_recall_of_an_index_is_a_finding(folder: Path, command) -> None:
    found = json.loads(command("audit", "v.npy", "--neighbors", "ids.npy", "--json").out)
    assert found["findings"][0]["name"] == "ann_recall"
    assert found["findings"][0]["severity"] == "serious"


@pytest.mark.parametrize(
    "more",
    [
        ("--fail-on", "hubs>1%"),
        ("--rows", "r.csv"),
        ("--neighbors", "ids.npy"),
        ("--queries", "q.parquet"),
        ("--texts", "body"),
        ("--max-rows", "50"),
    ],
)
def test_a_sweep_audits_nothing(folder: Path, command, more: tuple[str, ...]) -> None:
    result = command("audit", "d.parquet", "--sweep", "faiss", *more)
    assert result.code == 2
    assert f"{more[0]} cannot be combined with --sweep" in result.err


@pytest.mark.parametrize("more", [("--k", "3"), ("--near", "0.2"), ("--max-rows", "50"), ("--seed", "3")])
def test_every_option_changes_something(folder: Path, command, more: tuple[str, ...]) -> None:
    base = ("audit", "v.npy", "--max-rows", "60", "--json")
    one, other = (json.loads(command(*words).out)["findings"] for words in (base, (*base, *more)))
    assert one != other


def test_nothing_of_a_text_reaches_the_terminal(folder: Path, command) -> None:
    assert "\x1b[31mtext" not in command("audit", "d.parquet", "--texts", "body").out
    assert "text 3 \\u001b[31m" in command("audit", "d.parquet", "--texts", "body").out
