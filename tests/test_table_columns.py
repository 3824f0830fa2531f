from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from isoscope.errors import InputError, NotFiniteError
from isoscope.frames import from_frame
from isoscope.io import open_vectors
from isoscope.table_columns import Column, as_choice, judge, names_no_dimension, places_of, whole_numbers

NAMES = ["id", "d0", "d1", "d2", "a,b", "x:y"]
rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("d0", [1]),
        ("d2,d0", [1, 3]),
        (["d2", "d0"], [1, 3]),
        ("d0:d2", [1, 2, 3]),
        ("d1:", [2, 3, 4, 5]),
        (":d0", [0, 1]),
        (":", [0, 1, 2, 3, 4, 5]),
        ("a,b", [4]),
        ("x:y", [5]),
        ("2", [2]),
        ("1:3", [1, 2, 3]),
        ("d0:x:y", [1, 2, 3, 4, 5]),
        (3, [3]),
        ([0, 2], [0, 2]),
    ],
)
def test_columns_by_name_range_and_place(choice: object, wanted: list[int]) -> None:
    assert places_of(as_choice(choice), NAMES, argument="columns") == wanted


@pytest.mark.parametrize("choice", ["d9", "d2:d0", "6", "-1", "", ",", "d0:d9", "²"])
def test_columns_that_are_not_there(choice: str) -> None:
    with pytest.raises(InputError, match=r"^`exclude` "):
        places_of([choice], NAMES, argument="exclude")


def test_numbers_as_names_come_before_places() -> None:
    assert places_of(["5"], ["5", "6", "7"], argument="columns") == [0]


def test_two_columns_of_one_name_are_both_meant() -> None:
    assert places_of(["x"], ["x", "y", "x"], argument="columns") == [0, 2]


@pytest.mark.parametrize(
    "name", ["id", "ID", "doc_id", "Index", "Unnamed: 0", "timestamp", "created date", "label"]
)
def test_names_of_no_dimension(name: str) -> None:
    assert names_no_dimension(name)


@pytest.mark.parametrize("name", ["x", "0", "dim_1", "valid", "grid", "emb.0", "subclass", "runtime", ""])
def test_names_that_say_nothing(name: str) -> None:
    assert not names_no_dimension(name)


def test_shuffled_identifiers_among_quantised_numbers() -> None:
    columns = [Column(f"x{j}", True, True, rng.integers(-128, 128, 60)) for j in range(20)]
    columns.insert(4, Column("number", True, True, rng.permutation(30_000)[:60]))
    assert judge(columns).doubtful == [4]


@pytest.mark.parametrize("n_rows", [2, 10, 20, 40, 100])
def test_quantised_numbers_alone_are_never_doubted(n_rows: int) -> None:
    columns = [Column(f"x{j}", True, True, rng.integers(-128, 128, n_rows)) for j in range(768)]
    assert judge(columns).dimensions == list(range(768))


def test_an_unnamed_first_column_beside_named_ones() -> None:
    values = rng.normal(size=20)
    assert judge([Column("", True, False, values), Column("a", True, False, values)]).named == [0]
    assert judge([Column("", True, False, values), Column("", True, False, values)]).dimensions == [0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [5] * 300,
        [2**60 + i for i in range(300)],
        [2**63 + i for i in range(300)],
        [i % 3 for i in range(300)],
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "pandas", "polars", "arrow"])
def test_whole_numbers_among_fractions_are_asked_about(tmp_path: Path, form: str, values: list[int]) -> None:
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame({"a": rng.normal(size=300), "foo": values, "b": rng.normal(size=300)})
    path = tmp_path / f"x.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "parquet":
        frame.to_parquet(path)
    read: dict[str, Callable[[], object]] = {
        "csv": lambda: open_vectors(path),
        "parquet": lambda: open_vectors(path),
        "pandas": lambda: from_frame(frame, "X"),
        "polars": lambda: from_frame(pl.from_pandas(frame), "X"),
        "arrow": lambda: from_frame(pa.Table.from_pandas(frame), "X"),
    }
    with pytest.raises(InputError, match="'foo'"):
        read[form]()


def test_huge_identifiers_among_whole_numbers() -> None:
    columns = [Column(f"x{j}", True, True, rng.integers(-128, 128, 60)) for j in range(20)]
    columns.append(Column("number", True, True, whole_numbers(2**60 + i for i in range(60))))
    columns.append(Column("other", True, True, whole_numbers(2**63 + i for i in range(60))))
    assert judge(columns).doubtful == [20, 21]


def test_noughts_are_an_unused_dimension() -> None:
    columns = [Column("a", True, False, rng.normal(size=20)), Column("b", True, True, np.zeros(20, int))]
    assert judge(columns).dimensions == [0, 1]


@pytest.mark.parametrize("categories", [[1, 2, 3], [0.5, 1.5, 2.5], ["p", "q", "r"]])
def test_a_categorical_column_is_no_dimension(categories: list[object]) -> None:
    import pandas as pd

    column = pd.Categorical([categories[i % 3] for i in range(30)])
    frame = pd.DataFrame({"a": rng.normal(size=30), "c": column, "b": rng.normal(size=30)})
    with pytest.warns(UserWarning, match="not dimensions: c"):
        assert from_frame(frame, "X").shape == (30, 2)


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_truth_values_alone_are_noughts_and_ones(tmp_path: Path, form: str, index: bool) -> None:
    import pandas as pd

    frame = pd.get_dummies(pd.Series([f"c{i}" for i in rng.integers(0, 5, 40)]))
    assert set(frame.dtypes) == {np.dtype(bool)}
    path = tmp_path / f"x.{form}"
    if form == "csv":
        frame.to_csv(path, index=index)
    elif form == "parquet":
        frame.to_parquet(path, index=index)
    else:
        frame.to_json(path, orient="records", lines=True)
    assert open_vectors(path).load().vectors.tolist() == frame.to_numpy(float).tolist()


def test_truth_values_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("True,False\nFalse,True\ntrue,FALSE\n")
    assert open_vectors(tmp_path / "x.csv").load().vectors.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_missing_truth_values(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("True,False\nFalse,\ntrue,FALSE\n")
    with pytest.raises(NotFiniteError):
        open_vectors(tmp_path / "x.csv").load()


def test_truth_values_beside_numbers_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,flag\n0.1,0.2,True\n0.3,0.4,False\n")
    assert open_vectors(tmp_path / "x.csv").load().vectors.tolist() == [[0.1, 0.2], [0.3, 0.4]]
