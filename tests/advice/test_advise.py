from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

import isoscope as iso
from isoscope.advice import advise


def rogue_pairs(rng: np.random.Generator, n: int = 240) -> tuple[np.ndarray, list[tuple[int, int, float]]]:
    """Meaning in eight small dimensions, and one that says nothing and drowns them in every cosine."""
    meaning = rng.normal(size=(n, 8))
    X = np.c_[meaning, 30 + 30 * rng.normal(size=n)]
    ones = rng.permutation(n)
    triples = []
    for i, j in zip(ones[: n // 2], ones[n // 2 :], strict=True):
        a, b = meaning[i], meaning[j]
        triples.append((int(i), int(j), float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))))
    return X, triples


def blobs(rng: np.random.Generator, n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 6)) + 2 * np.eye(6)[y], y


def test_whitening_must_help_where_one_dimension_drowns_the_rest(rng: np.random.Generator) -> None:
    X, pairs = rogue_pairs(rng)
    found = advise(X, pairs=pairs)
    task = found["similarity"]
    by_name = {one.correction: one for one in task.outcomes}
    assert task.baseline < 0.4
    assert by_name["whiten"].verdict == "helps"
    assert by_name["whiten"].score > 0.8
    assert by_name["remove_dimensions"].score > 0.95
    assert by_name["center"].score < 0.5  # the dimension varies: taking off its mean is not enough
    assert found.recommended in ("whiten", "remove_dimensions", "standardize", "all_but_the_top")
    assert "helps similarity" in found.headline
    assert found.geometry["whiten"]["isoscore"] > found.geometry["none"]["isoscore"] + 0.5


def test_where_nothing_helps_it_says_so(rng: np.random.Generator) -> None:
    """An isotropic space whose own cosines are the scores: no correction can do better."""
    X = rng.normal(size=(240, 8))
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs = [(i, i + 120, float(units[i] @ units[i + 120]) + 0.2 * rng.normal()) for i in range(120)]
    found = advise(X, pairs=pairs)
    assert found.recommended is None
    assert "leave it alone" in found.headline
    assert "leave it alone" in found["similarity"].sentence
    assert found.fitted is None
    with pytest.raises(iso.InputError, match="leave it alone"):
        found.save("x.safetensors")


@pytest.mark.slow
def test_labels_without_signal_raise_no_false_alarm() -> None:
    """Labels are coin tosses: a 95 % interval of a gain leaves out zero in about one space of twenty.

    Retrieval among training rows, which folds share, would fail in one of six.
    """
    n_spaces, n_alarms, n_out = 30, 0, 0
    for seed in range(n_spaces):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(150, 5)) * [5, 1, 1, 1, 1] + [4, 0, 0, 0, 0], rng.integers(0, 2, 150)
        corrections = ["whiten", "all_but_the_top"]
        found = advise(X, labels=y, tasks=["retrieval"], corrections=corrections, repeats=2, seed=seed)
        n_alarms += bool(found["retrieval"].helping or found["retrieval"].hurting)
        n_out += sum(not one.interval[0] <= 0 <= one.interval[1] for one in found["retrieval"].outcomes)
    assert n_alarms <= 4
    assert n_out <= 6  # of 60, which are two a space and so no 60 tosses


def test_a_measurement_is_taken_and_the_space_is_measured_once(rng: np.random.Generator, passes) -> None:
    X, y = blobs(rng)
    options = {"tasks": ["knn"], "corrections": ["center"], "repeats": 1}
    measured = iso.measure(X, labels=y)
    before = passes.over(X)
    found = advise(measured, **options)
    assert passes.over(X) == before
    plain = advise(X, labels=y, **options)
    assert passes.over(X) - before == {"Moments": 1, "Directions": 1}
    assert found.geometry == plain.geometry
    assert found["knn"] == plain["knn"]


class Recorder(TransformerMixin, BaseEstimator):
    """Notes what it is fitted on and what it transforms."""

    seen: list[tuple[set[bytes], list[set[bytes]], Any]] = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X: np.ndarray, y: Any = None) -> Recorder:
        Recorder.seen.append(({row.tobytes() for row in X}, [], y))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        Recorder.seen[-1][1].append({row.tobytes() for row in X})
        return X


def test_corrections_never_see_what_is_held_out(rng: np.random.Generator) -> None:
    X, y = blobs(rng)
    Recorder.seen = []
    advise(X, labels=y, corrections={"mine": Recorder()}, tasks=["knn"], folds=4, repeats=2)
    folds = Recorder.seen[:8]  # the last fit is that of the geometry
    assert len(folds) == 8
    for fitted, transformed, targets in folds:
        assert targets is None
        train, test = transformed
        assert fitted == train
        assert len(test) == 60
        assert not fitted & test
    assert set.union(*(transformed[1] for _, transformed, _ in folds[:4])) == {row.tobytes() for row in X}


def test_pairs_held_out_share_no_row_with_what_was_fitted(rng: np.random.Generator) -> None:
    X, pairs = rogue_pairs(rng)
    Recorder.seen = []
    advise(X, pairs=pairs, corrections={"mine": Recorder()}, folds=4, repeats=1)
    for fitted, (firsts, seconds), _ in Recorder.seen[:4]:
        assert not fitted & (firsts | seconds)
        assert len(fitted) == 180


class Memoriser(TransformerMixin, BaseEstimator):
    """Knows the label of every row it was fitted on, as a cheat would; nothing of other rows."""

    def __init__(self, answers: Any = None) -> None:
        self.answers = answers

    def fit(self, X: np.ndarray, y: Any = None) -> Memoriser:
        self.known_ = {row.tobytes() for row in X}
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        keys = [row.tobytes() for row in X]
        labels = np.array([self.answers[key] if key in self.known_ else -1 for key in keys])
        return np.eye(4)[labels]


def test_what_memorises_its_training_rows_gains_nothing(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 3, 200)
    answers = {row.tobytes(): int(label) for row, label in zip(X, y, strict=True)}
    found = advise(X, labels=y, corrections={"cheat": Memoriser(answers)}, tasks=["linear_probe", "knn"])
    for task in found.tasks:
        assert task.outcomes[0].score < 0.45, "held-out rows were seen"
        assert task.outcomes[0].verdict != "helps"


def test_shared_rows_are_said(rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 4))
    pairs = [(i, j, float(X[i] @ X[j])) for i in range(20) for j in range(i)]
    found = advise(X, pairs=pairs, corrections=["center"])
    assert any("many pairs share rows" in note for note in found.notes)


def test_samples_and_rare_labels_are_said(rng: np.random.Generator) -> None:
    X, y = blobs(rng)
    y[:2] = 7
    found = advise(X, labels=y, corrections=["center"], tasks=["knn"], max_rows=200)
    assert found["knn"].n_items < 200
    assert any("a random 200 of 240 rows" in note for note in found.notes)
    assert any("labels with fewer than 5 rows are left out" in note for note in found.notes)


def test_a_correction_that_cannot_be_fitted_is_said(rng: np.random.Generator) -> None:
    X, y = blobs(rng)
    impossible = {"top": iso.AllButTheTop(5), "center": iso.Center()}
    X[:, 2:] = 0
    found = advise(X, labels=y, corrections=impossible, tasks=["knn"])
    top, center = found["knn"].outcomes
    assert top.score is None
    assert "rank" in top.verdict
    assert center.score is not None
    assert found.geometry["top"]["isoscore"] is None


class Breaking(TransformerMixin, BaseEstimator):
    """Makes of vectors what are none."""

    def __init__(self, how: str = "") -> None:
        self.how = how

    def fit(self, X: np.ndarray, y: Any = None) -> Breaking:
        if self.how == "refuses":
            raise ValueError("not these")
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return X[1:] if self.how == "drops a row" else X * np.nan


def test_a_correction_of_the_callers_own_that_breaks_is_said(rng: np.random.Generator) -> None:
    X, y = blobs(rng)
    own = {how: Breaking(how) for how in ("refuses", "drops a row", "makes NaN")}
    found = advise(X, labels=y, corrections=own, tasks=["knn"], repeats=1)
    said = {one.correction: one.verdict for one in found["knn"].outcomes}
    assert said["refuses"] == "not these"
    assert "must return 192 rows, got 191" in said["drops a row"]
    assert "NaN" in said["makes NaN"]
    assert "leave it alone; none of 0 corrections" in found["knn"].sentence
    json.loads(found.to_json())


def test_retrieval_needs_two_of_a_label_in_a_fold(rng: np.random.Generator) -> None:
    found = advise(rng.normal(size=(240, 4)), labels=list(range(40)) * 6, corrections=["center"], repeats=1)
    assert list(found) == ["linear_probe", "knn", "clustering"]
    assert any("retrieval is left out" in note for note in found.notes)


def test_seed_and_shown(rng: np.random.Generator, tmp_path: Any) -> None:
    X, pairs = rogue_pairs(rng)
    options: dict[str, Any] = {"pairs": pairs, "corrections": ["center", "whiten"]}
    first, again, other = advise(X, **options), advise(X, **options), advise(X, **options, seed=1)
    assert first["similarity"].outcomes == again["similarity"].outcomes
    assert first["similarity"].outcomes != other["similarity"].outcomes
    facts = json.loads(first.to_json())
    assert facts["recommended"] == "whiten"
    assert facts["tasks"]["similarity"]["corrections"]["whiten"]["verdict"] == "helps"
    assert "advice: use whiten" in str(first)
    assert "<table" in first._repr_html_()
    saved = iso.load_correction(first.save(tmp_path / "c.safetensors"))
    assert np.allclose(np.cov(saved.transform(X).T), np.eye(9), atol=1e-6)


def test_weights_are_refused(rng: np.random.Generator) -> None:
    X, y = blobs(rng)
    with pytest.raises(iso.InputError, match="`X` has weights"):
        advise(iso.Space(X, weights=np.ones(240)), labels=y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "There is no task"),
        ({"labels": [0, 1] * 120, "tasks": ["similarity"]}, "needs pairs"),
        ({"labels": [0, 1] * 120, "tasks": ["guess"]}, "must be one of"),
        ({"labels": [0, 1] * 120, "corrections": ["bleach"]}, "must be one of"),
        ({"labels": [0, 1] * 120, "corrections": []}, "must be some of"),
        ({"labels": [0, 1] * 120, "corrections": {"x": 3}}, "must have the methods fit and transform"),
        ({"labels": [0, 1] * 120, "corrections": {"none": iso.Center()}}, "Leave it out"),
        ({"labels": [0, 1] * 120, "folds": 1}, r"folds.* must be .*, got 1"),
        ({"labels": list(range(240))}, "a different label for each of the 240 points"),
        ({"labels": ["a"] * 240}, "`labels` has only one label .'a'."),
        ({"labels": [0, 1] * 120, "folds": 121}, "121 rows or more, got 0"),
        ({"labels": [0, 1] * 100}, "200 entries for 240"),
        ({"labels": list(range(40)) * 6, "tasks": ["retrieval"]}, "retrieval is left out"),
        ({"pairs": [(0, 1, 1.0), (0, 2, 2.0)] * 10, "folds": 6}, "20 pairs, which are too few for 6 folds"),
        (
            {"pairs": [(i, i, i) for i in range(90)]},
            "got 0; the other 90 pair a row with itself",
        ),
        ({"pairs": [(i, max(i, 19), i) for i in range(90)]}, "got 19; the other 71"),
        ({"pairs": [(0, 1)] * 30}, "of shape .m, 3."),
        ({"pairs": [(0, 1, 1.0)] * 30}, "different scores"),
        ({"pairs": [(0, 1, 1.0), (0, 2, 2.0)]}, "at least 20"),
        ({"pairs": [(0, 1, 1.0), (0, 240, 2.0)] * 20}, "from 0 to 239"),
        ({"pairs": [("a", "b", 1.0)] * 30}, "triples of numbers"),
        ({"pairs": [(0, 1, float("nan"))] * 30}, "NaN"),
    ],
)
def test_bad_input(rng: np.random.Generator, options: dict[str, Any], said: str) -> None:
    with pytest.raises(iso.InputError, match=said):
        advise(rng.normal(size=(240, 4)), **options)


def test_some_pairs_may_be_of_a_row_with_itself(rng: np.random.Generator) -> None:
    """Sets of scored sentences have some, and they rank first together."""
    pairs = [(i, i, 5.0) for i in range(10)] + [(i, i + 100, i % 5) for i in range(60)]
    found = advise(rng.normal(size=(240, 4)), pairs=pairs, corrections=["center"], repeats=1)
    assert found["similarity"].n_items == 70


def test_names_of_corrections_take_hyphens_too(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(120, 6)), np.arange(120) % 2
    found = advise(X, labels=y, tasks=["knn"], corrections="all-but-the-top,center", repeats=1)
    assert list(found.geometry) == ["none", "all_but_the_top", "center"]
