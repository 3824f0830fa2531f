from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.errors import ShapeError, UndefinedError
from isoscope.statistics import Directions


def test_sums(rng) -> None:
    X = rng.normal(size=(30, 4)) * 5
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    directions = Directions.of(X)
    assert np.allclose(directions.unit_sum, U.sum(0), rtol=1e-13)
    assert np.allclose(directions.unit_square_sum, (U * U).sum(0), rtol=1e-13)
    norms = np.linalg.norm(X, axis=1)
    assert float(directions.norm_sum) == pytest.approx(norms.sum())
    assert float(directions.norm_square_sum) == pytest.approx((norms**2).sum())
    assert (float(directions.norm_min), float(directions.norm_max)) == pytest.approx(
        (norms.min(), norms.max())
    )


def test_merge_and_update(rng) -> None:
    X = rng.normal(size=(30, 4))
    X[3] = 0
    merged = Directions.of(X[:3]).update(X[3:20]).merge(Directions.of(X[20:]))
    whole = Directions.of(X)
    assert (merged.count, merged.n_zero) == (whole.count, whole.n_zero) == (29, 1)
    for name in ("unit_sum", "unit_square_sum", "norm_sum", "norm_square_sum", "norm_min", "norm_max"):
        assert torch.allclose(getattr(merged, name), getattr(whole, name)), name


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e20, 1e200])
def test_direction_does_not_depend_on_length(rng, scale: float) -> None:
    X = rng.normal(size=(10, 4))
    assert np.allclose(Directions.of(X).unit_sum, Directions.of(X * scale).unit_sum, rtol=1e-13)


def test_errors() -> None:
    with pytest.raises(ShapeError):
        Directions.of(np.eye(2)).merge(Directions.of(np.eye(3)))
    with pytest.raises(UndefinedError, match="there are 1, and 2 zero vectors"):
        Directions.of([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]).need_pairs("it")
    directions = Directions.of(np.eye(2))
    assert Directions.of(directions) is directions
