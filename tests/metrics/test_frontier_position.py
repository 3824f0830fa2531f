import json

import numpy as np
import pytest

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.frontier import between_share, isotropy_ceiling, scatter_decomposition
from isoscope.metrics.frontier_position import frontier_position
from isoscope.metrics.isotropy import isoscore
from isoscope.space import Space

K, D = 4, 30
COUNTS = np.array([5, 8, 12, 20])
LABELS = np.repeat(np.arange(K), COUNTS)


def population(seed=0):
    """Means and factors of the covariance of each label, with ρ and IsoScore of the whole."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(K, D)) * 0.4
    factors = [rng.normal(size=(D, D)) * 0.1 * k + np.diag(rng.uniform(0.2, 1, D)) for k in range(1, K + 1)]
    p = COUNTS / COUNTS.sum()
    W = sum(share * factor @ factor.T for share, factor in zip(p, factors, strict=True))
    offsets = means - p @ means
    B = (offsets * p[:, None]).T @ offsets
    return means, factors, W, B


def draw(means, factors, rng):
    parts = [means[k] + rng.normal(size=(COUNTS[k], D)) @ factors[k].T for k in range(K)]
    return np.vstack(parts)


def test_plain_is_the_decomposition():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(45, D)) + 2 * rng.normal(size=(K, D))[LABELS]
    found, split = frontier_position(X, LABELS), scatter_decomposition(X, LABELS)
    assert (found.n, found.n_labels, found.n_dims, found.knee) == (45, K, D, (K - 1) / D)
    assert found.between_share == pytest.approx(split.between_share, rel=1e-12)
    assert (found.isoscore, found.ceiling) == (split.isoscore, pytest.approx(split.ceiling, rel=1e-12))
    assert found.distance == pytest.approx(split.distance, rel=1e-12)
    assert found.sample_ceiling == isotropy_ceiling(K, D, between=found.between_share, n_points=45)
    assert isotropy_ceiling(K, D, between=found.between_ceiling) == pytest.approx(found.isoscore, rel=1e-9)
    assert json.loads(json.dumps(found.to_dict()))["between_share"] == found.between_share
    assert frontier_position(Space(X, labels=LABELS)) == found


@pytest.mark.slow
def test_debiased_share_is_right_on_average():
    means, factors, W, B = population()
    truth = np.trace(B) / np.trace(W + B)
    rng = np.random.default_rng(2)
    runs = [draw(means, factors, rng) for _ in range(200)]
    plain = np.mean([between_share(X, LABELS) for X in runs])
    found = [frontier_position(X, LABELS, debias=True) for X in runs]
    fair = np.array([one.between_share for one in found])
    assert plain > 1.3 * truth
    assert fair.mean() == pytest.approx(truth, abs=4 * fair.std() / np.sqrt(len(runs)))
    score = np.mean([one.isoscore for one in found])
    true_score = (np.trace(W + B) ** 2 / ((W + B) ** 2).sum() - 1) / (D - 1)
    assert abs(score - true_score) < 0.2 * abs(np.mean([isoscore(X) for X in runs]) - true_score)
    for name in ("between_share", "isoscore", "distance"):
        spread = np.std([getattr(one, name) for one in found])
        stated = np.mean([getattr(one, f"{name}_se") for one in found])
        assert 0.8 * spread < stated < 1.8 * spread  # the jackknife errs on the side of caution


@pytest.mark.parametrize("debias", [False, True])
def test_standard_errors_by_leaving_each_out(debias):
    rng = np.random.default_rng(3)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 3])  # one label of a single point
    X = rng.normal(size=(10, 3)) + rng.normal(size=(4, 3))[labels]
    found = frontier_position(X, labels, debias=debias)
    rest = [frontier_position(np.delete(X, i, axis=0), np.delete(labels, i), debias=debias) for i in range(9)]
    without_single = np.delete(X, 9, axis=0), np.delete(labels, 9)
    rest.append(frontier_position(*without_single, debias=debias))
    shares = np.array([one.between_share for one in rest])
    assert found.between_share_se == pytest.approx(np.sqrt(9 / 10 * ((shares - shares.mean()) ** 2).sum()))
    scores = np.array([one.isoscore for one in rest])
    assert found.isoscore_se == pytest.approx(np.sqrt(9 / 10 * ((scores - scores.mean()) ** 2).sum()))
    gaps = np.array([isotropy_ceiling(4, 3, between=max(0, r)) for r in shares]) - scores
    assert found.distance_se == pytest.approx(np.sqrt(9 / 10 * ((gaps - gaps.mean()) ** 2).sum()), abs=1e-12)
    low, high = found.interval("between_share")
    assert high - low == pytest.approx(2 * 1.959964 * found.between_share_se, rel=1e-6)


def test_a_label_with_one_point_is_lent_the_pooled_spread():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0], [5.0, 3.0], [9.0, 9.0]])
    labels = [0, 0, 1, 1, 2]
    found = frontier_position(X, labels, debias=True)
    spread = np.array([2.0, 2.0, 4.0 / 2])  # tr W_k: own, own, pooled over n − K = 2
    counts = np.array([2, 2, 1])
    means = np.array([[1.0, 0.0], [5.0, 2.0], [9.0, 9.0]])
    between = counts @ ((means - X.mean(axis=0)) ** 2).sum(axis=1) - (1 - counts / 5) @ spread
    assert found.between_share == pytest.approx(between / (between + counts @ spread), rel=1e-12)


def test_noise_has_no_share_between_labels():
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(60, 40)), np.arange(60) % 15
    plain, fair = frontier_position(X, labels), frontier_position(X, labels, debias=True)
    assert plain.between_share == pytest.approx(14 / 59, abs=0.03)
    assert abs(fair.between_share) < 3 * fair.between_share_se
    assert fair.ceiling == 1


def test_one_label_and_many_blocks():
    X = np.random.default_rng(5).normal(size=(30, 4))
    for debias in (False, True):
        one = frontier_position(X, ["a"] * 30, debias=debias)
        assert (one.between_share, one.ceiling, one.between_share_se) == (0, 1, 0)


def test_undefined():
    X = np.random.default_rng(6).normal(size=(6, 4))
    with pytest.raises(UndefinedError, match="one each"):
        frontier_position(X, range(6), debias=True)
    assert frontier_position(X, range(6)).between_share == 1
    with pytest.raises(UndefinedError, match="at least 4 vectors"):
        frontier_position(X[:3], [0, 0, 1], debias=True)
    few = frontier_position(X[:4], [0, 0, 1, 1])
    assert few.between_share_se is None
    assert few.interval("distance") is None
    # without one point of the only pair, no spread within labels is left
    assert frontier_position(X, [0, 0, 1, 2, 3, 4], debias=True).between_share_se is None
    with pytest.raises(InputError, match="`labels` is missing"):
        frontier_position(X)
