"""Tables for Embedding Atlas: their columns and types, the places and neighbours in them, the command."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from tests.raising import raises

import isoscope as iso
from isoscope.report.atlas import atlas_command, n_without_neighbors, save_atlas

COLUMNS = {
    "text": pa.string(),
    "label": pa.string(),
    "projection_x": pa.float64(),
    "projection_y": pa.float64(),
    "neighbors": pa.struct({"ids": pa.list_(pa.int64()), "distances": pa.list_(pa.float64())}),
}


@pytest.fixture
def vectors(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(80, 6)) * [5, 3, 1, 1, 1, 1] + 2


def test_columns_and_types(vectors: np.ndarray, tmp_path: Path) -> None:
    path = save_atlas(vectors, tmp_path / "a.parquet", labels=range(80), texts=[f"t{i}" for i in range(80)])
    table = pq.read_table(path)
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == COLUMNS
    assert table.num_rows == 80
    assert table["text"][3].as_py() == "t3"
    assert table["label"][3].as_py() == "3"
    assert atlas_command(path).split() == [
        "embedding-atlas",
        str(path),
        *("--text", "text", "--x", "projection_x", "--y", "projection_y", "--neighbors", "neighbors"),
    ]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbours_are_those_of_scikit_learn(vectors: np.ndarray, tmp_path: Path, metric: str) -> None:
    path = save_atlas(vectors, tmp_path / "a.parquet", k=4, metric=metric)
    found = pq.read_table(path)["neighbors"].to_pylist()
    distances, ids = NearestNeighbors(n_neighbors=4, metric=metric).fit(vectors).kneighbors()
    assert [row["ids"] for row in found] == ids.tolist()  # zero-based rows, without the row itself
    np.testing.assert_allclose([row["distances"] for row in found], distances, atol=1e-9)


def test_a_zero_vector_has_no_neighbours_by_cosine(vectors: np.ndarray, tmp_path: Path) -> None:
    vectors[[3, 50]] = 0
    others = np.delete(np.arange(80), [3, 50])
    path = save_atlas(vectors, tmp_path / "a.parquet", k=4)
    found = pq.read_table(path)["neighbors"].to_pylist()
    ids = NearestNeighbors(n_neighbors=4, metric="cosine").fit(vectors[others]).kneighbors()[1]
    assert [found[row]["ids"] for row in others] == others[ids].tolist()
    assert found[3] == found[50] == {"ids": [], "distances": []}
    assert n_without_neighbors(path) == 2
    by_distance = save_atlas(vectors, tmp_path / "b.parquet", metric="euclidean")
    assert n_without_neighbors(by_distance) == 0


def test_one_vector_among_zero_vectors_has_no_neighbours(tmp_path: Path) -> None:
    assert n_without_neighbors(save_atlas(np.eye(4)[[0]] * [[1], [0], [0]], tmp_path / "a.parquet")) == 3


def test_places_are_the_principal_components(vectors: np.ndarray, tmp_path: Path) -> None:
    table = pq.read_table(save_atlas(vectors, tmp_path / "a.parquet", k=0))
    assert table.column_names == ["projection_x", "projection_y"]
    wanted = PCA(2).fit_transform(vectors)
    for axis, name in enumerate(table.column_names):
        column = np.asarray(table[name])
        np.testing.assert_allclose(column * np.sign(column @ wanted[:, axis]), wanted[:, axis], atol=1e-9)


def test_one_direction_lies_on_a_line(tmp_path: Path) -> None:
    table = pq.read_table(
        save_atlas(np.outer(np.arange(1.0, 9), [1, 2]), tmp_path / "a.parquet", metric="euclidean")
    )
    assert np.ptp(table["projection_x"]) > 0
    assert set(table["projection_y"].to_pylist()) == {0.0}
    assert len(table["neighbors"][0].as_py()["ids"]) == 7  # all the others


def test_umap_where_it_is_installed(vectors: np.ndarray, tmp_path: Path) -> None:
    if importlib.util.find_spec("umap") is None:
        with raises(iso.InputError, hint="pip install umap-learn"):
            save_atlas(vectors, tmp_path / "a.parquet", projection="UMAP")
        return
    table = pq.read_table(save_atlas(vectors, tmp_path / "a.parquet", projection="UMAP"))
    assert np.isfinite(np.asarray(table["projection_x"])).all()


def test_a_table_keeps_its_columns(vectors: np.ndarray, tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(
        pa.table(
            {
                "id": range(80),
                "vector": list(vectors),
                "year": [2000 + i % 3 for i in range(80)],
                "text": ["x"] * 80,
            }
        ),
        source,
    )
    table = pq.read_table(save_atlas(source, tmp_path / "a.parquet", vectors="vector", labels="year"))
    assert set(table.column_names) == {"id", "year", *COLUMNS}
    assert table["id"].to_pylist() == list(range(80))
    assert "--text text" in atlas_command(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", ["pandas", "polars", "folder"])
def test_frames_and_folders_keep_their_columns(vectors: np.ndarray, tmp_path: Path, kind: str) -> None:
    columns = {
        "vector": vectors.tolist(),
        "label": ["a", "b"] * 40,
        "neighbors": range(80),
        "year": [2000] * 80,
    }
    X: object = pd.DataFrame(columns) if kind == "pandas" else pl.DataFrame(columns)
    if kind == "folder":
        (tmp_path / "in").mkdir()
        for part in (0, 1):
            rows = pl.DataFrame(columns)[40 * part : 40 * part + 40]
            rows.write_parquet(tmp_path / "in" / f"{part}.parquet")
        X = tmp_path / "in"
    table = pq.read_table(save_atlas(X, tmp_path / "a.parquet", labels="year"))
    names = {"label_", "neighbors_", "year", "label", "projection_x", "projection_y", "neighbors"}
    assert set(table.column_names) == names  # a column of the same name stays, under another
    assert table["label_"].to_pylist() == columns["label"]
    assert table["neighbors_"].to_pylist() == list(range(80))
    assert set(table["label"].to_pylist()) == {"2000"}
    again = pq.read_table(save_atlas(X, tmp_path / "b.parquet", labels="label"))
    assert "label_" not in again.column_names
    assert again["label"].to_pylist() == columns["label"]


def test_values_of_several_types_are_written_as_texts(vectors: np.ndarray, tmp_path: Path) -> None:
    frame = pd.DataFrame({"vector": list(vectors), "mixed": [1, "a", None, 2.5] * 20})
    table = pq.read_table(save_atlas(frame, tmp_path / "a.parquet"))
    assert table["mixed"].to_pylist() == ["1", "a", None, "2.5"] * 20


def test_one_row_has_no_neighbours(tmp_path: Path) -> None:
    table = pq.read_table(save_atlas([[1.0, 2.0]], tmp_path / "a.parquet"))
    assert table.to_pydict() == {"projection_x": [0.0], "projection_y": [0.0]}


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"projection": "tsne"}, "projection"),
        ({"metric": "manhattan"}, "metric"),
        ({"k": -1}, "k"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options(vectors: np.ndarray, tmp_path: Path, options: dict, argument: str) -> None:
    with raises(iso.InputError, argument=argument):
        save_atlas(vectors, tmp_path / "a.parquet", **options)
    assert not list(tmp_path.iterdir())


def test_another_kind_of_file_is_refused(vectors: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(iso.FileError):
        save_atlas(vectors, tmp_path / "a.csv")
