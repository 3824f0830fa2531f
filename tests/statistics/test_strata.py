from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from isoscope.statistics.strata import Sample, Strata, t95, wanted_sizes


def drawn_sample(y, F, codes, weights, sizes, seed) -> Sample:
    strata = Strata.of(codes, len(weights), generator=torch.Generator().manual_seed(seed))
    index, stratum = strata.draw(torch.zeros_like(strata.counts), sizes)
    means = torch.stack([F[codes == h].mean(dim=0) for h in range(len(weights))])
    return Sample(y[index], F[index], stratum, strata.counts, means, weights)


def population(seed: int = 0):
    """Three strata of unequal size, level and spread; a curved feature explains most of y."""
    rng = np.random.default_rng(seed)
    codes = torch.from_numpy(rng.permutation(np.repeat([0, 1, 2], [1500, 400, 100])))
    x = torch.from_numpy(rng.normal(size=2000))
    noise = torch.from_numpy(rng.normal(size=2000)) * torch.tensor([0.1, 0.3, 1.0])[codes]
    y = 2 * x + 0.3 * x**2 + codes + noise
    return y, torch.stack([x, x**2], dim=1), codes


@pytest.mark.parametrize("freedom", [2, 3, 5, 10, 114, 1e6])
def test_t_quantile(freedom) -> None:
    assert t95(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.01 if freedom < 5 else 1e-3)


def test_draws_are_without_replacement_and_from_their_stratum() -> None:
    codes = torch.tensor([2, 0, -1, 0, 1, 0, -1, 2])
    strata = Strata.of(codes, 3, generator=torch.Generator().manual_seed(3))
    assert strata.counts.tolist() == [3, 1, 2]
    first = torch.tensor([1, 0, 1])
    a, of_a = strata.draw(torch.zeros_like(first), first)
    b, of_b = strata.draw(first, strata.counts)
    assert sorted(torch.cat([a, b]).tolist()) == [0, 1, 3, 4, 5, 7]  # all but those of no stratum, once
    assert torch.equal(codes[a], of_a)
    assert torch.equal(codes[b], of_b)


def test_every_row_is_as_likely() -> None:
    codes = torch.zeros(10, dtype=torch.int64)
    hits = torch.zeros(10)
    for seed in range(2000):
        strata = Strata.of(codes, 1, generator=torch.Generator().manual_seed(seed))
        hits[strata.draw(torch.tensor([0]), torch.tensor([3]))[0]] += 1
    assert stats.chisquare(hits.numpy()).pvalue > 1e-4


def test_without_features_it_is_the_stratified_mean_of_the_textbook() -> None:
    y, F, codes = population()
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    sizes = torch.tensor([30, 20, 10])
    sample = drawn_sample(y, F, codes, weights, sizes, seed=1).plain()
    value = variance = 0.0
    for h, N in enumerate([1500, 400, 100]):
        here = sample.values[sample.stratum == h]
        value += float(weights[h] * here.mean())
        variance += float(weights[h] ** 2 * (1 - len(here) / N) * here.var() / len(here))
    found = sample.estimate()
    assert found.value == pytest.approx(value)
    assert found.error == pytest.approx(math.sqrt(variance), rel=0.05)  # leverages are 1/60 each


def test_cross_fitting_is_what_leaving_out_each_row_gives() -> None:
    y, F, codes = population()
    sample = drawn_sample(y, F, codes * 0, torch.ones(1, dtype=torch.float64), torch.tensor([40]), seed=2)
    design = torch.cat([torch.ones(40, 1, dtype=torch.float64), sample.features], dim=1)
    parts = []
    for i in range(40):
        others = torch.arange(40) != i
        beta = torch.linalg.lstsq(design[others], sample.values[others]).solution[1:]
        parts.append(sample.values[i] + (sample.means[0] - sample.features[i]) @ beta)
    assert sample.estimate().value == pytest.approx(float(torch.stack(parts).mean()), rel=1e-9)


@pytest.mark.parametrize("weights", [[0.75, 0.2, 0.05], [1 / 3, 1 / 3, 1 / 3]])
def test_error_is_the_spread_of_the_estimates_and_the_interval_holds(weights) -> None:
    y, F, codes = population()
    weights = torch.tensor(weights, dtype=torch.float64)
    truth = sum(float(weights[h] * y[codes == h].mean()) for h in range(3))
    found = [
        drawn_sample(y, F, codes, weights, torch.tensor([60, 40, 20]), seed).estimate() for seed in range(400)
    ]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(400)
    assert np.mean([one.error for one in found]) == pytest.approx(values.std(), rel=0.12)
    assert np.mean([abs(one.value - truth) <= one.half_width for one in found]) > 0.92


def test_a_census_is_exact() -> None:
    y, F, codes = population()
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    found = drawn_sample(y, F, codes, weights, torch.bincount(codes), seed=0).estimate()
    truth = sum(float(weights[h] * y[codes == h].mean()) for h in range(3))
    assert found.value == pytest.approx(truth, abs=1e-12)
    assert found.error == 0


def test_a_stratum_taken_whole_adds_no_error() -> None:
    y, F, codes = population()
    y = y + 100 * (codes == 2) * torch.randn(len(y), generator=torch.Generator().manual_seed(0))
    weights = torch.ones(3, dtype=torch.float64) / 3
    found = drawn_sample(y, F, codes, weights, torch.tensor([60, 40, 100]), seed=0).estimate()
    truth = sum(float(y[codes == h].mean()) / 3 for h in range(3))
    assert found.error < 0.05
    assert found.value == pytest.approx(truth, abs=4 * found.error)


def test_sizes_follow_neyman_and_reach_the_tolerance() -> None:
    y, F, codes = population()
    weights = torch.ones(3, dtype=torch.float64) / 3
    sample = drawn_sample(y, F, codes, weights, torch.tensor([40, 40, 40]), seed=0)
    found = sample.estimate()
    sizes = wanted_sizes(sample, found, 0.5 * found.half_width)
    assert 40 == sizes[0] <= sizes[1] < sizes[2] <= 100  # in step with the spreads 0.1, 0.3, 1.0
    again = drawn_sample(y, F, codes, weights, sizes, seed=0).estimate()
    assert again.half_width == pytest.approx(0.5 * found.half_width, rel=0.3)


def test_features_that_say_the_same_do_no_harm() -> None:
    y, F, codes = population()
    twice = torch.cat([F, F, torch.ones(len(F), 1, dtype=torch.float64)], dim=1)
    weights = torch.ones(1, dtype=torch.float64)
    once = drawn_sample(y, F, codes * 0, weights, torch.tensor([80]), seed=0).estimate()
    found = drawn_sample(y, twice, codes * 0, weights, torch.tensor([80]), seed=0).estimate()
    assert found.value == pytest.approx(once.value, rel=1e-9)
    assert found.error == pytest.approx(once.error, rel=1e-6)
