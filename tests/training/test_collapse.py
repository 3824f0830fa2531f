"""`predict_collapse` against what training gives, and against slower ways to the same numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, LabelError, ShapeError, UndefinedError
from isoscope.training.problem import Problem
from isoscope.training.rigid_labels import RigidLabels

X, y = load_digits(return_X_y=True)
X, y = (X[:300] / np.linalg.norm(X[:300], axis=1).mean()).astype("float32"), y[:300]
SETS = [frozenset({"odd" if digit % 2 else "even", "large" if digit > 4 else "small"}) for digit in y]
UNEVEN = np.flatnonzero((y < 3) & ((y == 0) | (np.arange(300) % 4 == 0)))  # most of them zeros


def trained(labels: Any, rows: Any = slice(None), **settings: Any) -> float:
    run = iso.train_embeddings(
        X[rows], labels, seeds=2, every=1000, metrics=["isoscore"], progress=False, **settings
    )
    return float(run.mean()["isoscore"][-1])


@pytest.mark.slow
@pytest.mark.parametrize("learning_rate", [1e-3, 1e-2])
@pytest.mark.parametrize("n_labels", [2, 10])
def test_the_end_is_that_of_training(n_labels: int, learning_rate: float) -> None:
    labels = y % n_labels
    predicted = iso.predict_collapse(X, labels, learning_rate=learning_rate)
    end = trained(labels, learning_rate=learning_rate)
    assert predicted.holds
    assert predicted.end == pytest.approx(end, rel=0.1)
    assert predicted.sign == np.sign(end - predicted.isoscore)


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "learning_rate"), [("sgd", 5.0), ("adamw", 0.01)])
def test_the_end_of_other_optimizers(optimizer: str, learning_rate: float) -> None:
    settings = {"optimizer": optimizer, "learning_rate": learning_rate, "steps": 400}
    predicted = iso.predict_collapse(X, y % 2, **settings)
    end = trained(y % 2, **settings)
    assert abs(end - predicted.isoscore) > 0.05
    assert predicted.sign == -1
    # SGD moves vectors of a high loss further than others of their label: labels are less rigid
    assert predicted.end == pytest.approx(end, rel=0.3 if optimizer == "sgd" else 0.1)


@pytest.mark.slow
def test_the_end_of_uneven_labels_and_of_sets() -> None:
    uneven = iso.predict_collapse(X[UNEVEN], y[UNEVEN])
    assert uneven.end == pytest.approx(trained(y[UNEVEN], UNEVEN), rel=0.15)
    of_sets = iso.predict_collapse(X, SETS)
    assert (of_sets.multi_label, of_sets.holds, of_sets.n_labels, of_sets.n_sets) == (True, False, 4, 4)
    end = trained(SETS)
    assert of_sets.end == pytest.approx(end, rel=0.15)
    assert of_sets.sign == np.sign(end - of_sets.isoscore)


def moved_by_hand(problem: Problem, *, optimizer: str, learning_rate: float, steps: int, seed: int) -> Any:
    """Return how far labels move, update by update, by torch's own optimiser and gradients."""
    bodies = RigidLabels.of(problem, seed=seed)
    codes, counts = problem.clusters.codes, problem.clusters.counts.float()
    (n_sets, L), d = bodies.targets.shape, X.shape[1]
    generator = torch.Generator().manual_seed(seed)  # the classifier is drawn as `displacements` draws it
    drawn = (2 * torch.rand(L, d + 1, generator=generator) - 1) / d**0.5
    parts = [torch.zeros(n_sets, d), drawn[:, :d].contiguous(), drawn[:, d].contiguous()]
    D, W, b = (part.requires_grad_() for part in parts)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimizer]
    update = kind(parts, lr=learning_rate)
    for _ in range(steps):
        update.zero_grad()
        scores = (problem.table + D[codes]) @ W.T + b
        if bodies.has_sets:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, bodies.targets[codes])
        else:
            loss = torch.nn.functional.cross_entropy(scores, codes)
        loss.backward()
        D.grad /= counts[:, None]  # a label moves as its rows do, each by its own gradient
        update.step()
    return D.detach()


@pytest.mark.parametrize(
    ("optimizer", "learning_rate", "labels"),
    [("adam", 1e-2, y), ("adam", 1e-3, SETS), ("sgd", 3.0, y), ("adam", 1e-2, y % 2)],
)
def test_large_steps_go_where_single_updates_go(optimizer: str, learning_rate: float, labels: Any) -> None:
    problem = Problem.of(X, labels, name="labels")
    settings: dict[str, Any] = {"optimizer": optimizer, "learning_rate": learning_rate, "steps": 150}
    (found,), factor = RigidLabels.of(problem, seed=0).displacements(n_draws=1, seed=0, **settings)
    wanted = moved_by_hand(problem, seed=0, **settings)
    assert factor == 1
    assert float(wanted.norm()) > 0.3
    assert float((found - wanted).norm() / wanted.norm()) < 0.05


def test_one_update_of_adam_moves_every_coordinate_by_the_learning_rate() -> None:
    bodies = RigidLabels.of(Problem.of(X, y, name="labels"), seed=0)
    D, _ = bodies.displacements(learning_rate=0.01, steps=1, optimizer="adam", n_draws=3, seed=0)
    assert D.shape == (3, 10, 64)
    assert float(D.abs().max()) <= 0.01 * (1 + 1e-6)
    assert float(D.abs().median()) == pytest.approx(0.01, rel=1e-3)


def test_weight_decay_of_adamw_shrinks_vectors() -> None:
    bodies = RigidLabels.of(Problem.of(X, y, name="labels"), seed=0)
    _, factor = bodies.displacements(learning_rate=0.1, steps=50, optimizer="adamw", n_draws=1, seed=0)
    weight = torch.nn.Parameter(torch.ones(3))
    update = torch.optim.AdamW([weight], lr=0.1)
    for _ in range(50):
        weight.grad = torch.zeros(3)
        update.step()
    assert factor == pytest.approx(float(weight[0].detach()), rel=1e-5)


@pytest.mark.parametrize("labels", [y, y[UNEVEN], SETS], ids=["balanced", "uneven", "sets"])
def test_the_first_step_by_finite_differences(labels: Any) -> None:
    rows = X[UNEVEN] if len(labels) < len(X) else X
    points = rows.astype(float)
    if isinstance(labels, list):
        names = sorted(set().union(*labels))
        residuals = np.array([[name in own for name in names] for own in labels]) - 0.5
    else:
        residuals = np.eye(labels.max() + 1)[labels] - 1 / (labels.max() + 1)
    motion = residuals @ (residuals.T @ points)
    motion -= motion.mean(axis=0)
    motion *= np.linalg.norm(points - points.mean(axis=0)) / np.linalg.norm(motion)
    h = 1e-5
    slope = (iso.isoscore(points + h * motion) - iso.isoscore(points - h * motion)) / (2 * h)
    assert iso.predict_collapse(rows, labels, steps=1).first_step == pytest.approx(slope, rel=1e-5)


def failing(predicted: Any) -> set[str]:
    assert predicted.holds == all(one.holds for one in predicted.assumptions)
    return {one.name for one in predicted.assumptions if not one.holds}


def test_the_assumptions_are_checked_one_by_one(rng: np.random.Generator) -> None:
    assert failing(iso.predict_collapse(X, y % 2)) == set()
    assert "vectors can move" in failing(iso.predict_collapse(X * 100, y % 2))
    assert "the change is clear" in failing(iso.predict_collapse(X, y % 2, steps=1))
    uneven = np.where(np.arange(300) < 20, 1, 0)
    assert failing(iso.predict_collapse(X, uneven)) == {"labels of similar size"}
    single = np.where(np.arange(300) < 1, 2, y % 2)
    assert {"two vectors a label", "labels of similar size"} <= failing(iso.predict_collapse(X, single))
    low = rng.normal(size=(300, 6)) / 6**0.5
    for K, fits in ((7, True), (8, False)):
        predicted = iso.predict_collapse(low, np.arange(300) % K)
        assert ("labels fit a simplex" not in failing(predicted)) == fits
        assert predicted.collapse_value == pytest.approx(min(1, (K - 2) / 5), abs=1e-3)
    assert "one label a vector" in failing(iso.predict_collapse(X, SETS))


def test_more_labels_raise_isoscore_and_few_lower_it(rng: np.random.Generator) -> None:
    """The same vectors, cut into two labels or into many."""
    codes = np.arange(600) % 40
    spread = np.linspace(1, 0.05, 40) / 6
    low = (rng.normal(size=(40, 40))[codes] + rng.normal(size=(600, 40))) * spread
    few, many = (iso.predict_collapse(low, codes % K, learning_rate=0.01) for K in (2, 40))
    assert few.isoscore == many.isoscore
    assert (few.sign, many.sign) == (-1, 1)
    assert few.end < few.isoscore < many.end


def test_the_input_does_not_change_and_the_prediction_repeats() -> None:
    points = X.copy()
    first, second = (iso.predict_collapse(points, y) for _ in range(2))
    assert np.array_equal(points, X)
    assert first == second
    carried = iso.predict_collapse(iso.Space(X, labels=y.tolist()))
    assert carried.end == pytest.approx(first.end, rel=1e-6)


def test_it_prints_and_converts() -> None:
    predicted = iso.predict_collapse(X, y)
    shown = str(predicted)
    assert f"{predicted.isoscore:.4f} to {predicted.end:.4f}" in shown
    assert shown.startswith("300 vectors × 64, 10 labels: 1,000 updates of adam at 0.001")
    assert all(one.name in shown for one in predicted.assumptions)
    (row,) = predicted.to_pandas().to_dict("records")
    assert (row["end"], row["sign"], row["fails"]) == (predicted.end, predicted.sign, "")
    assert json.loads(predicted.to_json())["assumptions"][0]["name"] == "one label a vector"
    still = iso.predict_collapse(X, y, steps=1)
    assert "stays about where it is" in still.opening
    assert still.caution.startswith("assumptions that do not hold: ")
    assert still.to_pandas()["fails"][0] == "vectors can move, the change is clear"
    assert predicted.caution == ""
    assert predicted.beside(predicted.end).endswith(f"came to {predicted.end:.4f}")
    wrong = predicted.isoscore - 0.01 * predicted.sign
    assert predicted.beside(wrong).endswith("it went the other way")
    small = replace(predicted, end=0.94 * predicted.isoscore)
    assert small.caution == "a change of 6% is small: it may go the other way"
    assert replace(predicted, end=0.5 * predicted.isoscore).caution == ""


def test_bad_input_names_the_argument() -> None:
    with raises(InputError, argument="optimizer", got="rmsprop", wanted="adam, adamw, sgd"):
        iso.predict_collapse(X, y, optimizer="rmsprop")
    for rate in (0, -1.0, float("nan"), 1e30):
        with raises(InputError, argument="learning_rate", wanted="above 0"):
            iso.predict_collapse(X, y, learning_rate=rate)
    with raises(UndefinedError, message="range of float32", hint="learning_rate"):
        iso.predict_collapse(1e30 * X, y)
    for steps in (0, 1.5):
        with raises(InputError, argument="steps", got=steps):
            iso.predict_collapse(X, y, steps=steps)
    with raises(InputError, argument="labels", hint="label"):
        iso.predict_collapse(X)
    with raises(ShapeError, argument="labels"):
        iso.predict_collapse(X, y[:-1])
    with raises(LabelError, argument="labels", message="only one label"):
        iso.predict_collapse(X, np.zeros(300))
    with raises(ShapeError, argument="X", wanted="2 dimensions"):
        iso.predict_collapse(X[:, :1], y)
    with pytest.raises(UndefinedError):
        iso.predict_collapse(np.ones_like(X), y)
