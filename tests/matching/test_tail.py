"""Rates of random pairs: all pairs against brute force, samples by their intervals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.matching.tail import Tail


def units(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def clear(cosines: np.ndarray, wanted: float) -> float:
    """A cosine of the grid near a wanted one that no pair is within rounding of."""
    grid = np.arange(round(wanted * 1e4), 10_000) / 1e4
    return float(next(one for one in grid if np.abs(cosines - one).min() > 1e-6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_pairs_are_counted(rng, dtype: type) -> None:
    X = rng.normal(size=(300, 40)).astype(dtype)
    X[7] = 0  # has no cosine
    i, j = np.triu_indices(299, 1)
    u = units(np.delete(X, 7, axis=0))
    cosines = (u @ u.T)[i, j]
    tail = Tail.of(iso.Space(X))
    assert tail.is_population
    assert tail.n_pairs == 299 * 298
    for wanted in (-0.3, 0.0, 0.2, 0.4):
        cosine = clear(cosines, wanted)
        assert tail.rate(cosine).value == pytest.approx((cosines >= cosine).mean(), abs=1e-12)
    for rate in (0.1, 0.01, 0.001):
        found = tail.cosine(rate)
        assert found is not None
        assert (cosines >= found + 1e-6).mean() <= rate < (cosines >= found - 1e-4 - 1e-6).mean() + 1e-12
    assert tail.cosine_interval(0.01) is None


def test_queries_against_rows(rng) -> None:
    X, Q = rng.normal(size=(400, 30)) + 0.5, rng.normal(size=(60, 30))
    cosines = (units(Q) @ units(X).T).ravel()
    tail = Tail.of(iso.Space(X), torch.from_numpy(Q))
    cosine = clear(cosines, 0.2)
    rate = tail.rate(cosine)
    assert rate.value == pytest.approx((cosines >= cosine).mean(), abs=1e-12)
    assert rate.interval is not None  # over queries
    assert rate.interval[0] < rate.value < rate.interval[1]
    among = Tail.of(iso.Space(X)).rate(cosine).value
    assert among > 1.5 * rate.value  # rows have something in common that queries do not have


def test_blocks_of_a_file_give_what_an_array_gives(rng, tmp_path, monkeypatch) -> None:
    X = rng.normal(size=(300, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("isoscope.matching.tail._STRIP_NUMBERS", 500)
    whole, file = Tail.of(iso.Space(X)), Tail.of(iso.open_vectors(tmp_path / "x.npy"))
    assert torch.equal(whole.above, file.above)


@pytest.mark.slow
def test_intervals_of_samples_cover_the_rate_of_all_rows(rng, monkeypatch) -> None:
    """Rows in clusters, so that pairs are far from independent; 100 samples of 80 of 1,000 rows."""
    monkeypatch.setattr("isoscope.matching.tail._FEWEST_ROWS", 80)
    places = 1.5 * rng.normal(size=(10, 16))
    X = iso.Space(places[rng.integers(0, 10, 1000)] + rng.normal(size=(1000, 16)))
    rate = Tail.of(X).rate(0.6).value
    covered = 0
    for seed in range(100):
        interval = Tail.of(X, max_pairs=1, seed=seed).rate(0.6).interval
        assert interval is not None
        covered += interval[0] <= rate <= interval[1]
    assert covered >= 0.95 * 100 - 3 * np.sqrt(100 * 0.05 * 0.95)


def test_copies_and_too_few_pairs(rng) -> None:
    tail = Tail.of(iso.Space(np.repeat(rng.normal(size=(3, 8)), 30, axis=0)))
    assert tail.cosine(0.01) is None  # a third of the pairs are copies
    assert not tail.knows(1e-4)
    with raises(iso.UndefinedError):
        Tail.of(iso.Space(np.array([[0.0, 0.0], [1.0, 0.0]])))
