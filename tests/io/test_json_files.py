from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

from isoscope.errors import FileError, InputError, NotFiniteError, ShapeError
from isoscope.io import open_vectors, read
from isoscope.io.text_files import holds_texts

X = np.random.default_rng(0).normal(size=(30, 3)).round(6)
ROWS: list[dict[str, Any]] = [
    {"id": i, "text": f"text {i}", "label": "pq"[i % 2], "embedding": row, "tags": ["x"] * (i % 3)}
    for i, row in enumerate(X.tolist())
]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


WRITTEN = {
    "objects.jsonl": lines(ROWS),
    "blank.jsonl": lines(ROWS) + "\n\n",
    "lists.jsonl": lines(X.tolist()),
    "numbers.jsonl": lines([dict(zip("abc", row, strict=True)) for row in X.tolist()]),
    "mark.jsonl": "\ufeff" + lines(ROWS),
    "lists.json": json.dumps(X.tolist()),
    "objects.json": json.dumps(ROWS, indent=2),
    "columns.json": json.dumps({"vectors": X.tolist(), "label": ["p", "q"] * 15, "model": "m"}),
    "answer.json": json.dumps({"object": "list", "data": ROWS, "model": "m", "usage": {"tokens": 3}}),
    "numbers.json": json.dumps([dict(zip("abc", row, strict=True)) for row in X.tolist()]),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("packed", [False, True])
def test_vectors_are_read_where_they_are(tmp_path: Path, name: str, packed: bool) -> None:
    data = WRITTEN[name].encode()
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    file = open_vectors(path)
    assert file.load().vectors.tolist() == X.tolist()
    assert [len(block) for block in file.blocks(12)] == [12, 12, 6]


@pytest.mark.parametrize("name", ["objects.jsonl", "objects.json", "answer.json", "columns.json"])
def test_labels_from_a_column(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WRITTEN[name])
    assert read(tmp_path / name, labels="label").labels.codes.tolist() == [0, 1] * 15


@pytest.mark.parametrize("name", ["objects.jsonl", "objects.json"])
def test_texts_come_along_and_numbers_are_labels(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WRITTEN[name])
    space = read(tmp_path / name, labels="id")
    assert space.labels.names == tuple(range(30))
    assert space.texts[29] == "text 29"


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_two_columns_of_vectors(tmp_path: Path, suffix: str) -> None:
    rows = [{"a": row, "b": row[:2]} for row in X.tolist()]
    path = tmp_path / f"v{suffix}"
    path.write_text(lines(rows) if suffix == ".jsonl" else json.dumps(rows))
    with pytest.raises(FileError, match=r"2 columns of vectors: a, b\. Pass `vectors` to say which"):
        open_vectors(path)
    assert read(path, vectors="b").n_dims == 2
    assert read(path, exclude="b").n_dims == 3


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"embedding": [1, 2]}, "length 2 in row 30, where the first has 3"),
        ({"embedding": None}, r"no vector in 1 of \d+ rows \(row 30, "),
        ({}, r"no vector in 1 of \d+ rows \(row 30, "),
        ({"embedding": [1, None, 2]}, "missing numbers, the first in row 30"),
        ({"embedding": [1, "x", 2]}, "in (line 31|entry 30), column 'embedding'"),
        ({"embedding": 3}, "in (line 31|entry 30), column 'embedding'"),
        ({"embedding": [1, float("nan"), 2]}, "NaN, Inf or missing numbers in 1 of 32 rows"),
    ],
)
def test_rows_that_are_no_vectors(tmp_path: Path, suffix: str, bad: dict[str, Any], message: str) -> None:
    rows = [{"embedding": row} for row in X.tolist()] + [bad, {"embedding": [1, 2, 3]}]
    path = tmp_path / f"v{suffix}"
    path.write_text(lines(rows) if suffix == ".jsonl" else json.dumps(rows))
    with pytest.raises((FileError, ShapeError, NotFiniteError), match=message):
        read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{"),
        ("a.json", "3"),
        ("a.json", "[]"),
        ("a.json", "[1, 2]"),
        ("a.json", '{"a": [1], "b": [1, 2]}'),
        ("a.json", "[" * 100_000 + "]" * 100_000),
        ("a.json", '[{"a": 1e400}]'),
        ("a.json", "[[" + "9" * 400 + "]]"),
        ("a.jsonl", "{\n"),
        ("a.jsonl", "3\n"),
        ("a.jsonl", "\n\n"),
        ("a.jsonl", "[]\n[]\n"),
        ("a.jsonl", '{"a": "b"}\n'),
        ("a.jsonl", '{"a": [1, 2]}\nrest\n'),
        ("a.jsonl", '{"a": [1, 1e400]}\n'),
        ("a.jsonl", "[" * 100_000 + "]" * 100_000),
        ("a.jsonl", '{"a": ' * 5000 + "1" + "}" * 5000),
    ],
)
def test_what_holds_no_vectors(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name) as caught:
        read(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1


def test_large_json_is_refused_before_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.json_files._MAX_JSON_BYTES", 100)
    (tmp_path / "a.json").write_text(WRITTEN["lists.json"])
    with raises(FileError, message="too much JSON", wanted="at most 100 bytes", hint=r"\.jsonl"):
        open_vectors(tmp_path / "a.json")


def test_whole_numbers_first_and_fractions_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.json_files._MOST_ROWS", 150)
    rows = [{"v": [0, 1]}] * 200 + [{"v": [0.5, 1.5]}] * 200
    (tmp_path / "a.jsonl").write_text(lines(rows))
    assert read(tmp_path / "a.jsonl").vectors.sum() == 200 + 400


@pytest.mark.slow
def test_as_many_columns_as_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = {f"k{i}": i + 0.5 for i in range(20_000)}
    path.write_text(lines([row, row]))
    start = time.process_time()
    assert read(path).vectors.tolist() == [list(row.values())] * 2
    assert time.process_time() - start < 20  # over 60 s where each name is looked up in a list


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_more_keys_than_columns_may_be(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    rows = [{f"k{i}": 0.5 for i in range(first, first + 30_000)} for first in (0, 30_000)]
    path.write_text(lines(rows) if suffix == "jsonl" else json.dumps(rows))
    with raises(ShapeError, message=r"60,000 columns", wanted=r"at most 32,768"):
        open_vectors(path)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize("row", [0, 5, 250])
def test_truth_values_in_a_vector(tmp_path: Path, suffix: str, row: int) -> None:
    path = tmp_path / f"a.{suffix}"
    rows = [{"embedding": [0.5, 1.5, 2.5]} for _ in range(300)]
    rows[row]["embedding"][1] = True
    path.write_text(lines(rows) if suffix == "jsonl" else json.dumps(rows))
    with pytest.raises(FileError, match="embedding"):
        read(path)


def test_a_truth_value_in_a_column_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines([{"a": 0.5, "b": 1.5}] * 200 + [{"a": True, "b": 1.5}]))
    with raises(FileError, message="'True' in line 201, column 'a'", wanted="a number"):
        read(path)


def test_lists_of_numbers_by_name_may_be_columns_or_vectors(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    words = {f"word{i}": row for i, row in enumerate(X.tolist())}
    path.write_text(json.dumps(words))
    with pytest.raises(FileError, match=r"30 lists of 3 numbers by name: 30 columns, or 30 vectors\?"):
        open_vectors(path)
    assert read(path, columns=":").vectors.tolist() == X.T.tolist()
    path.write_text(json.dumps({"x": [0.5, 1.5], "y": [2.5, 3.5], "name": ["p", "q"]}))
    assert read(path).vectors.tolist() == [[0.5, 2.5], [1.5, 3.5]]  # texts are a column


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_vectors_in_strings_and_in_inner_objects(tmp_path: Path, suffix: str) -> None:
    vectors = [[0, 1, 0], *X.tolist()[1:]]  # a row may be whole numbers
    shapes: dict[str, Any] = {
        "string": [{"text": "a", "embedding": json.dumps(row)} for row in vectors],
        "inner": [{"text": "a", "data": {"embedding": row}} for row in vectors],
    }
    if suffix == ".json":
        shapes["wrapped"] = {"data": shapes["string"], "model": "m"}
    for name, rows in shapes.items():
        path = tmp_path / f"{name}{suffix}"
        path.write_text(lines(rows) if suffix == ".jsonl" else json.dumps(rows))
        assert read(path).vectors.tolist() == vectors
        assert name == "wrapped" or not holds_texts(path)


def test_texts_in_brackets_stay_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines([{"text": text} for text in ("[1, 2]", "[applause]", "[]", "plain")]))
    assert holds_texts(path)


def test_an_inner_object_with_a_long_name_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"a" * 10**6: {str(i): 0.5 for i in range(900)}, "text": "b"}))
    tracemalloc.start()
    assert holds_texts(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 2**20
