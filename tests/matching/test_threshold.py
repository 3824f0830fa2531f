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


@pytest.fixture
def search(rng) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """900 documents of 9 topics and 300 queries, which lie in a direction of their own."""
    topics, of, asked = 1.5 * rng.normal(size=(9, 16)), np.arange(900) % 9, np.arange(300) % 9
    documents = topics[of] + 0.8 * rng.normal(size=(900, 16))
    queries = topics[asked] + 0.8 * rng.normal(size=(300, 16)) + 1
    return documents, queries, of, asked


def test_relevance_makes_rates_those_of_unrelated_pairs(search) -> None:
    documents, queries, of, asked = search
    relevance = iso.queries.Relevance.of_labels(asked.tolist(), of.tolist())
    found = iso.threshold(documents, queries=queries, relevance=relevance, rates=[0.1, 0.01], precision=0.8)
    u, v = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, documents))
    S, related = u @ v.T, asked[:, None] == of
    assert found.n_random_pairs == (~related).sum()
    for one in found.by_rate:
        assert (S[~related] >= one.cosine).mean() == pytest.approx(one.rate, rel=0.05)
        assert one.found == pytest.approx((S[related] >= one.cosine).mean(), abs=1e-3)
        assert one.found_interval[0] < one.found < one.found_interval[1]
    everything = iso.threshold(documents, queries=queries, rates=[0.1])
    assert everything.cosine(0.1) > found.cosine(0.1)  # related pairs were among the random ones
    precision, false = found.guarantees
    right = asked == of[S.argmax(axis=1)]
    assert (precision.n_pairs, precision.n_matches) == (300, right.sum())
    assert precision.precision == pytest.approx(right[S.max(axis=1) >= precision.cosine].mean())
    assert (false.n_pairs, false.n_matches) == (600, 300)
    assert (S[~related] >= false.cosine).mean() <= 0.02
    assert "unrelated pairs" in str(found)
    assert "relevant found" in str(found)
    assert json.loads(found.to_json())["by_rate"][0]["found"] == found.by_rate[0].found


def test_promises_of_a_search_are_kept(rng) -> None:
    """Of 100 draws of queries, a promised precision of 0.8 and rate of 0.05 are broken in 5 % at most."""
    topics, of = 1.8 * rng.normal(size=(6, 8)), np.arange(240) % 6
    documents = topics[of] + rng.normal(size=(240, 8))
    v = documents / np.linalg.norm(documents, axis=1, keepdims=True)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        asked = rng.integers(0, 6, n)
        return topics[asked] + rng.normal(size=(n, 8)), asked

    queries, asked = drawn(5_000)
    S = queries @ v.T / np.linalg.norm(queries, axis=1, keepdims=True)
    top, right, unrelated = S.max(axis=1), asked == of[S.argmax(axis=1)], S[asked[:, None] != of]
    broken, n_found = np.zeros(2), np.zeros(2)
    for seed in range(100):
        some, labels = drawn(250)
        relevance = iso.queries.Relevance.of_labels(labels.tolist(), of.tolist())
        made = iso.threshold(
            documents, queries=some, relevance=relevance, precision=0.8, false_match_rate=0.05, seed=seed
        ).guarantees
        kept = (
            made[0].cosine is None or right[top >= made[0].cosine].mean() >= 0.8,
            made[1].cosine is None or (unrelated >= made[1].cosine).mean() <= 0.05,
        )
        broken += ~np.array(kept)
        n_found += [one.cosine is not None for one in made]
    assert broken.max() <= 100 * 0.05 + 3 * np.sqrt(100 * 0.05 * 0.95)
    assert n_found.min() > 50


def test_a_search_by_slices(search) -> None:
    documents, queries, of, asked = search
    language = np.array(["de", "en"])[np.arange(900) // 450]
    relevance = iso.queries.Relevance.of_labels(asked.tolist(), of.tolist())
    found = iso.threshold(documents, queries=queries, relevance=relevance, by=language)
    slices = [one.n_pairs for one in found.guarantees if one.promise == "precision"]
    assert slices[0] == slices[1] + slices[2] == 300
    pairs = [(i, 3 * i, 1) for i in range(300)] + [(i, 899 - 2 * i, 0) for i in range(300)]
    found = iso.threshold(documents, queries=queries, pairs=pairs, by=language)
    rows = np.array(pairs)[:, 1]  # they decide, not the queries
    assert [one.n_pairs for one in found.guarantees[::2]] == [600, (rows < 450).sum(), (rows >= 450).sum()]


def test_relevance_that_cannot_be(search) -> None:
    documents, queries, _, _ = search
    relevant = [(query, query) for query in range(300)]
    with raises(iso.InputError, argument="relevance"):
        iso.threshold(documents, relevance=relevant)
    with raises(iso.InputError, argument="pairs"):
        iso.threshold(documents, queries=queries, relevance=relevant, pairs=[(0, 1, 1)])
    with raises(iso.InputError, argument="relevance", message="without a row that is not relevant"):
        iso.threshold(
            documents[:20], queries=queries[:2], relevance=[(0, row) for row in range(20)] + [(1, 3)]
        )


def test_rates_just_below_one_in_a_thousand_are_shown_in_full(rng: np.random.Generator) -> None:
    shown = str(iso.threshold(rng.normal(size=(300, 8)), rates=[0.0009997], progress=False))
    assert "1,000" in shown
    assert "e+03" not in shown
