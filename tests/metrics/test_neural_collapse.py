"""Neural collapse: closed forms on a simplex, brute force in float64, scikit-learn, and a trained network."""

import math

import numpy as np
import pytest
import torch
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid
from tests.populations import collapse_truth
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, LabelError, ShapeError, UndefinedError
from isoscope.metrics import (
    class_collapse,
    class_mean_simplex_angle,
    nc1,
    nc1_debiased,
    nc2,
    nc2_debiased,
    nc2_equiangular,
    nc2_equinorm,
    nc3,
    nc4,
    nc4_debiased,
)
from isoscope.metrics.collapse_debiased import LabelNoise, fair_squares
from isoscope.space import Space
from isoscope.statistics.collapse import LabelCollapse
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments

ON_MEANS = [nc2, nc2_equinorm, nc2_equiangular, class_mean_simplex_angle]


def simplex(K, d, seed=0):
    """(K, d) means of a simplex of unit vectors about 0, in random directions."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0][:K]
    centred = basis - basis.mean(axis=0)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def collapsed(means, spread, offset=0.0):
    """Rows at ± spread along every axis about each mean: Σ_W = spread²/d·I exactly; and their labels."""
    d = means.shape[1]
    steps = spread * np.vstack([np.eye(d), -np.eye(d)])
    return (means[:, None] + steps).reshape(-1, d) + offset, np.repeat(np.arange(len(means)), 2 * d)


def uneven(seed=0, K=4, d=6, n=90):
    rng = np.random.default_rng(seed)
    labels = rng.choice(K, size=n, p=np.arange(1, K + 1) / (K * (K + 1) / 2))
    return rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + 3 * rng.normal(size=(K, d))[labels] + 5, labels


def parts(X, labels):
    """Σ_W, Σ_B and the means about their mean, as the paper has them."""
    means = np.array([X[labels == k].mean(axis=0) for k in np.unique(labels)])
    residuals = X - means[np.searchsorted(np.unique(labels), labels)]
    M = means - means.mean(axis=0)
    return residuals.T @ residuals / len(X), M.T @ M / len(M), M


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize(("K", "d"), [(2, 3), (4, 6), (10, 64)])
def test_a_simplex_has_the_values_of_its_closed_form(K, d, offset):
    X, labels = collapsed(simplex(K, d), spread=0.1, offset=offset)
    within = 0.1**2 / d  # variance in every direction; G has the eigenvalue K/(K − 1), K − 1 times
    assert nc1(X, labels) == pytest.approx(within * (K - 1) ** 2 / K, rel=1e-8)
    for metric in (nc2, nc2_equinorm, nc2_equiangular):
        assert metric(X, labels) == pytest.approx(0, abs=1e-6 if offset else 1e-7)
    assert class_mean_simplex_angle(X, labels) == pytest.approx(0, abs=1e-3 if offset else 1e-5)
    assert nc3(X, labels) == pytest.approx(0, abs=1e-9)
    assert nc3(X, labels, classifier=7 * simplex(K, d)) == pytest.approx(0, abs=1e-9)
    assert nc4(X, labels) == nc4_debiased(X, labels) == 0


@pytest.mark.parametrize("spread", [1e-4, 1e-7, 1e-10])
def test_no_digits_are_lost_however_far_the_collapse_has_gone(spread):
    X, labels = collapsed(simplex(5, 8), spread)
    Y = X.astype(np.float32)
    assert nc1(X, labels) == pytest.approx(spread**2 / 8 * 16 / 5, rel=max(1e-8, 1e-15 / spread))
    assert nc1(Y, labels) == pytest.approx(nc1(Y.astype(np.float64), labels), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize(("K", "rank", "d"), [(4, 1, 64), (9, 5, 20), (12, 8, 8)])
def test_rounding_of_the_vectors_adds_no_direction_to_the_means(K, rank, d, offset):
    """Means of low rank, stored in float32: rounding gives them K − 1 directions."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(K, rank)) @ rng.normal(size=(rank, d))
    X, labels = collapsed(means, 0.1, offset)
    expected = collapse_truth(means, np.full(d, 0.1**2 / d))["nc1"]
    stored = X.astype(np.float32)
    assert np.linalg.matrix_rank(parts(stored.astype(np.float64), labels)[2]) > rank or rank == d
    assert nc1(X, labels) == pytest.approx(expected, rel=1e-10)
    assert nc1(stored, labels) == pytest.approx(expected, rel=1e-4 if offset else 1e-6)
    assert nc1(torch.from_numpy(X).bfloat16(), labels) == pytest.approx(expected, rel=0.05) or offset
    groups = GroupMoments.of(stored[:99], labels[:99]).merge(GroupMoments.of(stored[99:], labels[99:]))
    assert len(groups.lengths_along) == rank


def test_arithmetic_at_a_large_offset_adds_no_direction_to_the_means():
    """Means of rank 2 that were moved in float64 at an offset of 1,000 miss their plane by a few ulps."""
    rng = np.random.default_rng(5)
    plane = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 40))
    labels = np.repeat(np.arange(6), 50)
    X = plane[labels] + 0.1 * rng.normal(size=(300, 40)) + 1000
    for k in range(6):
        X[labels == k] += plane[k] + 1000 - X[labels == k].mean(axis=0)
    assert len(GroupMoments.of(X, labels).lengths_along) == 2
    within, between, _ = parts(X - 1000, labels)
    assert nc1(X, labels) == pytest.approx(np.trace(within @ np.linalg.pinv(between, 1e-12)) / 6, rel=1e-6)


def test_short_directions_of_the_means_stay_though_another_coordinate_is_large():
    """A coordinate of 1e4 is stored to 4e-4, the others to 4e-8: means differ by 1e-3 in these."""
    rng = np.random.default_rng(0)
    means = 1e-3 * rng.normal(size=(6, 30))
    means[:, 0] = 1e4
    X = (means[np.arange(600) % 6] + 1e-3 * rng.normal(size=(600, 30))).astype(np.float32)
    assert len(GroupMoments.of(X, np.arange(600) % 6).lengths_along) == 5


def test_uneven_labels_against_brute_force_in_float64():
    X, labels = uneven()
    within, between, M = parts(X, labels)
    K = len(M)
    assert nc1(X, labels) == pytest.approx(np.trace(within @ np.linalg.pinv(between)) / K, rel=1e-10)
    G = M @ M.T
    assert nc2(X, labels) == pytest.approx(collapse_truth(M, np.ones(6))["nc2"], rel=1e-10)
    lengths = np.linalg.norm(M, axis=1)
    assert nc2_equinorm(X, labels) == pytest.approx(lengths.std() / lengths.mean(), rel=1e-10)
    cosines = (G / np.outer(lengths, lengths))[np.triu_indices(K, 1)]
    assert nc2_equiangular(X, labels) == pytest.approx(cosines.std(), rel=1e-10)
    angles = np.degrees(np.abs(np.arccos(cosines) - np.arccos(-1 / (K - 1))))
    assert class_mean_simplex_angle(X, labels) == pytest.approx(angles.mean(), rel=1e-10)


@pytest.mark.parametrize("d", [6, 200], ids=["n>d", "n<d"])
def test_the_classifier_of_nc3_is_that_of_regularised_least_squares(d):
    rng = np.random.default_rng(1)
    labels = np.arange(80) % 4
    X = rng.normal(size=(80, d)) * np.linspace(0.2, 2, d) + rng.normal(size=(4, d))[labels]
    share = ledoit_wolf_shrinkage(X)
    assert share > 0.01
    penalty = len(X) * share / (1 - share) * X.var(axis=0).sum() / d
    fitted = Ridge(alpha=penalty).fit(X, np.eye(4)[labels]).coef_
    assert nc3(X, labels) == pytest.approx(nc3(X, labels, classifier=fitted), rel=1e-8)


def test_nc3_of_uneven_labels_counts_them_alike():
    X, labels = uneven()
    within, between, M = parts(X, labels)
    covariance, share = within + between, ledoit_wolf_shrinkage(X)
    shrunk = (1 - share) * covariance + share * np.trace(covariance) / 6 * np.eye(6)
    W = M @ np.linalg.inv(shrunk)
    dual = np.linalg.norm(W / np.linalg.norm(W) - M / np.linalg.norm(M)) ** 2
    assert nc3(X, labels) == pytest.approx(dual, rel=1e-9)


def test_more_labels_than_dimensions_and_two_labels():
    X, labels = uneven(seed=3, K=9, d=4, n=400)
    within, between, _ = parts(X, labels)
    assert nc1(X, labels) == pytest.approx(np.trace(within @ np.linalg.inv(between)) / 9, rel=1e-10)
    two = labels % 2
    assert [metric(X, two) for metric in ON_MEANS] == pytest.approx([0, 0, 0, 0], abs=1e-5)
    assert nc2_debiased(X, two) == 0


@pytest.mark.parametrize(("n", "d"), [(90, 6), (24, 40)], ids=["n>d", "n<d"])
def test_nc4_is_the_disagreement_with_scikit_learns_nearest_centroid(n, d):
    rng = np.random.default_rng(2)
    labels = rng.permutation(np.arange(n) % 4)
    X = rng.normal(size=(n, d)) + 2 / math.sqrt(d) * rng.normal(size=(4, d))[labels]
    nearest = NearestCentroid().fit(X, labels).predict(X)
    assert nc4(X, labels) == pytest.approx((nearest != labels).mean())
    n_missed = 0
    for i in range(n):
        means = NearestCentroid().fit(np.delete(X, i, 0), np.delete(labels, i)).centroids_
        squared = ((X[i] - means) ** 2).sum(axis=1)
        own = X[labels == labels[i]]
        squared[labels[i]] -= own.var(axis=0, ddof=1).sum() / (len(own) * (len(own) - 1))
        n_missed += int(squared.argmin() != labels[i])
    assert 0 < nc4_debiased(X, labels) == pytest.approx(n_missed / n)
    W, b = rng.normal(size=(4, d)), rng.normal(size=4)
    decisions = (X @ W.T + b).argmax(axis=1)
    assert nc4(X, labels, classifier=(W, b)) == pytest.approx((nearest != decisions).mean())
    always_third = (W, [0, 0, 1e9, 0])
    assert nc4(X, labels, classifier=always_third) == pytest.approx((nearest != 2).mean())


@pytest.mark.parametrize(("n", "K", "length"), [(10, 2, 0.0), (50, 10, 6.0)])
def test_nc4_debiased_is_the_error_on_unseen_rows(n, K, length):
    found, true = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        means = length * np.eye(K, 400)
        labels, unseen = np.arange(n) % K, np.arange(100) % K
        X, Y = (rng.normal(size=(len(y), 400)) + means[y] for y in (labels, unseen))
        found.append(nc4_debiased(X, labels))
        true.append((NearestCentroid().fit(X, labels).predict(Y) != unseen).mean())
    assert np.mean(found) == pytest.approx(np.mean(true), abs=0.1)


@pytest.mark.slow
def test_digits_trained_into_the_terminal_phase():
    """A network trained long after it makes no errors: every measure falls towards 0, as the paper has it."""
    digits = load_digits()
    X = torch.tensor(digits.data[:300] / 16, dtype=torch.float32)
    y = torch.tensor(digits.target[:300])
    torch.manual_seed(0)
    body = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.BatchNorm1d(128), torch.nn.ReLU(),
        torch.nn.Linear(128, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(),
    )  # fmt: skip
    head = torch.nn.Linear(64, 10)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=2e-3)
    history = []
    for step in range(201):
        if step in (0, 40, 200):
            Z, classifier = body(X).detach(), (head.weight.detach(), head.bias.detach())
            wrong = float((head(Z).argmax(dim=1) != y).float().mean())
            geometry = [metric(Z, y) for metric in (nc1, nc2, class_mean_simplex_angle, nc3, nc4)]
            given = [metric(Z, y, classifier=classifier) for metric in (nc3, nc4)]
            history.append([wrong, *geometry, *given])
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(head(body(X)), y).backward()
        optimizer.step()
    before, fitted, terminal = history
    assert fitted[0] < 0.01
    assert terminal[0] == 0
    assert all(late < 0.5 * early for late, early in zip(terminal[1:], before[1:], strict=True))
    assert terminal[1] < 0.5 * fitted[1]
    assert (terminal[-1], terminal[5]) == (0, 0)


def test_parts_of_each_label_average_to_the_whole():
    X, labels = uneven(seed=4)
    by_label = class_collapse(X, np.array(list("dbca"))[labels])
    counts = np.array(by_label.counts)
    assert by_label.labels == ("a", "b", "c", "d")
    assert np.average(by_label.nc1, weights=counts) == pytest.approx(nc1(X, labels))
    assert np.average(by_label.nc4, weights=counts) == pytest.approx(nc4(X, labels))
    assert np.average(by_label.nc4_debiased, weights=counts) == pytest.approx(nc4_debiased(X, labels))
    assert np.std(by_label.relative_lengths) == pytest.approx(nc2_equinorm(X, labels))
    assert class_collapse(*collapsed(simplex(4, 6), 0.1)).largest_cosines == pytest.approx([-1 / 3] * 4)
    assert "relative_length" in str(by_label)
    assert by_label.to_pandas().shape == (4, 7)


def test_whole_weights_count_as_repeated_rows():
    X, labels = uneven(seed=5, n=60)
    weights = np.random.default_rng(0).integers(0, 4, size=60)
    weights[np.unique(labels, return_index=True)[1]] = 2  # every label counts
    names = ["nc1", "nc2", "nc2_equinorm", "nc3", "nc4", "nc4_debiased", "nc1_debiased", "nc2_debiased"]
    weighted = iso.measure(X, labels=labels, weights=weights, metrics=names)
    repeated = iso.measure(X.repeat(weights, 0), labels=labels.repeat(weights), metrics=names)
    for name in names:
        assert weighted[name] == pytest.approx(repeated[name], rel=1e-9), name


def draws(K, n_rows, d, means, n_draws, tails=False):
    labels = np.arange(n_rows) % K
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        noise = (
            rng.standard_t(5, size=(n_rows, d)) * math.sqrt(3 / 5) if tails else rng.normal(size=(n_rows, d))
        )
        yield noise * np.geomspace(1, 0.3, d) + means[labels], labels


@pytest.mark.parametrize("tails", [False, True], ids=["normal", "Student t5"])
def test_debiased_values_have_no_bias_with_fewer_rows_than_dimensions(tails):
    K, n, d = 4, 40, 120
    means = np.linalg.qr(np.random.default_rng(7).normal(size=(d, K)))[0].T * [[6], [8], [10], [12]]
    truth = collapse_truth(means, np.geomspace(1, 0.3, d) ** 2)
    registry = iso.registered()
    readings = {name: [] for name in ("nc1", "nc2", "nc1_debiased", "nc2_debiased")}
    for X, labels in draws(K, n, d, means, 40, tails):
        shelf = Statistics(Space(X, labels=labels))
        for name, values in readings.items():
            values.append((registry[name].compute(shelf), registry[name].error(shelf)))
    for name in ("nc1", "nc2"):
        plain, fair = np.array(readings[name]), np.array(readings[f"{name}_debiased"])
        standard_error = fair[:, 0].std() / math.sqrt(40)
        assert abs(fair[:, 0].mean() - truth[name]) < 4 * standard_error
        assert abs(plain[:, 0].mean() - truth[name]) > 4 * plain[:, 0].std() / math.sqrt(40)
        covered = np.abs(fair[:, 0] - truth[name]) < 1.96 * fair[:, 1]
        assert covered.mean() >= 0.85
        assert 0.6 < fair[:, 1].mean() / fair[:, 0].std() < 1.7


def test_squares_of_the_gram_matrix_are_unbiased_where_chance_outweighs_the_means():
    K, n, d = 4, 16, 300
    means = np.linalg.qr(np.random.default_rng(8).normal(size=(d, K)))[0].T * [[3], [4], [5], [6]]
    M = means - means.mean(axis=0)
    G = M @ M.T
    found = []
    for X, labels in draws(K, n, d, means, 150):
        groups = GroupMoments.of(X, labels)
        noise = LabelNoise.of(LabelCollapse.of(X, labels, groups), Moments.of(X), "nc2_debiased")
        found.append([float(square) for square in fair_squares(noise)])
    squares = np.array(found)
    standard_errors = squares.std(axis=0) / math.sqrt(len(squares))
    truth = np.array([np.trace(G) ** 2, (G * G).sum()])
    assert (np.abs(squares.mean(axis=0) - truth) < 3.5 * standard_errors).all()
    assert (standard_errors < 0.1 * truth).all()


def test_what_has_no_value_says_so():
    X, labels = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), [0, 0, 1, 1]
    for metric in (nc1, nc3, nc4, nc4_debiased, class_collapse, *ON_MEANS):
        with pytest.raises(UndefinedError, match="the means of all 2 labels are equal"):
            metric(X, labels)
    noise = np.random.default_rng(0).normal(size=(30, 20))
    with pytest.raises(UndefinedError, match="by more than chance"):
        nc1_debiased(noise, np.arange(30) % 3)
    with pytest.raises(LabelError):
        nc1(X, [0, 0, 0, 0])
    one_between = np.array([[-1.0], [-1.0], [0.0], [0.0], [1.0], [1.0]])
    with pytest.raises(UndefinedError, match="has no direction"):
        nc2_equiangular(one_between, [0, 0, 1, 1, 2, 2])
    collapsed_wholly = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    labels = [0, 0, 1, 1, 2, 2]
    assert nc1(collapsed_wholly, labels) == nc1_debiased(collapsed_wholly, labels) == 0
    assert nc2_debiased(collapsed_wholly, labels) == pytest.approx(0, abs=1e-7)
    of_lengths = collapsed_wholly * [1.0, 2.0, 3.0]
    assert nc2_debiased(of_lengths, labels) == pytest.approx(nc2(of_lengths, labels))
    measured = iso.measure(collapsed_wholly, labels=labels, metrics=["nc1", "nc1_debiased"], errors=True)
    assert [one.standard_error for one in measured.readings] == [0, pytest.approx(0, abs=1e-12)]
    with raises(InputError, argument="X"):
        nc1_debiased(
            1e-80 * np.random.default_rng(0).normal(size=(30, 4)) + np.eye(4)[np.arange(30) % 3],
            np.arange(30) % 3,
        )


def test_a_classifier_of_another_shape_is_refused():
    X, labels = uneven()
    with raises(ShapeError, argument="classifier"):
        nc3(X, labels, classifier=np.ones((3, 6)))
    with raises(ShapeError, argument="classifier"):
        nc4(X, labels, classifier=(np.ones((4, 6)), np.ones(3)))
    with pytest.raises(UndefinedError, match="weights of the classifier are zero"):
        nc3(X, labels, classifier=np.zeros((4, 6)))
    statistic = LabelCollapse.of(X, labels, GroupMoments.of(X, labels))
    with raises(InputError, argument="classifier"):
        nc4(statistic, classifier=np.ones((4, 6)))


@pytest.mark.parametrize("K", [3, 5])
def test_the_largest_difference_in_length_is_that_of_two_opposite_means(K: int) -> None:
    means = np.zeros((K, 2))
    means[0], means[1] = [1.0, 2.0], [-1.0, -2.0]
    value = iso.metrics.nc2_equinorm(np.repeat(means, 2, axis=0), np.repeat(np.arange(K), 2))
    assert value == pytest.approx(np.sqrt(K / 2 - 1))
