"""Chunks that meet on several devices give the sums of all pairs."""

from __future__ import annotations

import pytest
import torch

from isoscope.labels import as_clusters
from isoscope.statistics.device_pairs import n_chunks, separation_across
from isoscope.statistics.pairs import Separation

CPU = torch.device("cpu")


@pytest.mark.parametrize("n_devices", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [9, 250])
def test_the_separation_of_one_device(n_devices: int, n: int) -> None:
    draw = torch.Generator().manual_seed(0)
    X = torch.randn(n, 7, generator=draw, dtype=torch.float64) + 5
    X[1] = X[0]
    labels = torch.randint(0, 4, (n,), generator=draw)
    labels[:4], labels[5] = torch.arange(4), 4  # one cluster of a single point
    clusters = as_clusters(labels, n=n)
    shares: list[float] = []
    found = separation_across(X, clusters, [CPU] * n_devices, progress=shares.append)
    expected = Separation.of(X, clusters)
    for name in ("cohesion", "separation"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)
    assert torch.equal(found.nearest, expected.nearest)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_no_device_is_idle_for_long() -> None:
    for n_devices in range(2, 9):
        c = n_chunks(n_devices)
        rounds = -(-c * (c - 1) // 2 // n_devices)
        assert rounds * 4 / c**2 <= min(0.75, 2.3 / n_devices)  # of the time of all pairs on one device
