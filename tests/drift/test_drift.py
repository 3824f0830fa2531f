"""Drift: planted rows are found and named, small drifts are tolerated, snapshots merge and are kept."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from tests.raising import raises

import isoscope as iso
from isoscope.drift.clusters import cluster_changes
from isoscope.drift.snapshot import is_snapshot
from isoscope.drift.windows import windows_of
from isoscope.errors import FileError, ShapeError, UndefinedError

QUICK = {"n_permutations": 19}


@pytest.fixture
def samples(rng) -> tuple[np.ndarray, np.ndarray]:
    A, B = rng.normal(size=(2, 1000, 8))
    B[:100] += 4
    return A, B


def test_planted_rows_are_found_and_named(samples) -> None:
    texts = [f"old {i}" for i in range(1000)], [f"{'new' if i < 100 else 'old'} {i}" for i in range(1000)]
    found = iso.drift(*samples, texts=texts, n_texts=3, **QUICK)
    assert found.interval[0] < 0.1 < found.interval[1]
    assert found.alarm
    assert found.verdict == "above"
    assert found.p_value == 0.05
    assert len(found.came) == 3
    assert all(text.startswith("new") for text in found.came)
    first = found.clusters[0]
    assert first.changed
    assert first.difference > 0.03
    assert all(text.startswith("new") for text in first.texts)
    for said in ("above what is tolerated", "clusters that came or went", first.texts[0], found.came[0]):
        assert said in str(found)


def test_what_is_tolerated_raises_no_alarm(samples) -> None:
    assert iso.drift(*samples, tolerate=0.3, **QUICK).verdict == "within"
    unclear = iso.drift(*samples, tolerate=0.1, **QUICK)
    assert unclear.verdict == "unclear"
    assert not unclear.alarm
    A, _ = samples
    same = iso.drift(A[:500], A[500:], n_permutations=0)
    assert not same.alarm
    assert same.p_value is None


def test_other_quantities_are_the_metrics(samples) -> None:
    found = iso.drift(*samples, **QUICK)
    A, B = samples
    shift = iso.metrics.mean_shift(A, B)
    assert np.isclose(found["mean_shift"].value, shift.value)
    assert np.allclose(found["mean_shift"].interval, shift.interval)
    assert np.isclose(found["spread_change"].value, iso.metrics.spread_change(A, B).value)
    assert np.isclose(found["covariance_change"].value, iso.metrics.covariance_change(A, B))
    assert list(found.readings.where(metric="drift")["value"]) == [found.drift]
    assert json.loads(found.to_json())["clusters"][0]["n_b"] == found.clusters[0].n_b


def test_a_change_of_covariance_needs_as_many_rows_as_dimensions(rng) -> None:
    found = iso.drift(*rng.normal(size=(2, 30, 40)), n_permutations=0)
    assert found["covariance_change"].value is None
    assert "noise" in str(found)


def test_a_snapshot_is_the_vectors(samples) -> None:
    A, B = samples
    first = iso.Snapshot.of(A)
    assert first.n == 1000
    assert np.allclose(first.moments.mean, A.mean(axis=0))
    order = first.vectors.numpy()[:, 0].argsort()
    assert np.array_equal(first.vectors.numpy()[order], A[A[:, 0].argsort()])
    assert iso.drift(first, iso.Snapshot.of(B), **QUICK).drift == iso.drift(A, B, **QUICK).drift


def test_snapshots_merge(samples) -> None:
    """Moments as of all rows; the rows are a uniform sample: of parts of 1:3, a quarter is of the first."""
    A, _ = samples
    whole = iso.Moments.of(A)
    shares = []
    for seed in range(40):
        parts = [iso.Snapshot.of(part, sample=100, seed=seed) for part in (A[:250], A[250:])]
        merged = parts[0].merge(parts[1])
        assert len(merged.vectors) == 100
        assert merged.n == 1000
        assert np.allclose(merged.moments.scatter, whole.scatter)
        shares.append(np.isin(merged.vectors.numpy()[:, 0], A[:250, 0]).mean())
    assert abs(np.mean(shares) - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    with raises(ShapeError):
        iso.Snapshot.of(A).merge(iso.Snapshot.of(A[:, :3]))


def test_equal_places_of_two_parts_are_sampled_apart(samples) -> None:
    A, B = samples
    first, second = (iso.Snapshot.of(X, sample=100).vectors.numpy() for X in (A, B))
    rows = [np.flatnonzero(np.isin(X[:, 0], some[:, 0])) for X, some in ((A, first), (B, second))]
    assert len(np.intersect1d(*rows)) < 40  # 10 by chance


def test_a_kept_snapshot_is_the_same(samples, tmp_path) -> None:
    A, B = samples
    for name, rows in (("monday", A[:500]), ("tuesday", A[500:])):
        path = iso.Snapshot.of(rows, texts=["a text"] * 500).save(tmp_path / f"{name}.safetensors")
        assert is_snapshot(path)
    both = iso.Snapshot.load(tmp_path)
    assert both.n == 1000
    assert both.texts is not None
    assert len(both.texts) == 1000
    again = iso.Snapshot.load(tmp_path / "monday.safetensors")
    assert np.array_equal(again.vectors, iso.Snapshot.of(A[:500]).vectors)
    assert iso.drift(tmp_path, B, **QUICK)["mean_shift"].value == pytest.approx(
        iso.metrics.mean_shift(A, B).value
    )


def test_a_damaged_snapshot_is_refused(samples, tmp_path) -> None:
    path = iso.Snapshot.of(samples[0]).save(tmp_path / "a.safetensors")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(bytes(raw))
    with raises(FileError):
        iso.Snapshot.load(path)
    iso.save(samples[0], tmp_path / "v.safetensors")
    assert not is_snapshot(tmp_path / "v.safetensors")
    with raises(FileError):
        iso.Snapshot.load(tmp_path / "v.safetensors")
    with raises(argument="path"):
        iso.Snapshot.of(samples[0]).save(tmp_path / "a.npy")


def test_of_many_rows_a_sample_is_taken_and_said(samples) -> None:
    found = iso.drift(*samples, sample=300, **QUICK)
    assert "random 300 of the 1,000 rows" in found.notes[0]
    assert abs(found.drift - 0.1) < 0.1


def test_windows_of_time(rng) -> None:
    X = rng.normal(size=(400, 6))
    X[300:] += 2
    days = pd.date_range("2024-05-06", periods=4, freq="7D").repeat(100)
    table = pd.DataFrame(
        {"vector": list(X), "day": days.astype(str), "text": [f"row {i}" for i in range(400)]}
    )
    found = iso.drift_over_time(table, "day", texts="text", **QUICK)
    assert [one.name_b for one in found.drifts] == ["2024-05-13", "2024-05-20", "2024-05-27"]
    assert [one.alarm for one in found.drifts] == [False, False, True]
    assert found.alarm
    assert "the first is 2024-05-27" in str(found)
    assert found["2024-05-27"].came[0].startswith("row 3")
    assert found["2024-05-27"].p_value == pytest.approx(0.15)  # 0.05, of three tests
    assert set(found.readings["window"]) == {"2024-05-13", "2024-05-20", "2024-05-27"}
    previous = iso.drift_over_time(X, days, against="previous", n_permutations=0)
    assert [one.name_a for one in previous.drifts] == ["2024-05-06", "2024-05-13", "2024-05-20"]
    months = iso.drift_over_time(X, [*days[:-1], "2024-06-01"], every="day", n_permutations=0)
    assert months.left_out == {"2024-06-01": 1}
    with raises(argument="date"):
        iso.drift_over_time(X, days, every="year")
    with raises(argument="every", got="fortnight"):
        iso.drift_over_time(X, days, every="fortnight")
    with raises(argument="against", got="last"):
        iso.drift_over_time(X, days, against="last")


def test_names_of_windows() -> None:
    days = ["2024-12-31", "20250101", date(2025, 1, 5), "2025-01-06T23:00:00+01:00", "2025-01-06 10:00"]
    assert windows_of(days, "week") == ["2024-12-30"] * 3 + ["2025-01-06"] * 2
    assert windows_of(days[:2], "quarter") == ["2024-Q4", "2025-Q1"]
    assert windows_of(days[:2], "month") == ["2024-12", "2025-01"]
    assert windows_of(days[:2], "year") == ["2024", "2025"]
    with raises(argument="date"):
        windows_of(["yesterday"], "day")


def test_changes_of_clusters_against_scipy(samples) -> None:
    A, B = samples
    found = cluster_changes(*map(iso.Space(A).vectors.new_tensor, (A, B)), (None, None), n_clusters=4, seed=0)
    assert [one.n_a for one in found]
    assert sum(one.n_b for one in found) == 1000
    p_values = sorted(
        fisher_exact([[one.n_a, 1000 - one.n_a], [one.n_b, 1000 - one.n_b]])[1] for one in found
    )
    adjusted = np.maximum.accumulate(np.minimum(np.array(p_values) * [4, 3, 2, 1], 1))
    assert np.allclose(sorted(one.p_value for one in found), adjusted)


def test_inputs_that_cannot_be(samples) -> None:
    A, B = samples
    with raises(argument="tolerate", got=1.5):
        iso.drift(A, B, tolerate=1.5)
    with raises(ShapeError):
        iso.drift(A, B[:, :3])
    with raises(UndefinedError):
        iso.drift(A, B[:5])
    with raises(argument="texts"):
        iso.drift(A, B, texts=(["a"], ["b"], ["c"]))
    with raises(argument="X"):
        iso.drift(iso.Space(A, weights=np.ones(1000)), B)
    with raises(argument="sample"):
        iso.Snapshot.of(A, sample=0)


def test_figures(samples, tmp_path, rng) -> None:
    pytest.importorskip("matplotlib")
    found = iso.drift(*samples, texts=["$a$ & <b>"] * 1000, **QUICK)
    found.plot(tmp_path / "clusters.png")
    days = np.repeat(["2024-05-06", "2024-05-13", "2024-05-20"], [400, 300, 300])
    iso.drift_over_time(samples[0], list(days), n_permutations=0).plot(tmp_path / "time.svg")
    assert (tmp_path / "clusters.png").stat().st_size > 5000
    assert "2024-05-20" in (tmp_path / "time.svg").read_text()
    assert "&lt;b&gt;" in found.to_html()
    assert "<b>" not in found.to_html()
