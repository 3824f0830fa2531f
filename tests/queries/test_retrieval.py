"""Figures of retrieval, against scikit-learn where no documents are tied and all orders where some are."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.queries import Queries, Relevance, as_queries, retrieval
from isoscope.queries.opened import of_rows
from isoscope.queries.retrieval import retrieval_of

K = 3


def cosines(Q: np.ndarray, D: np.ndarray) -> np.ndarray:
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (Q, D)]
    return unit[0] @ unit[1].T


def figures(order: list[int], gains: np.ndarray) -> dict[str, float]:
    """The figures of one order of documents, by their definitions."""
    right = gains[order] > 0
    ranks = np.flatnonzero(right) + 1
    discounts = 1 / np.log2(np.arange(2, K + 2))
    ideal = np.sort(gains)[::-1][:K]
    return {
        "map": np.mean(np.arange(1, len(ranks) + 1) / ranks),
        "ndcg@3": gains[order][:K] @ discounts[: len(order[:K])] / (ideal @ discounts[: len(ideal)]),
        "mrr": 1 / ranks[0],
        "recall@3": right[:K].sum() / right.sum(),
        "hit_rate@3": float(right[:K].any()),
    }


def test_figures_are_scikit_learns(rng: np.random.Generator) -> None:
    from sklearn.metrics import average_precision_score, ndcg_score

    D, Q = rng.normal(size=(200, 8)), rng.normal(size=(40, 8))
    documents, queries = rng.integers(0, 12, 200), rng.integers(0, 12, 40)
    found = retrieval(D, Q, Relevance.of_labels(queries, documents), k=10)
    right = documents == queries[:, None]
    S = cosines(Q, D)
    assert found["map"] == pytest.approx(
        np.mean([average_precision_score(a, b) for a, b in zip(right, S, strict=True)])
    )
    assert found["ndcg@10"] == pytest.approx(ndcg_score(right, S, k=10))
    assert found.n_queries == 40
    error = found.readings.where(metric="mrr")[0].standard_error
    assert error == pytest.approx(found.scores["mrr"].numpy().std(ddof=1) / np.sqrt(40))


@pytest.mark.parametrize("n_relevant", [1, 2, 5])
def test_ties_are_the_mean_over_all_orders(rng: np.random.Generator, n_relevant: int) -> None:
    for _ in range(8):
        levels = rng.integers(0, 3, 6)  # six documents at three angles to the query
        angles = np.array([0.3, 0.8, 1.2])[levels]
        D = np.stack([np.cos(angles), np.sin(angles)], axis=1) * rng.uniform(0.5, 2, (6, 1))
        gains = np.zeros(6)
        gains[rng.choice(6, n_relevant, replace=False)] = rng.integers(1, 4, n_relevant)
        pairs = [(0, row, gain) for row, gain in enumerate(gains)]
        found = retrieval(D, [[1.0, 0.0]], pairs, k=K)
        orders = [
            list(order)
            for order in itertools.permutations(range(6))
            if (np.diff(levels[list(order)]) >= 0).all()
        ]
        expected = [figures(order, gains) for order in orders]
        for name in expected[0]:
            assert found[name] == pytest.approx(np.mean([one[name] for one in expected])), name


def test_labels_pairs_and_ids_say_the_same(rng: np.random.Generator, tmp_path: Path) -> None:
    D, Q = rng.normal(size=(50, 4)), rng.normal(size=(9, 4))
    documents, queries = rng.integers(0, 6, 50), rng.integers(0, 6, 9)
    pairs = [(q, d) for q in range(9) for d in range(50) if documents[d] == queries[q]]
    by_labels = retrieval(D, Q, Relevance.of_labels(queries, documents))
    assert retrieval(D, Q, pairs).readings["value"] == by_labels.readings["value"]
    by_ids = Relevance.of_ids(
        [f"q{q}" for q, _ in pairs] + ["unknown"],
        [f"d{d}" for _, d in pairs] + ["d0"],
        query_ids=[f"q{q}" for q in range(9)],
        document_ids=[f"d{d}" for d in range(50)],
    )
    assert retrieval(D, Q, by_ids).readings["value"] == by_labels.readings["value"]
    path = tmp_path / "pairs.csv"
    path.write_text("query,document\n" + "".join(f"{q},{d}\n" for q, d in pairs))
    assert retrieval(D, Q, path).readings["value"] == by_labels.readings["value"]
    spaces = iso.Space(D, labels=documents), iso.Space(Q, labels=queries)
    assert retrieval(*spaces, "labels").readings["value"] == by_labels.readings["value"]


def test_pairs_name_identifiers_of_tables(rng: np.random.Generator, tmp_path: Path) -> None:
    import pandas as pd

    D, Q = rng.normal(size=(20, 3)), rng.normal(size=(4, 3))
    pd.DataFrame({"doc": [f"d{i}" for i in range(20)], "vector": list(D)}).to_parquet(tmp_path / "d.parquet")
    pd.DataFrame({"q": list("abcd"), "best": ["d3", "d5", "d9", "d9"], "vector": list(Q)}).to_parquet(
        tmp_path / "q.parquet"
    )
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\na\td3\t2\nb\td5\t1\nc\td9\t1\nd\td9\t1\n"
    )
    opened = iso.open_vectors(tmp_path / "d.parquet")
    by_pairs = as_queries(tmp_path / "q.parquet", opened, relevance=str(tmp_path / "qrels.tsv"), ids="q=doc")
    by_column = as_queries(tmp_path / "q.parquet", opened, relevance="best=doc")
    assert by_pairs.relevance is not None
    assert by_column.relevance is not None
    for query, row in enumerate((3, 5, 9, 9)):
        assert by_pairs.relevance.of_query(query).tolist() == [row]
        assert by_column.relevance.of_query(query).tolist() == [row]
    assert by_pairs.relevance.padded()[1][0].tolist() == [2.0]


def test_a_file_in_blocks_gives_the_same(rng: np.random.Generator, tmp_path: Path) -> None:
    D, Q = rng.normal(size=(300, 8)).astype("f4"), rng.normal(size=(7, 8)).astype("f4")
    relevance = Relevance.of_labels(rng.integers(0, 4, 7), rng.integers(0, 4, 300))
    np.save(tmp_path / "d.npy", D)

    class Small:  # blocks of 17 rows
        def __init__(self, source):
            self._source = source

        def __getattr__(self, name):
            return getattr(self._source, name)

        def blocks(self):
            return self._source.blocks(17)

    asked = as_queries(Q, iso.Space(D), relevance=relevance)
    whole = retrieval_of(iso.Space(D), asked)
    pieces = retrieval_of(Small(iso.open_vectors(tmp_path / "d.npy")), asked)
    np.testing.assert_allclose(pieces.readings["value"], whole.readings["value"], rtol=1e-12)


def test_rows_of_the_documents_leave_themselves_out(rng: np.random.Generator) -> None:
    D, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    relevance = Relevance.of_labels(y, y)
    found = retrieval_of(iso.Space(D), of_rows(iso.Space(D), torch.arange(30), relevance), k=5)
    for query in range(30):
        others = [row for row in range(30) if row != query]
        alone = retrieval(D[others], D[[query]], Relevance.of_labels(y[[query]], y[others]), k=5)
        for name, score in found.scores.items():
            assert float(score[query]) == pytest.approx(alone[name]), name


def test_dot_ranks_by_inner_product(rng: np.random.Generator) -> None:
    D, Q = rng.normal(size=(40, 4)), rng.normal(size=(6, 4))
    best = (Q @ D.T).argmax(axis=1)
    assert retrieval(D, Q, list(enumerate(best)), similarity="dot")["mrr"] == 1.0
    assert retrieval(D, Q, list(enumerate(best)))["mrr"] < 1.0


def test_queries_without_relevant_documents_are_left_out() -> None:
    found = retrieval(np.eye(3), np.eye(3), [(0, 0), (2, 1)])
    assert (found.n_queries, found.n_left_out) == (2, 1)
    assert "1 more" in str(found)
    assert found["hit_rate@10"] == 1.0


@pytest.mark.parametrize(
    ("relevance", "fields"),
    [
        (None, {"argument": "relevance"}),
        ([(0, 3)], {"argument": "relevance", "wanted": "0 to 2"}),
        ([(4, 0)], {"argument": "relevance"}),
        ([(0, 0, -1.0)], {"argument": "relevance"}),
        ([(0, 0, 0.0)], {"argument": "relevance"}),
        ("topic", {"argument": "relevance"}),
        ([0, 1], {"argument": "relevance"}),
        ([("a", 1)], {"argument": "relevance", "hint": "of_ids"}),
    ],
)
def test_relevance_that_cannot_be(relevance, fields) -> None:
    with raises(**fields):
        retrieval(np.eye(3), np.eye(3), relevance)


def test_queries_of_other_dimensions_are_refused() -> None:
    with raises(iso.ShapeError, argument="queries"):
        retrieval(np.eye(3), np.eye(4), [(0, 0)])


@pytest.mark.parametrize(
    ("shape", "n_documents", "argument"),
    [((4, 2), 3, "queries"), ((3, 3), 3, "relevance"), ((4, 3), 5, "relevance")],
)
def test_queries_that_were_opened_for_other_documents_are_refused(shape, n_documents, argument) -> None:
    relevance = Relevance.of_pairs([(0, 0)], n_queries=4, n_documents=3)
    with raises(iso.ShapeError, argument=argument):
        retrieval(np.ones((n_documents, 3)), Queries(torch.ones(shape), relevance))
