"""Weights are repetition counts: whole ones give what repeated rows give."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, ShapeError, UndefinedError
from isoscope.metrics.registry import KNOWN
from isoscope.space import Space
from isoscope.statistics.declared import weighted
from isoscope.statistics.groups import GroupMoments

N, D = 40, 5
METRICS = [metric for metric in iso.registered().values() if metric.needs - set(KNOWN) <= weighted()]


def rows(seed: int, d: int = D) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, N)
    weights[:2] = 1
    X = rng.normal(size=(N, d)) + 1
    X[3] = 0  # a zero vector has no direction
    return X, np.arange(N) % 3, weights


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20), wide=st.booleans())
def test_whole_weights_are_repeated_rows(seed: int, wide: bool) -> None:
    X, labels, w = rows(seed, 60 if wide else D)
    again, again_labels = np.repeat(X, w, axis=0), np.repeat(labels, w)
    a, b = iso.Moments.of(X, weights=w), iso.Moments.of(again)
    assert a.count == b.count == w.sum()
    assert isinstance(a.count, int)
    for name in ("mean", "scatter", "cubic", "quartic", "trace", "squared_frobenius"):
        torch.testing.assert_close(getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-9)
    u, v = iso.statistics.Directions.of(X, weights=w), iso.statistics.Directions.of(again)
    assert (u.count, u.n_zero) == (v.count, v.n_zero)
    for name in ("unit_sum", "unit_square_sum", "norm_sum", "norm_square_sum", "norm_min", "norm_max"):
        torch.testing.assert_close(getattr(u, name), getattr(v, name))
    g, h = GroupMoments.of(X, labels, weights=w), GroupMoments.of(again, again_labels)
    assert (g.names, g.count) == (h.names, h.count)
    for name in ("counts", "means", "within"):
        torch.testing.assert_close(getattr(g, name), getattr(h, name))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_measured_with_weights_as_repeated(metric: iso.Metric) -> None:
    X, labels, w = rows(7)
    covariance = np.diag(np.arange(1.0, D + 1)) if "covariance" in metric.needs else None
    options = {"metrics": metric.name, "errors": False, "covariance": covariance}
    found = iso.measure(X, labels=labels, weights=w, **options)
    again = iso.measure(np.repeat(X, w, axis=0), labels=np.repeat(labels, w), **options)
    assert found.n == again.n
    if again[metric.name] is None:
        assert found[metric.name] is None
    else:
        assert found[metric.name] == pytest.approx(again[metric.name], rel=1e-9, abs=1e-12)


def test_the_list_of_weighted_metrics_has_what_matters() -> None:
    assert {"isoscore", "isoscore_debiased", "mean_cosine", "participation_ratio"} <= {
        m.name for m in METRICS
    }


def test_merging_and_fractions() -> None:
    X, _, _ = rows(1)
    w = np.random.default_rng(0).random(N) * 3
    parts = iso.Moments.of(X[:9], weights=w[:9]).merge(iso.Moments.of(X[9:], weights=w[9:]))
    mean = np.average(X, axis=0, weights=w)
    np.testing.assert_allclose(parts.mean, mean)
    np.testing.assert_allclose(parts.scatter, ((X - mean).T * w) @ (X - mean))
    np.testing.assert_allclose(parts.covariance, np.cov(X.T, ddof=0, aweights=w) * w.sum() / (w.sum() - 1))
    assert parts.count == pytest.approx(w.sum())


@pytest.mark.parametrize(("n", "d"), [(30, 38), (38, 30), (37, 38)])
def test_rankme_counts_rows_and_not_their_weights(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), rng.random(n)
    sigma = np.linalg.svd(X * np.sqrt(w)[:, None], compute_uv=False)
    p = sigma / sigma.sum() + 1e-7
    expected = pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-9)
    assert iso.rankme(iso.Moments.of(X, weights=w)) == expected
    assert iso.measure(X, weights=w, metrics="rankme")["rankme"] == expected
    parts = [iso.Moments.of(X[rows], weights=w[rows]) for rows in (slice(0, 9), slice(9, 20), slice(20, n))]
    assert iso.rankme(parts[0].merge(parts[1]).merge(parts[2])) == expected
    for weight in (0.5, 2):
        assert iso.rankme(iso.Moments.of(X, weights=np.full(n, weight))) == pytest.approx(iso.rankme(X))


def test_spectra_of_fractional_weights() -> None:
    X, _, _ = rows(2)
    w = np.full(N, 0.1)
    condition = iso.metrics.condition_number(iso.Moments.of(X, weights=w))
    assert condition == pytest.approx(iso.metrics.condition_number(X))
    exponent = iso.metrics.power_law_exponent(iso.Moments.of(X, weights=w))
    assert exponent == pytest.approx(iso.metrics.power_law_exponent(X))


def test_weights_that_add_up_to_fewer_than_the_labels() -> None:
    X, _, _ = rows(2)
    moments = GroupMoments.of(X, np.arange(N) % 5, weights=np.full(N, 0.1))
    with pytest.raises(UndefinedError, match="weights add up to 4 for 5 labels"):
        iso.calinski_harabasz_score(moments)


def test_equal_rows_have_no_spread() -> None:
    assert float(iso.Moments.of(np.full((5, 3), 0.1), weights=[1, 2, 0.5, 3, 1]).trace) == 0


def test_what_has_no_weighted_form_says_so() -> None:
    X, labels, w = rows(3)
    with pytest.raises(InputError, match="silhouette has no weighted form"):
        iso.measure(X, labels=labels, weights=w, metrics="silhouette")
    found = iso.measure(X, labels=labels, weights=w)
    left_out = next(note for note in found.notes if "has no weighted form" in note)
    assert "silhouette" in left_out
    assert not any(reading.standard_error for reading in found.readings)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1.0] * 39, ShapeError, "`weights` has 39 entries for 40 vectors"),
        ([-1.0] + [1.0] * 39, InputError, "`weights` has -1 in row 0"),
        ([1.0] * 39 + [np.nan], InputError, "`weights` has nan in row 39"),
        ([0.0] * 40, InputError, "`weights` is 0 for every row"),
    ],
)
def test_weights_that_are_none(weights: list[float], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Space(rows(0)[0], weights=weights)


def test_weights_of_a_file(tmp_path: Path) -> None:
    X, labels, w = rows(5)
    np.savez(tmp_path / "a.npz", vectors=X, labels=labels, w=w)
    np.savetxt(tmp_path / "w.txt", w, fmt="%d")
    np.save(tmp_path / "b.npy", X)
    lines = ["x,y,w"] + [f"{row[0]!r},{row[1]!r},{k}" for row, k in zip(X.tolist(), w, strict=True)]
    (tmp_path / "c.csv").write_text("\n".join(lines) + "\n")
    again = np.repeat(X, w, axis=0)
    expected = iso.isoscore(again)
    npz = iso.open_vectors(tmp_path / "a.npz", labels="labels", weights="w")
    assert iso.measure(npz, metrics="isoscore")["isoscore"] == pytest.approx(expected, rel=1e-10)
    apart = iso.open_vectors(tmp_path / "b.npy", weights=tmp_path / "w.txt")
    assert iso.measure(apart, metrics="isoscore")["isoscore"] == pytest.approx(expected, rel=1e-10)
    assert [len(block.weights) for block in apart.blocks(16)] == [16, 16, 8]
    csv = iso.open_vectors(tmp_path / "c.csv", weights="w")
    assert csv.n_dims == 2
    assert iso.measure(csv, metrics="isoscore")["isoscore"] == pytest.approx(
        iso.isoscore(again[:, :2]), rel=1e-10
    )
    (tmp_path / "w.txt").write_text("one\n" * N)
    with raises(InputError, message="not numbers"):
        iso.measure(iso.open_vectors(tmp_path / "b.npy", weights=tmp_path / "w.txt"))


def test_one_long_weight_takes_the_memory_of_one(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.ones((2000, 2)))
    (tmp_path / "w.txt").write_text("1\n" * 1999 + "b" * 500_000 + "\n")
    file = iso.open_vectors(tmp_path / "b.npy", weights=tmp_path / "w.txt")
    tracemalloc.start()
    with raises(InputError, message="not numbers"):
        _ = file.weights
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e7
