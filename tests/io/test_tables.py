from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_writers import write_text
from tests.raising import raises

from isoscope.errors import FileError
from isoscope.io.table import Wanted
from isoscope.io.tables import open_table
from isoscope.table_columns import LISTS, NUMBERS, OTHER, TEXTS, VECTORS


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("c.csv", "a,b\nx,1\ny,2\n", {"a": TEXTS, "b": NUMBERS}),
        (
            "c.jsonl",
            '{"a": "x", "b": 1.5, "c": [1], "d": null}\n',
            dict(zip("abcd", (TEXTS, NUMBERS, LISTS, OTHER), strict=True)),
        ),
        ("c.jsonl", '{"a": null}\n{"a": "x", "b": true}\n', {"a": TEXTS, "b": OTHER}),
        ("c.json", '{"a": ["x"], "b": [1], "c": 3}', {"a": TEXTS, "b": NUMBERS}),  # a lone value is no column
        ("c.json", '["x"]', {}),
        ("c.txt", "x\n", {}),
    ],
)
def test_what_columns_hold(tmp_path: Path, name: str, text: str, holds: dict[str, str]) -> None:
    write_text(tmp_path / name, text)
    assert open_table(tmp_path / name, Wanted("labels")).holds == holds


def test_what_columns_of_a_table_hold(tmp_path: Path) -> None:
    table = pa.table({"a": ["x"], "b": [1], "c": [[1.0, 2.0]], "d": [True]})
    pq.write_table(table, tmp_path / "c.parquet")
    found = open_table(tmp_path / "c.parquet", Wanted("labels"))
    assert found.holds == {"a": TEXTS, "b": NUMBERS, "c": VECTORS, "d": OTHER}
    assert found.place(3) == "row 3"


@pytest.mark.parametrize(
    ("text", "heads", "named", "names"),
    [
        ("p,q\na,b\n", (), (), ["p", "q"]),  # over words only a name can tell: taken for one, to be listed
        ("p,1\na,2\n", (), (), ["0", "1"]),  # a number among the heads: no header
        ("p,q\na,b\n", (), ("p",), ["p", "q"]),
        ("p,q\na,b\n", (), ("1",), ["0", "1"]),
        ("p\na\n", (), (), ["0"]),
        ("P \na\n", ("p",), (), ["P "]),
    ],
)
def test_which_first_row_is_a_header(
    tmp_path: Path, text: str, heads: tuple[str, ...], named: tuple[str, ...], names: list[str]
) -> None:
    write_text(tmp_path / "c.csv", text)
    assert open_table(tmp_path / "c.csv", Wanted("labels", heads, named)).names == names


def test_other_kinds_have_no_columns(tmp_path: Path) -> None:
    write_text(tmp_path / "c.npy", "x")
    with raises(FileError, message=r"has the suffix '.npy'", wanted=r"texts in one of \.txt, "):
        open_table(tmp_path / "c.npy", Wanted("texts"))


def test_bad_utf8_in_json(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(b'{"a": 1}\n{"a": "\xff"}\n')
    with pytest.raises(FileError, match=r"is not UTF-8 in line 2 \(byte 0xff\)"):
        open_table(tmp_path / "c.jsonl", Wanted("labels"))
