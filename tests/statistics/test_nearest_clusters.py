from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances, silhouette_samples

from isoscope.labels import as_labels
from isoscope.metrics.silhouettes import silhouettes
from isoscope.statistics.budget import TilePlan
from isoscope.statistics.pairs import _by_plan

SIZES = {
    "large": [40, 33, 20],
    "small": [3, 1, 5, 2, 4, 4, 1, 6, 3, 2, 2, 2],
    "both": [2, 40, 1, 3, 25, 2, 2, 5, 17, 1, 1, 4],
    "many in a tile": [1] * 30 + [2] * 25,
}


@pytest.mark.parametrize("keeps_sums", [True, False], ids=["each pair once", "whole rows"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_own_and_nearest_cluster(sizes: list[int], dtype: torch.dtype, keeps_sums: bool, rng) -> None:
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = torch.from_numpy(rng.normal(size=(len(y), 40)) + 0.02 * y[:, None]).to(dtype)
    labels = as_labels(y)
    found = _by_plan(TilePlan.of(X, labels, 32, keeps_sums), X, labels, None)
    distances = pairwise_distances(X.double().numpy())
    means = np.stack([distances[:, y == k].mean(axis=1) for k in range(len(sizes))], axis=1)
    means[np.arange(len(y)), y] = np.inf
    exact = silhouette_samples(X.double().numpy(), y)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    assert np.allclose(found.separation, means.min(axis=1), rtol=tolerance)
    assert np.array_equal(found.nearest, means.argmin(axis=1))
    assert np.allclose(silhouettes(found), exact, atol=tolerance)


def test_of_equally_near_clusters_the_first_counts() -> None:
    X = torch.tensor([[0.0], [0.0], [1.0], [-1.0], [1.0], [-1.0]]).repeat(1, 2)
    labels = as_labels([0, 0, 1, 1, 2, 2])
    for tile_rows in (2, 64):  # every cluster large, every cluster small
        found = _by_plan(TilePlan.of(X, labels, tile_rows, True), X, labels, None)
        assert found.nearest.tolist() == [1, 1, 0, 0, 0, 0]
