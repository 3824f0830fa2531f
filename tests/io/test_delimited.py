from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from file_writers import write_text
from tests.raising import raises

from isoscope.errors import FileError, NotFiniteError, ShapeError
from isoscope.io import open_vectors, read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x,y\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2\n3,4", [[1, 2], [3, 4]]),
        ("1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        ("\ufeffx,y\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("\nx,y\n\n1,2\n\n3,4\n\n", [[1, 2], [3, 4]]),
        ("x, y\n1, 2\n 3,4 \n", [[1, 2], [3, 4]]),
        ('"x","y"\n"1","2"\n3,4\n', [[1, 2], [3, 4]]),
        ('"x\nx",y\n1,2\n3,4\n', [[1, 2], [3, 4]]),
        ("0,1\n0.5,1.5\n3,4\n", [[0.5, 1.5], [3, 4]]),
        ("1,2\n0.5,1.5\n", [[0.5, 1.5]]),
        (",0,1\n0,0.5,1.5\n1,3,4\n", [[0.5, 1.5], [3, 4]]),
        ("0,1\n1,0.5\n2,0.5", [[1, 0.5], [2, 0.5]]),
        ("0.1,0.2\n", [[0.1, 0.2]]),
        ("x\n1\n2\n", [[1], [2]]),
        ("cat,0.1,0.2\ndog,0.3,0.4\n", [[0.1, 0.2], [0.3, 0.4]]),
        ("x,x\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1e-3,-2E+2\n+3,.5\n", [[0.001, -200], [3, 0.5]]),
        ("1 2\n3 4\n", [[1, 2], [3, 4]]),
        ("1\t2\n3\t4\n", [[1, 2], [3, 4]]),
    ],
)
def test_ways_to_write_a_table(path: Path, text: str, wanted: list[list[float]]) -> None:
    write_text(path, text)
    space = read(path)
    assert space.vectors.tolist() == wanted
    assert space.vectors.dtype == torch.float64


def test_every_digit_is_kept(path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    write_text(path, "\n".join(",".join(map(repr, row)) for row in X.tolist()))
    np.testing.assert_array_equal(read(path).vectors.numpy(), X)


def test_notes(path: Path) -> None:
    write_text(path, ',id,x,text,y\n0,a,1,"s, t",2\n1,b,3,u,4\n')
    file = open_vectors(path, labels="id")
    assert file.notes == ["columns that are not dimensions: text (no numbers), an unnamed one (row index)"]
    assert file.load().vectors.tolist() == [[1, 2], [3, 4]]
    assert file.labels.names == ("a", "b")


def test_text_with_newlines_in_quotes(path: Path) -> None:
    write_text(path, 'x,text,y\n1,"two\nlines",2\n3,"and ""quotes""",4\n')
    assert read(path, labels="text").labels.names == ('and "quotes"', "two\nlines")


def test_quoted_newlines_at_the_seams_of_blocks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.delimited._BLOCK_BYTES", 100)
    text = "two lines\n"
    write_text(path, "x,text,y\n" + "".join(f'{i},"{text * (i % 5)}",{-i}\n' for i in range(300)))
    assert read(path).vectors.tolist() == [[i, -i] for i in range(300)]


def test_label_column_of_numbers_is_no_dimension(path: Path) -> None:
    write_text(path, "x,y,label\n1,2,10\n3,4,9\n")
    space = read(path, labels="label")
    assert space.n_dims == 2
    assert space.labels.names == (9, 10)  # as numbers, not as words


def test_label_column_by_place_without_a_header(path: Path) -> None:
    write_text(path, "1,2,p\n3,4,q\n")
    assert read(path, labels="2").labels.names == ("p", "q")


def test_names_that_look_like_missing_stay_labels(path: Path) -> None:
    write_text(path, "x,y,c\n1,2,NA\n3,4,null\n")
    assert read(path, labels="c").labels.names == ("NA", "null")


def test_leading_noughts_make_a_name(path: Path) -> None:
    write_text(path, "x,y,c\n1,2,007\n3,4,7\n")
    assert read(path, labels="c").labels.names == ("007", "7")


@pytest.mark.parametrize("header", ["", "x,y,z\n"])
def test_ragged_rows_name_the_line(path: Path, header: str) -> None:
    write_text(path, header + "2,9,4\n\n4,5\n6,7,8\n")
    line = 3 + bool(header)
    with raises(ShapeError, message=rf"a\.csv has 2 cells in line {line}", wanted=r"3 in every line"):
        read(path)


@pytest.mark.slow
def test_ragged_row_far_down(path: Path) -> None:
    write_text(path, "x,y\n" + "1,2\n" * 400_000 + "1,2,3\n")
    with raises(ShapeError, message="has 3 cells in line 400002", wanted="2"):
        for _ in open_vectors(path).blocks(1000):
            pass


@pytest.mark.parametrize("n_before", [3, 500])
def test_a_cell_that_is_no_number_names_line_and_column(path: Path, n_before: int) -> None:
    write_text(path, "x,text,y\n" + "1,s,2\n" * n_before + "3,t,oops\n" + "1,s,2\n" * 3)
    with raises(FileError, message=rf"has 'oops' in line {n_before + 2}, column 'y'", wanted=r"a number"):
        read(path)


def test_a_slip_in_the_first_line(path: Path) -> None:
    write_text(path, "0.1,oops,0.3\n0.1,0.2,0.3\n0.1,0.2,0.3\n")
    with pytest.raises(FileError, match="has 'oops' in line 1, column '1'"):
        read(path)


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "NA", "null", "None", "inf", "-Infinity", "1e999"])
def test_missing_and_infinite_cells(path: Path, cell: str) -> None:
    write_text(path, f"x,y\n1,2\n3,{cell}\n5,6\n")
    with pytest.raises(NotFiniteError, match=r"missing numbers in 1 of 3 rows \(row 1, counted from 0\)"):
        read(path)


@pytest.mark.parametrize(
    ("text", "error", "wanted"),
    [
        ("x,y\n", ShapeError, "has a header but no rows"),
        ("\n\n\n", FileError, "has only blank lines"),
        ("a,b\nc,d\ne,f\n", FileError, "has no column of numbers"),
        ("1,2\0\n", FileError, "is not text in lines"),
    ],
)
def test_no_vectors(path: Path, text: str, error: type[Exception], wanted: str) -> None:
    write_text(path, text)
    with pytest.raises(error, match=wanted):
        open_vectors(path)


def test_one_endless_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.files.MAX_LINE_BYTES", 1000)
    path.write_text("1," * 1000)
    with pytest.raises(FileError, match="is not text in lines"):
        open_vectors(path)


def test_a_quote_that_never_ends(path: Path) -> None:
    write_text(path, "x,y\n1,2\n" * 1 + "1,2\n" * 300 + '1,"2\n' + "1,2\n" * 10)
    with pytest.raises((FileError, ShapeError), match=r"a\.csv"):
        read(path)


def test_labels_that_are_not_utf8(path: Path) -> None:
    path.write_bytes("x,y,c\n1,2,é\n3,4,b\n".encode("latin-1"))
    assert open_vectors(path).load().vectors.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(FileError, match=r"a\.csv is not UTF-8 in line 2 \(byte 0xe9\)"):
        read(path, labels="c")


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_truncated_gzip(tmp_path: Path, keep: float) -> None:
    text = "\n".join(
        ",".join(map(repr, row)) for row in np.random.default_rng(0).normal(size=(500, 4)).tolist()
    )
    data = gzip.compress(text.encode())
    (tmp_path / "a.csv.gz").write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(FileError, match=r"a\.csv\.gz cannot be read: .*truncated"):
        read(tmp_path / "a.csv.gz")


def test_gzip_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_text("1,2\n")
    with pytest.raises(FileError, match=r"a\.csv\.gz cannot be read: Not a gzipped file"):
        open_vectors(tmp_path / "a.csv.gz")


@pytest.mark.slow
def test_stream_is_bounded_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.io.delimited._BLOCK_BYTES", 2**16)  # of which Arrow reads 32 ahead: 2 MB
    line = ",".join(["0.12345678"] * 50) + "\n"
    path.write_text(line * 40_000)  # 22 MB of text
    tracemalloc.start()
    before = most = pa.total_allocated_bytes()
    for block in open_vectors(path).blocks(1000):
        assert len(block) == 1000
        most = max(most, pa.total_allocated_bytes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
    assert most - before < 8e6


def test_texts_are_called_texts(tmp_path) -> None:
    path = tmp_path / "rev.csv"
    path.write_text("review,stars\ngood,many\nbad,few\n")
    with raises(FileError, message=r"only texts \(its first line has 'review', 'stars'\)", wanted=r""):
        open_vectors(path)


@pytest.mark.parametrize("index", [True, False])
def test_names_of_columns_that_are_written_as_fractions(path: Path, index: bool) -> None:
    import pandas as pd

    X = np.random.default_rng(0).normal(size=(30, 8))
    pd.DataFrame(X, columns=np.arange(8.0)).to_csv(path, index=index)
    with pytest.raises(FileError, match=r"`header=True`, or `header=False`"):
        read(path)
    np.testing.assert_array_equal(read(path, header=True).vectors, X)


def test_fractions_in_the_first_row_are_a_row(path: Path) -> None:
    path.write_text("0.0,2.0,5.0\n0.5,1.5,2.5\n")
    assert len(read(path).vectors) == 2


@pytest.mark.parametrize("names", [list("abcd"), [0, 1, 2, 3]])
def test_a_row_index_of_several_levels_without_names(path: Path, names: list[object]) -> None:
    import pandas as pd

    X = np.random.default_rng(0).normal(size=(40, 4))
    levels = pd.MultiIndex.from_product([range(8), range(5)])
    pd.DataFrame(X, columns=names, index=levels).to_csv(path)
    with pytest.raises(FileError, match="may be identifiers") as error:
        read(path, header=True)
    answer = error.value.hint[0]
    assert answer.value  # an empty word is refused by the command line
    np.testing.assert_array_equal(read(path, header=True, **{answer.argument: answer.value}).vectors, X)


def test_blanks_between_cells_below_names(path: Path) -> None:
    path.write_text("a b c\n0.1 0.2 0.3\n0.4 0.5 0.6\n")
    assert read(path).vectors.tolist() == [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
