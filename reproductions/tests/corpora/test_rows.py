from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from isoscope.errors import FileError
from isoscope_papers.corpora import rows
from isoscope_papers.corpora.rows import read_rows

# everything that some reader takes for the end of a line, a quote, a missing value or the end of a text
ODD = [
    "plain",
    " blanks ",
    'a "quote',
    "line\u2028sep \u0085 \x0b \x0c",
    "NA",
    "",
    "\ufefffirst",
    "é 中 \U0001f600",
]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def records(path: Path, *fields: str) -> list[tuple[int, dict[str, object]]]:
    rows = list(read_rows(path, fields))
    assert all(where.startswith(f"{path}, line ") for where, _ in rows)
    return [(int(where.rpartition(" ")[2]), record) for where, record in rows]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_lines_exactly(tmp_path: Path, name: str, ascii_only: bool) -> None:
    texts = [*ODD, "tab\tnew\nline\r\n"]
    lines = [json.dumps({"t": text, "n": i}, ensure_ascii=ascii_only) for i, text in enumerate(texts)]
    path = write(tmp_path / name, ("\n".join(lines) + "\n\n").encode())
    assert records(path, "t") == [(i + 1, {"t": text, "n": i}) for i, text in enumerate(texts)]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables_exactly(tmp_path: Path, name: str, end: str) -> None:
    lines = ["text\tlabel", *(f"{text}\t{i}" for i, text in enumerate(ODD))]
    path = write(tmp_path / name, end.join([*lines, ""]).encode())
    assert records(path, "text") == [(i + 2, {"text": t, "label": str(i)}) for i, t in enumerate(ODD)]


def test_quoted_commas_are_part_of_a_cell(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv.gz", b',t\n0,a\n1,"b, c"\n')
    assert records(path, "t") == [(2, {"": "0", "t": "a"}), (3, {"": "1", "t": "b, c"})]


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "\ufefftext\tlabel\na\tb\n".encode())
    assert records(path, "text", "label") == [(2, {"text": "a", "label": "b"})]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.jsonl", b'{"t": "a"}\n{"t": \n', r"a\.jsonl has no JSON in line 2"),
        ("a.jsonl", b'{"t": "a"}\n["t"]\n', "no object in line 2"),
        ("a.jsonl", b'{"t": "a"}\n{"u": "a"}\n', r"no 't' in line 2; it has u, and wanted is t"),
        ("a.jsonl", b'{"t": "a"}\n{"t": "\xff"}\n', "not UTF-8 in line 2"),
        ("a.jsonl", b"\n\n", "has no rows"),
        ("a.tsv", b"t\tu\na\tb\na\n", "1 cells in line 3; expected 2"),
        ("a.tsv", b"t\tu\n", "has no rows"),
        ("a.tsv", b"v\tu\na\tb\n", "no 't' in line 2"),
        ("a.tsv", b"", "has no rows"),
        ("a.csv", b"t,u\na,b\na\n", "1 cells in line 3; expected 2"),
        ("a.xml", b"t\n", "has the suffix '.xml'"),
    ],
)
def test_broken_files_are_named_with_the_line(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    with pytest.raises(FileError, match=match):
        records(write(tmp_path / name, content), "t")


def test_a_cut_off_archive(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl.gz", b'{"t": "a"}\n' * 1000)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileError, match=r"a\.jsonl\.gz cannot be read"):
        records(path, "t")


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 50)
    with pytest.raises(FileError, match="line 2 has no end within 50 bytes"):
        records(write(tmp_path / "a.jsonl", b'{"t": "a"}\n{"t": "' + b"a" * 100), "t")


def test_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot be read: .*No such file"):
        records(tmp_path / "a.jsonl", "t")
