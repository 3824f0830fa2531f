"""What may be passed as vectors, labels and the like: a table of inputs and public functions, held full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError

N, D = 60, 4
TOPICS = ["left", "middle", "right"]
rng = np.random.default_rng(0)
CODES = np.arange(N) % 3
ROWS = rng.normal(size=(N, D)) + 2 * CODES[:, None]
LABELS = [TOPICS[code] for code in CODES]
PLACES = ["de" if row % 2 else "fr" for row in range(N)]
TEXTS = [f"text {row}" for row in range(N)]


class WithArray:
    """An array of another library, as JAX has them."""

    def __len__(self) -> int:
        return N

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return ROWS.astype(dtype or float)


def columns(vectors: Any) -> dict[str, Any]:
    return {"emb": vectors, "topic": LABELS, "place": PLACES, "text": TEXTS}


def wide() -> dict[str, Any]:
    return {**{f"x{j}": ROWS[:, j] for j in range(D)}, "topic": LABELS, "place": PLACES}


def hugging_face(folder: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict(columns(ROWS.tolist()))


def saved(folder: Path) -> str:
    """The layout that save_to_disk of datasets writes: Arrow streams beside two files of settings."""
    place = folder / "saved"
    place.mkdir()
    table = pa.table(columns(ROWS.tolist()))
    for number, rows in enumerate((table.slice(0, 25), table.slice(25))):
        with pa.ipc.new_stream(place / f"data-{number:05}-of-00002.arrow", table.schema) as stream:
            stream.write_table(rows)
    for name in ("dataset_info.json", "state.json"):
        (place / name).write_text('{"features": {}}')
    return str(place)


def written() -> list[str]:
    """Vectors as JSON and NumPy print them."""
    return [
        str(row.tolist()) if i % 2 else f" [{' '.join(map(repr, row.tolist()))}]"
        for i, row in enumerate(ROWS)
    ]


def file(folder: Path, vectors: Any = None) -> Path:
    rows = ROWS.tolist() if vectors is None else vectors
    parquet.write_table(pa.table(columns(rows)), path := folder / "docs.parquet")
    return path


def shards(folder: Path) -> str:
    place = folder / "shards"
    place.mkdir()
    table = pa.table(columns(ROWS.tolist()))
    parquet.write_table(table.slice(0, 25), place / "a-1.parquet")
    parquet.write_table(table.slice(25), place / "a-2.parquet")
    return str(place)


def csv(folder: Path) -> str:
    pd.DataFrame(wide()).to_csv(folder / "docs.csv", index=False)
    return str(folder / "docs.csv")


TABLES: dict[str, Callable[[Path], Any]] = {
    "path of a table": file,
    "path as text": lambda folder: str(file(folder)),
    "path of a .csv": csv,
    "folder": shards,
    "pattern": lambda folder: f"{shards(folder)}/*.parquet",
    "opened file": lambda folder: iso.open_vectors(file(folder)),
    "opened shards": lambda folder: iso.open_vectors(shards(folder)),
    "pandas, a vector column": lambda _: pd.DataFrame(columns(list(ROWS))),
    "pandas, a column a dimension": lambda _: pd.DataFrame(wide()),
    "pandas, vectors as text": lambda _: pd.DataFrame(columns(written())),
    "table, vectors as text": lambda folder: file(folder, written()),
    "polars, a vector column": lambda _: pl.DataFrame(columns(ROWS.tolist())),
    "polars, an array column": lambda _: pl.DataFrame(
        columns(ROWS), schema_overrides={"emb": pl.Array(float, D)}
    ),
    "polars, lazy": lambda _: pl.LazyFrame(columns(ROWS.tolist())),
    "polars, a column a dimension": lambda _: pl.DataFrame(wide()),
    "pyarrow": lambda _: pa.table(columns(ROWS.tolist())),
    "pyarrow, a column a dimension": lambda _: pa.table(wide()),
    "datasets": hugging_face,
    "save_to_disk": saved,
}
ARRAYS: dict[str, Callable[[Path], Any]] = {
    "list of lists": lambda _: ROWS.tolist(),
    "NumPy": lambda _: ROWS,
    "torch": lambda _: torch.from_numpy(ROWS),
    "array of another library": lambda _: WithArray(),
    "Space": lambda _: iso.Space(ROWS),
    "path of an array": lambda folder: (np.save(folder / "v.npy", ROWS), str(folder / "v.npy"))[1],
}
INPUTS = {**TABLES, **ARRAYS}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "measure": lambda X, labels, **more: iso.measure(X, labels=labels, metrics="silhouette", **more)[
        "silhouette"
    ],
    "report": lambda X, labels, **more: iso.report(X, labels=labels, **more).measurement["silhouette"],
    "compare": lambda X, labels, **more: iso.compare(X, ROWS, labels=labels, metrics="silhouette", **more).a[
        "silhouette"
    ],
    "advise": lambda X, labels, **more: (
        iso.advise(X, labels=labels, tasks=["knn"], corrections=["center"], folds=2, repeats=1, **more)[
            "knn"
        ].baseline
    ),
    "silhouette_score": lambda X, labels: iso.silhouette_score(X, labels),
}


@pytest.fixture(scope="module")
def expected() -> dict[str, float]:
    return {name: function(ROWS, LABELS) for name, function in FUNCTIONS.items()}


@pytest.mark.filterwarnings("ignore:X. columns that are not dimensions")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_with_labels_as_values(tmp_path: Path, expected: Any, function: str, kind: str) -> None:
    assert FUNCTIONS[function](INPUTS[kind](tmp_path), LABELS) == pytest.approx(expected[function], abs=1e-6)


@pytest.mark.filterwarnings("ignore:X. columns that are not dimensions")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_with_labels_by_name(tmp_path: Path, expected: Any, function: str, kind: str) -> None:
    X = INPUTS[kind](tmp_path)
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    names: list[Any] = [tmp_path / "labels.txt", str(tmp_path / "labels.txt")]
    names += ["topic"] if kind in TABLES else []
    for name in names:
        assert FUNCTIONS[function](X, name) == pytest.approx(expected[function], abs=1e-6), name


LABELLED = ("calinski_harabasz", "davies_bouldin", "dunn_index", "knn_purity", "silhouette_by_cluster")
WARNED = "ignore:X. columns that are not dimensions"


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_of_metrics(tmp_path: Path, kind: str) -> None:
    X = INPUTS[kind](tmp_path)
    assert iso.isoscore(X) == pytest.approx(iso.isoscore(ROWS))
    assert iso.metrics.mean_cosine(X) == pytest.approx(iso.metrics.mean_cosine(ROWS))
    labels = "topic" if kind in TABLES else LABELS
    for name in LABELLED:
        function = getattr(iso.metrics, name)
        assert function(X, labels) == pytest.approx(function(ROWS, LABELS)), name


@pytest.mark.parametrize("kind", TABLES)
def test_slices_and_weights_by_name(tmp_path: Path, kind: str) -> None:
    X = TABLES[kind](tmp_path)
    sliced = iso.measure(X, by="place", metrics="isoscore")
    assert sliced.by == ("place",)
    assert {reading.group["slice"] for reading in sliced.slices} == {"de", "fr"}
    inside = np.array(PLACES) == "de"
    assert sliced.of("de")["isoscore"].value == pytest.approx(iso.isoscore(ROWS[inside]))


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("function", ["measure", "report", "compare", "advise"])
def test_a_wrong_column_is_named_with_the_nearest(tmp_path: Path, kind: str, function: str) -> None:
    with pytest.raises(InputError) as caught:
        FUNCTIONS[function](TABLES[kind](tmp_path), "topc")
    assert (caught.value.argument, caught.value.got) == ("labels", "topc")
    assert "did you mean 'topic'?" in caught.value.hint[0]
    assert "place" in caught.value.hint[0]


@pytest.mark.slow
def test_one_of_several_columns_of_vectors(tmp_path: Path) -> None:
    table = pa.table({**columns(ROWS.tolist()), "other": (-ROWS[:, :2]).tolist()})
    parquet.write_table(table, path := tmp_path / "two.parquet")
    frames = [table, table.to_pandas(), pl.from_arrow(table), path, str(path)]
    for X in frames:
        with pytest.raises(InputError, match="2 columns of vectors"):
            iso.measure(X)
        for function in (iso.measure, iso.report):
            measured = function(X, labels="topic", vectors="other")
            assert (measured if function is iso.measure else measured.measurement).d == 2
        assert iso.advise(X, labels="topic", vectors="emb", corrections=["center"], repeats=1).d == D
        assert iso.compare(X, X, vectors=("emb", "other")).b.d == 2
        assert "X" not in str(iso.measure(X, vectors="emb").notes)
        with pytest.raises(InputError, match="Did you mean 'other'"):
            iso.measure(X, vectors="othr")
        with pytest.raises(InputError, match="'topic'"):
            iso.measure(X, vectors="topic")


def test_rows_are_matched_by_a_column() -> None:
    first = pd.DataFrame({"number": np.arange(N), **columns(list(ROWS))})
    second = first.iloc[::-1][:50]
    comparison = iso.compare(first, second, ids="number", metrics="isoscore")
    assert comparison.a.n == 50
    assert comparison.correspondence("cka") == pytest.approx(1)
    first = pd.DataFrame({"number": np.arange(N), "x": ROWS[:, 0], "y": ROWS[:, 1]})
    wide_frames = first, first.iloc[::-1][:50]
    assert iso.compare(*wide_frames, ids="number", metrics="isoscore").a.d == 2


def test_texts_by_name(tmp_path: Path) -> None:
    frame = pd.DataFrame(columns(list(ROWS))).rename(columns={"text": "body"})
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    for texts in ("body", tmp_path / "texts.txt", TEXTS):
        assert "text 7" in iso.report(frame, texts=texts).html
    with pytest.raises(InputError, match="Did you mean 'body'"):
        iso.report(frame, texts="boddy")


def test_a_measurement_of_a_frame_is_used_again() -> None:
    frame = pd.DataFrame({**columns(list(ROWS)), "other": list(-ROWS[:, :2])})
    measured = iso.measure(frame, vectors="other")
    assert iso.report(measured).measurement is not None
    assert iso.compare(measured, measured, labels="topic").a.n_labels == 3
    assert iso.advise(measured, labels="topic", corrections=["center"], repeats=1).d == 2


def test_pairs_from_a_file(tmp_path: Path) -> None:
    pairs = [(row, (row + 3) % N, float(row % 5)) for row in range(N)]
    pd.DataFrame(pairs, columns=["i", "j", "score"]).to_csv(tmp_path / "pairs.csv", index=False)
    options = {"corrections": ["center"], "repeats": 1}
    found = iso.advise(ROWS, pairs=tmp_path / "pairs.csv", **options)
    assert found["similarity"].baseline == iso.advise(ROWS, pairs=pairs, **options)["similarity"].baseline


@pytest.mark.parametrize("function", ["measure", "report", "compare", "advise"])
@pytest.mark.parametrize("kind", ["NumPy", "pandas, a vector column", "path of a table", "opened file"])
def test_a_device(tmp_path: Path, expected: Any, kind: str, function: str) -> None:
    X = INPUTS[kind](tmp_path)
    assert FUNCTIONS[function](X, LABELS, device="cpu") == pytest.approx(expected[function], abs=1e-6)
    with pytest.raises(InputError, match="'nowhere' cannot be used"):
        FUNCTIONS[function](X, LABELS, device="nowhere")


def test_values_of_slices_by_name() -> None:
    sliced = iso.measure(ROWS, by={"place": PLACES, "topic": LABELS}, metrics="isoscore")
    assert sliced.by == ("place", "topic")
    assert "de, left" in {reading.group["slice"] for reading in sliced.slices}


@pytest.mark.parametrize("columns", [["w", "x", "y"], [0, 1, 2]], ids=["texts", "numbers"])
def test_a_list_of_values_that_are_names_of_columns(columns: list[Any]) -> None:
    frame = pd.DataFrame(ROWS[:, :3], columns=columns)
    values = columns[:2] * (N // 2)
    sliced = iso.measure(frame, by=values, metrics="isoscore")
    assert (sliced.d, sliced.by) == (3, ())
    for name, rows in zip(columns, (ROWS[::2, :3], ROWS[1::2, :3]), strict=False):
        assert sliced.of(str(name))["isoscore"].value == pytest.approx(iso.isoscore(rows))


def test_a_list_of_names_and_one_of_as_many_values() -> None:
    frame = pd.DataFrame(columns(list(ROWS)))
    assert iso.measure(frame, by=["place", "topic"], metrics="isoscore").by == ("place", "topic")
    values = ["place", "topic", "text", "emb"]
    assert iso.measure(frame[:4], by=values, metrics="mean_norm").by == ()


@pytest.mark.parametrize("option", ["vectors", "device"])
def test_how_to_read_vectors_that_are_measured(option: str) -> None:
    measured = iso.measure(ROWS, metrics="isoscore")
    with pytest.raises(InputError) as caught:
        iso.measure(measured, **{option: "cpu"})
    assert caught.value.argument == option


def test_splits_and_streams_of_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict(columns(ROWS.tolist()))
    with pytest.raises(InputError, match=r"`X` has the splits train\. Pass X\['train'\]"):
        iso.measure(datasets.DatasetDict(train=whole))
    assert iso.isoscore(whole.shuffle(seed=0).select(range(40))) > 0


def test_splits_on_disk(tmp_path: Path) -> None:
    place = tmp_path / "splits"
    place.mkdir()
    (place / "dataset_dict.json").write_text('{"splits": ["test"]}')
    Path(saved(place)).rename(place / "test")
    with pytest.raises(InputError, match="splits has several splits of a dataset: test"):
        iso.measure(place)
    assert iso.measure(place / "test", metrics="isoscore").notes == ("2 files",)


def with_gaps() -> list[Any]:
    rows: list[Any] = ROWS.tolist()
    for row in (3, 7, 8, 9, 20, 50):
        rows[row] = None
    return rows


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: with_gaps(),
        lambda folder: pd.DataFrame({"emb": with_gaps(), "topic": LABELS}),
        lambda folder: pd.Series(with_gaps()),
        lambda folder: pd.DataFrame({"emb": [row and str(row) for row in with_gaps()]}),
        lambda folder: pl.DataFrame({"emb": with_gaps(), "topic": LABELS}),
        lambda folder: pa.table({"emb": with_gaps()}),
        lambda folder: file(folder, with_gaps()),
        lambda folder: file(folder, [row and str(row) for row in with_gaps()]),
    ],
)
def test_rows_without_a_vector_are_counted(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    shown = r"6 of 60 rows \(row 3, 7, 8, 9, 20, …"
    with raises(iso.NotFiniteError, message=shown, hint="drop"):
        iso.measure(make(tmp_path))


def test_an_array_that_is_refused_is_called_x() -> None:
    with raises(iso.NotFiniteError, argument="X", hint=r"X\[np.isfinite"):
        iso.measure(np.full((4, 3), np.nan))


def test_a_table_of_texts_alone() -> None:
    with raises(InputError, argument="X", hint=r"isoscope.encode\(X\)"):
        iso.measure(pd.DataFrame({"review": ["a", "b"]}))


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: ["a text", "another"], r"isoscope.encode\(X\)"),
        (lambda: {"a": ROWS}, r"X\['a'\]"),
        (lambda: (row for row in ROWS), r"np.stack\(list\(X\)\)"),
        (lambda: torch.nn.Embedding(10, 4), r"X.weight"),
        (lambda: torch.nn.Sequential(torch.nn.Linear(4, 3)), r"isoscope.layers"),
        (lambda: torch.utils.data.TensorDataset(torch.from_numpy(ROWS)), r"X.tensors\[0\]"),
        (lambda: torch.utils.data.DataLoader(torch.from_numpy(ROWS)), r"torch.cat"),
    ],
)
def test_other_objects_are_refused_with_a_way_to_the_vectors(make: Callable[[], Any], hint: str) -> None:
    with raises(InputError, argument="X", hint=hint):
        iso.measure(make())


def test_labels_may_come_second() -> None:
    wanted = iso.measure(ROWS, labels=LABELS, metrics="silhouette")["silhouette"]
    assert iso.measure(ROWS, LABELS, metrics="silhouette")["silhouette"] == wanted
    named = iso.measure(pd.DataFrame(wide()), "topic", by="place", metrics="silhouette")
    assert named["silhouette"] == pytest.approx(wanted, rel=1e-12)
    assert iso.Space(ROWS, LABELS).y.tolist() == LABELS
    assert iso.look(ROWS, LABELS).to_csv() == iso.look(ROWS, labels=LABELS).to_csv()
    with raises(InputError, argument="labels", hint="path"):
        iso.report(ROWS, "page.html")


def test_missing_labels_are_counted() -> None:
    labels = [None if row in (3, 9) else label for row, label in enumerate(LABELS)]
    for given in (labels, pd.Series(labels), pl.Series(labels)):
        with raises(iso.LabelError, argument="labels", message=r"2 of 60 rows \(row 3, 9", hint="drop"):
            iso.measure(ROWS, given)
