"""Intervals of mean shares hold as often as they say, near 1 too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from isoscope.compression.recalls import Share, difference, wilson


def test_wilson_is_where_the_score_test_rejects() -> None:
    for share, n in ((0.5, 100), (0.97, 250), (0.0, 40), (1.0, 40)):
        for end in wilson(share, n):
            if 0 < end < 1:
                z = (share - end) / np.sqrt(end * (1 - end) / n)
                assert abs(abs(z) - norm.ppf(0.975)) < 1e-5


@pytest.mark.parametrize("chance", [0.5, 0.9, 0.99, 0.999])
def test_intervals_cover(chance: float) -> None:
    """Shares of 10 neighbours, their chance different from query to query, in 1,000 simulations."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        chances = rng.beta(20 * chance, 20 * (1 - chance), 200)
        share = Share.of(torch.from_numpy(rng.binomial(10, chances) / 10))
        covered += share.interval[0] <= chance <= share.interval[1]
    assert covered >= 930  # 95 % less three standard errors of a count of 1,000


def test_the_percentile() -> None:
    assert Share.of(torch.arange(101).double() / 100).low == 0.05
    assert Share.of(torch.tensor([0.5]).double()).interval == wilson(0.5, 1)


def test_a_difference_is_paired() -> None:
    values = torch.tensor([0.1, 0.5, 0.9]).double()
    mean, (low, high) = difference(values + 0.25, values)
    assert mean == pytest.approx(0.25)
    assert high - low < 1e-12
