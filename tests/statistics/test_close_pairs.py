from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances

import isoscope as iso
from isoscope.statistics.close_pairs import ClosePairs, median_radii
from isoscope.statistics.neighbors import Neighbors


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("n", [5, 1700])  # more rows than a tile holds
def test_counts_are_those_of_all_distances(rng: np.random.Generator, n: int, offset: float) -> None:
    X = rng.normal(size=(n, 3)) + offset
    X[1] = X[0]
    D = pairwise_distances(X - offset)
    np.fill_diagonal(D, np.inf)
    radii = [0.4, 0.9]
    found = ClosePairs.of(X, radii).counts.numpy()
    assert np.array_equal(found, np.stack([(radius > D).sum(axis=1) for radius in radii], axis=1))


def test_a_pair_at_the_radius_is_not_within_it() -> None:
    X = torch.tensor([[0.1, 0.2], [0.4, 0.6]])  # 0.5 apart, which float32 does not have exactly
    distance = float(torch.linalg.vector_norm(X[0].double() - X[1].double()))
    assert ClosePairs.of(X, [distance]).counts.sum() == 0
    assert ClosePairs.of(X, [distance * (1 + 1e-8)]).counts.sum() == 2


def test_radii_are_medians(rng: np.random.Generator) -> None:
    for n in (30, 31):
        neighbors = Neighbors.of(rng.normal(size=(n, 3)), k=6)
        expected = np.median(neighbors.distances.numpy()[:, [2, 5]], axis=0)
        assert np.allclose(median_radii(neighbors, (3, 6)), expected, rtol=1e-14)
    with pytest.raises(iso.UndefinedError, match="needs 7 neighbours; there are 6"):
        median_radii(neighbors, (3, 7))
