"""Sides against closed forms and brute force, and what stands out where it was planted."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.errors import ShapeError


def sides_of(rng, n: int = 300, d: int = 16, gap: float = 0.0, noise: float = 0.3):
    A = rng.normal(size=(n, d))
    return A, A + noise * rng.normal(size=(n, d)) + gap


def brute(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The rank of row i of B among all rows of B, by cosine with row i of A."""
    a, b = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (A, B))
    cosines = a @ b.T
    return (cosines > np.diagonal(cosines)[:, None]).sum(axis=1) + 1


def test_ranks_each_way_and_centred_against_brute_force(rng) -> None:
    A, B = sides_of(rng, gap=1.5, noise=0.8)
    found = iso.sides(A, B, names=("query", "document"))
    centred = A - A.mean(axis=0), B - B.mean(axis=0)
    for side, (x, y) in (("query", (0, 1)), ("document", (1, 0))):
        for vectors, pair in (("as they are", (A, B)), ("centred", centred)):
            ranks = brute(pair[x], pair[y])
            assert np.array_equal(found.ranks[side, vectors], ranks)
            assert found["hit_rate@10", side, vectors].value == pytest.approx((ranks <= 10).mean())
            assert found["hit_rate@1", side, vectors].value == pytest.approx((ranks == 1).mean())
            assert found["mrr", side, vectors].value == pytest.approx((1 / ranks).mean())
            assert found["median_rank", side, vectors].value == np.sort(ranks)[(len(ranks) - 1) // 2]
    hits = [brute(*pair) <= 10 for pair in ((A, B), (B, A))]
    assert found["asymmetry"].value == pytest.approx(hits[0].mean() - hits[1].mean())
    gain = (brute(*centred) <= 10).astype(float) - hits[0]
    assert found["centring", "query"].value == pytest.approx(gain.mean())
    assert found["centring", "query"].standard_error == pytest.approx(gain.std(ddof=1) / np.sqrt(300))


def test_the_gap_is_that_of_its_closed_form(rng) -> None:
    """Two Gaussians of unit variance, the means c apart in each of d dimensions: c²d/(c²d + 2·2d)."""
    A, B = rng.normal(size=(2, 20_000, 4))
    for gap in (0.0, 1.0):
        exact = gap**2 / (gap**2 + 4)
        found = iso.sides(A, B + gap, relevance=[(0, 0)])  # no pairs of rows: the means are independent
        assert abs(found["gap"].value - exact) < 4 * found["gap"].standard_error + 1e-4
        paired = iso.sides(A, A + gap)["gap"].value
        assert paired == pytest.approx(iso.metrics.modality_gap(A, A + gap))


def test_what_is_planted_stands_out(rng) -> None:
    A, B = sides_of(rng, gap=2.0)
    assert any(line.startswith("the sides lie apart") for line in iso.sides(A, B).findings)
    alike = iso.sides(A, (A + rng.normal(size=A.shape)) / np.sqrt(2))
    assert any("embedded alike" in line for line in alike.findings)
    copies = np.vstack([A[:30], B[30:]])
    assert "30 of 300 pairs have one vector" in iso.sides(A, copies).findings[0]
    lost = iso.sides(A, rng.normal(size=(300, 16)))
    assert "3.3 % by chance" in lost.findings[0]  # rows that are no pairs
    away = iso.sides(A, -A)
    assert sum("finds nothing" in line for line in away.findings) == 2


def test_centring_helps_where_one_side_is_shifted(rng) -> None:
    A, B = sides_of(rng, n=600, gap=0.0, noise=1.0)
    B += 3 * np.eye(16)[0] * np.linspace(0.5, 1.5, 600)[:, None] + 4 * np.eye(16)[0]
    found = iso.sides(A, B)
    assert found["centring", "A"].low > 0
    assert any("centring each side helps" in line for line in found.findings)


def test_sides_of_a_column(rng) -> None:
    """Three languages; the third has no translations: it finds nothing."""
    A, B = sides_of(rng, n=100)
    C = rng.normal(size=(100, 16))
    table = pd.DataFrame(
        {
            "vector": list(np.vstack([A, B, -A])),
            "language": ["de"] * 100 + ["en"] * 100 + ["xx"] * 100,
            "item": [f"item {i}" for i in range(100)] * 3,
        }
    )
    found = iso.sides(table, by="language", relevance="item")
    assert found.sizes == {"de": 100, "en": 100, "xx": 100}
    others = np.vstack([B, -A])
    cosines = A @ others.T / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(others, axis=1)
    partner = np.maximum(np.diagonal(cosines[:, :100]), np.diagonal(cosines[:, 100:]))
    ranks = (cosines > partner[:, None]).sum(axis=1) + 1
    assert np.array_equal(found.ranks["de", "as they are"], ranks)
    assert any(line.startswith("xx finds nothing") for line in found.findings)
    assert found["gap", "de"].value == pytest.approx(iso.metrics.mean_shift(A, others).value)
    no_pairs = iso.sides(np.vstack([A, C]), by=["a"] * 100 + ["c"] * 100)
    assert not no_pairs.ranks
    assert no_pairs["separability"].value > 0.3


def test_relevance_by_a_column_and_by_pairs(rng) -> None:
    A, B = sides_of(rng, n=80)
    order = rng.permutation(80)
    queries = pd.DataFrame({"vector": list(A), "answer": [f"d{i}" for i in range(80)]})
    documents = pd.DataFrame({"vector": list(B[order]), "id": [f"d{i}" for i in order]})
    named = iso.sides(queries, documents, relevance="answer=id")
    pairs = iso.sides(A, B[order], relevance=[(int(i), place) for place, i in enumerate(order)])
    rows = iso.sides(A, B)
    for one in (named, pairs):
        assert np.array_equal(one.ranks["A", "as they are"], rows.ranks["A", "as they are"])
        assert one["hit_rate@10", "B"].value == rows["hit_rate@10", "B"].value


def test_a_sample_of_rows_searches_among_all(rng) -> None:
    A, B = sides_of(rng, noise=1.5)
    found = iso.sides(A, B, sample=50)
    assert len(found.ranks["A", "as they are"]) == 50
    assert "random 50 of 300" in found.notes[0]
    every = set(brute(A, B).tolist())
    assert set(found.ranks["A", "as they are"].tolist()) <= every


def test_gates_take_the_worst_side(rng) -> None:
    from isoscope.comparison import parse_gates

    A, B = sides_of(rng, noise=1.5)
    found = iso.sides(A, B)
    (result,) = found.check(parse_gates(["hit_rate>=0.99"], ["hit_rate"]))
    values = {side: found["hit_rate@10", side].value for side in "AB"}
    assert result.value == min(values.values())
    assert not result.passed
    assert json.loads(found.to_json())["sides"] == {"A": 300, "B": 300}


def test_the_figure(rng, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    iso.sides(*sides_of(rng), names=("$q$", "d")).plot(tmp_path / "s.png")
    assert (tmp_path / "s.png").stat().st_size > 5000


def test_inputs_that_cannot_be(rng) -> None:
    A, B = sides_of(rng, n=40)
    with raises(argument="B"):
        iso.sides(A)
    with raises(ShapeError):
        iso.sides(A, B[:, :3])
    with raises(argument="names"):
        iso.sides(A, B, names=("x", "x"))
    with raises(argument="by"):
        iso.sides(A, by=["one"] * 40)
    with raises(argument="sample"):
        iso.sides(A, B, sample=0)
