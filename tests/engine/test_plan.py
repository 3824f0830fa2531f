from __future__ import annotations

import pytest

from isoscope.engine.plan import EXACT_PAIRS, silhouette_policy


@pytest.mark.parametrize("times", [1, 3, 7, 50])
def test_the_pairs_met_stay_within_one_bound(times: int) -> None:
    limit = silhouette_policy(1, times=times).limit
    assert times * limit**2 <= EXACT_PAIRS < times * (limit + 1) ** 2
    assert silhouette_policy(limit, times=times).exact
    assert not silhouette_policy(limit + 1, times=times).exact


def test_estimates_are_as_much_wider_as_keeps_their_work_the_same() -> None:
    one, four = silhouette_policy(10**6), silhouette_policy(10**6, times=4)
    assert four.tolerance == pytest.approx(2 * one.tolerance)
    assert silhouette_policy(10**6, by_label=True).tolerance > one.tolerance
