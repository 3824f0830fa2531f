import json

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from isoscope.errors import InputError, LabelError, UndefinedError
from isoscope.labels import as_labels
from isoscope.metrics.frontier import between_share, isotropy_ceiling
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.silhouettes import silhouette_by_cluster, silhouette_score
from isoscope.training.trade_off import TradeOff, classified, trade_off
from isoscope.training.weighted_objectives import Problems

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b", "c"], [15, 20, 25])
X = RNG.normal(size=(60, 8)) + RNG.normal(size=(3, 8))[np.unique(Y, return_inverse=True)[1]]


@pytest.fixture(scope="module")
def found():
    return trade_off(X, Y, weights=5, steps=150)


@pytest.mark.slow
def test_every_point_is_measured_and_under_the_frontier(found):
    assert [point.weight for point in found.points] == [0, 0.25, 0.5, 0.75, 1]
    assert (found.n, found.n_labels, found.n_dims) == (60, 3, 8)
    assert found.start.isoscore == pytest.approx(isoscore(X))
    assert found.start.silhouette == pytest.approx(silhouette_score(X, Y), abs=1e-6)
    for point, space in zip(found.points, found.spaces, strict=True):
        assert point.isoscore == pytest.approx(isoscore(space))
        assert point.between_share == pytest.approx(between_share(space, Y))
        assert point.silhouette == pytest.approx(silhouette_score(space, Y), abs=1e-6)
        assert point.lowest_silhouette == pytest.approx(min(silhouette_by_cluster(space, Y).values()))
        assert point.ceiling == isotropy_ceiling(3, 8, between=point.between_share, n_points=60)
        assert point.isoscore <= point.ceiling + 1e-9
        assert point.distance == pytest.approx(point.ceiling - point.isoscore, abs=1e-9)


@pytest.mark.slow
def test_both_ends_reach_their_best_and_the_middle_lies_between(found):
    first, last = found.points[0], found.points[-1]
    assert first.silhouette > 0.9
    assert last.isoscore > 0.999
    scores = [point.isoscore for point in found.points]
    assert scores == sorted(scores)
    silhouettes = [point.silhouette for point in found.points]
    assert silhouettes == sorted(silhouettes, reverse=True)
    assert 0.2 < found.points[2].isoscore < 0.95  # where a weighted sum would jump
    assert found.points[2].distance < 0.1


@pytest.mark.slow
def test_a_weighted_sum_jumps_over_the_middle():
    linear = trade_off(X, Y, weights=5, steps=150, scalarization="linear")
    scores = np.array([point.isoscore for point in linear.points])
    assert np.diff(scores).max() > 0.4


@pytest.mark.parametrize("second", ["between_share", "cross_entropy", "accuracy"])
def test_other_objectives(second):
    found = trade_off(X, Y, objectives=("isoscore", second), weights=[0.5], steps=60)
    assert [point.weight for point in found.points] == [0, 0.5, 1]
    best = found.points[0]
    assert best.cross_entropy < found.start.cross_entropy
    assert best.accuracy >= found.start.accuracy
    assert best.between_share > found.start.between_share


def test_objectives_are_the_metrics_and_have_slopes():
    labels = as_labels(Y)
    rows = torch.tensor(X)
    names = (("isoscore", "silhouette"), ("between_share", "cross_entropy"))
    for pair in names:
        problems = Problems(rows, labels, pair, 1e-2)
        spaces = torch.stack([rows, rows * 3 + 5, rows**2])
        values = problems.values(spaces)
        known = {
            "isoscore": [isoscore(space) for space in spaces],
            "silhouette": [silhouette_score(space, Y) for space in spaces],
            "between_share": [between_share(space, Y) for space in spaces],
        }
        for column, name in enumerate(pair):
            if name in known:
                assert values[:, column].tolist() == pytest.approx(known[name], abs=1e-6)
            else:
                assert values[0, column] == pytest.approx(float(values[1, column]), abs=1e-6)  # no scale
                assert 0 < values[0, column] < 1
    few = torch.tensor(X[[0, 1, 15, 16, 35]])
    problems = Problems(few, as_labels(["a", "a", "b", "b", "c"]), ("isoscore", "silhouette"), 1e-2)
    copies = few[None].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda Z: problems._values(Z, None), (copies,), atol=1e-4)
    assert problems.values(few[None])[0, 1] == pytest.approx(
        silhouette_score(few, ["a", "a", "b", "b", "c"]), abs=1e-6
    )


@pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "b")])
@pytest.mark.parametrize("weight_decay", [1e-2, 0.3])
def test_the_classifier_that_is_measured_has_the_penalty_of_the_one_that_is_trained(names, weight_decay):
    kept = np.isin(Y, names)
    rows, labels = torch.tensor(X[kept]), as_labels(Y[kept])
    K, d = len(names), rows.shape[1]
    scaled = rows - rows.mean(dim=0)
    scaled = scaled / scaled.square().mean().sqrt()

    def parts(flat):
        C = torch.as_tensor(flat).reshape(K, d + 1)
        loss = torch.nn.functional.cross_entropy(scaled @ C[:, :d].T + C[:, d], labels.codes)
        return loss, loss + weight_decay / 2 * C[:, :d].square().sum()

    def slope(flat):
        C = torch.tensor(flat, requires_grad=True)
        return torch.autograd.grad(parts(C)[1], C)[0].numpy()

    best = minimize(
        lambda flat: float(parts(flat)[1]), np.zeros(K * (d + 1)), jac=slope, options={"gtol": 1e-9}
    ).x
    assert classified(rows, labels, weight_decay)[0] == pytest.approx(float(parts(best)[0]), rel=1e-3)
    value = Problems(rows, labels, ("isoscore", "cross_entropy"), weight_decay).values(rows[None])[0, 1]
    assert value == pytest.approx(1 - float(parts(best)[1]) / np.log(K), abs=1e-6)


def test_more_dimensions_than_points():
    wide = np.random.default_rng(1).normal(size=(12, 30))
    found = trade_off(wide, np.arange(12) % 3, weights=2, steps=20)
    assert found.points[-1].isoscore == pytest.approx(isoscore(found.spaces[-1]))
    assert found.points[-1].ceiling <= 10 / 29 + 1e-9
    assert found.points[-1].isoscore <= 10 / 29 + 1e-9  # 12 points span 11 dimensions


def test_empty_directions_are_found():
    """A dimension without variance has no slope; the nudge gives it one."""
    flat = np.column_stack([X, np.zeros((60, 4))])
    assert trade_off(flat, Y, weights=2, steps=150).points[-1].isoscore > 0.99


@pytest.mark.slow
def test_sample_and_seed():
    one, same, other = (trade_off(X, Y, weights=2, steps=3, sample=30, seed=seed) for seed in (1, 1, 2))
    assert one.n == 30
    assert one.to_dict() == same.to_dict()
    assert one.start != other.start


def test_labels_that_the_sample_leaves_out_do_not_count():
    rare = np.array(["a"] * 30 + ["b"] * 29 + ["c"])
    found = trade_off(X, rare, weights=2, steps=1, sample=20, seed=0)  # which draws no c
    assert found.n_labels == 2
    assert found.start.ceiling == isotropy_ceiling(2, 8, between=found.start.between_share, n_points=20)


def test_spaces_on_the_frontier_are_measured(found):
    shares = np.linspace(0, 1, 21)
    assert found.frontier["between_share"] == pytest.approx(shares, abs=1e-9)
    ceilings = [isotropy_ceiling(3, 8, between=share) for share in shares]
    assert found.frontier["isoscore"] == pytest.approx(ceilings, abs=1e-9)
    assert found.frontier["silhouette"][-1] == pytest.approx(1, abs=1e-6)
    assert found.frontier["cross_entropy"][-1] < found.frontier["cross_entropy"][0]
    assert {len(column) for column in found.frontier.values()} == {21}


def test_kept_and_read_again(found, tmp_path):
    again = TradeOff.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    assert again.spaces is None
    assert "60 vectors, 3 labels, 8 dimensions" in str(again)
    assert len(again.grids()[0].rows) == 1 + 5
    pytest.importorskip("matplotlib")
    figure = again.figure(tmp_path / "trade.png", title="a trade")
    assert (tmp_path / "trade.png").stat().st_size > 10_000
    assert [axes.get_ylabel() for axes in figure.axes[:2]] == ["IsoScore", "IsoScore"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": ("isoscore",)}, "`objectives` must be"),
        ({"objectives": ("isoscore", "isoscore")}, "`objectives` must be"),
        ({"objectives": ("isoscore", "dunn")}, "`objectives` must be"),
        ({"scalarization": "sum"}, "`scalarization` must be .*, got 'sum'"),
        ({"weights": [2.0]}, "`weights` must be"),
        ({"weights": [], "scalarization": "linear"}, "`weights` must be"),
        ({"objectives": None}, "`objectives` must be .*, got None"),
        ({"weights": 0.5}, "`weights` must be"),
        ({"weights": "ab"}, "`weights` must be"),
        ({"steps": 0}, "`steps` must be .*, got 0"),
        ({"sample": 0}, "`sample` must be .*, got 0"),
        ({"learning_rate": 0}, "`learning_rate` must be .*, got 0"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be .*, got inf"),
        ({"weight_decay": -1}, "`weight_decay` must be .*, got -1"),
        ({"seed": -1}, "`seed` must be a whole number"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InputError, match=message):
        trade_off(X, Y, **options)


def test_bad_spaces():
    with pytest.raises(LabelError, match="only one label"):
        trade_off(X, ["a"] * 60)
    with pytest.raises(UndefinedError, match="equal"):
        trade_off(np.ones((4, 3)), [0, 0, 1, 1])
    with pytest.raises(InputError, match="`labels` is missing"):
        trade_off(X)
