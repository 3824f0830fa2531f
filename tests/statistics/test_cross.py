from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import isoscope as iso
from isoscope.statistics.cross import CrossMoments


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("cuts", [[1], [7, 30], [1, 2, 39]])
def test_merged_blocks_are_the_moments_of_all_rows(
    rng: np.random.Generator, cuts: list[int], offset: float
) -> None:
    X = rng.normal(size=(40, 5)) * np.arange(1, 6) + offset
    Y = X[:, :3] @ rng.normal(size=(3, 3)) + rng.standard_t(4, size=(40, 3))
    whole = CrossMoments.of(X, Y)
    parts = [
        CrossMoments.of(a, b) for a, b in zip(np.split(X, cuts), np.split(Y, cuts), strict=True) if len(a)
    ]
    merged = reduce(CrossMoments.merge, reversed(parts))
    for name in ("left_mean", "right_mean", "left", "right", "cross", "left_quartic", "right_quartic"):
        assert np.allclose(getattr(merged, name), getattr(whole, name), rtol=1e-9, atol=1e-6), name
    assert np.isclose(merged.cross_quartic, whole.cross_quartic, rtol=1e-9)
    for one, other in zip(merged.cubics, whole.cubics, strict=True):
        assert np.allclose(one, other, rtol=1e-8, atol=1e-5 * (1 + offset / 1e3))
    for debias in (False, True):
        assert np.isclose(
            iso.linear_cka(merged, debias=debias), iso.linear_cka(X, Y, debias=debias), rtol=1e-10
        )
    assert np.isclose(iso.metrics.procrustes_distance(merged), iso.metrics.procrustes_distance(X, Y))
