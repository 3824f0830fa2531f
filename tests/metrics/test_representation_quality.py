"""α-ReQ, LiDAR, CLID and RankMe debiased: other packages, brute force in float64, known populations."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.populations import rank_truth
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics import (
    alpha_req,
    clid,
    cluster_learnability,
    lidar,
    nesum,
    population_spectrum,
    power_law_exponent,
    rankme,
    rankme_debiased,
    twonn,
)
from isoscope.metrics.registry import choose
from isoscope.space import Space
from isoscope.statistics.eigenvalue_noise import EigenvalueNoise
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.moments import Moments


def entropy_rank(shares):
    shares = shares[shares > 0]
    return math.exp(-np.sum(shares * np.log(shares)))


@pytest.mark.parametrize("delta", [1e-4, 0.5])
@pytest.mark.parametrize("shape", [(90, 7), (30, 60)], ids=["n>d", "n<d"])
def test_lidar_against_brute_force(shape, delta):
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.arange(shape[0]) % 6)
    labels[labels == 5] = 4  # uneven groups
    X = rng.normal(size=shape) + 2 * rng.normal(size=(6, shape[1]))[labels] + 3
    means = np.array([X[labels == k].mean(axis=0) for k in range(5)])
    residuals = X - means[labels]
    within = residuals.T @ residuals / (len(X) - 5) + delta * np.eye(shape[1])
    values, vectors = np.linalg.eigh(within)
    root = vectors / np.sqrt(values) @ vectors.T
    eigenvalues = np.linalg.eigvalsh(root @ np.cov(means.T) @ root).clip(0)
    assert lidar(X, labels, delta=delta) == pytest.approx(
        entropy_rank(eigenvalues / eigenvalues.sum() + 1e-7), rel=1e-8
    )


def test_lidar_counts_the_directions_in_which_groups_differ():
    steps = 0.1 * np.vstack([np.eye(8), -np.eye(8)])
    for n_directions in (1, 3, 6):
        means = np.vstack([np.eye(8)[:n_directions], -np.eye(8)[:n_directions]])
        X = (means[:, None] + steps).reshape(-1, 8)
        labels = np.repeat(np.arange(len(means)), len(steps))
        assert lidar(X, labels) == pytest.approx(n_directions, rel=1e-4)


def test_lidar_says_why_it_has_no_value():
    X = np.random.default_rng(0).normal(size=(12, 30))
    labels = np.arange(12) % 4
    with raises(InputError, argument="delta"):
        lidar(X, labels, delta=-1.0)
    with pytest.raises(UndefinedError, match="has no inverse"):
        lidar(X, labels, delta=0.0)
    with pytest.raises(UndefinedError, match="means of all 2 groups are equal"):
        lidar([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [0, 0, 1, 1])
    assert lidar(X, labels) > 1


def with_spectrum(values, n, seed=0):
    rng = np.random.default_rng(seed)
    d = len(values)
    centred = rng.normal(size=(n, d))
    Q = np.linalg.qr(centred - centred.mean(axis=0))[0]
    return (Q * np.sqrt(np.asarray(values) * (n - 1))) @ np.linalg.qr(rng.normal(size=(d, d)))[0]


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("d", [20, 150])
def test_alpha_of_an_exact_power_law(alpha, d):
    X = with_spectrum(np.arange(1, d + 1) ** -alpha, 3 * d)
    assert alpha_req(X) == pytest.approx(alpha, abs=1e-8)


def test_alpha_weights_the_first_ranks_and_ends_at_rank_100():
    values = np.arange(1, 151) ** -1.0
    values[40:] *= 0.2  # a step in the tail
    X = with_spectrum(values, 400)
    assert 1 < alpha_req(X) < power_law_exponent(X, first=11, last=100)
    values[100:] *= 0.01
    assert alpha_req(with_spectrum(values, 400)) == pytest.approx(alpha_req(X), rel=1e-6)
    ranks = np.arange(11, 101)
    fitted = np.polyfit(np.log(ranks), np.log(values[10:100]), 1, w=ranks**-0.5)[0]
    assert alpha_req(X) == pytest.approx(-fitted, rel=1e-6)


def test_the_standard_error_of_alpha_is_the_spread_over_samples():
    """Of rows with heavy tails too; its bias, which is small here, is a part of it."""
    rng = np.random.default_rng(0)
    entry = iso.registered()["alpha_req"]
    for draw in (rng.normal, lambda size: rng.standard_t(6, size=size)):
        readings = []
        for _ in range(40):
            shelf = Statistics(Space(draw(size=(1500, 12)) * np.arange(1, 13) ** -1.0))
            readings.append((entry.compute(shelf), entry.error(shelf)))
        values, errors = np.array(readings).T
        assert 0.75 < errors.mean() / values.std() < 1.4


def test_the_error_of_alpha_is_that_of_leaving_out_rows_where_it_has_no_bias():
    X = np.random.default_rng(1).exponential(size=(700, 4)) * [1.0, 0.3, 0.1, 0.03]
    left_out = [alpha_req(np.delete(X, i, 0)) for i in range(700)]
    expected = np.std(left_out) * math.sqrt(699)
    whole = iso.measure(X, metrics="alpha_req").readings[0]
    assert whole.standard_error == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("rows_for_each", "degrees"), [(2, math.inf), (5, math.inf), (12, 5), (40, 5)])
def test_intervals_of_alpha_hold_with_few_rows(rows_for_each, degrees):
    """They missed the truth: the bias is many times the spread, and more where the lengths of rows vary."""
    d, alpha = 30, 1.0
    rng = np.random.default_rng(2)
    held = []
    for _ in range(30):
        X = rng.normal(size=(rows_for_each * d, d)) * np.arange(1, d + 1) ** (-alpha / 2)
        if degrees < math.inf:
            X /= np.sqrt(rng.chisquare(degrees, size=(len(X), 1)))
        reading = iso.measure(X, metrics="alpha_req").readings[0]
        if reading.standard_error is not None:
            held.append(abs(reading.value - alpha) < 1.96 * reading.standard_error)
    assert len(held) > 10
    assert np.mean(held) > 0.85


def test_the_error_of_alpha_is_withheld_where_the_bias_could_be_all():
    entry = iso.registered()["alpha_req"]
    flat = np.random.default_rng(0).normal(size=(400, 80))
    with pytest.raises(UndefinedError, match="hides whether the spectrum decays"):
        entry.error(Statistics(Space(flat)))
    with pytest.raises(UndefinedError, match="n ≥ 2d"):
        entry.error(Statistics(Space(flat[:100])))


def test_the_error_of_alpha_streams(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 6)) / np.arange(1, 7)
    np.save(tmp_path / "x.npy", X)
    streamed = iso.measure(
        iso.open_vectors(tmp_path / "x.npy"), metrics="alpha_req", progress=False
    ).readings[0]
    whole = iso.measure(X, metrics="alpha_req").readings[0]
    assert streamed.standard_error == pytest.approx(whole.standard_error, rel=1e-9)
    parts = [EigenvalueNoise.of(rows, Moments.of(X)) for rows in (X[:100], X[100:])]
    assert np.allclose(parts[0].merge(parts[1]).products, EigenvalueNoise.of(X, Moments.of(X)).products)


def test_nesum_is_the_stable_rank():
    X = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1, 7)
    values = np.linalg.eigvalsh(np.cov(X.T))
    assert nesum(X) == pytest.approx((values / values[-1]).sum())
    assert [metric.name for metric in choose("nesum")] == ["stable_rank"]
    assert iso.measure(X, metrics="nesum")["stable_rank"] == pytest.approx(nesum(X))


SPECTRA = {
    "flat": np.ones(300),
    "geometric": np.geomspace(1, 1e-3, 300),
    "low rank": np.r_[np.ones(40), np.full(260, 1e-7)],
    "power law": np.arange(1, 301) ** -1.0,
}


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_rankme_debiased_is_that_of_the_population(spectrum):
    variances = SPECTRA[spectrum]
    truth = rank_truth(variances)
    rng = np.random.default_rng(2)
    for n, tolerance in ((100, 0.15), (600, 0.02)):
        X = rng.normal(size=(n, 300)) * np.sqrt(variances)
        assert rankme_debiased(X) == pytest.approx(truth, rel=tolerance)
        assert abs(rankme_debiased(X) - truth) < max(0.6 * abs(rankme(X) - truth), 0.02 * truth)


def test_rankme_debiased_of_few_digits_is_rankme_of_all():
    digits = load_digits().data
    rows = np.random.default_rng(0).permutation(len(digits))[:48]
    assert rankme(digits[rows]) == pytest.approx(23, abs=2)
    assert rankme_debiased(digits[rows]) == pytest.approx(rankme(digits), rel=0.1)


def test_a_mean_counts_in_rankme_debiased():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 300)) + 3.0
    values = np.r_[np.ones(299), 1 + 300 * 9.0]
    assert rankme_debiased(X) == pytest.approx(rank_truth(values), rel=0.03)


def test_the_population_spectrum_has_the_trace_and_adds_up():
    X = np.random.default_rng(0).normal(size=(80, 200)) * np.linspace(0.5, 2, 200)
    values, shares = population_spectrum(X)
    assert float(shares.sum()) == pytest.approx(1)
    assert float(shares @ values) == pytest.approx(1, rel=1e-3)
    assert float(values[0]) == 0


def test_rankme_debiased_says_why_it_has_no_value():
    with pytest.raises(UndefinedError, match="all 4 vectors are zero"):
        rankme_debiased(np.zeros((4, 3)))
    with pytest.raises(UndefinedError, match="right angles"):
        rankme_debiased(np.eye(5))
    with pytest.raises(UndefinedError, match="at least 2"):
        rankme_debiased([[1.0, 2.0]])


def test_cluster_learnability_of_clear_clusters_and_of_none():
    rng = np.random.default_rng(0)
    clear = np.eye(20)[np.arange(400) % 20] + 0.01 * rng.normal(size=(400, 20))
    assert cluster_learnability(clear) == 1
    noise = rng.normal(size=(400, 20))
    assert 0.1 < cluster_learnability(noise) < 0.6
    assert cluster_learnability(noise, n_clusters=1) == 1
    assert cluster_learnability(noise, seed=1) != cluster_learnability(noise, seed=2)
    assert cluster_learnability(noise) == cluster_learnability(noise * 7)
    units = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    assert clid(noise) == pytest.approx(cluster_learnability(noise) + twonn(units) / 20)


def test_cluster_learnability_against_a_loop_over_points():
    from sklearn.cluster import KMeans

    X = np.random.default_rng(4).normal(size=(61, 3))
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    clusters = KMeans(7, n_init=1, random_state=5).fit_predict(units)
    half = np.random.default_rng(5).permutation(61) < 30
    right = 0
    for i in range(61):
        others = np.flatnonzero(half != half[i])
        right += clusters[others[np.linalg.norm(units[others] - units[i], axis=1).argmin()]] == clusters[i]
    assert cluster_learnability(X, seed=5) == pytest.approx(right / 61)


def test_clid_refuses_what_it_cannot_take():
    with raises(InputError, argument="n_clusters"):
        cluster_learnability(np.eye(4), n_clusters=5)
    with pytest.raises(UndefinedError, match="zero vectors"):
        clid(np.vstack([np.eye(4), np.zeros((1, 4))]))
