from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from file_writers import write_text, write_word2vec, write_words
from tests.raising import raises

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors, read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        ("a 1 2\nb 3 4\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a 1 2\nb 3 4", ["a", "b"], [[1, 2], [3, 4]]),
        ("a 1 2 \nb 3 4 \n", ["a", "b"], [[1, 2], [3, 4]]),  # fastText ends lines with a blank
        ("a 1 2\r\nb 3 4\r\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a\t1\t2\nb\t3\t4\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a 1 2\n\nb 3 4\n\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("2 2\na 1 2\nb 3 4\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a 1 2\n. . . 3 4\nat me@x.org 5 6\n", ["a", ". . .", "at me@x.org"], [[1, 2], [3, 4], [5, 6]]),
        (". . . 3 4\na 1 2\n", [". . .", "a"], [[3, 4], [1, 2]]),
        ("7 1 2\n8 3 4\n", ["7", "8"], [[1, 2], [3, 4]]),
        ("\" 1 2\n'' 3 4\n# 5 6\n, 7 8\n", ['"', "''", "#", ","], [[1, 2], [3, 4], [5, 6], [7, 8]]),
        ("nan 1 2\nNA 3 4\n", ["nan", "NA"], [[1, 2], [3, 4]]),
        ("é 1e-1 -2.5E+0\n中 .5 +4.\n", ["é", "中"], [[0.1, -2.5], [0.5, 4]]),
        ("a 1\nb 2\n", ["a", "b"], [[1], [2]]),
    ],
)
def test_ways_to_write_word_vectors(
    path: Path, text: str, words: list[str], wanted: list[list[float]]
) -> None:
    write_text(path, text)
    space = read(path)
    assert space.texts == words
    np.testing.assert_array_equal(space.vectors.numpy(), np.array(wanted, np.float32))
    assert space.vectors.dtype == torch.float32


@pytest.mark.parametrize("chunk", [1, 7, 50, 1000])
def test_lines_across_reads(
    path: Path, vectors: np.ndarray, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoscope.io.word_vectors._CHUNK_BYTES", chunk)
    for header in (True, False):
        write_words(path, vectors, header=header)
        np.testing.assert_array_equal(read(path).vectors.numpy(), vectors)
    write_word2vec(path.with_suffix(".bin"), vectors)
    space = read(path.with_suffix(".bin"))
    np.testing.assert_array_equal(space.vectors.numpy(), vectors)
    assert space.texts == [f"w{i}" for i in range(len(vectors))]


@pytest.mark.parametrize("n_before", [2, 300])
@pytest.mark.parametrize(("line", "found"), [("bad 1 2", 2), ("bad 1 2 3 4", 4), ("bad", 0)])
def test_ragged_lines_are_named(path: Path, n_before: int, line: str, found: int) -> None:
    write_text(path, "a 1 2 3\n" * n_before + line + "\nb 1 2 3\n")
    with raises(
        ShapeError, message=rf"a\.txt has {found} numbers in line {n_before + 1}", wanted=r"3 after the word"
    ):
        read(path)


def test_ragged_line_counts_the_header(path: Path) -> None:
    write_text(path, "3 2\na 1 2\nb 1\nc 1 2\n")
    with pytest.raises(ShapeError, match="in line 3"):
        read(path)


def test_a_token_that_is_no_number(path: Path) -> None:
    write_text(path, "a 1 2\n" * 200 + "b oops 2\n")
    with pytest.raises(FileError, match=r"a\.txt has 'oops' in line 201, which is not a number"):
        read(path)


@pytest.mark.parametrize(
    ("text", "error", "wanted"),
    [
        (
            "3 2\na 1 2\nb 3 4\n",
            FileError,
            "has 2 vectors where it promises 3. Check that it is not truncated",
        ),
        ("1 2\na 1 2\nb 3 4\n", FileError, "has 2 vectors where it promises 1"),
        (
            "1000000000000 2\na 1 2\n",
            FileError,
            "says 1,000,000,000,000 × 2 in its first line but is too short",
        ),
        (
            "2 300\na 1 2\nb 3 4\n",
            ShapeError,
            "says 300 dimensions in its first line but has 2 numbers a line",
        ),
        ("0 2\na 1 2\n", ShapeError, "says 0 vectors"),
        ("2 2\n", ShapeError, "has no vectors"),
        ("\n\n", ShapeError, "has no vectors"),
        ("some words here\nand more words\n", FileError, "has no numbers after the first word"),
        ("0.5 1.0\n0.25 2.0\n", FileError, r"begins every line with a number.*Rename .* \.csv"),
        ('a 1 2\nb "3" 4\n', FileError, "has '\"3\"' in line 2, which is not a number"),
        ("a 1 2\0\n", FileError, "is not text in lines"),
    ],
)
def test_bad_text(path: Path, text: str, error: type[Exception], wanted: str) -> None:
    write_text(path, text)
    with pytest.raises(error, match=wanted):
        read(path)


def test_binary_among_the_text(path: Path) -> None:
    path.write_bytes(b"a 1 2\n" * 200 + b"\0\0\0")
    with pytest.raises(FileError, match="is not text in lines"):
        read(path)


def test_one_endless_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.files.MAX_LINE_BYTES", 1000)
    path.write_text("a" * 5000)
    with pytest.raises(FileError, match="is not text in lines"):
        open_vectors(path)


def test_truncated_gzip(tmp_path: Path, vectors: np.ndarray) -> None:
    for name, write in (("a.txt.gz", write_words), ("a.bin.gz", write_word2vec)):
        write(tmp_path / name, vectors)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: len(data) - 20])
        with pytest.raises(FileError, match=rf"{name} cannot be read: .*truncated"):
            read(tmp_path / name)


def test_words_that_are_not_utf8(path: Path) -> None:
    path.write_bytes(b"\xff 1 2\nb 3 4\n")
    assert read(path).texts == ["\ufffd", "b"]


def test_stream_is_bounded_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.word_vectors._CHUNK_BYTES", 2**18)
    with path.open("w") as file:
        for start in range(0, 20_000, 1000):
            file.write("".join(f"word{start + i} " + "0.1234567 " * 49 + "0.5\n" for i in range(1000)))
    tracemalloc.start()
    n_rows = 0
    for block in open_vectors(path).blocks(1000):
        assert len(block) == 1000
        n_rows += len(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 20_000  # 10 MB of text, a few chunks of it at a time
    assert peak < 3e6


# word2vec's binary layout


def test_binary_truncated(tmp_path: Path, vectors: np.ndarray) -> None:
    path = tmp_path / "a.bin"
    write_word2vec(path, vectors)
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    with raises(FileError, message="ends after 10 of its 11 vectors", hint="not truncated"):
        read(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError, match="says 11 × 4 in its first line but is too short for that"):
        open_vectors(path)
    (tmp_path / "a.bin.gz").write_bytes(gzip.compress(data[: len(data) // 2]))
    with pytest.raises(FileError, match=r"ends after 5 of its 11 vectors"):
        read(tmp_path / "a.bin.gz")


@pytest.mark.parametrize(
    ("data", "error", "wanted"),
    [
        (
            b"1000000000000 300\nabc " + bytes(1200),
            FileError,
            "says 1,000,000,000,000 × 300 in its first line but is too",
        ),
        (b"0 300\n", ShapeError, r"is empty, shape \(0, 300\)"),
        (b"one two\n", FileError, "does not begin with a line 'n d'"),
        (b"x" * 100, FileError, "does not begin with a line 'n d'"),
        (b"PK\x03\x04 and so on", FileError, r"looks like a torch archive, not word2vec. Rename it to \.pt"),
        (b"\xba\x16\x4f\x2f\x0c\0\0\0", FileError, r"is a fastText model.*\.vec"),
        (b"2 1\n" + b"x" * 100, FileError, "ends after 0 of its 2 vectors"),
    ],
)
def test_bad_binary(tmp_path: Path, data: bytes, error: type[Exception], wanted: str) -> None:
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(error, match=wanted):
        read(tmp_path / "a.bin")


def test_a_gzipped_claim_allocates_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.bin.gz").write_bytes(gzip.compress(b"1000000000000 100000\nabc " + bytes(100)))
    tracemalloc.start()
    with pytest.raises(FileError, match="ends after 0 of its"):
        read(tmp_path / "a.bin.gz")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
