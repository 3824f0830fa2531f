"""What a file of labels or weights holds, without isoscope, and the readings that follow from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.oracle import InvalidError, OpenError


def values_in(path: Path, name: str) -> list[Any]:
    """Read one value a row, under the column `name` where there are columns; strings or numbers."""
    try:
        values = _READERS[path.suffix](path, name)
    except (InvalidError, OpenError):
        raise
    except Exception as error:
        raise InvalidError(f"{type(error).__name__}: {error}") from error
    if not isinstance(values, list) or len({type(value) for value in values}) != 1:
        raise OpenError("no list of one type")
    if type(values[0]) not in (str, int, float):
        raise OpenError(f"values of {type(values[0]).__name__}")
    return values


def _lines(path: Path, name: str) -> list[str]:
    text = path.read_bytes().decode()
    if any(mark in text for mark in "\r\x00\ufeff\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\"'"):
        raise OpenError("other line ends, quotes")
    lines = text.removesuffix("\n").split("\n")
    if any(line.strip() != line or not line for line in lines):
        raise OpenError("blanks")
    if path.suffix == ".txt":
        return lines
    if lines[0] != name or any(mark in text for mark in ",;\t|"):
        raise OpenError("several columns")
    return lines[1:]


def _json(path: Path, name: str) -> list[Any]:
    return json.loads(path.read_bytes().decode())


def _jsonl(path: Path, name: str) -> list[Any]:
    rows = [json.loads(line) for line in path.read_bytes().decode().splitlines() if line]
    if any(not isinstance(row, dict) or list(row) != [name] for row in rows):
        raise OpenError("other columns")
    return [row[name] for row in rows]


def _numpy(path: Path, name: str) -> list[Any]:
    found = np.load(path, allow_pickle=False)
    if path.suffix == ".npz":
        if found.files != [name]:
            raise OpenError("other arrays")
        found = found[name]
    if found.ndim != 1 or found.dtype.kind not in "Uifu":
        raise OpenError("another type or shape")
    return found.tolist()


def _arrow(path: Path, name: str) -> list[Any]:
    import pyarrow.feather
    import pyarrow.parquet as pq

    table = pq.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(str(path))
    table.validate(full=True)
    if table.column_names != [name]:
        raise OpenError("other columns")
    return table.column(0).to_pylist()


_READERS = {
    ".txt": _lines, ".csv": _lines, ".tsv": _lines, ".json": _json, ".jsonl": _jsonl, ".npy": _numpy, ".npz": _numpy,
    ".parquet": _arrow, ".feather": _arrow,
}  # fmt: skip


def label_readings(X: np.ndarray, labels: list[Any]) -> dict[str, float]:
    """The number of labels and the silhouette, by scikit-learn."""
    from sklearn.metrics import silhouette_score

    if len(labels) != len(X):
        raise InvalidError(f"{len(labels)} labels")
    if any(value != value for value in labels):
        raise InvalidError("NaN")
    names = sorted(set(labels))
    if not 2 <= len(names) < len(X):
        raise OpenError("no silhouette")
    codes = [names.index(label) for label in labels]
    return {"n_labels": len(names), "silhouette": float(silhouette_score(X.astype(float), codes))}


def weight_readings(X: np.ndarray, weights: list[Any]) -> dict[str, float]:
    """The mean length of the vectors, each counted as often as its weight says."""
    if len(weights) != len(X):
        raise InvalidError(f"{len(weights)} weights")
    try:
        counts = np.array([float(weight) for weight in weights])
    except ValueError as error:
        raise InvalidError(str(error)) from error
    if not np.isfinite(counts).all() or (counts < 0).any() or counts.sum() == 0:
        raise InvalidError("no weights")
    if counts.max() > 2**53:
        raise OpenError("beyond float64")
    lengths = np.sqrt((X.astype(float) ** 2).sum(axis=1))
    return {"mean_norm": float((lengths * (counts / counts.max())).sum() / (counts / counts.max()).sum())}
