from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from isoscope.errors import LabelError, ShapeError
from isoscope.labels import Labels, as_clusters, as_labels


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"]),
        pd.Categorical(["b", "a", "b"]),
        pl.Series(["b", "a", "b"]),
        pa.array(["b", "a", "b"]),
        pa.chunked_array([["b"], ["a", "b"]]),
        ("b", "a", "b"),
    ],
)
def test_any_sequence_of_names(labels: object) -> None:
    coded = as_labels(labels)
    assert coded.names == ("a", "b")
    assert coded.codes.tolist() == [1, 0, 1]
    assert coded.counts.tolist() == [1, 2]


@pytest.mark.parametrize(
    "labels", [[2, 0, 2], np.array([2.0, 0.0, 2.0]), torch.tensor([2, 0, 2]), [True, False, True]]
)
def test_numbers(labels: object) -> None:
    coded = as_labels(labels)
    assert coded.codes.tolist() == [1, 0, 1]
    assert len(coded) == 3


@pytest.mark.parametrize(
    "labels",
    [
        [{"x", "y"}, {"y"}, ["y", "x"], ("y",)],
        np.array([[1, 1], [0, 1], [1, 1], [0, 1]]),
        torch.tensor([[1, 1], [0, 1], [1, 1], [0, 1]]),
        np.array([["y", "x"], ["y"], ["x", "y"], ["y"]], dtype=object),
    ],
)
def test_sets_of_labels_are_labels_whatever_their_order(labels: object) -> None:
    assert as_labels(labels).codes.tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_labels_pass_through_and_cut() -> None:
    coded = as_labels(["a", "b", "a"])
    assert as_labels(coded, n=3) is coded
    assert coded.rows(1, 3).codes.tolist() == [1, 0]
    assert coded.rows(0, 1).names == ("a", "b")
    assert coded.to(torch.device("cpu")) is coded
    assert isinstance(coded.to(torch.device("meta")), Labels)


def test_a_column_is_taken_as_labels() -> None:
    assert as_labels(np.array([["a"], ["b"]])).codes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", None, "b"], LabelError, r"missing for 1 rows \(row 1\)"),
        ([1.0, float("nan"), 2.0], LabelError, r"missing for 1 rows \(row 1\)"),
        (["a", "", "b"], LabelError, r"missing for 1 rows \(row 1\)"),
        (np.array(["a", None, "b"], dtype=object), LabelError, "missing"),
        (pd.Series(["a", None, "b"]), LabelError, "missing"),
        (pd.Series(["a", None, "b"], dtype="string"), LabelError, r"missing for 1 rows \(row 1\)"),
        ("abc", LabelError, "one string"),
        (3, LabelError, "labels is 3; wanted a sequence"),
        (None, LabelError, "labels is None; wanted a sequence"),
        (np.zeros((3, 2, 2)), ShapeError, "shape"),
        (np.array([[1, 2], [0, 1]]), LabelError, "matrix of 0 and 1"),
    ],
)
def test_bad_labels(labels: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_labels(labels)


def test_labels_of_another_length() -> None:
    with pytest.raises(ShapeError, match="labels has 2 entries for 3 vectors; wanted one for each"):
        as_labels(["a", "b"], n=3)


def test_clusters_need_two_labels_and_fewer_than_points() -> None:
    with pytest.raises(LabelError, match=r"one label only \('a'\)"):
        as_clusters(["a", "a"], n=2)
    with pytest.raises(LabelError, match="every one of the 3 points its own label"):
        as_clusters(["a", "b", "c"], n=3)


def test_names_that_do_not_occur_are_no_clusters() -> None:
    part = as_labels(["a", "b", "c", "c", "a"]).rows(1, 4)
    clusters = as_clusters(part, n=3)
    assert clusters.names == ("b", "c")
    assert clusters.codes.tolist() == [0, 1, 1]
    assert clusters.seen() is clusters


def test_sets_that_only_look_alike_stay_apart() -> None:
    assert as_labels([["a, b"], ["a", "b"]]).n_labels == 2


def test_nested_lists_of_zero_and_one_are_an_indicator_matrix() -> None:
    assert as_labels([[0, 1, 0], [1, 0, 0], [0, 1, 0]]).codes.tolist() in ([0, 1, 0], [1, 0, 1])
    assert as_labels([["x", "y"], ["y", "x"]]).n_labels == 1
