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

from isoscope.errors import FileError, InputError, ShapeError
from isoscope.io import files, read_texts
from isoscope.io.text_files import holds_texts, open_text_file


@pytest.mark.parametrize(
    ("name", "text", "column", "wanted"),
    [
        ("t.txt", "one\ntwo words, and 3\none\n", None, ["one", "two words, and 3", "one"]),
        ("t.txt", "one\r\ntwo\r\n\r\n \n", None, ["one", "two"]),
        ("t.txt", "\ufeffé\n中\n", None, ["é", "中"]),
        ("t.txt", " kept \nas it\u2028stands", None, [" kept ", "as it\u2028stands"]),
        ("t.txt.gz", "one\ntwo\n", None, ["one", "two"]),
        ("t.csv", 'text,label\n"a, b",pos\nc,neg\n', None, ["a, b", "c"]),
        ("t.csv", "label,Review\npos,a\nneg,b\n", None, ["a", "b"]),
        ("t.csv", "id,phrase\n1,a\n2,b\n", None, ["a", "b"]),
        ("t.csv", "who, Text\np,a\nq,b\n", None, ["a", "b"]),
        ("t.csv", "a,1\nb,0\n", None, ["a", "b"]),
        ("t.csv", "sentence\na\nb\n", None, ["a", "b"]),
        ("t.csv", "fine\nbad\n", None, ["fine", "bad"]),
        ("t.csv", "phrase,mood\na,p\nb,q\n", "phrase", ["a", "b"]),
        ("t.csv", "a,p\nb,q\n", "1", ["p", "q"]),
        ("t.csv", "id,text\n1,NA\n2,null\n", None, ["NA", "null"]),
        ("t.csv", 'id,text\n1,"two\nlines"\n2,b\n', None, ["two\nlines", "b"]),
        ("t.csv", "id,text\n7,12\n8,13\n", "text", ["12", "13"]),
        ("t.tsv.gz", "text\tlabel\na, b\tx\nc\ty\n", None, ["a, b", "c"]),
        ("t.json", '["a", "b"]', None, ["a", "b"]),
        ("t.json", '{"text": ["a", "b"], "label": ["p", "q"]}', None, ["a", "b"]),
        ("t.json", '[{"title": "t", "body": "a"}, {"title": "u", "body": "b"}]', None, ["a", "b"]),
        ("t.jsonl", '{"stars": 1, "said": "a"}\n{"said": "b", "stars": 2}\n\n', None, ["a", "b"]),
        ("t.jsonl", '{"said": "a", "of": "p"}\n{"said": "b", "of": "q"}\n', "of", ["p", "q"]),
        ("t.jsonl.gz", '{"text": "\\u00e9"}\n', None, ["é"]),
        ("t.jsonl", '{"label": "p", "utt": "a"}\n{"label": "q", "utt": "b"}\n', None, ["a", "b"]),
    ],
)
def test_text_formats(tmp_path: Path, name: str, text: str, column: str | None, wanted: list[str]) -> None:
    write_text(tmp_path / name, text)
    assert read_texts(tmp_path / name, column=column) == wanted


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"

    def write(**columns: object) -> None:
        table = pa.table(columns)
        if suffix == ".parquet":
            pq.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, str(path))

    write(text=["a", "b"], other=["c", "d"], n=[1, 2])
    assert read_texts(str(path)) == ["a", "b"]
    assert read_texts(path, column="other") == ["c", "d"]
    with raises(FileError, message=r"has 1 \(int64\) in row 0, column 'n'", wanted=r"a text"):
        read_texts(path, column="n")
    write(first=["a", "b"], second=["c", "d"])
    with pytest.raises(FileError, match=r"has columns first, second\. Pass `text_column` to say which holds"):
        read_texts(path)
    write(text=["a", None])
    with raises(InputError, message=r"has no text in row 1, column 'text'", wanted=r"one in every row"):
        read_texts(path)
    write(n=[1, 2])
    with pytest.raises(FileError, match="has no column of strings; it has n"):
        read_texts(path)
    write(text=pa.array(["a", "b"]).dictionary_encode())
    assert read_texts(path, column="text") == ["a", "b"]
    write(text=pa.array(["a", "b"], pa.large_string()), label=["p", "q"])
    assert read_texts(path) == ["a", "b"]
    if suffix != ".parquet":
        write(text=pa.array(["a", "b"], pa.string_view()), label=["p", "q"])
        assert read_texts(path) == ["a", "b"]
    write(text=pa.array([], pa.string()))
    with pytest.raises(ShapeError, match="has no texts"):
        read_texts(path)


@pytest.mark.parametrize(
    ("name", "text", "column", "error", "wanted"),
    [
        ("t.txt", "a\n\nb\n", None, InputError, r"t\.txt has no text in line 2"),
        ("t.txt", "a\n \t \nb", None, InputError, "has no text in line 2"),
        ("t.txt", "\n\n", None, ShapeError, "has no texts"),
        ("t.txt", "a\n", "text", FileError, "has no columns, so no 'text'"),
        ("t.txt", "the 0.1 0.2 0.3\na 0.4 0.5 0.6\n", None, FileError, "has 3 numbers in each line, as word"),
        ("t.csv", "id,text\n1,a\n", "c", FileError, "has no column 'c'; it has id, text"),
        ("t.csv", "id,text\n1,a\n2,\n", None, InputError, "has no text in row 1, column 'text'"),
        (
            "t.csv",
            "phrase,mood\na,p\nb,q\n",
            None,
            FileError,
            r"has columns phrase, mood\. Pass `text_column`",
        ),
        ("t.csv", "x,y\n1,2\n3,4\n", None, FileError, "has no column of strings; it has x, y"),
        ("t.csv", "text,label\n", None, ShapeError, "has a header but no rows"),
        ("t.csv", "text,label\na,1\nb, c,0\n", None, ShapeError, "has 3 cells in line 3"),
        (
            "t.tsv",
            'text\tn\n"Hm\t1\na\t0\nb" c\t1\n',
            None,
            FileError,
            "tabs and line ends within .* row 0, column",
        ),
        ("t.json", "[]", None, ShapeError, "has no texts"),
        ("t.json", "{}", None, ShapeError, "without a list of texts"),
        ("t.json", '["a", null]', None, InputError, "has no text in entry 1"),
        ("t.json", '"a"', None, FileError, "holds one str"),
        ("t.json", '["a", 3]', None, FileError, r"has 3 \(int\) in entry 1"),
        (
            "t.jsonl",
            '{"text": "a"}\n\n{"text": "b"}\n',
            None,
            FileError,
            "has no JSON in line 2, which is blank",
        ),
        ("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n', "text", InputError, "no text in line 2, column 'text'"),
        ("t.jsonl", '{"text": "a"}\n{"text": null}\n', None, InputError, "no text in line 2, column 'text'"),
        ("t.jsonl", '{"text": ""}\n{"text": ""}\n', None, InputError, "no text in line 1"),
        ("t.jsonl", '{"text": "a"}\n{"text": "\\ud800"}\n', None, FileError, "half of a surrogate.* line 2"),
        ("t.jsonl", '{"a": "p", "b": "q"}\n', None, FileError, r"has columns a, b\. Pass `text_column`"),
        ("t.jsonl", "nonsense\n", None, FileError, "has no JSON in line 1"),
        ("t.xyz", "a", None, FileError, r"has the suffix '\.xyz'"),
        ("t.npy", "a", None, FileError, r"has the suffix '\.npy'"),
        ("t.pkl", "a", None, FileError, "is a pickle"),
        ("t.txt", "", None, FileError, "is empty"),
    ],
)
def test_bad_texts(
    tmp_path: Path, name: str, text: str, column: str | None, error: type[Exception], wanted: str
) -> None:
    write_text(tmp_path / name, text)
    with pytest.raises(error, match=wanted):
        read_texts(tmp_path / name, column=column)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.txt", "fine\nis caf\xe9 bad\n"),
        ("t.csv", "text,label\ncaf\xe9,1\nb,0\n"),
        ("t.jsonl", '{"text": "a"}\n{"text": "caf\xe9"}\n'),
    ],
)
def test_bad_utf8_names_its_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with raises(FileError, message=r"is not UTF-8 in line 2 \(byte 0xe9\)", hint="save it as UTF-8"):
        read_texts(tmp_path / name)


def test_other_encodings_and_endless_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_bytes("a\nb\n".encode("utf-16-le"))
    with pytest.raises(FileError, match="is not text in lines"):
        read_texts(tmp_path / "t.txt")
    monkeypatch.setattr("isoscope.io.files.MAX_LINE_BYTES", 100)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100)
    (tmp_path / "t.txt").write_text("a\n" * 200 + "b" * 200)  # beyond the lines it is judged by
    with raises(FileError, message="is not text in lines", wanted="texts in each line"):
        read_texts(tmp_path / "t.txt")


def test_long_texts_are_read_whole(tmp_path: Path) -> None:
    long = "word " * 1_000_000  # 5 MB: more than Python's csv takes, and than a block of numbers
    (tmp_path / "t.csv").write_text("text,label\n" + "short,a\n" * 200 + f"{long},b\n")
    assert read_texts(tmp_path / "t.csv")[-1] == long
    (tmp_path / "t.csv").write_text(f"text,label\n{long},b\n")
    assert read_texts(tmp_path / "t.csv") == [long]
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": long}) + "\n")
    assert read_texts(tmp_path / "t.jsonl") == [long]


def test_a_column_of_labels_is_not_taken_for_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("phrase,mood\na,p\nb,q\n")
    assert open_text_file(path, labels="mood").texts == ["a", "b"]
    assert open_text_file(path, labels="phrase").texts == ["p", "q"]
    (tmp_path / "y.txt").write_text("p\nq\n")
    with pytest.raises(FileError, match="has columns phrase, mood"):
        open_text_file(path, labels=str(tmp_path / "y.txt"))
    path.write_text("text,mood\na,p\nb,q\n")
    assert open_text_file(path, labels=str(tmp_path / "y.txt")).texts == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("t.txt", "born in 1990\nno number\nnone either\n", True),
        ("t.txt", "the 0.1 0.2\na 0.4 0.5\n", False),
        (
            "t.jsonl",
            '{"text": "a", "stars": 4, "tags": ["x"], "tokens": [1, 2]}\n{"text": "b", "tokens": [3]}',
            True,
        ),
        ("t.jsonl", '{"text": "a", "v": [0.5, 1]}', False),
        ("t.json", '["a", "b"]', True),
        ("t.json", "[[0.5, 1]]", False),
        ("t.csv", "x,x,text\n0.5,1,a\n1.5,2,b\n", False),
        ("t.csv", 'text,v\na,"[0.5, 1]"\nb,"[1.5, 2]"\n', False),
        ("t.csv", "0,5;1,5\n2,5;3,5\n", False),
        ("t.csv", "text,label\na,1\nb,0\n", True),
        ("t.csv", "id,text,stars\n1,a,4\n2,b,5\n", True),
        ("t.csv", "word,x,y\na,1,2\nb,3,4\n", False),
        ("t.csv", "x,y\n1,2\n3,4\n", False),
        ("t.npy", "whatever", False),
    ],
)
def test_files_of_texts_and_files_of_vectors(tmp_path: Path, name: str, text: str, wanted: bool) -> None:
    write_text(tmp_path / name, text)
    assert holds_texts(tmp_path / name) is wanted


def test_tables_of_texts_and_tables_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "label": [0, 1]}), path)
    assert holds_texts(path)
    pq.write_table(pa.table({"text": ["a", "b"], "vector": [[0.0, 1.0], [1.0, 0.0]]}), path)
    assert not holds_texts(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = list("ab ,;'\"\t\\é中\u2028{}[]")
    texts = ["x" + "".join(rng.choice(letters, size=12)) for _ in range(300)]
    rows = [{"text": text, "label": i} for i, text in enumerate(texts)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "t.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "t.txt").write_text("\n".join(texts), encoding="utf-8")
    pq.write_table(pa.table({"text": texts}), tmp_path / "t.parquet")
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    lines = [f"{text},{i}" for i, text in enumerate(quoted)]
    (tmp_path / "t.csv").write_text("text,label\n" + "\n".join(lines), encoding="utf-8")
    for name in ("t.jsonl", "t.json", "t.txt", "t.parquet", "t.csv"):
        assert read_texts(tmp_path / name) == texts, name


def test_either_of_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("text,text\na cat,a dog\nred,blue\n")
    assert open_text_file(path, column="text").texts == ["a cat", "red"]
    assert open_text_file(path, column="text (1)").texts == ["a dog", "blue"]
