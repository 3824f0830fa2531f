"""Queries in a comparison: the results that both spaces share, and the figures of retrieval."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from tests.raising import raises
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli import app
from isoscope.comparison import parse_gates
from isoscope.queries import Queries, Relevance, retrieval

N, M, K = 120, 25, 5


@pytest.fixture
def spaces(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B = A with noise, and queries near the first rows of A."""
    A = rng.normal(size=(N, 6))
    return A, A + 0.3 * rng.normal(size=A.shape), A[:M] + 0.2 * rng.normal(size=(M, 6))


def nearest(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, documents)]
    return np.argsort(-units[0] @ units[1].T, axis=1)[:, :K]


def test_the_overlap_is_that_of_brute_force(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    shares = [len(set(a) & set(b)) / K for a, b in zip(nearest(Q, A), nearest(Q, B), strict=True)]
    compared = iso.compare(A, B, queries=Q, k=K, metrics="isoscore", errors=False)
    (one,) = (one for one in compared.correspondences if one.name == "search_overlap")
    assert one.value == pytest.approx(np.mean(shares))
    assert one.interval == pytest.approx(stats.t.interval(0.95, M - 1, np.mean(shares), stats.sem(shares)))
    assert "map" not in compared


def test_zero_vectors_are_not_found(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    A, Q = A.copy(), Q.copy()
    A[3], Q[7] = 0, 0
    kept = np.arange(M) != 7
    of_a = nearest(Q[kept], np.delete(A, 3, axis=0))
    of_a += of_a >= 3
    shares = [len(set(a) & set(b)) / K for a, b in zip(of_a, nearest(Q[kept], B), strict=True)]
    compared = iso.compare(A, B, queries=Q, k=K, metrics="isoscore", errors=False)
    (one,) = (one for one in compared.correspondences if one.name == "search_overlap")
    assert one.value == pytest.approx(np.mean(shares))


def test_fewer_documents_than_neighbors(spaces: tuple[np.ndarray, ...]) -> None:
    A, _, Q = spaces
    A = A[:30].copy()
    A[K - 2 :] = 0
    B = A.copy()
    B[0] = 0
    for documents, share in ((2 * A, 1.0), (B, (K - 3) / (K - 2))):
        compared = iso.compare(A, documents, queries=Q, k=K, metrics="isoscore", errors=False)
        (one,) = (one for one in compared.correspondences if one.name == "search_overlap")
        assert one.value == pytest.approx(share)


def test_queries_without_a_direction(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    with raises(argument="queries", wanted="queries with a direction"):
        iso.compare(A, B, queries=0 * Q, metrics="isoscore", errors=False)


def test_retrieval_is_compared_query_by_query(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    pairs = [(i, i) for i in range(M)]
    compared = iso.compare(A, B, queries=Q, relevance=pairs, k=K, metrics="isoscore", errors=False)
    a, b = (retrieval(space, Q, pairs, k=K) for space in (A, B))
    for name in ("map", f"ndcg@{K}", "mrr", f"recall@{K}", f"hit_rate@{K}"):
        change = compared[name]
        assert (change.before, change.after) == (a[name], b[name])
        differences = (b.scores[name] - a.scores[name]).numpy()
        half = stats.t.ppf(0.975, M - 1) * differences.std(ddof=1) / np.sqrt(M)
        assert change.interval == pytest.approx((differences.mean() - half, differences.mean() + half))
    table = compared.to_pandas()
    assert {"search_overlap", "map"} <= set(table["metric"])


def test_rows_that_are_matched_by_id_keep_what_is_relevant(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    order = np.random.default_rng(1).permutation(N)[: N - 20]
    names = np.arange(N)
    pairs = [(i, i) for i in range(M)]
    both = iso.compare(
        A, B[order], ids=(names, order), queries=Q, relevance=pairs, k=K, metrics="isoscore", errors=False
    )
    matched = np.sort(order)
    place = {row: at for at, row in enumerate(matched)}
    kept = [(i, place[i]) for i in range(M) if i in place]
    wanted = retrieval(B[matched], Q, kept, k=K)
    assert both["map"].after == pytest.approx(wanted["map"])


def test_relevance_among_some_documents(rng: np.random.Generator) -> None:
    queries, documents = rng.integers(0, 4, 9).tolist(), rng.integers(0, 4, 30).tolist()
    rows = rng.permutation(30)[:17]
    among = Relevance.of_labels(queries, documents).among(torch.tensor(rows))
    for query, label in enumerate(queries):
        wanted = [at for at, row in enumerate(rows) if documents[row] == label]
        assert among.of_query(query).tolist() == wanted


def test_two_models_have_queries_of_their_own(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    wide = np.c_[B, np.zeros((N, 2))]
    with raises(argument="queries", message="6 instead of 8 dimensions", hint="pass a pair"):
        iso.compare(A, wide, queries=Q, metrics="isoscore", errors=False)
    with raises(argument="queries", message="24 instead of 25 rows"):
        iso.compare(A, B, queries=(Q, Q[1:]), metrics="isoscore", errors=False)
    with raises(argument="queries", message="has 3 entries"):
        iso.compare(A, B, queries=(Q, Q, Q), metrics="isoscore", errors=False)
    pair = (Q, np.c_[Q, np.zeros((M, 2))])
    same = iso.compare(A, wide, queries=pair, k=K, metrics="isoscore", errors=False)
    plain = iso.compare(A, B, queries=Q, k=K, metrics="isoscore", errors=False)
    assert same.correspondence("search_overlap") == pytest.approx(plain.correspondence("search_overlap"))


def test_gates_on_a_search(spaces: tuple[np.ndarray, ...]) -> None:
    A, B, Q = spaces
    gates = parse_gates(["search_overlap>=0.99", "map>=0", "delta:mrr>=-1", "ndcg@5<=1"])
    without = iso.compare(A, B, metrics="isoscore", errors=False)
    with raises(message="is on a search", hint="queries"):
        without.check(gates[:1])
    relevance = Relevance.of_pairs([(i, i) for i in range(M)], n_queries=M, n_documents=N)
    queries = Queries(torch.tensor(Q), relevance)
    compared = iso.compare(A, B, queries=queries, k=K, metrics="isoscore", errors=False)
    assert [one.passed for one in compared.check(gates)] == [False, True, True, True]


def test_from_the_shell(spaces: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    for name, rows in zip(("a", "b", "q"), spaces, strict=True):
        np.save(tmp_path / f"{name}.npy", rows)
    (tmp_path / "pairs.csv").write_text("query,document\n" + "".join(f"{i},{i}\n" for i in range(M)))
    words = ["compare", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "-m", "isoscore", "--no-errors"]
    words += ["--queries", str(tmp_path / "q.npy"), "--queries-b", str(tmp_path / "q.npy")]
    result = CliRunner().invoke(app, [*words, "--relevance", str(tmp_path / "pairs.csv")])
    assert result.exit_code == 0, result.output
    assert "search_overlap" in result.stdout
    assert "ndcg@10" in result.stdout
    failed = CliRunner().invoke(app, [*words, "--gate", "search_overlap>=0.99"])
    assert failed.exit_code == 1


def test_pairs_of_identifiers_on_the_command_line(
    spaces: tuple[np.ndarray, ...], tmp_path: Path, monkeypatch
) -> None:
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    A, B, Q = spaces
    for name, rows in (("a", A), ("b", B), ("q", Q)):
        ids = [f"{'q' if name == 'q' else 'd'}{row}" for row in range(len(rows))]
        pd.DataFrame({"id": ids, "vector": list(rows)}).to_parquet(f"{name}.parquet")
    Path("rows.csv").write_text("query,document\n" + "".join(f"{i},{i}\n" for i in range(M)))
    Path("ids.csv").write_text("query,document\n" + "".join(f"q{i},d{i}\n" for i in range(M)))
    words = ["compare", "a.parquet", "b.parquet", "--ids", "id", "--queries", "q.parquet", "--json"]
    shown = []
    for more in (["rows.csv"], ["ids.csv", "--pair-ids", "id"]):
        result = CliRunner().invoke(app, [*words, "-m", "isoscore", "--no-errors", "--relevance", *more])
        assert result.exit_code == 0, result.output
        shown.append(json.loads(result.stdout)["metrics"]["map"])
    assert shown[0] == shown[1]
    failed = CliRunner().invoke(app, ["compare", "a.parquet", "b.parquet", "--pair-ids", "id"]).exception
    assert isinstance(failed, iso.InputError)
    assert failed.argument == "pair_ids"
