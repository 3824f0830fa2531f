"""Early stops, callbacks, and rows fetched in chunks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.training import recorder as recorder_module
from isoscope.training.configuration import Configuration
from isoscope.training.recorder import Recorder

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)


def recorder(**options) -> Recorder:
    return Recorder(Configuration(**options), ("isoscore",), rows={}, log=None, callback=None)


def add(own: Recorder, step: int, *losses: float, accuracy: float = 0.5) -> None:
    values = {
        "loss": torch.tensor(losses),
        "accuracy": torch.full((len(losses),), accuracy),
        "isoscore": torch.zeros(len(losses)),
    }
    own.add(step, list(range(len(losses))), values)


def test_rows_wait_on_the_device_until_there_are_enough() -> None:
    own = recorder()
    for step in range(recorder_module._CHUNK - 1):
        add(own, step, 1.0, 2.0)
    assert not own.rows
    add(own, recorder_module._CHUNK - 1, 1.0, 2.0)
    assert len(own.rows) == 2 * recorder_module._CHUNK
    add(own, 99, 1.0, 2.0)
    own.fetch()
    assert own.columns["loss"].tolist()[-2:] == [1.0, 2.0]
    assert own.columns["step"].dtype == np.int64


def test_patience_counts_updates_not_measurements() -> None:
    own = recorder(patience=20, min_improvement=0.05)
    for step, loss in ((0, 1.0), (10, 0.5), (20, 0.49), (29, 0.48)):
        add(own, step, loss)
        assert not own.ended(0)
    add(own, 30, 0.47)  # 0.03 better than at step 10, where 0.05 is wanted
    assert own.ended(0)


def test_a_falling_loss_goes_on() -> None:
    own = recorder(patience=2)
    for step in range(20):
        add(own, step, 1.0 / (step + 1))
    assert not own.ended(0)


def test_seeds_end_each_on_its_own() -> None:
    own = recorder(patience=3)
    for step in range(8):
        add(own, step, 1.0, 1.0 / (step + 1))
    assert own.ended(0)
    assert not own.ended(1)
    assert [row["step"] for row in own.rows if row["seed"] == 0] == [0, 1, 2, 3]
    assert [row["step"] for row in own.rows if row["seed"] == 1] == list(range(8))


def test_a_run_ends_at_the_accuracy_wanted() -> None:
    run = iso.train_embeddings(X, Y, steps=500, seeds=2, learning_rate=0.02, target_accuracy=0.9)
    for seed in (0, 1):
        accuracies = run["accuracy"][run["seed"] == seed]
        assert accuracies[-1] >= 0.9
        assert (accuracies[:-1] < 0.9).all()
        assert len(accuracies) < 501


def test_a_run_ends_on_a_plateau() -> None:
    run = iso.train_embeddings(X, Y, steps=300, seeds=1, patience=10, min_improvement=0.1)
    assert run["step"].max() < 300


def test_a_callback_sees_rows_and_may_end_a_seed() -> None:
    seen = []

    def callback(row: dict) -> bool:
        seen.append(row)
        return row["seed"] == 0 and row["step"] == 3

    run = iso.train_embeddings(X, Y, steps=6, seeds=2, callback=callback)
    assert run["step"][run["seed"] == 0].max() == 3
    assert run["step"][run["seed"] == 1].max() == 6
    assert run.steps.tolist() == [0, 1, 2, 3]
    assert set(seen[0]) == {"seed", "step", "loss", "accuracy", "isoscore", "silhouette"}
    with_every = iso.train_embeddings(X, Y, steps=6, seeds=1, every=4)
    assert with_every["step"].tolist() == [0, 4, 6]


def test_other_metrics_are_columns() -> None:
    run = iso.train_embeddings(X, Y, steps=2, seeds=1, metrics=["effective_rank", "davies_bouldin"])
    assert run.metrics == ("effective_rank", "davies_bouldin")
    assert run["effective_rank"][0] == pytest.approx(iso.effective_rank(X), rel=1e-6)
    assert run["davies_bouldin"][0] == pytest.approx(iso.davies_bouldin_score(X, Y), rel=1e-6)
