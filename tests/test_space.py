from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope import Space, read
from isoscope.errors import InputError, NotFiniteError, ShapeError


def test_a_space_knows_its_rows() -> None:
    space = Space(
        np.eye(3),
        labels=["a", "b", "a"],
        token_types=[1, 1, 2],
        sentences=[0, 0, 0],
        texts=["x", "y", "z"],
        layer=4,
        name="toy",
    )
    assert repr(space) == "Space(3 × 3, float64, toy, 2 labels, 2 token types, 1 sentences)"
    assert (len(space), space.n_dims, space.layer) == (3, 3, 4)
    assert space.device.type == "cpu"


def test_blocks_carry_what_is_known() -> None:
    space = Space(np.arange(10.0).reshape(5, 2), labels=[0, 1, 0, 1, 2], texts=list("abcde"))
    parts = list(space.blocks(2))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [part.texts for part in parts] == [["a", "b"], ["c", "d"], ["e"]]
    assert all(part.labels.names == (0, 1, 2) for part in parts)
    assert torch.equal(torch.cat([part.vectors for part in parts]), space.vectors)


def test_other_vectors_under_the_same_rows() -> None:
    space = Space(np.eye(2), labels=[0, 1], name="n")
    changed = space.with_vectors(np.ones((2, 7)))
    assert (changed.n_dims, changed.name, changed.labels.names) == (7, "n", (0, 1))
    with pytest.raises(ShapeError, match="`labels` has 2 entries for 3 vectors"):
        space.with_vectors(np.ones((3, 2)))


def test_what_is_known_must_fit() -> None:
    with pytest.raises(ShapeError, match="`texts` has 1 entries for 2 vectors"):
        Space(np.eye(2), texts=["a"])
    with pytest.raises(ShapeError, match="`sentences` has 3 entries for 2 vectors"):
        Space(np.eye(2), sentences=[0, 1, 2])
    with pytest.raises(NotFiniteError, match="`vectors` has NaN"):
        Space([[np.nan, 1.0]])


def test_a_space_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Space(np.eye(2)).name = "other"


def test_blocks_of_no_rows_are_refused() -> None:
    for n_rows in (0, -1):
        with pytest.raises(InputError, match="`n_rows` must be at least 1"):
            list(Space(np.eye(2)).blocks(n_rows))


def test_weights_are_counts_and_no_shares() -> None:
    X = np.random.default_rng(0).normal(size=(1200, 3))
    with pytest.raises(
        InputError, match=r"^`weights` adds up to 1 over 1,200 rows; expected how often .* shares"
    ):
        iso.measure(X, weights=np.full(1200, 1 / 1200))
    assert Space(X, weights=np.full(1200, 2 / 1200)).weights is not None
    assert Space(X, weights=np.eye(1200)[0]).weights is not None  # one row that counts once is no share


@pytest.mark.parametrize("weight", [1e308, 1e17])
def test_weights_add_up_to_an_exact_count(weight: float) -> None:
    X = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(
        InputError, match=r"^`weights` adds up to .*; expected .* at most 9,007,199,254,740,992 in all"
    ):
        iso.measure(X, weights=np.full(4, weight))
    assert Space(X, weights=np.full(4, 2.0**51)).weights is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_space_is_an_array(dtype: torch.dtype) -> None:
    vectors = torch.tensor([[0.5, 1.0], [2.0, 3.0], [1.0, 0.0]], dtype=dtype, requires_grad=True)
    space = Space(vectors, labels=["b", "a", "b"])
    assert np.asarray(space).tolist() == vectors.tolist()
    assert np.asarray(space, dtype=float).dtype == float
    assert np.array(space, copy=True).base is None
    assert space.X.shape == space.shape == (3, 2)
    assert space.y is not None
    assert space.y.tolist() == ["b", "a", "b"]
    assert Space(vectors).y is None


def test_scikit_learn_takes_a_space(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    np.save(tmp_path / "v.npy", X)
    space = read(tmp_path / "v.npy", labels=X[:, 0] > 0)
    assert np.array_equal(np.asarray(space), X)
    assert space.y is not None
    assert LogisticRegression().fit(space, space.y).score(space.X, space.y) > 0.9
