"""The study of the collapse law: a small run, what decides each claim, and the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError
from isoscope_papers.collapse import run as module
from isoscope_papers.collapse import setups
from isoscope_papers.collapse.findings import Case, cases, findings
from isoscope_papers.collapse.options import Options
from isoscope_papers.collapse.run import (
    Condition,
    Prediction,
    Space,
    Trained,
    prepare,
    read_spaces,
    rigid_isoscore,
    run_setup,
)
from isoscope_papers.collapse.setups import OF_ONE_LABEL, PIXELS, SETUPS
from isoscope_papers.collapse.study import STUDY, sections
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of seconds: few rows, few updates, two lengths and one learning rate."""
    for name, value in {"STEPS": 20, "EVERY": 10, "LEARNING_RATES": (1e-2,), "NORMS": (None, 1.0)}.items():
        monkeypatch.setattr(module, name, value)
    for name, value in {"MIN_ROWS": 60, "ROWS_PER_LABEL": 1, "NUMBERS": 1}.items():
        monkeypatch.setattr(setups, name, value)


@pytest.mark.usefixtures("small")
def test_a_small_run_is_saved_and_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(runs=tmp_path)
    (space,) = run_setup(SETUPS["digits"], Options(seeds="2"), place, progress=False)
    assert (space.n, space.n_dims, space.n_labels, space.steps) == (60, 64, 10, (0, 10, 20))
    assert [one.norm for one in space.conditions] == [None, 1.0]
    task = prepare(SETUPS["digits"], PIXELS, place)
    shorter = task.X * np.float32(1 / space.mean_norm)
    for X, condition in zip((task.X, shorter), space.conditions, strict=True):
        predicted = iso.predict_collapse(X, task.labels, learning_rate=1e-2, steps=20)
        seen = iso.train_embeddings(X, task.labels, learning_rate=1e-2, steps=20, seeds=2, progress=False)
        assert condition.predicted.end == predicted.end
        assert [one.end for one in condition.trained] == seen.curves("isoscore")[:, -1].tolist()
        assert [one.seed for one in condition.trained] == [0, 1]
    assert read_spaces(tmp_path) == [space]
    monkeypatch.setattr(iso, "train_embeddings", None)  # finished conditions are not run again
    assert run_setup(SETUPS["digits"], Options(seeds="2"), place, progress=False) == [space]
    monkeypatch.setattr(module, "STEPS", 30)
    with raises(InputError, hint="remove it"):
        run_setup(SETUPS["digits"], Options(seeds="2"), place, progress=False)


def test_the_rows_of_a_setup() -> None:
    words = prepare(SETUPS["supersense-single"], setups.GLOVE, Place())
    assert len(words.X) == len(words.labels) <= setups.NUMBERS // 50
    assert all(isinstance(label, str) for label in words.labels)
    sets = prepare(SETUPS["supersense"], setups.GLOVE, Place())
    assert all(isinstance(label, frozenset) for label in sets.labels)


def test_labels_that_move_as_one_body(rng: np.random.Generator) -> None:
    X, labels = rng.normal(size=(30, 4)), [frozenset("ab"[: 1 + i % 2]) for i in range(30)]
    codes = np.arange(30) % 2
    shift = rng.normal(size=(2, 4))[codes]
    assert rigid_isoscore(X, X + shift, labels) == pytest.approx(iso.isoscore(X + shift), rel=1e-9)
    spread = rng.normal(size=(30, 4))  # within labels, which a rigid body does not have
    means = np.stack([spread[codes == code].mean(axis=0) for code in (0, 1)])
    spread -= means[codes]
    assert rigid_isoscore(X, X + shift + spread, labels) == pytest.approx(iso.isoscore(X + shift), rel=1e-9)


# ---------------------------------------------------------------- findings


def made(
    ends: Sequence[float],
    *,
    predicted: float = 0.1,
    sign: int = -1,
    silhouette: float = 0.8,
    fails: tuple[str, ...] = (),
    has_sets: bool = False,
    value: float = 0.0,
    setup: str = "cola",
    norm: float | None = None,
) -> Space:
    """Return a space with one condition, which starts at 0.2, and a seed for each end."""
    trained = tuple(Trained(i, (0.2, end), (0.0, silhouette), (0.1, 0.9), end) for i, end in enumerate(ends))
    prediction = Prediction(0.2, predicted, 0.0, 0.9, value, -0.1, sign, 3.0, fails)
    condition = Condition(norm, 1e-3, prediction, trained, 1.0)
    return Space(setup, "MiniLM", 300, 384, 2, 1.0, has_sets, "made", (0, 500), (condition,))


def verdicts(*spaces: Space) -> dict[str, Verdict]:
    return {one.claim.removeprefix("collapse/"): one.verdict for one in findings(spaces)}


@pytest.mark.parametrize(
    ("n_wrong", "verdict"), [(0, Verdict.HELD), (1, Verdict.HELD), (2, Verdict.NOT_HELD)]
)
def test_the_sign_is_right_on_95_per_cent(n_wrong: int, verdict: Verdict) -> None:
    space = made([0.1] * (20 - n_wrong) + [0.3] * n_wrong)
    assert verdicts(space)["sign-predicted"] is verdict
    failing = made([0.3] * 50, fails=("vectors can move",))
    assert verdicts(space, failing)["sign-predicted"] is verdict  # of which nothing is claimed


def test_the_end_is_within_ten_per_cent_on_every_collapsed_run() -> None:
    assert verdicts(made([0.1, 0.105, 0.0915]))["end-predicted"] is Verdict.HELD
    assert verdicts(made([0.1, 0.1, 0.12]))["end-predicted"] is Verdict.NOT_HELD
    assert verdicts(made([0.1]), made([0.5], silhouette=0.69))["end-predicted"] is Verdict.HELD
    assert verdicts(made([0.1], silhouette=0.6))["end-predicted"] is Verdict.NOT_TESTABLE


def test_sets_of_labels_are_counted_apart() -> None:
    sets = made([0.1] * 4, fails=OF_ONE_LABEL, has_sets=True)
    assert verdicts(sets)["sign-predicted-of-sets"] is Verdict.HELD
    assert verdicts(sets)["sign-predicted"] is Verdict.NOT_TESTABLE
    assert not cases([sets])
    wrong = made([0.3] * 4, fails=OF_ONE_LABEL, has_sets=True)
    assert verdicts(wrong)["sign-predicted-of-sets"] is Verdict.NOT_HELD
    stuck = made([0.3] * 4, fails=(*OF_ONE_LABEL, "vectors can move"), has_sets=True)
    assert not any(one.holds for one in cases([stuck], sets=True))


def test_the_model_against_the_collapse_value_alone() -> None:
    rising = made([0.3] * 3, sign=1, predicted=0.3, value=0.0)
    assert verdicts(rising)["better-than-the-collapse-value"] is Verdict.HELD
    silent = made([0.1] * 3, sign=0, fails=("the change is clear",))
    assert verdicts(silent)["better-than-the-collapse-value"] is Verdict.NOT_HELD


@pytest.mark.parametrize(("end", "verdict"), [(0.19, Verdict.HELD), (0.02, Verdict.NOT_HELD)])
def test_long_vectors_stay(end: float, verdict: Verdict) -> None:
    assert verdicts(made([end] * 3, fails=("vectors can move",)))["long-vectors-stay"] is verdict


@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [(0.1, 0.3, Verdict.HELD), (0.1, 0.15, Verdict.CONDITION), (0.3, 0.1, Verdict.NOT_HELD)],
)
def test_the_direction_depends_on_the_number_of_labels(few: float, many: float, verdict: Verdict) -> None:
    spaces = made([few], setup="banking77-2"), made([many], setup="banking77-77", norm=1.0)
    assert verdicts(*spaces)["direction-depends-on-labels"] is verdict


def test_a_miss_is_due_to_the_labels_or_to_the_spread_within_them() -> None:
    space = made([0.2] * 2)
    (condition,) = space.conditions
    for rigid, cause in ((0.19, "where labels went, 90 %"), (0.11, "spread within labels, 90 %")):
        trained = tuple(replace(one, rigid=rigid) for one in condition.trained)
        missed = replace(space, conditions=(replace(condition, trained=trained),))
        (row,) = sections([missed])[-1].cells
        assert row[-1] == cause
        assert row[3] == "sign of 2 of 2 seeds, end of 2 of 2 seeds"
    assert Case(space, condition, condition.trained[0]).error == pytest.approx(0.5)
    assert sections([made([0.1])])[-1].text == "There are none."


@pytest.mark.slow
def test_the_page_and_its_figure(tmp_path: Path) -> None:
    spaces = [
        made([0.1, 0.104], setup="banking77-2"),
        made([0.3], predicted=0.29, sign=1, setup="banking77-77"),
        made([0.21], sign=0, fails=("the change is clear",)),
        made([0.1], fails=OF_ONE_LABEL, has_sets=True, setup="supersense"),
    ]
    text = STUDY.write(spaces, tmp_path)[1].read_text()
    assert "| all with one label a row | 4 | 3 | 100.0 % | 66.7 % | 66.7 % | 3 | 100.0 % |" in text
    assert "| all with sets of labels | 1 | 1 | 100.0 % |" in text
    assert "Not run: with pixels digits;" in text
    found = json.loads((tmp_path / "collapse.json").read_text())
    assert found["conditions"][0]["seen"] == [0.1, 0.104]
    assert (tmp_path / "collapse-law.pdf").stat().st_size > 1000


def test_a_wrong_sign_at_another_length() -> None:
    space = made([0.3] * 2, norm=10.0)
    (shorter,) = made([0.1] * 2, norm=1.0).conditions
    both = replace(space, conditions=(*space.conditions, shorter))
    assert "of the 1 conditions with a wrong sign" in sections([both])[-1].text
    assert "1 have the right sign there on every seed" in sections([both])[-1].text
