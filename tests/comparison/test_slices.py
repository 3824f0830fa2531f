"""Slices of a comparison against comparing their rows alone, and false alarms by simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.comparison import compare, parse_gates
from isoscope.comparison.slices import slice_changes
from isoscope.engine.slices import holm
from isoscope.labels import as_labels

METRICS = ["isoscore", "mean_cosine", "mean_norm"]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    language = rng.permutation(np.repeat(["de", "en", "fi", "sw"], [100, 80, 60, 10]))
    A = rng.normal(size=(250, 5))
    B = A + 0.1 * rng.normal(size=A.shape)
    B[language == "fi"] = 2 + 0.2 * rng.normal(size=(60, 5))
    return {"A": A, "B": B, "language": language}


def test_a_slice_is_what_its_rows_give_alone(data: dict[str, Any]) -> None:
    A, B, language = data["A"], data["B"], data["language"]
    found = compare(A, B, by=language, metrics=METRICS)
    assert {change.slice: change.n for change in found.slices} == {"de": 100, "en": 80, "fi": 60, "sw": 10}
    for name in ("de", "en", "fi", "sw"):
        rows = language == name
        alone = compare(A[rows], B[rows], metrics=METRICS)
        for metric, change in found.of(name).items():
            assert (change.before, change.after) == pytest.approx((alone[metric].before, alone[metric].after))
            expected = alone[metric].interval
            assert change.interval == (None if expected is None else pytest.approx(expected))
            assert change.meaning == alone[metric].meaning
    with pytest.raises(KeyError, match="there is no slice 'fr'; there are"):
        found.of("fr")


def test_p_values_are_those_of_the_intervals_adjusted_for_their_number(data: dict[str, Any]) -> None:
    from scipy.stats import t

    found = compare(data["A"], data["B"], by=data["language"], metrics=METRICS)
    tested = [change for change in found.slices if change.p_value is not None]
    assert len(tested) == 9
    half = [(change.interval[1] - change.interval[0]) / 2 for change in tested]
    scores = [change.difference / one * t.ppf(0.975, 19) for change, one in zip(tested, half, strict=True)]
    expected = holm([2 * t.sf(abs(score), 19) for score in scores])
    assert [change.p_value for change in tested] == pytest.approx(expected, rel=1e-6)
    assert {change.slice for change in tested if change.differs} == {"fi"}
    assert "adjusted for the 9 changes tested (Holm)" in str(found)
    assert "slices of fewer than 40 rows have no intervals" in str(found)


def test_the_worst_slice_comes_first(data: dict[str, Any]) -> None:
    found = compare(data["A"], data["B"], by=data["language"], metrics=METRICS)
    of = {name: [one.difference for one in found.slices if one.name == name] for name in METRICS}
    assert of["isoscore"] == sorted(of["isoscore"])
    assert of["mean_cosine"] == sorted(of["mean_cosine"], reverse=True)
    assert of["mean_norm"] == sorted(of["mean_norm"], key=abs, reverse=True)
    assert found.slice_overlaps[0].slice == "fi"


@pytest.mark.parametrize("n", [250, 6000])
def test_the_overlap_of_a_slice_is_the_mean_of_its_rows(data: dict[str, Any], n: int) -> None:
    rng = np.random.default_rng(0)
    A, B, language = (np.resize(data[name], (n, *data[name].shape[1:])) for name in ("A", "B", "language"))
    A, B = (X + 0.01 * rng.normal(size=X.shape) for X in (A, B))
    B[:20] = 0
    found = compare(A, B, by=language, metrics="mean_norm", n_moved=n)
    shares = {one.row: one.overlap for one in found.moved_rows}
    for one in found.slice_overlaps:
        own = [share for row, share in shares.items() if language[row] == one.slice]
        assert one.overlap == pytest.approx(np.mean(own))
        assert one.n == (language == one.slice).sum()
        assert (one.interval is None) == (one.slice == "sw" and n == 250)
        if one.interval is not None:
            assert one.interval[0] < one.overlap < one.interval[1]
            assert one.interval[1] - one.interval[0] < 0.3
    assert sum(one.n * one.overlap for one in found.slice_overlaps) / n == pytest.approx(
        found.correspondence("overlap"), rel=1e-9 if n == 250 else 0.05
    )


def test_gates_on_the_worst_slice(data: dict[str, Any]) -> None:
    found = compare(data["A"], data["B"], by=data["language"], metrics=METRICS, errors=False)
    texts = ["worst:overlap>=0.9", "worst:delta:mean_cosine<=0.5", "worst:isoscore>=0.01", "overlap<2"]
    results = found.check(parse_gates(texts))
    assert [(one.passed, one.slice) for one in results] == [
        (False, "fi"),
        (False, "fi"),
        (True, min(("de", "en", "fi", "sw"), key=lambda name: found.of(name)["isoscore"].after)),
        (True, None),
    ]
    assert results[1].value == found.of("fi")["mean_cosine"].difference
    assert results[0].to_dict()["slice"] == "fi"
    assert "in slice fi" in str(results[0])
    with pytest.raises(iso.InputError, match="is on slices"):
        compare(data["A"], data["B"], metrics=METRICS, errors=False).check(parse_gates(texts[:1]))
    with pytest.raises(iso.InputError, match="is of all rows"):
        parse_gates(["worst:cka>=0.9"])


def test_what_b_lost_fails_a_gate_on_the_worst_slice(data: dict[str, Any]) -> None:
    A, B = data["A"].copy(), data["B"].copy()
    B[data["language"] == "sw"] = 1  # all equal
    by = np.where(np.arange(250) == 0, "one", data["language"])
    found = compare(A, B, by=by, metrics=METRICS, errors=False)
    assert found.of("one")["isoscore"].meaning == "1 vector; at least 2 are needed"
    assert found.of("one")["mean_norm"].before == pytest.approx(np.linalg.norm(A[0]))
    assert found.of("sw")["isoscore"].meaning == "all its vectors are equal"
    (result,) = found.check(parse_gates(["worst:isoscore>=0"]))
    assert (result.passed, result.value, result.slice) == (False, None, "sw")


def test_columns_of_files_and_frames_and_ids(data: dict[str, Any], tmp_path: Path) -> None:
    expected = compare(data["A"], data["B"], by=data["language"], metrics="mean_norm", errors=False)
    month = {"de": 1, "en": 2, "fi": 3, "sw": 4}
    frames = {}
    for side in "AB":
        frames[side] = pd.DataFrame(data[side], columns=list("vwxyz")).assign(
            month=[month[name] for name in data["language"]], id=range(250)
        )
        frames[side].to_csv(tmp_path / f"{side}.csv", index=False)
    turned = frames["B"].iloc[::-1]
    pairs = [(frames["A"], turned), (tmp_path / "A.csv", tmp_path / "B.csv")]
    for A, B in pairs:
        found = compare(A, B, by="month", ids="id", metrics="mean_norm", errors=False)
        assert (found.a.d, found.b.d, found.by) == (5, 5, ("month",))
        for name, number in month.items():
            own, other = found.of(str(number))["mean_norm"], expected.of(name)["mean_norm"]
            assert (own.n, own.difference) == (other.n, pytest.approx(other.difference))
    listed = compare(frames["A"], frames["B"], by=["month", "id"], metrics="mean_norm", errors=False)
    assert listed.by == ("month", "id")
    assert listed.b.d == 5
    measured = iso.measure(data["A"])
    again = compare(measured, data["B"], by=data["language"], metrics="mean_norm", errors=False)
    assert again.of("fi") == expected.of("fi")
    with raises(iso.InputError, argument="by"):
        compare(data["A"], data["B"], by=["de"] * 3)


def test_outputs(data: dict[str, Any]) -> None:
    found = compare(data["A"], data["B"], by=data["language"], metrics=METRICS, errors=False)
    facts = json.loads(found.to_json())
    assert {"slice", "n", "metric", "a", "b", "difference", "interval", "p_value"} <= facts["slices"][
        0
    ].keys()
    assert facts["slice_overlaps"][0]["slice"] == "fi"
    assert found.readings.where(side="difference", slice="fi", metric="isoscore")["value"] == [
        found.of("fi")["isoscore"].difference
    ]
    assert "by slice" in found.title
    assert "slices" not in compare(data["A"], data["B"], metrics=METRICS, errors=False).to_dict()
    named = compare(data["A"], data["B"], by=["<b>all rows"] * 50 + ["all rows"] * 200, errors=False)
    assert "'all rows'" in str(named)
    assert "<b>all" not in named._repr_html_()


@pytest.mark.nightly
def test_false_alarms_stay_at_the_level() -> None:
    """Both spaces are the same items with other noise: 5 % of tables have a p-value below 0.05, or fewer."""
    n_runs, alarms = 40, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(180, 4))
        A, B = (iso.Space(means + 0.5 * rng.normal(size=means.shape)) for _ in range(2))
        names = ["mean_cosine", "effective_rank"]
        changes = slice_changes(A, B, as_labels(rng.integers(0, 3, 180)), names, errors=True, seed=seed)
        alarms += min(change.p_value for change in changes) < 0.05
    assert alarms / n_runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)
