"""`Translate` against closed forms and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import Ridge
from tests.raising import raises

import isoscope as iso
from isoscope.corrections import Translate
from isoscope.errors import ShapeError


def test_procrustes_is_that_of_scipy(rng) -> None:
    old, new = rng.normal(size=(2, 50, 4))
    found = Translate("procrustes").fit(old, new)
    x, y = old - old.mean(axis=0), new - new.mean(axis=0)
    rotation, values = orthogonal_procrustes(x, y)
    assert np.allclose(found.matrix_, rotation * values / np.square(x).sum())
    assert np.allclose(found.transform(old), x @ found.matrix_ + new.mean(axis=0))


def test_ridge_is_that_of_scikit_learn(rng) -> None:
    old, new = rng.normal(size=(60, 4)), rng.normal(size=(60, 7))
    alpha = 0.1
    x = old - old.mean(axis=0)
    wanted = Ridge(alpha=alpha * np.square(x).sum() / 4).fit(old, new)
    assert np.allclose(Translate("ridge", alpha=alpha).fit(old, new).transform(old), wanted.predict(old))


def test_features_are_ridge_on_both(rng) -> None:
    """Rows and features, scaled to one size, under one penalty: as scikit-learn solves it."""
    old = rng.normal(size=(80, 3))
    new = np.sin(2 * old)
    found = Translate("features", alpha=0.01).fit(old, new)
    x = old - old.mean(axis=0)
    features = np.sqrt(2 / 1024) * np.cos(x @ found.frequencies_ + found.phases_)
    size = np.sqrt(np.square(x).sum() / np.square(features - features.mean(axis=0)).sum())
    both = np.hstack([x, size * features])
    penalty = 0.01 * np.square(both - both.mean(axis=0)).sum() / both.shape[1]
    assert np.allclose(found.transform(old), Ridge(alpha=penalty).fit(both, new).predict(both), atol=1e-6)
    again, other = (Translate("features", seed=seed).fit(old, new).frequencies_ for seed in (0, 1))
    assert np.array_equal(found.frequencies_, again)
    assert not np.array_equal(found.frequencies_, other)


@pytest.mark.parametrize("method", ["procrustes", "ridge", "features"])
def test_a_saved_map_is_the_same(method: str, rng, tmp_path) -> None:
    old, new = rng.normal(size=(40, 3)), rng.normal(size=(40, 5))
    found = Translate(method).fit(old, new)
    loaded = iso.load_correction(found.save(tmp_path / "map.safetensors"))
    assert np.allclose(loaded.transform(old), found.transform(old), rtol=1e-9)
    module = found.to_module()
    assert module.n_out == 5


def test_inputs_that_cannot_be(rng) -> None:
    old = rng.normal(size=(20, 3))
    with raises(argument="y"):
        Translate().fit(old)
    with raises(ShapeError, argument="y"):
        Translate().fit(old, old[:10])
    with raises(argument="method", got="magic"):
        Translate("magic").fit(old, old)
    with raises(argument="alpha"):
        Translate(alpha=-1).fit(old, old)
    with raises():
        Translate().partial_fit(old, old)
