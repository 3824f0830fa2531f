from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.engine import plan
from isoscope.errors import FileError, InputError, LabelError, ShapeError
from isoscope.report import document


@pytest.fixture(name="X")
def blobs(rng) -> np.ndarray:
    return rng.normal(size=(120, 6)) + np.repeat(np.eye(6)[:3] * 3, 40, axis=0)


LABELS = ["a"] * 40 + ["b"] * 40 + ["c"] * 40


def test_the_page_holds_the_readings(X: np.ndarray, tmp_path: Path) -> None:
    made = iso.report(X, labels=LABELS, path=tmp_path / "page.html", title="Three")
    assert made.path == tmp_path / "page.html"
    text = made.path.read_text(encoding="utf-8")
    assert text == made.html
    assert made.n_bytes == made.path.stat().st_size
    held = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert held == json.loads(json.dumps(made.contents))
    assert held["title"] == "Three"
    measured = iso.measure(X, labels=LABELS)
    assert {m["name"]: m["number"] for m in held["metrics"]} == dict(measured)
    split = iso.metrics.scatter_decomposition(X, LABELS)
    assert held["frontier"]["ceiling"] == split.ceiling
    by_label = iso.metrics.silhouette_by_cluster(X, LABELS)
    assert {r["name"]: r["mean"] for r in held["silhouette"]["rows"]} == pytest.approx(by_label)
    contributions = np.asarray(iso.metrics.dimension_contributions(X))
    assert {t["dimension"]: t["contribution"] for t in held["dimensions"]["top"]} == pytest.approx(
        dict(enumerate(contributions))
    )
    assert held["dimensions"]["total"] == pytest.approx(iso.mean_cosine(X))
    assert held["dimensions"]["says_little"] is bool(iso.mean_cosine(X) < 0.1)


def test_the_same_space_makes_the_same_page(X: np.ndarray) -> None:
    first, again, other = (iso.report(X, labels=LABELS, seed=seed) for seed in (1, 1, 2))
    assert first.html == again.html
    assert first.contents["points"]["rows"] != other.contents["points"]["rows"]


def test_each_statistic_of_the_space_is_computed_once(X: np.ndarray, passes) -> None:
    iso.report(X, labels=LABELS)
    once = ("Moments", "Directions", "GroupMoments", "Separation", "Separation cosine", "Neighbors cosine")
    assert passes.over(X) == dict.fromkeys(once, 1)


def test_a_measurement_costs_only_what_is_new(X: np.ndarray, passes) -> None:
    measured = iso.measure(X, labels=LABELS)
    before = passes.over(X)
    made = iso.report(measured, title="Three")
    assert set(passes.over(X) - before) == {"Neighbors cosine"}  # of the audit
    assert made.html == iso.report(X, labels=LABELS, title="Three").html


def test_rows_to_look_at_are_those_of_an_audit(rng) -> None:
    X = rng.normal(size=(300, 8))
    X[7] = X[3]
    X[9] *= 100
    held = iso.report(X, texts=[f"<b>{row}</b>\x1b" for row in range(300)])
    found = {one["name"]: one for one in held.contents["audit"]["findings"]}
    assert found.keys() >= {"duplicates", "odd lengths"}
    assert found["duplicates"]["examples"][0].startswith("rows 3, 7")
    assert "<b>3</b>" not in held.html
    assert "\x1b" not in held.html
    clean = rng.normal(size=(300, 8))
    clean /= np.linalg.norm(clean, axis=1, keepdims=True)
    assert iso.report(clean).contents["audit"] is None


@pytest.fixture
def search(rng) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """600 documents of 6 topics and 200 queries, which share a direction of their own."""
    topics, of, asked = 1.5 * rng.normal(size=(6, 16)), np.arange(600) % 6, np.arange(200) % 6
    documents = topics[of] + 0.8 * rng.normal(size=(600, 16)) + 0.5
    return documents, topics[asked] + 0.8 * rng.normal(size=(200, 16)) + 1, of, asked


def test_thresholds_of_queries_are_those_of_unrelated_documents(search) -> None:
    documents, queries, of, asked = search
    relevance = iso.queries.Relevance.of_labels(asked.tolist(), of.tolist())
    made = iso.report(documents, queries=queries, relevance=relevance)
    u, v = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, documents))
    S, related = u @ v.T, asked[:, None] == of
    assert made.thresholds is not None
    for name, rate in (("one_percent", 0.01), ("one_permille", 0.001)):
        (shown,) = (one for one in made.contents["search"]["thresholds"] if one["name"] == name)
        assert made.thresholds["queries"][name] == shown["cosine"]
        assert (S[~related] >= shown["cosine"]).mean() == pytest.approx(rate, rel=0.05)
        assert shown["found"] == pytest.approx((S[related] >= shown["cosine"]).mean(), abs=2e-3)
        assert shown["documents"] == made.thresholds[name]
        assert shown["rate_there"] == pytest.approx((S[~related] >= made.thresholds[name]).mean(), rel=0.02)
    figures = {one["name"]: one["value"] for one in made.contents["search"]["figures"]}
    assert figures["mrr"] == pytest.approx(iso.queries.retrieval(documents, queries, relevance)["mrr"])
    assert figures["gap"] == pytest.approx(iso.sides(queries, documents)["gap"].value)
    assert any("a query and an unrelated document exceed" in sentence for sentence in made.headline)
    alone, unlabelled = iso.report(documents), iso.report(documents, queries=queries)
    assert alone.contents["search"] is alone.thresholds["queries"] is None  # type: ignore[index]
    assert unlabelled.thresholds["queries"] != made.thresholds["queries"]  # type: ignore[index]
    hubs = {one["name"]: one for one in made.contents["audit"]["findings"]}
    assert "200 queries" in hubs["never retrieved"]["headline"]


def test_what_is_relevant_is_a_column_pairs_or_identifiers(search, tmp_path: Path) -> None:
    import pandas as pd

    documents, queries, of, asked = search
    for name, rows, topic in (("d", documents, of), ("q", queries, asked)):
        ids = [f"{'q' if name == 'q' else 'd'}{row}" for row in range(len(rows))]
        pd.DataFrame({"id": ids, "topic": topic, "vector": list(rows)}).to_parquet(
            tmp_path / f"{name}.parquet"
        )
    pairs = [(i, j) for i in range(200) for j in range(600) if asked[i] == of[j]]
    (tmp_path / "rows.csv").write_text("query,document\n" + "".join(f"{i},{j}\n" for i, j in pairs))
    (tmp_path / "ids.csv").write_text("query,document\n" + "".join(f"q{i},d{j}\n" for i, j in pairs))
    shown = [
        iso.report(tmp_path / "d.parquet", queries=tmp_path / "q.parquet", **options).contents["search"]
        for options in (
            {"relevance": "topic"},
            {"relevance": str(tmp_path / "rows.csv")},
            {"relevance": str(tmp_path / "ids.csv"), "ids": "id"},
        )
    ]
    assert shown[0] == shown[1] == shown[2]
    with raises(argument="relevance"):
        iso.report(documents, relevance=pairs)


def test_without_labels_there_are_no_sections_of_labels(X: np.ndarray) -> None:
    held = iso.report(X).contents
    assert held["silhouette"] is held["frontier"] is held["trajectory"] is None
    assert held["points"]["labels"] is held["points"]["texts"] is None
    assert "silhouette" not in held["corrections"]["rows"][0]


def test_a_space_and_an_opened_file_are_taken(X: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", X)
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n")
    source = iso.open_vectors(tmp_path / "vectors.npy", labels=tmp_path / "labels.txt")
    texts = [f"row {i}" for i in range(120)]
    from_file = iso.report(source, texts=texts)
    from_space = iso.report(iso.Space(X, labels=LABELS, texts=texts, name="vectors"))
    assert from_file.html == from_space.html
    assert from_file.contents["title"] == "vectors"


def test_many_points_are_estimated_and_it_is_said(rng, monkeypatch) -> None:
    monkeypatch.setattr(plan, "EXACT_PAIRS", 500**2)
    y = rng.integers(0, 3, 1200)
    X = rng.normal(size=(1200, 8)) + 2 * np.eye(8)[y]
    made = iso.report(X, labels=y)
    reading = next(r for r in made.measurement.readings if r.name == "silhouette")
    assert reading.value == pytest.approx(iso.silhouette_score(X, y), abs=1e-3)
    assert "estimated from" in reading.meaning
    assert list(made.measurement) == list(iso.measure(X, labels=y))
    assert made.contents["silhouette"]["is_exact"] is False


@pytest.mark.parametrize("n", [2, 3, 5])
def test_tiny_spaces_have_pages(rng, n: int) -> None:
    assert iso.report(rng.normal(size=(n, 3))).n_bytes > 0


def test_points_on_a_line_have_a_page_without_sliders() -> None:
    made = iso.report([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [5.0, 5.0]])
    assert made.contents["what_if"] is None


@pytest.mark.parametrize("shape", [(300, 12), (10, 40)])
def test_what_the_sliders_compute_from_is_the_space(rng, shape: tuple[int, int]) -> None:
    """Variances, and coordinates that with the mean added have the products of the vectors themselves."""
    X = rng.normal(size=shape) * np.linspace(2, 0.2, shape[1]) + 1.5
    held = iso.report(X).contents
    what_if, order = held["what_if"], held["points"]["rows"]

    def numbers(name: str, kind: str) -> np.ndarray:
        return np.frombuffer(base64.b64decode(what_if[name]), kind)

    rank = what_if["rank"]
    assert rank == min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(
        numbers("eigenvalues", "<f8"), np.asarray(iso.metrics.eigenvalues(X))[:rank], rtol=1e-9
    )
    points = numbers("coordinates", "<f4").reshape(-1, rank) + numbers("mean", "<f8")
    points = np.hstack([points, np.full((len(points), 1), what_if["mean_residual"])])
    np.testing.assert_allclose(points @ points.T, X[order] @ X[order].T, rtol=1e-5, atol=1e-4)


def test_zero_vectors_are_listed_for_the_sliders(rng) -> None:
    X = rng.normal(size=(50, 6)) + 1
    X[[7, 31]] = 0
    held = iso.report(X).contents
    assert sorted(held["points"]["rows"][i] for i in held["what_if"]["zeros"]) == [7, 31]


@pytest.mark.slow
def test_many_hostile_texts_and_labels_stay_within_the_limit(rng) -> None:
    X = rng.normal(size=(3200, 384)).astype(np.float32)
    made = iso.report(
        X, labels=["<" * 300 + str(i % 400) for i in range(3200)], texts=["<&>\u2028" * 400] * 3200
    )
    assert made.n_bytes < 6_000_000
    assert made.contents["points"]["n"] == 3000
    assert len(made.contents["silhouette"]["rows"]) == 100
    assert made.contents["silhouette"]["n_left_out"] == 300


def test_texts_without_shape_are_spelled_out(X: np.ndarray) -> None:
    texts = ["bell \a", "half \ud800", "line\nend", *(str(i) for i in range(117))]
    found = iso.report(X, texts=texts).contents["points"]["texts"]
    assert {r"bell \u0007", r"half \ud800", "line end"} <= set(found)


def nothing(*args: object, **options: object) -> None:
    raise AssertionError("the work began")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("page.txt", "a name that ends in .html"),
        ("folder.html", "is a folder; expected"),
        ("nowhere/page.html", "is not a folder. Create it first"),
        ("vectors.html/page.html", "is not a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    X: np.ndarray, tmp_path: Path, monkeypatch, place: str, said: str
) -> None:
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "vectors.html").write_text("a file")
    monkeypatch.setattr(document, "gather", nothing)
    with pytest.raises(FileError, match=said):
        iso.report(X, path=tmp_path / place)


def test_a_folder_closed_to_us_is_refused_before_the_work(X: np.ndarray, monkeypatch) -> None:
    monkeypatch.setattr(document, "gather", nothing)
    if not Path("/proc/self").is_dir():
        pytest.skip("needs /proc, a folder nobody can write to")
    with pytest.raises(FileError, match=r"page\.html cannot be written to the folder"):
        iso.report(X, path=f"/proc/{os.getpid()}/page.html")
    with pytest.raises(FileError, match="cannot be created"):
        iso.report(X, figures=f"/proc/{os.getpid()}/figures")


def test_bad_input(X: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="only one label"):
        iso.report(X, labels=["a"] * 120)
    with pytest.raises(ShapeError, match="`texts` has 3 entries for 120 vectors"):
        iso.report(X, texts=["a", "b", "c"])
    with pytest.raises(InputError, match=r"texts.* must be a column or a file"):
        iso.report(X, texts="one")
    with raises(InputError, argument="seed", wanted="a whole number"):
        iso.report(X, seed=-1)
    with pytest.raises(ShapeError, match="1 dimension"):
        iso.report(X[:, :1])
    with pytest.raises(FileError, match=r"is not a training run: it has no trajectory.parquet"):
        iso.report(X, run=tmp_path)
    with pytest.raises(InputError, match=r"X.* has weights"):
        iso.report(iso.Space(X, weights=np.ones(120)))
    with pytest.raises(InputError, match="all equal"):
        iso.report(np.ones((5, 3)))


def test_a_measurement_by_slices_is_reported_as_the_space_it_is_of(rng) -> None:
    X = rng.normal(size=(120, 4))
    sliced = iso.measure(X, by=["a", "b", "c"] * 40)
    page, plain = iso.report(sliced), iso.report(X)
    numbers, expected = ([one["number"] for one in made.contents["metrics"]] for made in (page, plain))
    assert numbers == pytest.approx(expected, rel=1e-12)
