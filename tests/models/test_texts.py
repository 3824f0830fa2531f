from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.raising import raises

from isoscope.errors import InputError, ShapeError
from isoscope.models.texts import checked_texts


def test_a_list_comes_back() -> None:
    assert checked_texts(("a", "b")) == ["a", "b"]
    assert checked_texts(["a", ""]) == ["a", ""]


@pytest.mark.parametrize(
    ("texts", "error", "words"),
    [
        ("a text", InputError, "`pairs` must be a sequence of strings"),
        ("absent.csv", InputError, "`pairs` must be a sequence of strings"),
        ([], ShapeError, "`pairs` is empty"),
        (["a", 3], InputError, r"`pairs\[1\]` must be a string, got 3"),
        (["a", "\t"], InputError, r"`pairs\[1\]` is empty"),
        (["\ud800"], InputError, r"`pairs\[0\]` has half of a surrogate pair"),
    ],
)
def test_what_is_refused(texts: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        checked_texts(texts, name="pairs", filled=True)


COLUMNS = {"id": ["i", "j"], "review": ["a cat", "a dog"], "stars": [1, 2]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_data_frame_gives_its_column_of_texts(make: Callable[[Any], Any]) -> None:
    assert checked_texts(make(COLUMNS)) == ["a cat", "a dog"]
    assert checked_texts(make(COLUMNS), column="id") == ["i", "j"]
    two = make({"a": ["a", "b"], "b": ["c", "d"]})
    with raises(InputError, argument="texts", wanted="one column of texts", hint="text_column"):
        checked_texts(two)
    with raises(InputError, argument="texts", wanted="one column of texts"):
        checked_texts(make({"a": [1, 2]}))
    with raises(InputError, argument="text_column", got="reviw", hint="did you mean 'review'"):
        checked_texts(make(COLUMNS), column="reviw")


def test_columns_and_arrays_are_sequences() -> None:
    for texts in (pd.Series(["a", "b"]), pl.Series(["a", "b"]), np.array(["a", "b"]), pa.array(["a", "b"])):
        assert checked_texts(texts) == ["a", "b"]
    with raises(InputError, argument="text_column"):
        checked_texts(["a"], column="review")


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_path_is_read(tmp_path: Path, as_path: Callable[[Any], Any]) -> None:
    (tmp_path / "a.csv").write_text("id,review\n1,a cat\n2,a dog\n")
    assert checked_texts(as_path(tmp_path / "a.csv")) == ["a cat", "a dog"]


def test_hugging_face_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict(COLUMNS)
    assert checked_texts(whole) == checked_texts(whole["review"]) == ["a cat", "a dog"]
    with raises(InputError, argument="texts", hint="'train'"):
        checked_texts(datasets.DatasetDict(train=whole))
