"""Vectors in shards, and one cluster of threads for all tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

N, D, K = 240, 6, 4


@pytest.fixture(scope="session")
def vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) + 2 * rng.normal(size=(K, D))[np.arange(N) % K] + 0.5


@pytest.fixture(scope="session")
def labels() -> np.ndarray:
    return np.arange(N) % K


@pytest.fixture
def shards(tmp_path: Path, vectors: np.ndarray, labels: np.ndarray) -> Path:
    """Seven shards of uneven lengths, with labels."""
    write_shards(tmp_path / "shards", vectors, labels, [17, 60, 61, 100, 150, 220])
    return tmp_path / "shards"


def write_shards(folder: Path, X: np.ndarray, labels: np.ndarray, cuts: list[int]) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    edges = [0, *cuts, len(X)]
    for number, (start, stop) in enumerate(itertools.pairwise(edges)):
        arrays = {
            "vectors": np.ascontiguousarray(X[start:stop]),
            "labels": labels[start:stop].astype(np.int64),
        }
        save_file(arrays, folder / f"part-{number}.safetensors")


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    options = {
        "processes": False,
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
