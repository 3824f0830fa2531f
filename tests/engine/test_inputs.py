"""What may be passed as vectors and as what is known of each row, in every public function that takes them."""

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


def file(folder: Path) -> Path:
    parquet.write_table(pa.table(columns(ROWS.tolist())), path := folder / "docs.parquet")
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


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_with_labels_as_values(tmp_path: Path, expected: Any, function: str, kind: str) -> None:
    assert FUNCTIONS[function](INPUTS[kind](tmp_path), LABELS) == pytest.approx(expected[function], abs=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_with_labels_by_name(tmp_path: Path, expected: Any, function: str, kind: str) -> None:
    X = INPUTS[kind](tmp_path)
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    names: list[Any] = [tmp_path / "labels.txt", str(tmp_path / "labels.txt")]
    names += ["topic"] if kind in TABLES else []
    for name in names:
        assert FUNCTIONS[function](X, name) == pytest.approx(expected[function], abs=1e-6), name


@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_of_a_metric(tmp_path: Path, kind: str) -> None:
    X = INPUTS[kind](tmp_path)
    if "a dimension" in kind:
        with pytest.raises(InputError, match="texts in columns 'topic', 'place'"):
            iso.isoscore(X)
    else:
        assert iso.isoscore(X) == pytest.approx(iso.isoscore(ROWS))
