"""On what each metric is taken: the table, the items, a sample, the hidden layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

import isoscope as iso
from isoscope.training.batched import TOGETHER
from isoscope.training.configuration import Configuration
from isoscope.training.meter import Meter
from isoscope.training.problem import Problem


@pytest.fixture
def paired(rng) -> Problem:
    X = rng.normal(size=(30, 4)) * [3, 2, 1, 0.5]
    return Problem.of(X, np.arange(50) % 3, pairs=rng.integers(0, 30, size=(50, 2)))


def test_labels_decide_what_is_measured(paired: Problem) -> None:
    metrics = ("isoscore", "mean_norm", "silhouette", "between_share", "effective_rank")
    meter = Meter(paired, Configuration(metrics=metrics))
    values = meter(paired.table[None], [], seeds=[0], step=0)
    items = paired.items(paired.table).numpy()
    labels = paired.clusters.codes.numpy()
    assert meter.columns == metrics
    assert values["isoscore"].item() == pytest.approx(iso.isoscore(paired.table), rel=1e-9)
    assert values["effective_rank"].item() == pytest.approx(iso.effective_rank(paired.table), rel=1e-9)
    assert values["silhouette"].item() == pytest.approx(silhouette_score(items, labels), abs=1e-9)
    assert values["between_share"].item() == pytest.approx(iso.metrics.between_share(items, labels), rel=1e-9)


def test_a_large_set_is_sampled_anew_at_each_measurement(paired: Problem) -> None:
    meter = Meter(paired, Configuration(sample_above=20))
    samples = [meter._sample(seed, step) for seed, step in ((0, 0), (0, 1), (1, 0))]
    assert [len(set(sample.tolist())) for sample in samples] == [20] * 3
    assert len({tuple(sample.tolist()) for sample in samples}) == 3
    assert torch.equal(meter._sample(0, 0), samples[0])
    values = meter(paired.table.repeat(2, 1, 1), [], seeds=[0, 1], step=0)
    for place, sample in enumerate((samples[0], samples[2])):
        items = paired.items(paired.table, sample).numpy()
        expected = silhouette_score(items, paired.clusters.codes[sample].numpy())
        assert values["silhouette"][place].item() == pytest.approx(expected, abs=1e-9)
    assert values["isoscore"].tolist() == pytest.approx([iso.isoscore(paired.table)] * 2)


def test_the_table_may_be_sampled_too(paired: Problem) -> None:
    meter = Meter(paired, Configuration(sample_above=5, sample_table=True))
    values = meter(paired.table[None], [], seeds=[3], step=7)
    rows = paired.pairs[meter._sample(3, 7)].unique()
    assert len(rows) < 30
    assert values["isoscore"].item() == pytest.approx(iso.isoscore(paired.table[rows]), rel=1e-9)


def test_no_sample_where_none_is_wanted(paired: Problem) -> None:
    small = Meter(paired, Configuration(sample_above=50))
    whole = Meter(paired, Configuration(sample_above=None))
    found = [meter(paired.table[None], [], seeds=[0], step=0)["silhouette"] for meter in (small, whole)]
    assert torch.equal(*found)


def test_hidden_layers_have_a_row_an_item(paired: Problem, rng) -> None:
    hidden = torch.from_numpy(rng.normal(size=(1, 50, 6)))
    meter = Meter(paired, Configuration(hidden=(6,), sample_above=40))
    values = meter(paired.table[None], [hidden], seeds=[0], step=0)
    sample = meter._sample(0, 0)
    expected = silhouette_score(hidden[0, sample].numpy(), paired.clusters.codes[sample].numpy())
    assert meter.columns == ("isoscore", "silhouette", "hidden1_isoscore", "hidden1_silhouette")
    assert values["hidden1_silhouette"].item() == pytest.approx(expected, abs=1e-9)
    assert values["hidden1_isoscore"].item() == pytest.approx(iso.isoscore(hidden[0]), rel=1e-9)


def test_estimates_keep_their_interval(rng) -> None:
    X = rng.normal(size=(3000, 6))
    problem = Problem.of(X, X[:, 0] > 0)
    meter = Meter(problem, Configuration(silhouette_tolerance=1e-3))
    values = meter(problem.table[None], [], seeds=[0], step=0)
    low, high = values["silhouette_low"].item(), values["silhouette_high"].item()
    assert meter.columns == ("isoscore", "silhouette", "silhouette_low", "silhouette_high")
    assert low < values["silhouette"].item() < high
    assert high - low <= 2e-3
    assert values["silhouette"].item() == pytest.approx(silhouette_score(X, X[:, 0] > 0), abs=3e-3)


def test_what_has_no_value_is_missing_not_an_error() -> None:
    problem = Problem.of(np.eye(4), [0, 0, 1, 1])
    meter = Meter(problem, Configuration(metrics=("isoscore_debiased", "isoscore")))
    values = meter(torch.ones(1, 4, 4, dtype=torch.float64), [], seeds=[0], step=0)
    assert np.isnan(values["isoscore_debiased"].item())
    assert np.isnan(values["isoscore"].item())


def test_the_path_of_a_device_gives_the_same(paired: Problem, monkeypatch) -> None:
    """The batched metrics that CUDA tables take, forced here."""

    class OnDevice(torch.Tensor):
        is_cuda = True

    tables = torch.stack([paired.table, 2 * paired.table + 1, paired.table**2])
    plain = Meter(paired, Configuration())(tables, [], seeds=[0, 1, 2], step=0)
    called = []
    for name, real in TOGETHER.items():

        def heard(points, labels, real=real, name=name):
            called.append(name)
            return real(points.as_subclass(torch.Tensor), labels)

        monkeypatch.setitem(TOGETHER, name, heard)
    batched = Meter(paired, Configuration())(tables.as_subclass(OnDevice), [], seeds=[0, 1, 2], step=0)
    assert called == ["isoscore", "silhouette"]
    for name, values in plain.items():
        np.testing.assert_allclose(batched[name].numpy(), values.numpy(), rtol=1e-9)


def test_the_sample_of_a_seed_and_step_stays(paired: Problem) -> None:
    """Recorded: another sample would change the results of runs that are kept."""
    found = Meter(paired, Configuration(sample_above=6))._sample(3, 7)
    assert found.tolist() == [6, 8, 12, 14, 17, 22]
