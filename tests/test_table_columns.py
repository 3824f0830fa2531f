from __future__ import annotations

import numpy as np
import pytest

from isoscope.errors import InputError
from isoscope.table_columns import Column, as_choice, judge, names_no_dimension, places_of

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
    with pytest.raises(InputError, match=r"^exclude "):
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
