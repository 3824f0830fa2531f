"""The promises hold as often as they say, in simulations with known rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from isoscope.matching.guarantees import (
    Guarantee,
    false_match_threshold,
    precision_threshold,
)

N_DRAWS = 1000
SLACK = 3 * np.sqrt(0.05 * 0.95 / N_DRAWS)  # three standard errors of a share of 1,000 draws


def draw(rng: np.random.Generator, n: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    matches = rng.random(n) < share
    return np.tanh((rng.normal(size=n) + 2 * matches) / 3), matches


def precision_at(cosine: float, share: float) -> float:
    """The precision of all pairs with at least this cosine, in closed form."""
    z = 3 * np.arctanh(cosine)
    right = share * norm.sf(z - 2)
    return float(right / (right + (1 - share) * norm.sf(z)))


@pytest.mark.parametrize(("n", "share", "target"), [(400, 0.5, 0.9), (1000, 0.3, 0.8), (2000, 0.3, 0.9)])
def test_precision_is_kept(n: int, share: float, target: float) -> None:
    rng = np.random.default_rng(0)
    broken = found = 0
    for seed in range(N_DRAWS):
        cosine = precision_threshold(*draw(rng, n, share), target=target, confidence=0.95, seed=seed)
        if cosine is not None:
            found += 1
            broken += precision_at(cosine, share) < target
    assert broken <= (0.05 + SLACK) * N_DRAWS
    assert found > 0.5 * N_DRAWS  # and not by promising nothing


def test_a_naive_threshold_breaks_the_promise() -> None:
    """The lowest cosine whose observed precision reaches the target keeps it in about half of the draws."""
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(200):
        cosines, matches = draw(rng, 300, 0.5)
        order = np.argsort(-cosines)
        precision = matches[order].cumsum() / np.arange(1, 301)
        broken += precision_at(cosines[order][np.flatnonzero(precision >= 0.9)[-1]], 0.5) < 0.9
    assert broken > 60


def test_precision_where_every_threshold_is_wrong() -> None:
    rng = np.random.default_rng(0)
    broken = 0
    for seed in range(N_DRAWS):  # cosines say nothing: the precision is 0.8 everywhere
        matches = rng.random(400) < 0.8
        broken += (
            precision_threshold(rng.random(400), matches, target=0.8, confidence=0.95, seed=seed) is not None
        )
    assert broken <= (0.05 + SLACK) * N_DRAWS


@pytest.mark.parametrize(("n", "rate"), [(300, 0.05), (1000, 0.01)])
def test_false_match_rate_is_kept(n: int, rate: float) -> None:
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(N_DRAWS):
        cosine = false_match_threshold(rng.random(n), rate=rate, confidence=0.95)
        assert cosine is not None
        broken += 1 - cosine > rate
    assert broken <= (0.05 + SLACK) * N_DRAWS
    assert broken > 0  # the order statistic is the lowest that keeps it


def test_ties_are_not_matches() -> None:
    """Of cosines with few values, those equal to the threshold's order statistic do not match."""
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(N_DRAWS):
        values = rng.integers(0, 10, 500) / 10
        cosine = false_match_threshold(values, rate=0.2, confidence=0.95)
        assert cosine is not None
        broken += np.ceil(round((1 - cosine) * 10, 9) - 1) / 10 > 0.2 + 1e-9
    assert broken <= (0.05 + SLACK) * N_DRAWS


def test_what_a_guarantee_says(rng) -> None:
    cosines, matches = draw(rng, 2000, 0.3)
    found = Guarantee.of("precision", cosines, matches, target=0.8, confidence=0.9)
    assert found.cosine is not None
    above = cosines >= found.cosine
    assert found.precision == pytest.approx(matches[above].mean())
    assert found.recall == pytest.approx((above & matches).sum() / matches.sum())
    assert (found.n_above, found.n_pairs, found.n_matches) == (above.sum(), 2000, matches.sum())
    strict = Guarantee.of("precision", cosines, matches, target=0.9999, confidence=0.9)
    assert (strict.cosine, strict.precision, strict.n_above) == (None, None, 0)
    sure = Guarantee.of("precision", cosines, matches, target=0.8, confidence=0.9999)
    assert sure.cosine is not None
    assert sure.cosine > found.cosine
