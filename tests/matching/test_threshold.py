from __future__ import annotations

import json

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.matching.guarantees import Guarantee


@pytest.fixture
def data(rng) -> tuple[np.ndarray, np.ndarray]:
    """600 rows, the second half noisy copies of the first; 300 pairs that match and 300 that do not."""
    first = rng.normal(size=(300, 16))
    X = np.vstack([first, first + 0.8 * rng.normal(size=(300, 16))])
    own = np.c_[np.arange(300), 300 + np.arange(300), np.ones(300)]
    other = np.c_[np.arange(300), 300 + rng.permutation(300), np.zeros(300)]
    return X, np.vstack([own, other])


def cosines(X: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    u = X / np.linalg.norm(X, axis=1, keepdims=True)
    a, b = pairs[:, :2].astype(int).T
    return (u[a] * u[b]).sum(axis=1)


def test_guarantees_are_those_of_the_pairs(data) -> None:
    X, pairs = data
    found = iso.threshold(X, pairs=pairs, precision=0.9, false_match_rate=0.05)
    assert [one.promise for one in found.guarantees] == ["precision", "false_match_rate"]
    for one in found.guarantees:
        wanted = Guarantee.of(
            one.promise, cosines(X, pairs), pairs[:, 2] == 1, target=one.target, confidence=0.95
        )
        assert one.cosine == pytest.approx(wanted.cosine)
        assert one.recall == pytest.approx(wanted.recall)
    assert "precision ≥ 0.9" in str(found)


def test_slices(data) -> None:
    X, pairs = data
    language = np.array(["de", "en"])[np.arange(600) % 2]
    found = iso.threshold(X, pairs=pairs, by=language, precision=0.8)
    assert [one.slice for one in found.guarantees] == [None, None, "de", "de", "en", "en"]
    within = (pairs[:, 0] % 2 == 0) & (pairs[:, 1] % 2 == 0)
    assert found.guarantees[2].n_pairs == within.sum()


def test_labels_make_pairs_without_a_common_row(data) -> None:
    X, _ = data
    y = np.arange(600) % 2
    found = iso.threshold(X, labels=y)
    assert found.guarantees[0].n_pairs == 300
    assert found.best is not None


def test_queries(data, rng) -> None:
    X, _ = data
    queries = X[:100] + 0.3 * rng.normal(size=(100, 16))
    pairs = [(i, i, 1) for i in range(100)] + [(i, i + 100, 0) for i in range(100)]
    found = iso.threshold(X, queries=queries, pairs=pairs)
    assert (found.n_queries, found.n_random_pairs) == (100, 60_000)
    assert found.guarantees[1].cosine is None or found.guarantees[1].cosine < 0.9
    assert found.by_rate[0].interval is not None
    with raises(iso.InputError, argument="to"):
        iso.threshold(X, queries=queries, to=X)


def test_translation(data) -> None:
    X, _ = data
    same = iso.threshold(X, to=3 * X)
    assert all(one.translated == pytest.approx(one.cosine, abs=2e-4) for one in same.by_rate)
    other = iso.threshold(X, to=X + 1)
    assert other.translate(0.5)[0] > 0.6
    rate = other.rate(0.5).value
    assert iso.threshold(X + 1).rate(other.translate(0.5)[0]).value == pytest.approx(rate, rel=0.02)
    assert other.translate(0.5)[1] is None
    sampled = iso.threshold(X, to=X + 1, max_pairs=100_000)
    cosine, interval = sampled.translate(0.5)
    assert interval is None or interval[0] <= cosine <= interval[1]
    with raises(iso.UndefinedError):
        iso.threshold(X).translate(0.5)
    with raises(iso.ShapeError, argument="to"):
        iso.threshold(X, to=X[:5])


def test_rates(data) -> None:
    X, _ = data
    found = iso.threshold(X, rates=[0.02, 1e-6])
    assert [one.rate for one in found.by_rate] == [0.02]
    assert any("too few" in note for note in found.notes)
    assert found.rate(found.cosine(0.02)).value <= 0.02
    with raises(iso.UndefinedError):
        found.cosine(1e-6)
    content = json.loads(found.to_json())
    assert content["by_rate"][0]["cosine"] == found.by_rate[0].cosine


def test_options_change_something(data) -> None:
    X, pairs = data
    base = iso.threshold(X, pairs=pairs, precision=0.9)
    for options in ({"precision": 0.99}, {"confidence": 0.5}, {"seed": 3}, {"false_match_rate": 0.2}):
        other = iso.threshold(X, pairs=pairs, **({"precision": 0.9} | options))
        assert other.guarantees != base.guarantees


def test_bad_input(data) -> None:
    X, pairs = data
    for name, bad in {"precision": 1.5, "confidence": 0.0, "rates": [2], "seed": -1, "max_pairs": 0}.items():
        with raises(iso.InputError, argument=name):
            iso.threshold(X, **{name: bad})
    with raises(iso.InputError, argument="rates"):
        iso.threshold(X, rates=0.01)
    for table in (
        [("a", 1, 1)] * 30,
        [(1, 2), (1, 2, 3)],
        pairs[:5],
        pairs[:, :2],
        pairs + np.array([0, 0, 0.5]),
        pairs + np.array([600, 0, 0]),
        pairs[:300],
    ):
        with raises(iso.InputError, argument="pairs"):
            iso.threshold(X, pairs=table)
    with raises(iso.InputError, argument="pairs"):
        iso.threshold(X, labels=[0, 1] * 300, pairs=pairs)
    with raises(iso.InputError, argument="by"):
        iso.threshold(X, by=["a"] * 600)
