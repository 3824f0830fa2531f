from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import InputError
from isoscope.report.what_if import WhatIf


@pytest.fixture(name="X")
def correlated(rng) -> np.ndarray:
    mixing = rng.normal(size=(12, 12)) * np.linspace(2, 0.2, 12)
    return rng.normal(size=(300, 12)) @ mixing + 1.5


def test_nothing_changed_is_the_space_as_it_came(X: np.ndarray) -> None:
    what_if = WhatIf.of(X)
    assert what_if.isoscore() == pytest.approx(iso.isoscore(X), abs=1e-12)
    assert what_if.effective_rank() == pytest.approx(iso.effective_rank(X), abs=1e-10)
    assert what_if.mean_cosine(center=False) == pytest.approx(iso.mean_cosine(X), abs=1e-7)
    np.testing.assert_allclose(what_if.spectrum().numpy(), np.asarray(iso.eigenvalues(X)), rtol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_removing_directions_is_all_but_the_top(X: np.ndarray, k: int) -> None:
    what_if, corrected = WhatIf.of(X), iso.AllButTheTop(k).fit_transform(X)
    assert what_if.isoscore(n_removed=k) == pytest.approx(iso.isoscore(corrected), abs=1e-10)
    assert what_if.mean_cosine(n_removed=k) == pytest.approx(iso.mean_cosine(corrected), abs=1e-7)


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_whitening_is_whiten(X: np.ndarray, strength: float) -> None:
    what_if, corrected = WhatIf.of(X), iso.Whiten(strength=strength).fit_transform(X)
    options = {"strength": strength}
    assert what_if.isoscore(**options) == pytest.approx(iso.isoscore(corrected), abs=1e-10)
    assert what_if.mean_cosine(**options) == pytest.approx(iso.mean_cosine(corrected), abs=1e-7)
    np.testing.assert_allclose(
        what_if.spectrum(**options).numpy(), np.asarray(iso.eigenvalues(corrected)), rtol=1e-8
    )


def test_fewer_points_than_dimensions(rng) -> None:
    X = rng.normal(size=(10, 40)) + 2
    what_if = WhatIf.of(X)
    assert what_if.rank == 9
    assert what_if.isoscore() == pytest.approx(iso.isoscore(X), abs=1e-12)
    assert what_if.mean_cosine(center=False) == pytest.approx(iso.mean_cosine(X), abs=1e-6)
    assert what_if.isoscore(strength=1.0) == pytest.approx((9 - 1) / (40 - 1), abs=1e-12)


def test_a_sample_has_its_own_mean_cosine_and_the_variances_of_all(X: np.ndarray) -> None:
    what_if = WhatIf.of(X, rows=torch.tensor([4, 7, 9]))
    assert what_if.isoscore() == pytest.approx(iso.isoscore(X), abs=1e-12)
    assert what_if.mean_cosine(center=False) == pytest.approx(iso.mean_cosine(X[[4, 7, 9]]), abs=1e-7)


def test_points_without_a_direction_are_left_out() -> None:
    what_if = WhatIf.of([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
    assert what_if.mean_cosine(n_removed=1) == pytest.approx(-1)
    only = WhatIf.of([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]], rows=torch.tensor([2]))
    assert only.mean_cosine() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_removed": 12}, "n_removed is 12; wanted 0 to 11"),
        ({"n_removed": -1}, "n_removed is -1"),
        ({"strength": 1.5}, "strength is 1.5"),
        ({"n_removed": 1, "center": False}, "center is False"),
    ],
)
def test_refuses(X: np.ndarray, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        WhatIf.of(X).mean_cosine(**options)
