"""Recall of a search in codes, against brute force in float64 and against faiss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.compression import compress
from isoscope.compression.methods import default_methods
from isoscope.compression.trial import Trial
from isoscope.engine.inputs import as_input


@pytest.fixture(name="X")
def vectors(rng) -> np.ndarray:
    """800 vectors in 16 dimensions, about ten places, with an offset."""
    places = 2 * rng.normal(size=(10, 16))
    return (places[np.arange(800) % 10] + rng.normal(size=(800, 16)) + 1).astype(np.float32)


def quietly(X: Any, **options: Any) -> iso.compression.Compression:
    return compress(X, progress=False, **options)


def split(X: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows that are queries, those that are searched, and those that are fitted on."""
    given = {"k": 10, "metric": "cosine", "max_queries": 1000, "max_fit": 20_000, "seed": 0} | options
    trial = Trial.of(as_input(X).source, None, **given)
    searched = np.setdiff1d(np.arange(len(X)), trial.drawn.numpy())
    return X[trial.drawn], X[searched], trial.fit.numpy()


def units(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def nearest(queries: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    squares = np.square(queries[:, None] - rows[None]).sum(axis=2)
    return np.argsort(squares, axis=1, kind="stable")[:, :k]


def recall(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.array([len(set(a) & set(b)) / len(b) for a, b in zip(found, exact, strict=True)])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("method", ["int8", "int4", "truncate:8", "pca:8", "binary-asymmetric", "pq:4"])
def test_recall_is_that_of_brute_force(X: np.ndarray, method: str, metric: str) -> None:
    result = quietly(X, methods=[method], metric=metric)
    queries, rows, _ = split(X, metric=metric)
    fitted = result.fitted[method]
    placed = units if metric == "cosine" else (lambda of: of.astype(np.float64))
    exact = nearest(placed(queries), placed(rows), 10)
    asked = queries
    for step in fitted.steps_:
        asked = asked if hasattr(step, "encode") else step.transform(asked)
    stored = fitted.transform(rows)
    wanted = recall(nearest(asked.astype(np.float64), stored.astype(np.float64), 10), exact)
    found = result[method].recall
    assert found is not None
    # float32 breaks a near tie another way, and rows of equal codes are returned in any order
    assert found.mean == pytest.approx(wanted.mean(), abs=0.02 if "binary" in method else 2e-3)
    assert 0.3 < found.mean < 1
    many = nearest(asked.astype(np.float64), stored.astype(np.float64), 40)
    rescored = result[method].rescored
    assert rescored is not None
    assert (
        rescored.mean == pytest.approx((recall(many, exact) * 1.0).mean(), abs=5e-3) or rescored.mean > 0.99
    )


def test_recall_is_that_of_a_search_by_faiss(X: np.ndarray) -> None:
    faiss = pytest.importorskip("faiss")
    result = quietly(X, methods=["int8", "int4"], metric="euclidean", k=5)
    queries, rows, fit = split(X, metric="euclidean", k=5)
    flat = faiss.IndexFlatL2(16)
    flat.add(rows)
    exact = flat.search(queries, 5)[1]
    for method, kind in (("int8", "SQ8"), ("int4", "SQ4")):
        index = faiss.index_factory(16, kind)
        index.train(fit)
        index.add(rows)
        wanted = recall(index.search(queries, 5)[1], exact).mean()
        found = result[method].recall
        assert found is not None
        assert found.mean == pytest.approx(wanted, abs=3e-3)


def test_hamming_search_takes_ties_in_any_order(rng) -> None:
    """All rows of one sign pattern are tied: a search returns k of them at random, wherever they stand."""
    X = np.abs(rng.normal(size=(2000, 8))).astype(np.float32)
    X = X[np.argsort(X[:, 0])]  # in an order that tells of distances
    result = quietly(X, methods=["binary"])
    assert result["binary"].recall is not None
    assert result["binary"].recall.mean == pytest.approx(10 / 1500, abs=0.004)


def test_copies_count_as_found(rng) -> None:
    X = np.repeat(rng.normal(size=(40, 8)), 20, axis=0)  # at least 10 of the 20 copies are searched
    result = quietly(X, methods=["float16", "int8"], k=5)
    assert [one.recall.mean for one in result.methods if one.recall] == [1.0, 1.0]


def test_queries_are_neither_searched_nor_fitted_on(X: np.ndarray) -> None:
    queries, rows, fit = split(X)
    assert len(queries) == 200
    own, searched, learnt = (set(map(bytes, of)) for of in (queries, rows, fit))
    assert not own & searched
    assert not own & learnt
    assert len(searched) == 600


def test_blocks_of_a_file_give_what_an_array_gives(X: np.ndarray, tmp_path: Path, monkeypatch) -> None:
    np.save(tmp_path / "x.npy", X)
    whole = quietly(X, methods=["int8", "pca:8"])
    monkeypatch.setattr("isoscope.compression.trial._BLOCK_ROWS", 97)
    streamed = quietly(tmp_path / "x.npy", methods=["int8", "pca:8"])
    for method in whole:
        assert streamed[method].recall == whole[method].recall
        assert streamed[method].rescored == whole[method].rescored


def test_own_queries_and_relevance(X: np.ndarray, rng) -> None:
    queries = X[:50] + 0.1 * rng.normal(size=(50, 16)).astype(np.float32)
    pairs = [(i, i) for i in range(49)]
    result = quietly(X, queries=queries, relevance=pairs, methods=["float16", "truncate:2"])
    assert result.n_queries == 50
    ranks = nearest(units(queries), units(X), 10)
    gains = [1 / np.log2(2 + list(ranks[i]).index(i)) if i in ranks[i] else 0.0 for i in range(49)]
    assert result.exact_score == pytest.approx(np.mean(gains))
    assert result["float16"].score == pytest.approx(result.exact_score, abs=0.01)
    low = result["truncate:2"]
    assert low.score is not None
    assert low.score < 0.9 * result.exact_score
    assert low.score_change is not None
    assert low.score_change[0] == pytest.approx(low.score - result.exact_score)
    with raises(iso.ShapeError, argument="queries"):
        quietly(X, queries=queries[:, :3])
    with raises(iso.InputError, argument="relevance"):
        quietly(X, relevance=pairs)


def test_labels(X: np.ndarray) -> None:
    y = np.arange(800) % 10
    result = quietly(X, labels=y, methods=["int8", "truncate:2"])
    queries, rows, _ = split(X)
    _, own, _ = split(np.repeat(y[:, None], 2, axis=1).astype(float), metric="euclidean")
    drawn = Trial.of(
        as_input(X).source, None, k=10, metric="cosine", max_queries=1000, max_fit=20_000, seed=0
    ).drawn.numpy()
    exact = nearest(units(queries), units(rows), 10)
    wanted = (own[:, 0][exact] == y[drawn][:, None]).mean()
    assert result.exact_score == pytest.approx(wanted)
    assert result["truncate:2"].score_change is not None
    assert result["truncate:2"].score_change[0] < 0
    with raises(iso.InputError, argument="labels", hint="relevance"):  # the queries have no labels
        quietly(X, queries=X[:50], labels=y)


def test_pairs(X: np.ndarray, rng) -> None:
    from scipy.stats import spearmanr

    rows = rng.integers(0, 800, (100, 2))
    cosines = (units(X[rows[:, 0]]) * units(X[rows[:, 1]])).sum(axis=1)
    scores = cosines + 0.3 * rng.normal(size=100)
    result = quietly(X, pairs=np.c_[rows, scores], methods=["float16", "binary"])
    assert result.exact_score == pytest.approx(spearmanr(cosines, scores)[0])
    signs = np.where(X > 0, 1.0, -1.0)
    wanted = spearmanr((signs[rows[:, 0]] * signs[rows[:, 1]]).sum(axis=1), scores)[0]
    assert result["binary"].score == pytest.approx(wanted)
    (row,) = (one for one in json.loads(result.to_json())["methods"] if one["method"] == "binary")
    assert row["score_change"] == pytest.approx(wanted - result.exact_score)
    assert (row["score_change_low"], row["score_change_high"]) == (None, None)  # of one correlation
    with raises(iso.InputError, argument="pairs"):
        quietly(X, labels=np.zeros(800), pairs=np.c_[rows, scores])


def test_what_is_chosen(X: np.ndarray, tmp_path: Path) -> None:
    result = quietly(X, methods="int8,int4,binary,float16", target=0.9)
    assert [one.method for one in result.methods] == ["float16", "int8", "int4", "binary"]
    holding = [one for one in result.methods if one.recall and one.recall.interval[0] >= 0.9]
    assert result.chosen is min(holding, key=lambda one: one.n_bytes or 0)
    assert result.chosen_rescored is not None
    assert result.chosen_rescored.n_bytes is not None
    assert result.chosen.n_bytes is not None
    assert result.chosen_rescored.n_bytes <= result.chosen.n_bytes
    assert result.chosen.method in result.sentence
    loaded = iso.load_correction(result.save(tmp_path / "c.safetensors"))
    np.testing.assert_array_equal(loaded.encode(X), result.fitted[result.chosen.method].encode(X))
    assert result.save(tmp_path / "b.safetensors", "binary").exists()
    none = quietly(X, methods="binary", target=1.0, oversample=1)
    assert none.chosen is None
    assert "none of these methods" in none.sentence
    with raises(iso.InputError):
        none.save(tmp_path / "n.safetensors")


def test_the_front(X: np.ndarray) -> None:
    result = quietly(X)
    known = [(one.n_bytes, one.recall.mean) for one in result.methods if one.n_bytes and one.recall]
    for one in result.front:
        assert one.recall is not None
        assert not [1 for n, mean in known if n <= one.n_bytes and mean > one.recall.mean]
    assert len(result.front) >= 3


def test_steps_in_a_chain_and_corrections_of_ones_own(X: np.ndarray) -> None:
    X = X + 4
    result = quietly(X, methods=["center+binary", "binary", "pca:8+int8"], metric="euclidean")
    assert result["center+binary"].recall.mean > result["binary"].recall.mean + 0.1  # type: ignore[union-attr]
    assert result["pca:8+int8"].n_bytes == 8
    own = quietly(X, methods={"mine": iso.corrections.SignQuantizer()}, metric="euclidean")
    assert own["mine"].recall == result["binary"].recall
    for bad in ("int9", "pca", "int8:3", "int8+center", "pca:x"):
        with raises(iso.InputError, argument="methods"):
            quietly(X, methods=[bad])
    with raises(iso.InputError, argument="methods"):
        quietly(X, methods=[])
    with raises(iso.InputError, argument="methods"):
        quietly(X, methods={"mine": 3})


def test_a_method_that_cannot_be_fitted_says_why(X: np.ndarray) -> None:
    result = quietly(X, methods=["int8", "pq:5"])
    assert result["pq:5"].reason is not None
    assert "divisor" in result["pq:5"].reason
    assert "divisor" in str(result)
    with raises(iso.InputError, argument="n_parts"):
        quietly(X, methods=["pq:5"])


def test_options_change_something(X: np.ndarray) -> None:
    base = quietly(X, methods=["int4", "rabitq", "pq:4"])
    for options in ({"k": 3}, {"seed": 1}, {"max_queries": 50}, {"metric": "euclidean"}, {"max_fit": 300}):
        other = quietly(X, methods=["int4", "rabitq", "pq:4"], **options)
        assert other.to_dict()["methods"] != base.to_dict()["methods"]
    assert quietly(X, methods=["int4"], oversample=1)["int4"].rescored.mean < 1  # type: ignore[union-attr]
    assert quietly(X, methods=["int4"], target=0.2).chosen is not None
    for name, bad in {"k": 0, "k ": 700, "target": 2, "oversample": 0, "metric": "dot", "seed": -1}.items():
        with raises(iso.InputError, argument=name.strip()):
            quietly(X, **{name.strip(): bad})


def test_zero_vectors_are_left_out(X: np.ndarray) -> None:
    X[::7] = 0
    result = quietly(X, methods=["int8"])
    assert result["int8"].recall.mean > 0.9  # type: ignore[union-attr]
    assert any("zero vectors" in note for note in result.notes)


def test_the_defaults_fit_small_spaces(rng) -> None:
    assert "pq:2" in default_methods(16, 300)
    assert not [name for name in default_methods(16, 200) if name.startswith("pq")]
    tiny = quietly(rng.normal(size=(60, 3)))
    assert all(one.reason is None for one in tiny.methods)
    with raises(iso.InputError, argument="X", wanted="4 rows"):
        quietly(rng.normal(size=(3, 3)), k=1)


@pytest.mark.slow
def test_json_and_figure(X: np.ndarray, tmp_path: Path) -> None:
    result = quietly(X, methods=["int8", "int4", "binary", "truncate:8"])
    content = json.loads(result.to_json())
    assert content["chosen"] == (result.chosen and result.chosen.method)
    assert len(result.to_pandas()) == 4
    pytest.importorskip("matplotlib")
    assert result.figure(tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    ax = iso.plots.plot_compression(result)
    assert {text.get_text() for text in ax.texts} >= {one.method for one in result.front}


@pytest.mark.nightly
def test_published_sts_figures() -> None:
    """Those of all-mpnet-base-v2 on STS-B's test set, by sentence-transformers 2559."""
    import os

    from scipy.stats import spearmanr

    from isoscope.corrections import ScalarQuantizer, SignQuantizer
    from isoscope.known_models import known_model

    model = known_model("all-mpnet-base-v2")
    if model is None or not model.is_installed:
        pytest.skip("needs the packages of all-mpnet-base-v2")
    if not (folder := os.environ.get("ISOSCOPE_DATA")):
        pytest.skip("needs ISOSCOPE_DATA")
    import gzip

    with gzip.open(Path(folder) / "sts/stsb_en_test.jsonl.gz", "rt", encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    sides = [
        np.asarray(iso.encode([one[name] for one in items], model="all-mpnet-base-v2"))
        for name in ("sentence1", "sentence2")
    ]
    scores = [one["score"] for one in items]

    def score(codes: list[np.ndarray]) -> float:
        a, b = (units(of) for of in codes)
        return float(spearmanr((a * b).sum(axis=1), scores)[0])

    def int8(of: np.ndarray) -> np.ndarray:
        return ScalarQuantizer(convention="sentence-transformers").fit(of).encode(of)

    bits = [np.unpackbits(SignQuantizer().fit(of).encode(of), axis=1) for of in sides]
    assert round(score(sides), 4) == 0.8342
    assert round(score([int8(of) for of in sides]), 4) == 0.8313  # each side with ranges of its own
    assert round(score(bits), 4) == 0.8244
    both = np.vstack(sides)  # the same ranges, and codes decoded: nothing is lost
    pairs = np.c_[np.arange(len(items)), len(items) + np.arange(len(items)), scores]
    result = quietly(both, pairs=pairs, methods=["int8", "binary"], max_queries=100)
    assert round(result.exact_score or 0, 4) == 0.8342
    assert result["int8"].score == pytest.approx(0.8342, abs=5e-4)
    assert result["binary"].score == pytest.approx(0.8256, abs=5e-4)


def test_torch_and_device(X: np.ndarray) -> None:
    result = quietly(torch.from_numpy(X), methods=["int8"], device="cpu")
    assert result["int8"].recall == quietly(X, methods=["int8"])["int8"].recall
