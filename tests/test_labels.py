from __future__ import annotations

import tracemalloc
from decimal import Decimal
from enum import Enum, IntEnum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import isoscope as iso
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
        (["a", None, "b"], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([1.0, float("nan"), 2.0], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (["a", "", "b"], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (np.array(["a", None, "b"], dtype=object), LabelError, "missing"),
        (pd.Series(["a", None, "b"]), LabelError, "missing"),
        (pd.Series(["a", None, "b"], dtype="string"), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (["a", float("nan"), "b"], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([1, Decimal("NaN"), 2], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([Decimal(1), Decimal("sNaN")], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([1j, complex("nan"), 2j], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (np.array([1j, complex("nan"), 2j]), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([1.0, np.float32("nan"), 2.0], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (["a", np.float32("nan"), "b"], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (
            np.array(["2020", "NaT", "2021"], dtype="datetime64[D]"),
            LabelError,
            r"missing for 1 of \d+ rows \(row 1,",
        ),
        ([np.datetime64("2020"), np.datetime64("NaT")], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([np.timedelta64(1, "s"), np.timedelta64("NaT")], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([pd.Timestamp("2020"), pd.NaT], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (pd.Series([pd.Timestamp("2020"), pd.NaT]), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (["a", pd.NA, "b"], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (pd.Series([1, None, 2], dtype="Int64"), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (pd.Categorical(["a", None, "b"]), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (np.ma.array(["a", "b"], mask=[0, 1]), LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (
            np.ma.array([[1, 0], [0, 1]], mask=[[0, 0], [1, 0]]),
            LabelError,
            r"missing for 1 of \d+ rows \(row 1,",
        ),
        ([1, np.ma.masked, 2], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([b"a", b""], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([["a"], None, ["b"]], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([["a"], ["b", None]], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        (
            torch.tensor([0.0, torch.nan], dtype=torch.bfloat16),
            LabelError,
            r"missing for 1 of \d+ rows \(row 1,",
        ),
        ([torch.tensor(1.0), torch.tensor(torch.nan)], LabelError, r"missing for 1 of \d+ rows \(row 1,"),
        ([None] * 7, LabelError, r"missing for 7 of \d+ rows \(row 0, 1, 2, 3, 4, …,"),
        (
            [2, 1, "1", "1"],
            LabelError,
            r"the same text, 1 \(int, row 1\) and '1' \(str, row 2\); expected one type",
        ),
        ([b"a", "b", "a"], LabelError, r"the same text, b'a' \(bytes, row 0\) and 'a' \(str, row 2\)"),
        (np.array([1.5, "1.5"], dtype=object), LabelError, r"the same text, 1.5 \(float, row 0\) and '1.5'"),
        ("abc", LabelError, "one string"),
        (3, LabelError, "`labels` must be a sequence"),
        (None, LabelError, "`labels` must be a sequence"),
        (np.zeros((3, 2, 2)), ShapeError, "shape"),
        (np.array([[1, 2], [0, 1]]), LabelError, "matrix of 0 and 1"),
        ([[["a"]], [["b"]]], LabelError, "hold lists or objects"),
        ([["a"], [{"b": 1}]], LabelError, "hold lists or objects"),
    ],
)
def test_bad_labels(labels: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_labels(labels)


def test_labels_of_another_length() -> None:
    with pytest.raises(ShapeError, match="`labels` has 2 entries for 3 vectors; expected one for each"):
        as_labels(["a", "b"], n=3)


def test_clusters_need_two_labels_and_fewer_than_points() -> None:
    with pytest.raises(LabelError, match=r"only one label \('a'\)"):
        as_clusters(["a", "a"], n=2)
    with pytest.raises(LabelError, match="a different label for each of the 3 points"):
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


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2**53, 2**53 + 1, 2**53 + 2], dtype=np.uint64),
        np.array([2**63, 2**63 + 1, 2**63 + 2], dtype=np.uint64),
        np.array([2**53, 2**53 + 1, 2**53 + 2], dtype=object),
        pd.Series([2**53, 2**53 + 1, 2**53 + 2], dtype="UInt64"),
        [2**63, 2**63 + 1, 1],
        [2**80, 2**80 + 1, -1],
        [2**53, 2**53 + 1, 0.5],
        [np.uint64(2**63), np.uint64(2**63 + 1), np.int64(-1)],
    ],
)
def test_large_whole_numbers_stay_apart(labels: object) -> None:
    coded = as_labels(labels)
    assert (
        coded.names == tuple(sorted(coded.names)) == tuple(sorted(int(n) if n != 0.5 else n for n in labels))
    )  # type: ignore[attr-defined]
    assert len(set(coded.codes.tolist())) == 3


def test_labels_of_different_types_that_differ_as_texts() -> None:
    coded = as_labels([10, "a", b"b", 2.5])
    assert coded.names == ("10", "2.5", "a", "b")
    assert coded.codes.tolist() == [0, 2, 3, 1]


def test_values_of_other_types_become_plain_ones() -> None:
    color, size = Enum("color", {"RED": "red"}, type=str), IntEnum("size", {"S": 3})
    assert as_labels([color.RED, "blue"]).names == ("blue", "red")  # type: ignore[attr-defined]
    assert as_labels([size.S, 1]).names == (1, 3)  # type: ignore[attr-defined]
    assert as_labels([torch.tensor(2), torch.tensor(0), 2]).codes.tolist() == [1, 0, 1]
    assert as_labels([np.float32(0.5), np.float64(0.5), 1]).codes.tolist() == [0, 0, 1]
    assert as_labels(np.array(["2021", "2020"], dtype="datetime64[ns]")).names[0][:10] == "2020-01-01"
    assert {type(name) for name in as_labels([np.int64(1), np.str_("a")]).names} == {str}


def test_one_long_label_takes_the_memory_of_one() -> None:
    tracemalloc.start()
    coded = as_labels(["a", "b"] * 1000 + ["c" * 500_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert coded.n_labels == 3
    assert peak < 5e6
    with pytest.raises(LabelError) as error:
        as_clusters(["c" * 500_000] * 3, n=3)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_array_of_texts_that_are_no_unicode(order: str) -> None:
    """NumPy makes strings of such numbers that Python cannot print, nor compare with others safely."""
    codes = np.array([[97, 98], [99, 0x110000]], dtype=f"{order}u4")
    with pytest.raises(LabelError, match="not Unicode"):
        as_labels(codes.view(f"{order}U2")[:, 0])
    assert as_labels(codes[:1].view(f"{order}U2")[:, 0]).names == ("ab",)


@pytest.mark.parametrize(
    ("labels", "n", "wanted"),
    [
        (np.arange(3000) // 2, 3000, "1,500 labels for 3,000 vectors, 2.0 each on average"),
        (np.arange(300) / 7 % 3, 300, "labels are fractions, such as"),
        (np.arange(300) % 20, 300, None),
        (np.arange(300) % 2 * 1.0, 300, None),
        (list("ab") * 6, 12, None),
        (np.arange(3000) % 100, 3000, None),
    ],
)
def test_labels_that_may_be_none_are_noted(labels, n: int, wanted: str | None) -> None:
    X = np.random.default_rng(0).normal(size=(n, 2))
    notes = iso.measure(X, labels=labels, metrics=["isoscore", "between_share"]).notes
    told = [note for note in notes if "labels" in note]
    assert (wanted is None and not told) or (wanted is not None and wanted in " ".join(told))


def test_labels_are_an_array_of_their_names() -> None:
    labels = as_labels(["b", "a", "b"])
    assert labels.tolist() == np.asarray(labels).tolist() == list(labels) == ["b", "a", "b"]
    assert (labels[1], labels[:2].tolist(), labels[-1]) == ("a", ["b", "a"], "b")
    numbers = as_labels(np.array([3, 1, 3]))
    assert np.asarray(numbers).dtype.kind == "i"
    assert numbers.tolist() == [3, 1, 3]
