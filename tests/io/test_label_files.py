from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from file_writers import write_text
from tests.raising import raises

from isoscope.errors import FileError, LabelError, ShapeError
from isoscope.io import read_labels
from isoscope.io.label_files import split_column


@pytest.mark.parametrize(
    ("name", "text", "column", "wanted"),
    [
        ("y.txt", "a\nb\na\n", None, ["a", "b", "a"]),
        ("y.txt", "a\nNew York\na", None, ["a", "New York", "a"]),
        ("y.txt", "a\r\nb\r\n\r\n", None, ["a", "b"]),
        ("y.txt", "\ufeffa\nb\n", None, ["a", "b"]),
        ("y.txt.gz", "a\nb\n", None, ["a", "b"]),
        ("y.csv", "label\na\nb\n", None, ["a", "b"]),
        ("y.csv", "a\nb\na\n", None, ["a", "b", "a"]),
        ("y.csv", "New York\nParis\n", None, ["New York", "Paris"]),
        ("y.csv", "label\n3\n10\n", None, [3, 10]),
        ("y.csv", "3\n10\n", None, [3, 10]),
        ("y.csv", "id,topic\n1,a\n2,b\n", "topic", ["a", "b"]),
        ("y.csv", "id,topic\nx,a\ny,b\n", "topic", ["a", "b"]),
        ("y.csv", "topic\na\nb\n", "topic", ["a", "b"]),
        ("y.csv", "1,a\n2,b\n", "1", ["a", "b"]),
        ("y.csv.gz", "id,topic\n1,a\n2,b\n", "id", [1, 2]),
        ("y.tsv", "id\ttopic\n1\ta, b\n2\tc\n", "topic", ["a, b", "c"]),
        ("y.json", '["a", "b"]', None, ["a", "b"]),
        ("y.json", "[1, 2]", None, [1, 2]),
        ("y.json", '[["a", "b"], ["a"]]', None, [["a", "b"], ["a"]]),
        ("y.json", '{"topic": ["a", "b"], "other": [1, 2]}', "topic", ["a", "b"]),
        ("y.jsonl", '{"id": 1, "topic": "a"}\n{"topic": "b", "id": 2}\n', "topic", ["a", "b"]),
        ("y.jsonl", '{"topic": "a"}\n{"topic": "b"}\n', None, ["a", "b"]),
    ],
)
def test_text_formats(tmp_path: Path, name: str, text: str, column: str | None, wanted: list[object]) -> None:
    write_text(tmp_path / name, text)
    assert list(read_labels(tmp_path / name, column=column)) == wanted


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array([3, 1]))
    assert read_labels(tmp_path / "y.npy").tolist() == [3, 1]
    np.save(tmp_path / "y.npy", np.array(["p", "q"]))
    assert read_labels(str(tmp_path / "y.npy")).tolist() == ["p", "q"]
    np.savez(tmp_path / "y.npz", np.array([3, 1]))
    assert read_labels(tmp_path / "y.npz").tolist() == [3, 1]
    np.savez(tmp_path / "y.npz", labels=np.array([3, 1]), other=np.array([5, 6]))
    assert read_labels(tmp_path / "y.npz").tolist() == [3, 1]
    assert read_labels(tmp_path / "y.npz", column="other").tolist() == [5, 6]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"y{suffix}"
    table = pa.table({"topic": ["a", "b"], "n": [1, 2]})
    pq.write_table(table, path) if suffix == ".parquet" else pyarrow.feather.write_feather(table, str(path))
    assert read_labels(path, column="topic") == ["a", "b"]
    assert read_labels(path, column="n").tolist() == [1, 2]
    with raises(FileError, message="has 2 columns: topic, n", hint=rf"labels as .*y\{suffix}:COLUMN"):
        read_labels(path)
    with pytest.raises(FileError, match="has no column 'm'; it has topic, n"):
        read_labels(path, column="m")


@pytest.mark.parametrize(
    ("name", "text", "column", "error", "wanted"),
    [
        ("y.txt", "a\n\nb\n", None, LabelError, r"y\.txt has no label in line 2"),
        ("y.txt", "\n\n", None, ShapeError, r"y\.txt has no labels"),
        ("y.txt", "a\n", "c", FileError, "has no columns, so no 'c'"),
        (
            "y.csv",
            "id,topic\n1,a\n",
            None,
            FileError,
            r"has 2 columns: id, topic. Name the one with the labels",
        ),
        ("y.csv", "id,topic\n1,a\n", "c", FileError, "has no column 'c'; it has id, topic"),
        ("y.json", "[1, null]", None, LabelError, r"y\.json has no label in entry 1"),
        ("y.json", "3", None, FileError, "holds one int"),
        ("y.json", "[]", None, ShapeError, "has no labels"),
        ("y.json", "[1", None, FileError, r"y\.json is not JSON: "),
        ("y.json", "[1]", "c", FileError, "has no columns"),
        ("y.jsonl", '{"a": 1}\n{"a": null}\n', "a", LabelError, r"y\.jsonl has no label in line 2"),
        ("y.jsonl", '{"a": 1}\n{"b": 1}\n', "a", LabelError, "no label in line 2"),
        ("y.jsonl", '{"a": 1, "b": 2}\n', None, FileError, "has 2 columns: a, b"),
        ("y.jsonl", '{"a": 1}\nnonsense\n', "a", FileError, "has no JSON in line 2: Expecting value"),
        ("y.jsonl", "[1]\n", "a", FileError, "has no object in line 1"),
        ("y.xyz", "a", None, FileError, r"has the suffix '\.xyz'"),
        ("y.pkl", "a", None, FileError, "is a pickle; isoscope never unpickles"),
    ],
)
def test_bad_labels(
    tmp_path: Path, name: str, text: str, column: str | None, error: type[Exception], wanted: str
) -> None:
    write_text(tmp_path / name, text)
    with pytest.raises(error, match=wanted):
        read_labels(tmp_path / name, column=column)


def test_missing_file(tmp_path: Path) -> None:
    write_text(tmp_path / "labels.txt", "a")
    with raises(
        FileError,
        message=r"lables\.txt does not exist",
        wanted="a file of labels",
        hint=r"did you mean .*/labels\.txt",
    ):
        read_labels(tmp_path / "lables.txt")


def test_object_array(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array(["a", None], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match=r"never unpickles.*np\.asarray\(y\)\.astype\(str\)"):
        read_labels(tmp_path / "y.npy")


def test_split_column(tmp_path: Path) -> None:
    write_text(tmp_path / "y.csv", "a")
    assert split_column(f"{tmp_path}/y.csv:c") == (tmp_path / "y.csv", "c")
    assert split_column(f"{tmp_path}/y.csv") == (tmp_path / "y.csv", None)
    assert split_column("topic:sub") == (Path("topic:sub"), None)
    write_text(tmp_path / "y.csv:c", "a")
    assert split_column(f"{tmp_path}/y.csv:c") == (tmp_path / "y.csv:c", None)


def test_unicode_survives(tmp_path: Path) -> None:
    (tmp_path / "y.json").write_text(json.dumps(["é", "中"]))
    assert read_labels(tmp_path / "y.json") == ["é", "中"]
