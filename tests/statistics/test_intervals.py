from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from isoscope.statistics.intervals import clopper_pearson, newcombe, wilson


@pytest.mark.parametrize(("count", "n"), [(0, 5), (3, 10), (10, 10)])
def test_intervals_are_those_of_scipy(count: int, n: int) -> None:
    for ours, method in ((clopper_pearson(count, n), "exact"), (wilson(count / n, n), "wilson")):
        wanted = binomtest(count, n).proportion_ci(0.95, method=method)
        assert ours == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_a_smaller_variance_narrows_the_interval() -> None:
    low, high = wilson(0.5, 100, variance=0.1)
    wide_low, wide_high = wilson(0.5, 100)
    assert wide_low < low < 0.5 < high < wide_high
    assert wilson(0.5, 100, variance=0.25) == wilson(0.5, 100)


def test_newcombe_of_his_paper() -> None:
    """Newcombe 1998, table II, method 10: 56/70 − 48/80 has 0.0524 … 0.3339."""
    assert np.allclose(newcombe(48, 80, 56, 70), (0.0524, 0.3339), atol=5e-5)
