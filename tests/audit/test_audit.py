"""What is planted in vectors is found, what is not is not; shares of samples cover the exact ones."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.audit.mixture import dip
from isoscope.audit.rows import beyond
from isoscope.audit.search import nearest, search_all
from isoscope.comparison.gates import parse_condition
from isoscope.space import Space

N, D = 1500, 48
SCALES = np.exp(-np.arange(D) / 12)


def clean(rng: np.random.Generator, n: int = N) -> np.ndarray:
    """Unit vectors around 12 centres, of decaying variances, as float32."""
    centers = rng.normal(size=(12, D))
    X = (0.6 * centers[rng.integers(0, 12, n)] + rng.normal(size=(n, D))) * SCALES
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype("f4")


def rows(found: iso.Audit, name: str) -> set[int]:
    return set(found[name].listed["rows"])


def test_what_is_planted_is_found(rng: np.random.Generator) -> None:
    X = clean(rng)
    X[5], X[6, 4] = np.nan, np.inf
    X[[7, 8]] = 0
    X[[20, 21, 22]] = X[10]
    X[31] = X[30] + 1e-4 * rng.normal(size=D)
    X[40:50] = rng.normal(size=(10, D)) / np.sqrt(D)
    X[60] *= 30
    X[61] /= 30
    X[70:80, D // 2 :] = 0
    X[:, 3] = 0.25  # the same in every row
    found = iso.audit(X)
    assert rows(found, "not_finite") == {5, 6}
    assert rows(found, "zero_vectors") == set()  # dimension 3 is 0.25 in all
    assert rows(found, "duplicates") >= {10, 20, 21, 22}
    assert found["duplicates"].listed["groups"] == [[10, 20, 21, 22], [7, 8]]
    assert [30, 31] in found["near_duplicates"].listed["groups"]
    assert rows(found, "outliers") >= set(range(40, 50))
    assert {60, 61} <= rows(found, "odd_lengths")
    assert rows(found, "padded_rows") >= set(range(70, 80))
    assert found["constant_dimensions"].listed["dimensions"] == [3]
    assert found["inner_product"].severity != "healthy"
    assert found.findings[0].rank <= found.findings[-1].rank


def test_zeros_at_the_end_by_chance_are_no_padding(rng: np.random.Generator) -> None:
    X = (rng.random((500, 32)) < 0.5).astype("f4")
    assert (X[:, -4:] == 0).all(axis=1).sum() > 10
    assert iso.audit(X)["padded_rows"].count == 0
    X[:20, 4:] = 0
    X[:20, 3] = 1
    assert rows(iso.audit(X), "padded_rows") == set(range(20))


def test_nothing_is_found_in_clean_vectors() -> None:
    alarms = 0
    for seed in range(10):
        found = iso.audit(clean(np.random.default_rng(seed)))
        for name in (
            "not_finite",
            "zero_vectors",
            "duplicates",
            "padded_rows",
            "constant_dimensions",
            "mixture",
        ):
            assert found[name].count == 0, name
        alarms += (found["outliers"].count or 0) + (found["odd_lengths"].count or 0)
    assert alarms <= 3  # each is 1 % likely


def test_neighbors_are_those_of_float64(rng: np.random.Generator) -> None:
    X = clean(rng, 400)
    X[[3, 17]] = 0
    U = X.astype(float) / np.linalg.norm(X.astype(float), axis=1, keepdims=True).clip(1e-30)
    S = U @ U.T
    S[:, [3, 17]] = -2
    np.fill_diagonal(S, -2)
    kept = np.setdiff1d(np.arange(400), [3, 17])
    exact = np.argsort(-S, axis=1)[:, :5]
    found = search_all(Space(X), 5)
    assert found.asked.tolist() == kept.tolist()
    np.testing.assert_array_equal(found.neighbors.indices.numpy(), exact[kept])
    some = torch.from_numpy(kept[::7])
    alone = nearest(Space(X), torch.from_numpy(X)[some], 6).without(some)
    np.testing.assert_array_equal(alone.indices.numpy(), exact[kept[::7]])


def test_neighbors_by_inner_product_are_the_largest_products(rng: np.random.Generator) -> None:
    X = (clean(rng, 300) * rng.lognormal(0, 0.5, (300, 1))).astype("f4")
    longest = float(np.linalg.norm(X.astype(float), axis=1).max())
    found = nearest(Space(X), torch.from_numpy(X[:40]), 7, lift=longest)
    exact = np.argsort(-(X[:40].astype(float) @ X.T.astype(float)), axis=1)[:, :7]
    np.testing.assert_array_equal(np.sort(found.indices.numpy()), np.sort(exact))


def test_a_hub_is_found_and_counted(rng: np.random.Generator) -> None:
    X = rng.normal(size=(800, 64)).astype("f4")
    X[0] = X[1:].mean(axis=0)  # near the middle of all directions
    X[1:] += 1.5 * X[1:].mean(axis=0) / np.linalg.norm(X[1:].mean(axis=0))
    found = iso.audit(X, k=5)["hubs"]
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    S = U @ U.T
    np.fill_diagonal(S, -2)
    counts = np.bincount(np.argsort(-S, axis=1)[:, :5].ravel(), minlength=800)
    assert set(found.listed["rows"]) == set(np.flatnonzero(counts >= 25).tolist())
    assert found.listed["rows"][0] == counts.argmax() == 0
    assert found.reading.value == pytest.approx(counts[counts >= 25].sum() / counts.sum())
    never = iso.audit(X, k=5)["never_retrieved"]
    assert never.listed["rows"] == np.flatnonzero(counts == 0).tolist()
    assert never.reading.interval is None


def test_a_sample_says_how_sure_it_is() -> None:
    inside = {"near_duplicates": 0, "inner_product": 0}
    draws = 20
    X = clean(np.random.default_rng(1), 1200)
    X *= np.random.default_rng(2).lognormal(0, 0.2, (1200, 1)).astype("f4")
    X[600:700] = X[:100] * 1.001 + 1e-4
    exact = iso.audit(X)
    for seed in range(draws):
        found = iso.audit(X, max_rows=600, seed=seed)
        assert found.n_sampled == 150
        for name in inside:
            low, high = found[name].reading.interval
            inside[name] += low <= exact[name].reading.value <= high
        assert found["duplicates"].reading.value == exact["duplicates"].reading.value
    assert min(inside.values()) >= 16  # 95 % of 20, but for chance


def test_the_skewness_of_a_sample_is_that_of_all(rng: np.random.Generator) -> None:
    from isoscope.audit.hubs import Hubs
    from isoscope.audit.search import Found, search_rows

    X = clean(rng)
    whole = Hubs.of(search_all(Space(X), 10), N)
    estimates = []
    for _ in range(10):
        some = torch.from_numpy(np.sort(rng.permutation(N)[:700]))
        found = search_rows(Space(X), some, torch.from_numpy(X)[some], 10, N)
        assert isinstance(found, Found)
        estimates.append(Hubs.of(found, N))
    error = np.mean([one.skewness_error for one in estimates])
    mean = np.mean([one.skewness for one in estimates])
    assert whole.skewness_error is None
    assert abs(mean - whole.skewness) < 3 * error / np.sqrt(10) + 0.1 * whole.skewness


def test_two_models_in_one_file(rng: np.random.Generator) -> None:
    X = clean(rng)
    rotation = np.linalg.qr(rng.normal(size=(D, D)))[0]
    shift = rng.normal(size=D) / np.sqrt(D)
    other = clean(rng) @ rotation + 4 * shift
    mixed = np.vstack([X, other]).astype("f4")
    found = iso.audit(mixed)["mixture"]
    assert found.severity == "serious"
    assert len(found.listed["rows"]) == 1000
    assert found.count == N
    assert iso.audit(X)["mixture"].count == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(10.0), 1 / 20),  # evenly spaced: a step is half over and half under the line
        (np.r_[np.arange(10) * 1e-9, 1 + np.arange(10) * 1e-9], 0.25),  # two points of mass ½, nearly
        (np.array([1, 2, 3, 5, 8, 9, 9.5, 20.0]), 0.11607142857142858),
        (np.sort(np.r_[np.linspace(0, 1, 30) ** 2, 3 - np.linspace(0, 1, 20) ** 2]), 0.10024930747922439),
    ],
)
def test_dip_is_hartigans(values: np.ndarray, expected: float) -> None:
    assert dip(values) == pytest.approx(expected, abs=1e-8)


def test_few_normal_values_are_beyond_the_fence() -> None:
    generator = torch.Generator().manual_seed(0)
    found = [
        int(beyond(torch.randn(2000, generator=generator, dtype=torch.float64)).sum()) for _ in range(300)
    ]
    assert sum(count > 0 for count in found) <= 15  # 1 % of 300 is 3; the spread is estimated


def test_queries_say_what_is_retrieved(rng: np.random.Generator) -> None:
    X = clean(rng, 600)
    queries = np.repeat(X[[4, 9]], 150, axis=0) + 1e-3 * rng.normal(size=(300, D)).astype("f4")
    relevant = [(query, 4 if query < 150 else 9) for query in range(300)]
    found = iso.audit(X, queries=queries, relevance=relevant)
    assert found.n_queries == 300
    assert {4, 9} <= set(found["hubs"].listed["rows"])
    assert found.retrieval is not None
    assert found.retrieval["mrr"] == 1.0
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    top = np.argsort(-(queries @ U.T), axis=1)[:, :10]
    assert found["never_retrieved"].count == 600 - len(np.unique(top))
    assert "300 queries" in found["hubs"].headline


def test_few_queries_make_no_hub(rng: np.random.Generator) -> None:
    X = clean(rng)
    assert iso.audit(X, queries=clean(rng, 60))["hubs"].count == 0


def test_recall_counts_ties_and_each_row_once(rng: np.random.Generator) -> None:
    X = clean(rng, 300)
    X[200:] = X[100:200]  # every row from 100 on has a copy
    U = X.astype(float)
    S = U @ U.T
    np.fill_diagonal(S, -2)
    exact = np.argsort(-S, axis=1, kind="stable")[:, :5]
    swapped = np.where(exact >= 200, exact - 100, np.where(exact >= 100, exact + 100, exact))
    clash = (swapped == np.arange(300)[:, None]) | np.array([len(set(row)) < 5 for row in swapped])[:, None]
    given = np.where(clash.any(axis=1)[:, None], exact, swapped)
    assert iso.audit(X, neighbors=given, k=5)["ann_recall"].reading.value == pytest.approx(1.0)
    itself = np.hstack([np.arange(300)[:, None], exact])  # indexes return the row first
    assert iso.audit(X, neighbors=itself, k=5)["ann_recall"].reading.value == pytest.approx(1.0)
    # five results of which one is the row itself are all of the four nearest
    assert iso.audit(X, neighbors=itself[:, :5], k=5)["ann_recall"].reading.value == pytest.approx(1.0)
    repeated = np.repeat(exact[:, :1], 5, axis=1)
    found = iso.audit(X, neighbors=repeated, k=5)["ann_recall"]
    assert found.reading.value == pytest.approx(0.2)
    assert "repeated" in found.headline
    missing = exact.copy()
    missing[:, 2:] = -1
    found = iso.audit(X, neighbors=missing, k=5)["ann_recall"]
    assert found.reading.value == pytest.approx(0.4)
    assert found.severity == "serious"
    assert len(found.listed["by_decile"]) == 10


def test_recall_by_hubness_shows_who_is_missed(rng: np.random.Generator) -> None:
    X = clean(rng, 500)
    exact = search_all(Space(X), 10).neighbors.indices
    counts = torch.bincount(exact.flatten(), minlength=500)
    rare = counts[exact] <= counts[exact].double().quantile(0.15)
    given = torch.where(rare, -1, exact)
    found = iso.audit(X, neighbors=given.numpy())["ann_recall"]
    deciles = found.listed["by_decile"]
    assert deciles[0] == 0.0
    assert deciles[-1] == 1.0
    assert found.reading.value == pytest.approx(float((~rare).double().mean()), abs=1e-9)


def test_texts_are_shown_and_never_taken_for_markup(rng: np.random.Generator) -> None:
    X = clean(rng, 200)
    X[7] = X[3]
    texts = [f"<b>{row}</b> [red]\x1b[31m\n" for row in range(200)]
    found = iso.audit(X, texts=texts)
    page, screen = found.to_html(), str(found)
    assert "<b>3</b>" not in page
    assert "\x1b" not in screen
    assert "&lt;b&gt;3&lt;/b&gt;" in page
    listed = found.rows()
    at = [place for place, name in enumerate(listed["finding"]) if name == "duplicates"]
    assert [listed["row"][place] for place in at] == [3, 7]
    assert [listed["text"][place] for place in at] == [texts[3], texts[7]]


def test_conditions_fail_where_they_hold(rng: np.random.Generator) -> None:
    X = clean(rng, 200)
    X[:20] = X[20]
    found = iso.audit(X, fail_on=["duplicates > 5%", "not_finite>0"])
    assert [gate.passed for gate in found.gates] == [False, True]
    assert not found.passed
    assert iso.audit(X, fail_on="duplicates>50%").passed
    assert parse_condition("a>=1.5", ["a"], argument="x", such_as="").bound == 1.5


@pytest.mark.parametrize("condition", ["duplicates", "dupicates>1%", "duplicates>nan", ">1%"])
def test_conditions_that_cannot_be(condition: str) -> None:
    with raises(argument="fail_on"):
        iso.audit(np.eye(4), fail_on=condition)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".jsonl"])
def test_files_with_rows_that_are_not_finite(rng: np.random.Generator, tmp_path: Path, suffix: str) -> None:
    X = clean(rng, 150)
    X[11, 2] = np.nan
    path = tmp_path / f"v{suffix}"
    if suffix == ".npy":
        np.save(path, X)
    else:
        import pandas as pd

        frame = pd.DataFrame({"body": [f"text {row}" for row in range(150)], "vector": list(X)})
        if suffix == ".parquet":
            frame.loc[12, "vector"] = None
            frame.to_parquet(path)
        else:
            frame.to_json(path, orient="records", lines=True)
    found = iso.audit(path)
    assert rows(found, "not_finite") == ({11, 12} if suffix == ".parquet" else {11})
    with raises(iso.NotFiniteError):
        iso.measure(path, metrics="mean_cosine")


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_few_rows_are_audited(n: int) -> None:
    found = iso.audit(np.eye(12)[:n])
    assert found.n == n
    assert all(one.severity in ("healthy", "unclear", "serious", "moderate") for one in found.findings)


def test_rows_without_directions_are_audited() -> None:
    assert iso.audit(np.zeros((20, 3)))["zero_vectors"].count == 20
    assert iso.audit(np.full((20, 3), np.nan))["not_finite"].count == 20


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"k": 0}, "k"),
        ({"k": 100_000}, "k"),
        ({"near": 1.5}, "near"),
        ({"max_rows": 1}, "max_rows"),
        ({"seed": -1}, "seed"),
        ({"neighbors": np.zeros((3, 2))}, "neighbors"),
        ({"neighbors": np.zeros((3, 2), dtype=int)}, "neighbors"),
        ({"neighbors": [[1], [2, 3]]}, "neighbors"),
        ({"near": "x"}, "near"),
        ({"relevance": [(0, 1)]}, "relevance"),
        ({"ids": "id"}, "ids"),
        ({"texts": ["a"]}, "texts"),
    ],
)
def test_arguments_that_cannot_be(options: dict, argument: str) -> None:
    with raises(argument=argument):
        iso.audit(np.random.default_rng(0).normal(size=(20, 3)), **options)


def test_every_option_changes_something(rng: np.random.Generator) -> None:
    X = clean(rng, 400)
    base = iso.audit(X)
    assert iso.audit(X, k=3)["never_retrieved"].count != base["never_retrieved"].count
    assert iso.audit(X, near=0.5)["near_duplicates"].count > base["near_duplicates"].count
    assert iso.audit(X, max_rows=100).n_sampled == 25
    a, b = (iso.audit(X, max_rows=100, seed=seed)["hubs"].headline for seed in (0, 1))
    assert a != b


def test_the_result_is_a_table_and_json(rng: np.random.Generator) -> None:
    import json

    found = iso.audit(clean(rng, 200))
    content = json.loads(found.to_json())
    assert {one["name"] for one in content["findings"]} == {one.name for one in found.findings}
    frame = found.to_pandas()
    assert list(frame["metric"]) == [one.name for one in found.findings]
    assert "never retrieved" in str(found)


@pytest.mark.parametrize("library", ["faiss", "usearch"])
def test_a_sweep_finds_settings(rng: np.random.Generator, library: str) -> None:
    pytest.importorskip(library)
    from isoscope.audit import sweep

    found = sweep(clean(rng, 600), library, n_queries=100)
    recalls = [one.recall.value for one in found.settings]
    assert all(0 < recall <= 1 for recall in recalls)
    assert max(recalls) > 0.99
    assert found.best is not None
    assert "recall@10" in str(found)
    every = sweep(clean(rng, 60), library, k=3)  # all rows are searched for: recall has no interval
    assert every.best is not None
    assert every.best.recall.interval is None
    with raises(argument="library"):
        sweep(clean(rng, 100), "annoy")
    with raises(argument="k", got=10, wanted="below 8"):
        sweep(clean(rng, 8), library)


@pytest.mark.parametrize("wrong", [{"texts": ["a"]}, {"neighbors": np.zeros((3, 2), dtype=int)}])
def test_what_is_wrong_is_said_before_the_search(monkeypatch, rng: np.random.Generator, wrong: dict) -> None:
    def search(*_: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(sys.modules["isoscope.audit.evidence"], "search_all", search)
    with raises(argument=next(iter(wrong))):
        iso.audit(rng.normal(size=(50, 4)), **wrong)
