from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.engine.readings import Reading
from isoscope.engine.sliced_measurement import SlicedMeasurement
from isoscope.errors import InputError, LabelError, ShapeError
from isoscope.measurement import Measurement
from isoscope.progress import Bar
from isoscope.statistics.declared import Declared, declared
from isoscope.tables import shown


@pytest.fixture
def digits():
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


@pytest.mark.slow
def test_values_are_those_of_the_functions(digits) -> None:
    X, y = digits
    m = iso.measure(X, labels=y, metrics="all")
    assert m["isoscore"] == iso.isoscore(X)
    assert m["isoscore_debiased"] == iso.isoscore(X, debias=True)
    assert m["silhouette"] == pytest.approx(iso.silhouette_score(X, y), abs=1e-14)
    assert m["mean_cosine"] == iso.mean_cosine(X)
    assert m["effective_rank"] == iso.effective_rank(X)
    assert m["lid"] == iso.lid(X)
    assert m["knn_purity"] == iso.knn_purity(X, y)
    assert (m.n, m.d, m.n_labels, m.dtype) == (1797, 64, 10, "float64")


def test_each_pass_runs_once(digits, monkeypatch) -> None:
    X, y = digits
    calls: list[str] = []

    def counting(one: Declared) -> Declared:
        def of(space, shelf):
            calls.append(one.name)
            return one.of(space, shelf)

        return replace(one, of=of)

    everyone = {name: counting(one) for name, one in declared().items()}
    monkeypatch.setattr("isoscope.statistics.gathered.declared", lambda: everyone)
    iso.measure(X, labels=y, metrics="all")
    assert {"moments", "directions", "label_moments", "separation", "distinct_neighbors"} <= set(calls)
    assert len(calls) == len(set(calls))


def test_ceiling_stands_beside_isoscore_where_labels_are_given(digits) -> None:
    X, y = digits
    with_labels = iso.measure(X, labels=y, metrics="isoscore").readings[0]
    assert with_labels.ceiling == pytest.approx(iso.metrics.scatter_decomposition(X, y).ceiling)
    assert with_labels.value < with_labels.ceiling < 1
    assert iso.measure(X, metrics="isoscore").readings[0].ceiling is None


def test_intervals_hold_the_value(digits) -> None:
    X, y = digits
    for reading in iso.measure(X, labels=y).readings:
        if reading.standard_error is not None:
            low, high = reading.interval
            assert low < reading.value < high
    assert all(r.standard_error is None for r in iso.measure(X, labels=y, errors=False).readings)


def test_interval_stays_inside_the_range() -> None:
    reading = Reading("isoscore", 0.001, 0.01, None, "", (0.0, 1.0))
    assert reading.interval == (0.0, pytest.approx(0.0206, abs=1e-4))


def test_json_is_strict_and_complete(digits) -> None:
    X, y = digits
    m = iso.measure(X, labels=y, metrics="all")
    found = json.loads(m.to_json(), parse_constant=pytest.fail)
    assert set(found["metrics"]) == set(m)
    assert found["metrics"]["silhouette"]["value"] == m["silhouette"]
    assert found["metrics"]["isoscore"]["interval"][0] < m["isoscore"]
    assert (found["n"], found["d"], found["n_labels"], found["seed"]) == (1797, 64, 10, 0)


def test_undefined_is_said_not_nan(digits) -> None:
    X, _ = digits
    m = iso.measure(X, metrics="condition_number")
    assert m["condition_number"] is None
    assert "rank 61 of 64" in m.readings[0].meaning
    assert "–" in str(m)
    assert json.loads(m.to_json())["metrics"]["condition_number"]["value"] is None


def test_table_says_what_each_number_means(digits) -> None:
    X, y = digits
    text = str(iso.measure(iso.Space(X, name="digits"), labels=y))
    assert text.startswith("digits: 1,797 vectors × 64 dimensions (float64), 10 labels")
    assert "these labels allow at most" in " ".join(text.split())
    assert "0.1932" in text


def test_html_escapes_strangers_names() -> None:
    space = iso.Space(np.random.default_rng(0).normal(size=(20, 3)), name="<script>alert(1)</script>")
    html = iso.measure(space)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_names_with_markup_are_not_read_as_markup() -> None:
    space = iso.Space(np.random.default_rng(0).normal(size=(20, 3)), name="[red]x[/red]")
    assert "[red]x[/red]" in str(iso.measure(space))


def test_a_measurement_is_a_mapping(digits) -> None:
    m = iso.measure(digits[0], metrics="isotropy")
    assert dict(m) == {name: m[name] for name in m}
    assert len(m) == len(m.keys())
    with pytest.raises(KeyError, match=r"silhouette.*was not measured"):
        m["silhouette"]


def test_what_is_guessed_of_a_measurement(rng) -> None:
    measured = iso.measure(rng.normal(size=(30, 4)), metrics=["isoscore", "mean_cosine"])
    assert (
        dict(measured.items()) == dict(measured) == dict(zip(measured.keys(), measured.values(), strict=True))
    )
    for name, message in (
        ("silhouette", "it needs labels"),
        ("isoscor", "did you mean 'isoscore'"),
        ("zzz", "no such metric"),
    ):
        with pytest.raises(KeyError, match=message):
            measured[name]
    for name, message in (
        ("isoscore", r"measurement\['isoscore'\]"),
        ("plot", "isoscope.plots"),
        ("save", "to_json"),
    ):
        with pytest.raises(AttributeError, match=message):
            getattr(measured, name)
    assert not hasattr(measured, "nonsense")
    assert pickle.loads(pickle.dumps(copy.deepcopy(measured)))["isoscore"] == measured["isoscore"]


def test_what_the_rows_are_decides_what_is_measured(rng) -> None:
    X = rng.normal(size=(60, 4)) + 0.3
    assert "silhouette" not in iso.measure(X)
    assert "silhouette" in iso.measure(X, labels=np.arange(60) % 3)
    contextual = iso.measure(X, token_types=np.arange(60) % 9, sentences=np.arange(60) // 6)
    assert "self_similarity" in contextual
    assert "intra_similarity" in contextual
    space = iso.Space(X, labels=np.arange(60) % 3)
    assert "silhouette" in iso.measure(space)
    assert iso.measure(space, labels=np.arange(60) % 2).n_labels == 2
    everything = iso.measure(X, metrics="all")
    assert any("not computed without labels: silhouette" in note for note in everything.notes)


def test_partners_and_a_reference_covariance(rng) -> None:
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 4))
    m = iso.measure(X, partners=Y, covariance=np.diag([1.0, 2, 3, 4]))
    assert m["alignment"] == iso.alignment(X, Y)
    assert m["isoscore_star"] == iso.isoscore_star(X, np.diag([1.0, 2, 3, 4]))
    assert "alignment" not in iso.measure(X)
    assert "partners" in repr(iso.Space(X, partners=Y))
    with pytest.raises(
        ShapeError, match=r"`partners` has shape \(30, 2\); expected the shape of the vectors, \(30, 4\)"
    ):
        iso.measure(X, partners=Y[:, :2])


def test_zero_vectors_are_counted_not_fatal(rng) -> None:
    X = rng.normal(size=(50, 4))
    X[:3] = 0
    m = iso.measure(X)
    assert m.notes == ("cosines leave out 3 zero vectors, because a zero vector has no direction",)
    assert iso.measure(X, metrics="spectrum").notes == ()
    assert "neighbours leave out 3 zero" in iso.measure(X, metrics="hubness").notes[0]


def test_one_metric_without_a_value_stops_no_other(rng) -> None:
    two = iso.measure(rng.normal(size=(2, 3)), metrics="all")
    assert two["twonn"] is None
    assert two["isoscore"] is not None
    assert "±" not in str(two).split("mean_cosine")[0].split("what it means")[1]
    X = rng.normal(size=(20, 4))
    X[10:] = 0
    zeros = iso.measure(X, labels=np.repeat(["a", "b"], 10))
    assert zeros["silhouette_cosine"] is None
    assert zeros["silhouette"] is not None
    assert iso.measure(rng.normal(size=(20, 4)) * 1e100)["isoscore_debiased"] is None


def test_few_vectors_come_with_a_note(rng) -> None:
    assert "few for 100 dimensions" in iso.measure(rng.normal(size=(50, 100))).notes[0]
    assert not iso.measure(rng.normal(size=(500, 10))).notes


def test_words_follow_the_debiased_score_of_few_vectors(rng) -> None:
    few = iso.measure(rng.normal(size=(100, 384)), metrics="isoscore")
    assert few["isoscore"] < 0.25
    assert few.readings[0].meaning == (
        "the variance is spread almost evenly, once the bias of few vectors is removed"
    )
    many = iso.measure(rng.normal(size=(500, 10)), metrics="isoscore")
    assert many.readings[0].meaning == "the variance is spread almost evenly"
    for n in (3, 9):
        three = iso.measure(rng.normal(size=(n, 24)), metrics="isoscore,isoscore_debiased")
        assert three.readings[0].meaning == "too few vectors to say how the variance is spread"
        assert "the variance is spread over" not in three.readings[1].meaning


def test_a_share_between_labels_by_chance_is_told(rng) -> None:
    X, y = rng.normal(size=(1200, 24)), rng.integers(0, 500, 1200)
    reading = iso.measure(X, labels=y, metrics="between_share").readings[0]
    fair = max(0.0, iso.frontier_position(X, y, debias=True).between_share)
    assert reading.value > 0.3
    assert reading.meaning == (
        f"{100 * fair:.0f} % of the variance lies between labels, "
        "once the chance of few vectors a label is removed"
    )
    clear = iso.measure(X, labels=X[:, 0] > 0, metrics="between_share").readings[0]
    assert clear.meaning == f"{100 * clear.value:.0f} % of the variance lies between labels"


def test_counts_are_shown_whole(rng) -> None:
    X = rng.normal(size=(200, 5)) * 0.01
    X[:, 2] += 5 + rng.normal(size=200)
    m = iso.measure(X, metrics="dimensions_for_variance,dimensions_for_half")
    table = " ".join(str(m).split())
    assert "dimensions_for_variance 1 1 principal direction holds 90 % of the variance" in table
    assert "dimensions_for_half 1 1 dimension makes half of the mean cosine" in table
    assert shown(1) == "1"


def test_names_of_strangers_cannot_steer_the_terminal(rng) -> None:
    space = iso.Space(rng.normal(size=(50, 4)), name="\x1b]0;gotcha\x07\nline")
    assert iso.measure(space).title.startswith("\\u001b]0;gotcha\\u0007\\nline: 50 vectors")


def test_seed_decides_what_is_sampled(rng) -> None:
    X, y = rng.normal(size=(1500, 3)), np.arange(1500) % 3
    errors = [
        iso.measure(X, labels=y, metrics="silhouette", seed=s).readings[0].standard_error for s in (0, 0, 1)
    ]
    assert errors[0] == errors[1] != errors[2]


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (np.ones((5, 3)), {}, InputError, "5 points that are all equal"),
        (np.ones((1, 3)), {}, ShapeError, "1 vector; a space needs at least 2"),
        (np.arange(5.0)[:, None], {}, ShapeError, "1 dimension.*transposed"),
        (np.eye(4), {"labels": [0, 0, 0, 0]}, LabelError, "only one label"),
        (np.eye(4), {"labels": [0, 1, 2, 3]}, LabelError, "a different label"),
        (np.eye(4), {"labels": [0, 1]}, ShapeError, "`labels` has 2 entries for 4 vectors"),
        (np.eye(4), {"metrics": "silhouette"}, InputError, r"silhouette needs labels\. Pass `labels`"),
        (np.eye(4), {"metrics": "isoscor"}, InputError, "Did you mean"),
        (
            np.eye(4),
            {"metrics": "contextual"},
            InputError,
            "nothing to measure: not computed without token_types",
        ),
        (np.eye(4), {"metrics": 3}, InputError, "`metrics` must be"),
        (np.eye(4), {"seed": -1}, InputError, "`seed` must be a whole number"),
        (np.eye(4), {"seed": "a"}, InputError, "`seed` must be a whole number"),
        (np.full((10, 768), 0.1), {}, InputError, "all equal"),
    ],
)
def test_bad_input(X, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        iso.measure(X, **options)


def test_files_are_streamed_when_every_metric_can(rng, tmp_path, monkeypatch) -> None:
    X = rng.normal(size=(500, 6)).astype(np.float32) + 1
    y = np.arange(500) % 4
    iso.save(iso.Space(X, labels=y), tmp_path / "table.parquet")
    not_given = {"token_types", "sentences", "partners"}
    streaming = [m.name for m in iso.registered().values() if m.streams and not not_given & m.needs]
    whole = iso.measure(X, labels=y, covariance=np.eye(6), metrics=streaming)
    source = iso.open_vectors(tmp_path / "table.parquet", labels="label")
    monkeypatch.setattr(type(source), "load", lambda self: pytest.fail("the file was read whole"))
    streamed = iso.measure(source, covariance=np.eye(6), metrics=streaming)
    assert streamed.n_labels == 4
    assert streamed.readings[0].ceiling == pytest.approx(whole.readings[0].ceiling)
    for name in whole:
        expected = None if whole[name] is None else pytest.approx(whole[name], rel=1e-6)
        assert streamed[name] == expected, name


def test_files_are_loaded_when_a_metric_needs_all_vectors(rng, tmp_path) -> None:
    X = rng.normal(size=(100, 6))
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(str(i % 3) for i in range(100)))
    m = iso.measure(iso.open_vectors(tmp_path / "x.npy", labels=str(tmp_path / "y.txt")))
    assert m["silhouette"] == pytest.approx(iso.silhouette_score(X, np.arange(100) % 3))
    assert m.name == "x"


def test_a_streamed_file_with_useless_labels_is_refused(tmp_path) -> None:
    iso.save(iso.Space(np.eye(4), labels=["a"] * 4), tmp_path / "t.parquet")
    with pytest.raises(LabelError, match="only one label"):
        iso.measure(iso.open_vectors(tmp_path / "t.parquet", labels="label"), metrics="isoscore")
    late = iso.measure(iso.open_vectors(tmp_path / "t.parquet"), labels=[0, 1, 0, 1], metrics="isoscore")
    assert late.n_labels == 2


def test_tensors_are_measured_where_they_are() -> None:
    m = iso.measure(torch.randn(30, 4, dtype=torch.bfloat16))
    assert (m.dtype, m.device) == ("bfloat16", "cpu")


def test_numbers_as_shown() -> None:
    cases = {
        None: "–",
        math.inf: "∞",
        -math.inf: "−∞",
        0.0: "0.0000",
        0.12345: "0.1235",
        21.0: "21",
        1.0: "1.0000",
    }
    cases |= {
        123.456: "123.46",
        12345.6: "12,345.6",
        2.5e7: "2.500e+07",
        3e-7: "3.000e-07",
        12.34567: "12.3457",
    }
    assert {value: shown(value) for value in cases} == cases


def test_progress_bar_shows_long_work(monkeypatch, capsys) -> None:
    monkeypatch.setattr("isoscope.progress._PATIENCE_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich is concerned
    monkeypatch.setenv("TERM", "xterm")
    with Bar(show=True) as bar:
        bar.step("silhouette")
        bar.share(0.5)
        bar.step("lid")
        bar.share(2.0)
    assert "lid" in capsys.readouterr().err


def test_measurement_is_frozen() -> None:
    with pytest.raises(AttributeError):
        iso.measure(np.eye(4)).n = 3
    assert isinstance(iso.measure(np.eye(4)), Measurement)


def test_vectors_with_a_gradient_are_measured_without_a_warning(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(60, 4)))
    found = iso.measure(X.clone().requires_grad_())  # warnings are errors here
    assert found.to_dict()["metrics"] == iso.measure(X).to_dict()["metrics"]


def test_a_path_is_a_source(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    lines = ["a,b,c,month,topic", *(f"{a},{b},{c},{n % 2},{'xyz'[n % 3]}" for n, (a, b, c) in enumerate(X))]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    found = iso.measure(
        str(tmp_path / "table.csv"), labels="topic", by="month", metrics="isoscore,silhouette"
    )
    expected = iso.measure(X, labels=np.arange(60) % 3, metrics="isoscore,silhouette")
    assert dict(found) == pytest.approx(dict(expected), rel=1e-12)
    assert isinstance(found, SlicedMeasurement)
    np.save(tmp_path / "vectors.npy", X)
    assert iso.measure(tmp_path / "vectors.npy", partners=X, metrics="alignment")["alignment"] == 0


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_labels_and_weights_of_a_path_may_be_values(tmp_path: Path, kind: Any, many: bool) -> None:
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(60, 4)), [row % 3 for row in range(60)], [1 + row % 2 for row in range(60)]
    path = tmp_path / "x.npy"
    if many:
        path = tmp_path / "shards"
        path.mkdir()
        np.save(path / "0.npy", X[:25])
        np.save(path / "1.npy", X[25:])
    else:
        np.save(path, X)
    for metrics in ("isoscore,silhouette", "isoscore,davies_bouldin"):  # loaded, and streamed
        expected = iso.measure(X, labels=y, metrics=metrics)
        assert dict(iso.measure(path, labels=kind(y), metrics=metrics)) == pytest.approx(dict(expected))
    expected = iso.measure(X, weights=w, metrics="isoscore,mean_norm")
    assert dict(iso.measure(path, weights=kind(w), metrics="isoscore,mean_norm")) == pytest.approx(
        dict(expected)
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"labels": [0, 1]}, "labels.* has 2 entries for 60 vectors"),
        ({"labels": 3}, "labels"),
        ({"weights": [1.0, 2.0]}, "weights.* has 2 entries for 60 vectors"),
        ({"weights": ["many"] * 60}, "weights"),
    ],
)
def test_bad_labels_and_weights_of_a_path(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 4)))
    with pytest.raises(InputError, match=said) as raised:
        iso.measure(tmp_path / "x.npy", metrics="isoscore", **given)
    assert raised.value.argument == next(iter(given))


@pytest.mark.parametrize("pattern", ["", "*.npy"])
def test_bad_files_of_a_path_are_left_out(tmp_path: Path, pattern: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "0.npy", X[:25])
    (tmp_path / "1.npy").write_bytes(b"broken")
    np.save(tmp_path / "2.npy", X[25:])
    path = str(tmp_path / pattern)
    with pytest.raises(InputError, match=r"1\.npy"):
        iso.measure(path, metrics="isoscore")
    found = iso.measure(path, metrics="isoscore", skip_bad=True)
    assert found.n == 60
    assert found["isoscore"] == pytest.approx(iso.measure(X, metrics="isoscore")["isoscore"])
    assert any("left out" in note and "1.npy" in note for note in found.notes)
