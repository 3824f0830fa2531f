"""What comes in is checked before anything is trained."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import isoscope as iso
from isoscope.training.problem import Problem

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = np.arange(12) % 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y": None}, iso.InputError, "`y` is missing"),
        ({"y": [0, 1, None] * 4}, iso.LabelError, "missing for 4 of 12 rows"),
        ({"y": np.where(Y == 1, np.nan, Y)}, iso.LabelError, "row 1, 4, 7, 10"),
        ({"y": [["a"], None, ["b"]] * 4}, iso.LabelError, "missing"),
        ({"y": [1] * 12}, iso.LabelError, "only one label"),
        ({"y": range(12)}, iso.LabelError, "a different label"),
        ({"y": Y[:5]}, iso.ShapeError, "5 entries for 12"),
        ({"y": Y, "pairs": [[0, 1]]}, iso.ShapeError, "12 entries for 1"),
        (
            {"y": Y, "pairs": [[0, 12]] * 12},
            iso.InputError,
            r"`pairs` has \[0, 12\] at row 0 .* from 0 to 11",
        ),
        ({"y": Y, "pairs": [[0, -1]] * 12}, iso.InputError, "12 of 12 pairs"),
        ({"y": Y, "pairs": np.arange(12)}, iso.ShapeError, r"shape \(12,\)"),
        ({"y": Y, "pairs": np.full((12, 2), 0.5)}, iso.InputError, "whole numbers"),
        ({"y": np.full((12, 3), 2)}, iso.LabelError, "0 and 1"),
        ({"X": X[:, :1], "y": Y}, iso.ShapeError, "2 dimensions"),
        ({"X": np.where(X.max() - 1e-6 < X, np.nan, X), "y": Y}, iso.NotFiniteError, "row"),
    ],
)
def test_bad_input(arguments: dict, error: type[Exception], message: str) -> None:
    given = {"X": X} | arguments
    with pytest.raises(error, match=message):
        iso.train_embeddings(given.pop("X"), given.pop("y"), steps=1, seeds=1, **given)


def test_labels_of_a_space() -> None:
    space = iso.Space(X, labels=["a", "b", "c"] * 4)
    assert Problem.of(space).label_names == ("a", "b", "c")
    with pytest.raises(iso.InputError, match="`labels` is missing"):
        Problem.of(iso.Space(X))


@pytest.mark.parametrize(
    "y",
    [
        [["b", "a"], ["a"], {"b"}] * 4,
        pd.Series([["b", "a"], ["a"], ["b"]] * 4),
        np.array([[1, 1], [1, 0], [0, 1]] * 4),
        torch.tensor([[1, 1], [1, 0], [0, 1]] * 4),
        [[1, 1], [1, 0], [0, 1]] * 4,
    ],
    ids=["sets", "pandas", "numpy", "torch", "nested"],
)
def test_sets_of_labels_in_any_form(y) -> None:
    problem = Problem.of(X, y)
    assert problem.indicator.tolist() == [[1, 1], [1, 0], [0, 1]] * 4
    assert problem.clusters.n_labels == 3
    assert len(problem.label_names) == 2


def test_one_column_is_one_label() -> None:
    assert Problem.of(X, Y[:, None]).indicator is None


def test_an_item_without_labels_is_a_cluster_of_its_own() -> None:
    problem = Problem.of(X, [[], ["a"], ["a", "b"]] * 4)
    assert problem.indicator.sum().item() == 12
    assert problem.clusters.n_labels == 3


def test_items_are_rows_side_by_side() -> None:
    pairs = np.array([[0, 5], [3, 3], [11, 2]] * 4)
    problem = Problem.of(X, Y, pairs=pairs)
    table = torch.stack([torch.from_numpy(X), torch.from_numpy(2 * X)])
    expected = np.concatenate([X[pairs[:, 0]], X[pairs[:, 1]]], axis=1)
    np.testing.assert_array_equal(problem.items(table)[1], 2 * expected)
    chosen = torch.tensor([2, 0])
    np.testing.assert_array_equal(problem.items(table[0], chosen), expected[[2, 0]])
    assert problem.rows_of(chosen).tolist() == [0, 2, 5, 11]


def test_autograd_may_keep_what_was_made_under_inference_mode() -> None:
    with torch.inference_mode():
        table, codes = torch.from_numpy(X).clone(), torch.from_numpy(Y).clone()
        pairs = torch.stack([codes, codes], dim=1)
    problem = Problem.of(table, iso.Labels(codes, (0, 1, 2)), pairs=pairs)
    for tensor in (problem.table, problem.pairs, problem.clusters.codes):
        assert not tensor.is_inference()
    np.testing.assert_array_equal(problem.table, X)


def test_the_fingerprint_tells_problems_apart() -> None:
    pairs = np.array([[0, 1]] * 12)
    found = {
        Problem.of(X, Y).fingerprint,
        Problem.of(X + 1, Y).fingerprint,
        Problem.of(X, Y[::-1].copy()).fingerprint,
        Problem.of(X, [("a", "b", "c")[k] for k in Y]).fingerprint,
        Problem.of(X, Y, pairs=pairs).fingerprint,
    }
    assert len(found) == 5
    assert Problem.of(X.copy(), Y).fingerprint == Problem.of(X, Y).fingerprint


def test_pairs_of_different_lengths_are_refused() -> None:
    with pytest.raises(iso.ShapeError, match="`pairs` is not a table of numbers"):
        Problem.of(torch.randn(4, 3), [0, 1], pairs=[[0, 1], [2]])


def test_labels_of_pairs_are_counted_by_pairs() -> None:
    with pytest.raises(iso.ShapeError, match="`y` has 4 entries for 2 pairs"):
        Problem.of(torch.randn(4, 3), [0, 1, 0, 1], pairs=[[0, 1], [2, 3]])
