from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.corrections.maps import Affine, InTurn


@pytest.fixture(name="X")
def vectors(rng) -> np.ndarray:
    return rng.normal(size=(100, 6)) * np.arange(1, 7) + 3


def test_each_step_learns_from_what_those_before_return(X: np.ndarray) -> None:
    steps = [iso.corrections.RemoveDimensions(1), iso.Whiten(3), iso.Normalize()]
    chain = iso.Chain(steps).fit(X)
    Y = X
    for step in (iso.corrections.RemoveDimensions(1), iso.Whiten(3), iso.Normalize()):
        Y = step.fit_transform(Y)
    assert np.allclose(chain.transform(X), Y)
    assert not hasattr(steps[1], "n_features_in_")  # copies were fitted


def test_streams(X: np.ndarray) -> None:
    made = [iso.Standardize(), iso.AllButTheTop(2), iso.Normalize()]
    whole = iso.Chain(made).fit(X)
    blocks = iso.Chain(made).fit_blocks([X[:30], X[30:]])
    assert np.allclose(whole.transform(X), blocks.transform(X), atol=1e-12)
    assert not hasattr(whole, "partial_fit")


def test_affine_steps_are_one_product(X: np.ndarray) -> None:
    made = [
        iso.Center(),
        iso.corrections.RemoveDimensions(1),
        iso.Standardize(),
        iso.AllButTheTop(1),
        iso.Whiten(2),
    ]
    module = iso.Chain(made).fit(X).to_module()
    assert isinstance(module, InTurn)  # what needs no product stands before it
    assert sum(isinstance(step, Affine) for step in module.steps) == 1
    two = iso.Chain([iso.Standardize(), iso.Whiten(2), iso.Normalize()]).fit(X)
    assert [type(step).__name__ for step in two.to_module().steps] == ["Affine", "UnitLength"]
    assert isinstance(iso.Chain([iso.AllButTheTop(1), iso.Whiten(2)]).fit(X).to_module(), Affine)


def test_the_way_back(X: np.ndarray) -> None:
    chain = iso.Chain([iso.Standardize(), iso.Whiten()]).fit(X)
    assert np.allclose(chain.inverse_transform(chain.transform(X)), X)
    assert not hasattr(iso.Chain([iso.Whiten(), iso.Normalize()]), "inverse_transform")


def test_names(X: np.ndarray) -> None:
    chain = iso.Chain([iso.corrections.RemoveDimensions(dimensions=[0]), iso.Standardize()]).fit(X)
    assert list(chain.get_feature_names_out()) == ["x1", "x2", "x3", "x4", "x5"]


def test_bad_steps(X: np.ndarray) -> None:
    with pytest.raises(iso.InputError, match="`steps` is empty"):
        iso.Chain([]).fit(X)
    with pytest.raises(iso.InputError, match="`steps` has a Linear"):
        iso.Chain([torch.nn.Linear(2, 2)]).fit(X)
