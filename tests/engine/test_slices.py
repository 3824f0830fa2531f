"""Slices against measuring each sub-array alone, Holm against brute force, false alarms by simulation."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope.engine.sliced_measurement import SlicedMeasurement
from isoscope.engine.slices import holm
from isoscope.errors import InputError, LabelError

N, D = 600, 7
STREAMED = ["isoscore", "isoscore_debiased", "mean_cosine", "partition_isotropy", "effective_rank"]
LABELLED = [*STREAMED, "davies_bouldin", "calinski_harabasz"]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    language = rng.choice(["de", "en", "fr", "sw"], N, p=[0.3, 0.4, 0.25, 0.05])
    topic = rng.choice(["art", "law", "sea"], N)
    X = rng.normal(size=(N, D)) + 2 * rng.normal(size=(3, D))[np.unique(topic, return_inverse=True)[1]]
    X[language == "fr"] *= np.linspace(0.3, 2, D)
    return {"X": X, "language": language, "topic": topic, "month": rng.integers(1, 4, N)}


@pytest.fixture(scope="module")
def table(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path_factory.mktemp("table") / "docs.parquet"
    columns = {name: data[name] for name in ("language", "topic", "month")}
    parquet.write_table(pa.table({"vector": list(data["X"]), **columns}), path)
    return path


def rows(found: Any) -> dict[tuple[str, str], Any]:
    assert isinstance(found, SlicedMeasurement)
    return {(reading.group["slice"], reading.metric): reading for reading in found.slices}


def same(first: Any, second: Any, rel: float = 1e-12) -> None:
    one, other = rows(first), rows(second)
    assert one.keys() == other.keys()
    for key, reading in one.items():
        for name in ("n", "value", "standard_error", "difference", "difference_error", "p_value"):
            expected = getattr(other[key], name)
            assert getattr(reading, name) == (
                expected if expected is None else pytest.approx(expected, rel=rel, abs=1e-13)
            ), (key, name)


def test_a_slice_is_what_its_rows_measure_alone(data: dict[str, Any]) -> None:
    """And the difference is from all other rows, measured alone."""
    metrics = [*LABELLED, "silhouette", "silhouette_cosine", "knn_purity"]
    X, language, topic = data["X"], data["language"], data["topic"]
    found = iso.measure(X, labels=topic, by=language, metrics=metrics)
    whole = iso.measure(X, labels=topic, metrics=metrics)
    assert len(found.slices) == 4 * len(metrics)
    for name in metrics:
        assert found[name] == pytest.approx(whole[name], rel=1e-12)
    for name in np.unique(language):
        inside = language == name
        alone, rest = (
            iso.measure(X[some], labels=topic[some], metrics=metrics) for some in (inside, ~inside)
        )
        for own, other in zip(alone.readings, rest.readings, strict=True):
            reading = rows(found)[name, own.metric]
            assert reading.n == inside.sum()
            assert reading.value == pytest.approx(own.value, rel=1e-12)
            assert reading.difference == pytest.approx(own.value - other.value, rel=1e-9, abs=1e-12)
            assert (reading.standard_error is None) == (own.standard_error is None)
            if own.standard_error is not None:
                assert reading.standard_error == pytest.approx(own.standard_error, rel=1e-10)
                error = np.hypot(own.standard_error, other.standard_error)
                assert reading.difference_error == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("by", ["language", ("language", "month")])
def test_streamed_is_as_in_memory(data: dict[str, Any], table: Path, by: Any, monkeypatch: Any) -> None:
    from isoscope.engine import run

    monkeypatch.setattr(run, "_SLICED_ROWS", 1)
    monkeypatch.setattr("isoscope.arrays.block_rows", lambda *_: 50)
    source = iso.open_vectors(table, labels="topic")
    values = [f"{a}, {b}" for a, b in zip(data["language"], data["month"], strict=True)]
    given = data["language"] if by == "language" else values
    in_memory = iso.measure(data["X"], labels=data["topic"], by=given, metrics=LABELLED)
    streamed = iso.measure(source, by=by, metrics=LABELLED)
    assert streamed.by == ((by,) if isinstance(by, str) else by)
    same(streamed, in_memory, rel=1e-9)


def test_values_with_commas_do_not_join_slices(tmp_path: Path) -> None:
    """("x, y", "z") and ("x", "y, z") are two slices, in memory and where each block has one of them."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    pairs = [("x, y", "z"), ("x", "y, z"), ("'x, y'", "z"), ("x", "z")]
    first, second = zip(*[pair for pair in pairs for _ in range(30)], strict=True)
    vectors = list(np.random.default_rng(0).normal(size=(120, 3)))
    whole = pa.table({"vector": vectors, "g1": first, "g2": second})
    parquet.write_table(whole, tmp_path / "whole.parquet")
    (tmp_path / "shards").mkdir()
    for start in range(0, 120, 30):
        parquet.write_table(pa.table(whole.slice(start, 30)), tmp_path / "shards" / f"{start:03}.parquet")
    names = ["'x, y', z", "x, 'y, z'", "\"'x, y'\", z", "x, z"]
    options: dict[str, Any] = {"by": ("g1", "g2"), "metrics": ["mean_cosine"]}
    in_one = iso.measure(iso.open_vectors(tmp_path / "whole.parquet"), **options)
    in_parts = iso.measure(iso.open_vectors(tmp_path / "shards"), skip_bad=True, **options)
    for found in (in_one, in_parts):
        assert {reading.group["slice"]: reading.n for reading in found.slices} == dict.fromkeys(names, 30)


def test_in_parts_as_in_one(table: Path, data: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    """Files that are passed over part by part, kept in a checkpoint and taken up again."""
    folder = tmp_path / "shards"
    folder.mkdir()
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    whole = parquet.read_table(table)
    for number, start in enumerate(range(0, N, 250)):
        parquet.write_table(pa.table(whole.slice(start, 250)), folder / f"{number}.parquet")
    one = iso.measure(iso.open_vectors(table), by="language", metrics=STREAMED)
    options: dict[str, Any] = {"by": "language", "metrics": STREAMED, "checkpoint": tmp_path / "kept"}
    same(iso.measure(iso.open_vectors(folder), **options), one, rel=1e-9)
    again = iso.measure(iso.open_vectors(folder), **options)
    same(again, one, rel=1e-9)
    assert any("finished pieces" in note for note in again.notes)
    same(iso.measure(iso.open_vectors(folder), by="language", metrics=STREAMED, skip_bad=True), one, rel=1e-9)


def test_on_dask(data: dict[str, Any]) -> None:
    da = pytest.importorskip("dask.array")
    X = da.from_array(data["X"], chunks=(170, D))
    same(
        iso.measure(X, by=data["language"], metrics=STREAMED),
        iso.measure(data["X"], by=data["language"], metrics=STREAMED),
        rel=1e-9,
    )


def test_rows_keep_their_order() -> None:
    """The folds of the linear probe follow the order of rows: slices leave the value of all rows as it is."""
    rng = np.random.default_rng(0)
    X, labels, by = rng.normal(size=(200, 4)), rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    metrics = ["linear_probe_accuracy"]
    name = metrics[0]
    found = iso.measure(X, labels=labels, by=by, metrics=metrics)
    assert found[name] == iso.measure(X, labels=labels, metrics=metrics)[name]
    for value in range(3):
        inside = by == value
        own, rest = (iso.measure(X[some], labels=labels[some], metrics=metrics) for some in (inside, ~inside))
        reading = found.of(str(value))[name]
        assert reading.value == own[name]
        assert reading.difference == own[name] - rest[name]


def test_the_order_of_rows_does_not_matter(data: dict[str, Any]) -> None:
    order = np.random.default_rng(0).permutation(N)
    first = iso.measure(data["X"], labels=data["topic"], by=data["language"], metrics=LABELLED)
    second = iso.measure(
        data["X"][order], labels=data["topic"][order], by=data["language"][order], metrics=LABELLED
    )
    same(first, second, rel=1e-10)


def test_weights_count_rows_within_slices(data: dict[str, Any]) -> None:
    weights = np.random.default_rng(1).integers(1, 4, N)
    repeated = {name: np.repeat(data[name], weights, axis=0) for name in ("X", "language")}
    weighted = iso.measure(data["X"], by=data["language"], weights=weights, metrics=["isoscore", "mean_norm"])
    unweighted = iso.measure(
        repeated["X"], by=repeated["language"], metrics=["isoscore", "mean_norm"], errors=False
    )
    same(weighted, unweighted, rel=1e-10)


def brute_force_holm(p_values: list[float]) -> list[float]:
    """By closed testing: the largest Bonferroni p-value among all sets of hypotheses that have it."""
    places = range(len(p_values))
    sets = [s for size in range(1, len(p_values) + 1) for s in itertools.combinations(places, size)]
    level = {s: min(1.0, len(s) * min(p_values[i] for i in s)) for s in sets}
    return [max(level[s] for s in sets if place in s) for place in places]


@pytest.mark.parametrize("seed", range(20))
def test_holm_is_the_closed_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p_values = list(rng.uniform(size=rng.integers(1, 8)) ** 3)
    assert holm(p_values) == pytest.approx(brute_force_holm(p_values), rel=1e-12)


def test_holm_of_none() -> None:
    assert holm([]) == []


def test_all_differences_are_adjusted_together(data: dict[str, Any], monkeypatch: Any) -> None:
    from isoscope.engine import slices

    asked: list[list[float]] = []

    def noted(p_values: list[float]) -> list[float]:
        asked.append(list(p_values))
        return p_values

    monkeypatch.setattr(slices, "holm", noted)
    iso.measure(data["X"], by=data["language"], metrics=["isoscore_debiased", "mean_cosine"])
    assert [len(p_values) for p_values in asked] == [8]


def test_two_slices_are_one_test(data: dict[str, Any]) -> None:
    """Against scipy's Welch test of both; and Holm of two metrics takes two tests, not four."""
    from scipy.stats import ttest_ind_from_stats

    X, by = data["X"], np.where(data["language"] == "de", "de", "other")
    metrics = ["isoscore_debiased", "mean_cosine"]
    alone = [iso.measure(X[by == name], metrics=metrics) for name in ("de", "other")]
    p_values = []
    for one, other in zip(*(measured.readings for measured in alone), strict=True):
        sides = [
            (r.value, r.standard_error * np.sqrt(m.n), m.n) for r, m in zip((one, other), alone, strict=True)
        ]
        p_values.append(ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue)
    found = iso.measure(X, by=by, metrics=metrics)
    for name in ("de", "other"):
        assert [found.of(name)[metric].p_value for metric in metrics] == pytest.approx(holm(p_values))
    assert "adjusted for the 2 differences tested (Holm)" in str(found)
    single = iso.measure(X, by=by, metrics=metrics[1])
    assert [reading.p_value for reading in single.slices] == pytest.approx(p_values[1:] * 2)
    assert "adjusted" not in str(single)


@pytest.mark.slow
def test_false_alarms_stay_at_the_level() -> None:
    """Rows of one distribution, sliced at random: 5 % of tests before, 5 % of tables after adjustment."""
    n_runs, alarms, tables, tests = 150, 0, 0, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 6)) * np.arange(1, 7) ** -0.6 + 0.2
        found = iso.measure(X, by=rng.integers(0, 4, 400), metrics=["isoscore_debiased", "mean_cosine"])
        p_values = [reading.p_value for reading in found.slices]
        tables += min(p_values) < 0.05
        z = [abs(reading.difference / reading.difference_error) for reading in found.slices]
        alarms, tests = alarms + sum(one > 1.98 for one in z), tests + len(z)
    assert tables / n_runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)
    assert 0.03 < alarms / tests < 0.07


def test_what_is_biased_by_the_number_of_rows_is_not_tested(data: dict[str, Any]) -> None:
    found = iso.measure(data["X"], by=data["language"], metrics=["isoscore", "isoscore_debiased"])
    tested = {reading.metric for reading in found.slices if reading.p_value is not None}
    assert tested == {"isoscore_debiased"}
    assert "isoscore depends on the number of rows: isoscore_debiased is tested instead" in str(found)


@pytest.mark.slow
def test_the_silhouette_is_not_tested() -> None:
    """Rows of one distribution: the slice of fewer rows has the lower silhouette, with nothing to find."""
    lower = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, labels = rng.normal(size=(660, 8)), rng.integers(0, 4, 660)
        found = iso.measure(X, labels=labels, by=["few"] * 60 + ["many"] * 600, metrics=["silhouette"])
        few = found.of("few")["silhouette"]
        lower += few.difference < 0
        assert few.difference_error is not None
        assert few.p_value is None
    assert lower >= 18
    assert "silhouette depends on the number of rows: it is not tested" in str(found)
    assert "adjusted for" not in str(found)


def test_the_worst_slice_comes_first(data: dict[str, Any]) -> None:
    found = iso.measure(data["X"], by=data["language"], metrics=["isoscore", "mean_cosine", "mean_norm"])
    by_metric = {name: [reading for reading in found.slices if reading.metric == name] for name in found}
    values = {name: [reading.value for reading in readings] for name, readings in by_metric.items()}
    assert values["isoscore"] == sorted(values["isoscore"])
    assert values["mean_cosine"] == sorted(values["mean_cosine"], reverse=True)
    apart = [abs(reading.difference) for reading in by_metric["mean_norm"]]
    assert apart == sorted(apart, reverse=True)


def test_the_first_line_names_the_slice_that_stands_out() -> None:
    rng = np.random.default_rng(0)
    by = np.repeat(["de", "en", "fi"], 200)
    X = rng.normal(size=(600, 8)) + 0.5
    assert iso.measure(X, by=by, metrics="mean_cosine").opening == (
        "no slice differs clearly from all other rows"
    )
    X[by == "fi"] += 1
    found = iso.measure(X, by=by, metrics="mean_cosine")
    inside, rest = (_mean_cosine(X[rows]) for rows in (by == "fi", by != "fi"))
    said = f"fi stands out: mean_cosine {inside:.4f} against {rest:.4f} in all other rows"
    assert found.opening.startswith(said)
    assert found.opening.endswith("; every other slice differs clearly too")
    assert found.opening in " ".join(str(found).split())
    assert found.opening in found.to_html()
    two = iso.measure(X[by != "en"], by=by[by != "en"], metrics="mean_cosine")
    assert two.opening.endswith("in all other rows")
    assert iso.measure(X, by=by, metrics="isoscore").opening == ""  # which is not tested


def _mean_cosine(X: np.ndarray) -> float:
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = units @ units.T
    return float(cosines[~np.eye(len(X), dtype=bool)].mean())


def test_slices_with_too_few_rows_say_so(data: dict[str, Any]) -> None:
    by = ["one"] + ["nine"] * 8 + ["equal"] * 3 + ["more"] * (N - 12)
    X = data["X"].copy()
    X[9:12] = 1.0
    found = iso.measure(X, by=by, metrics=["isoscore_debiased", "mean_cosine"])
    assert found.of("one")["mean_cosine"].reason == "1 vector; at least 2 are needed"
    assert found.of("equal")["isoscore_debiased"].reason == "all its vectors are equal"
    assert found.of("equal")["mean_cosine"].value == pytest.approx(1)
    nine = found.of("nine")["mean_cosine"]
    assert nine.difference_error is not None
    assert nine.p_value is None  # a standard error of eight rows is no ground for a test
    assert found.of("more")["mean_cosine"].p_value is None  # nor that of the rows outside
    assert found.slices[-1].value is None
    with pytest.raises(KeyError, match="there is no slice 'two'; there are"):
        found.of("two")


def test_a_slice_of_one_label_has_a_reason(data: dict[str, Any]) -> None:
    labels = np.where(data["language"] == "sw", "art", data["topic"])
    found = iso.measure(data["X"], labels=labels, by=data["language"], metrics=["silhouette", "isoscore"])
    assert "label" in found.of("sw")["silhouette"].reason
    assert found.of("de")["silhouette"].value is not None


def test_one_slice_is_compared_with_nothing(data: dict[str, Any]) -> None:
    found = iso.measure(data["X"], by=["all"] * N, metrics=["mean_cosine"])
    assert found.of("all")["mean_cosine"].difference is None


def test_outputs(data: dict[str, Any]) -> None:
    found = iso.measure(data["X"], by=data["language"], metrics=["isoscore_debiased", "mean_cosine"])
    kept = json.loads(found.to_json())
    assert kept["by"] == []
    assert {"slice", "n", "metric", "value", "difference", "p_value", "reason"} <= kept["slices"][0].keys()
    assert kept["metrics"].keys() == {"isoscore_debiased", "mean_cosine"}
    lines = found.to_csv().splitlines()
    assert lines[0].startswith('"slice","n","metric","value","standard_error"')
    assert len(lines) == 1 + 8 + 2  # and all rows, whose slice is empty
    assert lines[-1].startswith(f',{N},"mean_cosine",')
    frame = found.to_pandas()
    names = [reading.group["slice"] for reading in found.slices[:4]]
    assert [name for name in frame["slice"].unique() if isinstance(name, str)] == names
    few = iso.measure(data["X"][:5], by=list("aabbc"), metrics=["mean_norm"])
    assert few.to_pandas()["p_value"].dtype == float  # of numbers, though there are none
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("by", "error", "said"),
    [
        ("nothing", InputError, "`by` must be a column or a file, got 'nothing'. There are no columns in X"),
        (["de"] * 3, InputError, "`by` has 3 entries for 600"),
        ([None] * N, LabelError, "by"),
    ],
)
def test_bad_slices(data: dict[str, Any], by: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        iso.measure(data["X"], by=by)


def test_more_slices_than_memory(data: dict[str, Any], monkeypatch: Any) -> None:
    from isoscope.engine import slices

    monkeypatch.setattr(slices, "physical_bytes", lambda: 20_000)
    with pytest.raises(InputError, match="has another value in every row, 600 in all, and there is memory"):
        iso.measure(data["X"], by=np.arange(N), metrics=["isoscore"])


def test_what_the_space_knows_slices_it(data: dict[str, Any]) -> None:
    space = iso.Space(data["X"], labels=data["language"])
    same(
        iso.measure(space, by="labels", metrics=STREAMED),
        iso.measure(data["X"], by=data["language"], metrics=STREAMED),
    )


def test_columns_that_slice_are_no_dimensions(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=(50, 3)), rng.integers(1, 4, 50)])
    lines = ["d0,d1,d2,month", *(f"{a:.4f},{b:.4f},{c:.4f},{month:.0f}" for a, b, c, month in values)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    source = iso.open_vectors(tmp_path / "table.csv", by="month")
    assert source.n_dims == 3
    found = iso.measure(source, by="month", metrics="mean_cosine")
    assert {reading.group["slice"] for reading in found.slices} == {"1", "2", "3"}
    (tmp_path / "tenants.txt").write_text("\n".join("ab"[row % 2] for row in range(50)))
    beside = iso.measure(source, by=str(tmp_path / "tenants.txt"), metrics="mean_cosine")
    assert [reading.n for reading in beside.slices] == [25, 25]


def test_errors_of_many_rows_outside_are_from_a_sample(data: dict[str, Any], monkeypatch: Any) -> None:
    from isoscope.engine import passes

    metrics = ["isoscore_debiased", "mean_cosine", "partition_isotropy"]
    exact = rows(iso.measure(data["X"], by=data["language"], metrics=metrics))
    monkeypatch.setattr(passes, "REST_ROWS", 150)
    for key, reading in rows(iso.measure(data["X"], by=data["language"], metrics=metrics)).items():
        assert reading.difference == pytest.approx(exact[key].difference, rel=1e-12)
        if reading.difference_error is not None:
            assert reading.standard_error == pytest.approx(exact[key].standard_error, rel=1e-12)
            assert reading.difference_error == pytest.approx(exact[key].difference_error, rel=0.2)
            assert reading.difference_error != exact[key].difference_error


def test_readings_hold_every_slice(data: dict[str, Any]) -> None:
    metrics = ["isoscore_debiased", "mean_cosine"]
    found = iso.measure(data["X"], by=data["language"], metrics=metrics)
    assert len(found.readings) == 2 + 4 * 2
    assert found.readings.where(slice="de", metric="mean_cosine")["value"] == [
        found.of("de")["mean_cosine"].value
    ]
    assert (list(found), len(found)) == (metrics, 2)
    assert found["mean_cosine"] == pytest.approx(iso.measure(data["X"], metrics=metrics)["mean_cosine"])


def test_several_values_a_row_have_an_order(data: dict[str, Any]) -> None:
    X = data["X"][:40]
    pairs = [("a", "b"), ("b", "a")] * 20
    found = iso.measure(X, by=pairs, metrics=["mean_cosine"])
    assert {reading.group["slice"] for reading in found.slices} == {"a, b", "b, a"}
    matrix = iso.measure(X, by=np.zeros((40, 2)), metrics=["mean_cosine"])
    assert [(reading.group["slice"], reading.n) for reading in matrix.slices] == [("0.0, 0.0", 40)]


def test_columns_and_files_together(data: dict[str, Any], table: Path, tmp_path: Path) -> None:
    file = tmp_path / "language.txt"
    file.write_text("\n".join(data["language"]))
    opened = iso.open_vectors(table, by="month")
    found = iso.measure(opened, by=("month", str(file)), metrics=["mean_cosine"])
    by = {"month": data["month"], "language": data["language"]}
    same(found, iso.measure(data["X"], by=by, metrics=["mean_cosine"]))
    assert found.by == ("month", str(file))


def test_a_slice_named_as_the_total_is_told_from_it(data: dict[str, Any]) -> None:
    by = ["all rows"] * 300 + ["all"] * 300
    lines = str(iso.measure(data["X"], by=by, metrics=["mean_cosine"])).splitlines()
    first = [line.strip().split("  ")[0] for line in lines]
    assert {"'all rows'", "all", "all rows"} <= set(first)


def test_one_vector_has_a_norm(data: dict[str, Any]) -> None:
    by = ["one"] + ["equal"] * 3 + ["more"] * (N - 4)
    X = data["X"].copy()
    X[1:4] = X[1]
    found = iso.measure(X, by=by, metrics=["mean_norm", "isoscore", "partition_isotropy"])
    assert found.of("one")["mean_norm"].value == pytest.approx(np.linalg.norm(X[0]))
    assert found.of("equal")["mean_norm"].value == pytest.approx(np.linalg.norm(X[1]))
    assert found.of("one")["isoscore"].reason == "1 vector; at least 2 are needed"
    assert found.of("one")["partition_isotropy"].value is None


def test_an_interval_agrees_with_its_p_value(data: dict[str, Any]) -> None:
    """Of two slices nothing else is tested: without Holm's factor, 0.05 is where the interval meets 0."""
    from isoscope.engine.slices import _welch

    half, _ = _welch(1.0, (0.4, 25), (0.1, 400))
    assert _welch(half, (0.4, 25), (0.1, 400))[1] == pytest.approx(0.05, rel=1e-9)
    assert half > 1.96 * np.hypot(0.4, 0.1)
    found = iso.measure(data["X"], by=data["language"], metrics=["mean_cosine"])
    assert found.of("sw")["mean_cosine"].difference_half_width is not None


def test_the_order_is_claimed_of_what_has_one(data: dict[str, Any]) -> None:
    def text(*metrics: str) -> str:
        return str(iso.measure(data["X"], by=data["language"], metrics=metrics))

    assert "the worst slice" not in text("mean_norm")
    assert "(for mean_norm: the largest difference)" in text("mean_norm", "isoscore")
    assert "measure isoscore_debiased to test" in text("isoscore")
    assert "isoscore_debiased is tested instead" in text("isoscore", "isoscore_debiased")


@pytest.mark.slow
def test_measured_values_are_noticed(data: dict[str, Any]) -> None:
    found = iso.measure(data["X"], by=np.linspace(0, 1, N), metrics=["mean_norm"])
    assert "pandas.cut" in found.notes[0]
    assert not iso.measure(data["X"], by=data["month"], metrics=["mean_norm"]).notes


def test_what_was_sliced_is_reported_whole(data: dict[str, Any]) -> None:
    from isoscope.engine.kept import shelf_of

    found = iso.measure(data["X"], by=data["language"], metrics=["mean_cosine"])
    again = iso.measure(found, metrics=["mean_cosine", "isoscore"])
    assert again["isoscore"] == pytest.approx(iso.isoscore(data["X"]))
    assert "moments" in vars(shelf_of(found))
