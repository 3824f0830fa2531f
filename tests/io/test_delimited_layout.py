from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from file_writers import write_text
from tests.raising import raises

from isoscope.errors import FileError, InputError, NotFiniteError, ShapeError
from isoscope.io import open_vectors, read

X = np.random.default_rng(0).normal(size=(40, 3))
WHOLE = np.random.default_rng(0).integers(-9, 9, size=(40, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


@pytest.mark.parametrize(
    "index",
    [
        range(40),
        range(100, 140),
        np.random.default_rng(0).permutation(40),
        [f"row {i}" for i in range(40)],
        np.arange(40) / 7,
        pd.date_range("2024-01-01", periods=40),
    ],
)
@pytest.mark.parametrize("names", [None, list("abc")])
def test_the_index_of_pandas_is_no_dimension(path: Path, index: object, names: list[str] | None) -> None:
    pd.DataFrame(X, index=index, columns=names).to_csv(path)
    np.testing.assert_array_equal(read(path).vectors, X)


def test_an_index_of_whole_numbers_beside_whole_numbers(path: Path) -> None:
    pd.DataFrame(WHOLE, index=range(7, 47), columns=list("abc")).to_csv(path)
    file = open_vectors(path)
    assert file.load().vectors.tolist() == WHOLE.tolist()
    assert file.notes == ["columns that are not dimensions: an unnamed one (row index)"]


def test_an_index_without_a_header_is_asked_about(path: Path) -> None:
    pd.DataFrame(X, index=range(7, 47)).to_csv(path, header=False)
    with pytest.raises(FileError, match=r"whole numbers in column '0' .*exclude='0'"):
        read(path)
    np.testing.assert_array_equal(read(path, exclude="0").vectors, X)


@pytest.mark.parametrize("table", [X, WHOLE])
@pytest.mark.parametrize("names", [[0, 1, 2], [1, 2, 3], [5, 6, 7], [2, 0, 1]])
def test_names_that_are_numbers_are_names_or_asked_about(
    path: Path, table: np.ndarray, names: list[int]
) -> None:
    pd.DataFrame(table, columns=names).to_csv(path, index=False)
    np.testing.assert_array_equal(read(path, header=True).vectors, table)
    np.testing.assert_array_equal(read(path, header=False).vectors, [names, *table.tolist()])
    if names in ([0, 1, 2], [1, 2, 3]) and table is X:
        np.testing.assert_array_equal(read(path).vectors, table)
    elif names != [2, 0, 1] or table is X:  # whole numbers in any order over whole numbers are a row
        with pytest.raises(
            FileError, match=r"begins with \d, \d, \d: names .* `header=True`, or `header=False`"
        ):
            read(path)


@pytest.mark.parametrize("delimiter", [";", "\t", " "])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas(path: Path, delimiter: str, header: bool) -> None:
    if delimiter == " " and header:
        return  # blanks are a delimiter between bare numbers only
    pd.DataFrame(X, columns=list("abc")).to_csv(path, sep=delimiter, decimal=",", index=False, header=header)
    np.testing.assert_allclose(read(path).vectors, X, rtol=1e-15)


def test_decimal_commas_in_quotes(path: Path) -> None:
    write_text(path, 'a,b\n"1,5","2,25"\n"-3,5","4"\n')
    assert read(path).vectors.tolist() == [[1.5, 2.25], [-3.5, 4]]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("a;b\n1,5;2.5\n2,5;3.5\n", "is the decimal mark , or . ?"),
        ("a;b\n1,500;2,250\n2,125;3,375\n", "is the comma a decimal mark, or one of thousands?"),
    ],
)
def test_commas_that_may_be_something_else(path: Path, text: str, question: str) -> None:
    write_text(path, text)
    with pytest.raises(FileError) as caught:
        read(path)
    assert question in caught.value.problem
    assert "decimal" in [getattr(hint, "argument", None) for hint in caught.value.hint]


def test_options_say_how_a_table_is_written(path: Path) -> None:
    write_text(path, "a;b\n1,500;2,250\n2,125;3,375\n")
    assert read(path, decimal=",").vectors.tolist() == [[1.5, 2.25], [2.125, 3.375]]
    write_text(path, "1|2,5\n3|4,5\n")
    assert read(path, delimiter="|").vectors.tolist() == [[1, 2.5], [3, 4.5]]
    write_text(path, "x\ty\n1\t2\n3\t4\n")
    assert read(path, delimiter="tab").vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "options", [{"delimiter": "ab"}, {"delimiter": ""}, {"delimiter": "\n"}, {"decimal": ";"}]
)
def test_options_that_no_table_has(path: Path, options: dict[str, str]) -> None:
    write_text(path, "1,2\n3,4\n")
    with pytest.raises(InputError, match=rf"^`{next(iter(options))}` must be "):
        read(path, **options)


def test_labels_are_read_as_the_vectors_are(path: Path) -> None:
    write_text(path, "1,5|2,5|p\n3,5|4,5|q\n")
    space = read(path, delimiter="|", labels="2")
    assert space.labels.names == ("p", "q")
    assert space.vectors.tolist() == [[1.5, 2.5], [3.5, 4.5]]


def test_two_columns_of_one_name(path: Path) -> None:
    write_text(path, "x,x,c\n0.5,1.5,p\n2.5,3.5,q\n")
    assert read(path, labels="c").vectors.tolist() == [[0.5, 1.5], [2.5, 3.5]]
    with raises(FileError, message="has 2 columns named 'x'", wanted="only one"):
        read(path, labels="x")


@pytest.mark.parametrize(
    "style", [str, lambda row: str(np.array(row)), lambda row: str(row).replace(", ", ",")]
)
def test_vectors_as_lists_in_a_column(path: Path, style) -> None:
    rows = X.round(3).tolist()
    pd.DataFrame({"id": range(40), "text": ["s"] * 40, "v": [style(row) for row in rows]}).to_csv(
        path, index=False
    )
    assert read(path).vectors.tolist() == rows
    assert read(path, vectors="v").n_dims == 3
    assert read(path, labels="id").labels.n_labels == 40


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("[0.5]", "has a vector of length 1 in row 40, where the first has 3"),
        ("[0.5, x, 1]", "a word that is no number"),
        ("0.5, 1, 2", "in row 40"),
        ("", r"no vector in 1 of 42 rows \(row 40"),
    ],
)
def test_a_list_that_is_none(path: Path, cell: str, message: str) -> None:
    pd.DataFrame({"v": [*map(str, X.tolist()), cell, str([1.0, 2.0, 3.0])]}).to_csv(path, index=False)
    with pytest.raises((FileError, NotFiniteError, ShapeError), match=message):
        read(path)


def test_lists_that_numpy_cut_short(path: Path) -> None:
    pd.DataFrame({"v": [str(np.arange(2000.0))] * 3}).to_csv(path, index=False)
    with pytest.raises(FileError, match=r"cut short by NumPy .* in column 'v'"):
        read(path)


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_header_that_is_no_utf8(tmp_path: Path, place: int, suffix: str) -> None:
    data = bytearray(b"a,b,c\n0.5,1.5,2.5\n3.5,4.5,5.5\n".replace(b",", b"\t" if suffix == ".tsv" else b","))
    data[place] = 0xFF
    (tmp_path / f"a{suffix}").write_bytes(data)
    with pytest.raises(FileError, match=r"is not UTF-8 in line 1 \(byte 0xff\)"):
        open_vectors(tmp_path / f"a{suffix}")


def test_too_many_columns_are_refused_at_once(path: Path) -> None:
    path.write_text(",".join(f"d{i}" for i in range(200_000)) + "\n" + ",".join(["0.5"] * 200_000) + "\n")
    start = time.process_time()
    with raises(ShapeError, message="has 200,000 columns", wanted="at most 32,768"):
        open_vectors(path)
    assert time.process_time() - start < 10
