"""The task search: queries among all documents, corrections fitted on all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import average_precision_score
from tests.raising import raises
from typer.testing import CliRunner

import isoscope as iso
from isoscope.advice import advise
from isoscope.cli import app
from isoscope.queries import retrieval

N, M = 300, 60


def answers(rng: np.random.Generator, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Documents whose meaning one large dimension drowns, and a query near each of the first."""
    meaning = rng.normal(size=(N, 8))
    documents = np.c_[meaning, 30 + 30 * rng.normal(size=N)]
    queries = np.c_[meaning[:M] + noise * rng.normal(size=(M, 8)), 30 + 30 * rng.normal(size=M)]
    return documents, queries


def mean_precision(documents: np.ndarray, queries: np.ndarray) -> float:
    """Of query i, to which document i alone is relevant; by scikit-learn."""
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (documents, queries)]
    cosines = units[1] @ units[0].T
    return float(np.mean([average_precision_score(np.arange(N) == i, cosines[i]) for i in range(M)]))


def test_scores_are_those_of_all_documents_corrected(rng: np.random.Generator) -> None:
    documents, queries = answers(rng)
    found = advise(
        documents,
        queries=queries,
        relevance=[(i, i) for i in range(M)],
        corrections=["center", "standardize"],
    )
    task = found["search"]
    by_name = {one.correction: one for one in task.outcomes}
    assert task.n_items == M
    assert task.baseline == pytest.approx(mean_precision(documents, queries), abs=1e-6)
    mean, deviation = documents.mean(axis=0), documents.std(axis=0)
    standard = mean_precision((documents - mean) / deviation, (queries - mean) / deviation)
    assert by_name["standardize"].score == pytest.approx(standard, abs=1e-3)
    assert by_name["standardize"].verdict == "helps"
    assert found.recommended == "standardize"
    assert "search" in found.headline


def test_the_interval_is_students_over_queries(rng: np.random.Generator) -> None:
    documents, queries = answers(rng)
    pairs = [(i, i) for i in range(M)]
    found = advise(documents, queries=queries, relevance=pairs, corrections=["standardize"])
    one = found["search"].outcomes[0]
    fitted = iso.corrections.Standardize().fit(documents)
    after = retrieval(fitted.transform(documents), fitted.transform(queries), pairs).scores["map"]
    before = retrieval(documents, queries, pairs).scores["map"]
    differences = (after - before).numpy()
    low, high = stats.t.interval(0.95, M - 1, differences.mean(), stats.sem(differences))
    assert one.interval == pytest.approx((low, high), abs=2e-3)


def test_corrections_are_fitted_on_all_documents_and_never_on_queries(rng: np.random.Generator) -> None:
    seen: list[np.ndarray] = []

    class Noting(TransformerMixin, BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Noting:
            seen.append(np.asarray(X))
            return self

        def transform(self, X: Any) -> Any:
            return X

    documents, queries = answers(rng)
    advise(documents, queries=queries, relevance=[(i, i) for i in range(M)], corrections={"noting": Noting()})
    assert (seen[0] == documents).all()


def test_what_is_missing(rng: np.random.Generator) -> None:
    documents, queries = answers(rng)
    with raises(argument="relevance", message="is missing"):
        advise(documents, queries=queries)
    with raises(argument="relevance", hint="queries"):
        advise(documents, relevance=[(0, 0)])
    with raises(argument="queries", message="has 2 queries with a relevant document"):
        advise(documents, queries=queries, relevance=[(0, 0), (1, 1)])
    with raises(message="the task 'search' needs queries"):
        advise(documents, labels=np.arange(N) % 3, tasks=["search"])


def test_without_queries_the_search_of_held_out_rows_says_what_it_is(rng: np.random.Generator) -> None:
    documents, queries = answers(rng)
    y = np.arange(N) % 3
    options: dict[str, Any] = {"labels": y, "tasks": ["retrieval"], "corrections": ["center"]}
    assert any("held-out rows of a sample" in note for note in advise(documents, **options).notes)
    options["tasks"] = ["retrieval", "search"]
    both = advise(documents, queries=queries, relevance=[(i, i) for i in range(M)], **options)
    assert list(both) == ["retrieval", "search"]
    assert not any("held-out rows of a sample" in note for note in both.notes)


def test_from_the_shell_by_columns(rng: np.random.Generator, tmp_path: Path) -> None:
    import pandas as pd

    documents, queries = answers(rng)
    pd.DataFrame({"id": [f"d{i}" for i in range(N)], "v": list(documents)}).to_parquet(tmp_path / "d.parquet")
    pd.DataFrame({"answer": [f"d{i}" for i in range(M)], "v": list(queries)}).to_parquet(
        tmp_path / "q.parquet"
    )
    words = ["advise", str(tmp_path / "d.parquet"), "--queries", str(tmp_path / "q.parquet")]
    result = CliRunner().invoke(
        app, [*words, "--relevance", "answer=id", "-c", "center,standardize", "--json"]
    )
    assert result.exit_code == 0, result.output
    advice = json.loads(result.stdout)
    assert advice["recommended"] == "standardize"
    assert advice["tasks"]["search"]["n_items"] == M
