"""A dask array is measured chunk by chunk, with and without workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.engine.dask_arrays import DaskVectors
from isoscope.errors import InputError, ShapeError

da = pytest.importorskip("dask.array", reason="dask is not installed")


def test_a_dask_array_is_its_array(vectors: np.ndarray, labels: np.ndarray) -> None:
    expected = iso.measure(vectors, labels=labels)
    found = iso.measure(da.from_array(vectors, chunks=(50, 4)), labels=labels)
    assert {"isoscore", "silhouette", "mean_cosine"} <= set(found)
    for name in found:
        assert found[name] == pytest.approx(expected[name], rel=1e-9), name


@pytest.mark.slow
def test_on_the_workers_of_the_current_client(client: Any, vectors: np.ndarray, labels: np.ndarray) -> None:
    with client.as_current():
        lazy = da.from_array(vectors, chunks=(70, 6))
        for array in (lazy, client.persist(lazy)):
            found = iso.measure(array, labels=labels, metrics="isoscore,silhouette,davies_bouldin")
            expected = iso.measure(vectors, labels=labels, metrics="isoscore,silhouette,davies_bouldin")
            for name in found:
                assert found[name] == pytest.approx(expected[name], rel=1e-9), name


def test_chunks_of_unknown_length(vectors: np.ndarray, labels: np.ndarray) -> None:
    array = da.from_array(vectors, chunks=(50, 6))
    some = array[array[:, 0] > 0]
    found = iso.measure(some, metrics="isoscore")
    assert found["isoscore"] == pytest.approx(iso.isoscore(vectors[vectors[:, 0] > 0]), rel=1e-10)
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        iso.measure(some, labels=labels)


def test_what_a_dask_array_cannot_be(vectors: np.ndarray) -> None:
    with raises(ShapeError, argument="X", wanted="two axes"):
        iso.measure(da.ones(5))
    with pytest.raises(InputError, match="partners goes with an array in memory"):
        iso.measure(da.from_array(vectors), partners=vectors)
    assert DaskVectors(da.from_array(vectors)).load().n_dims == vectors.shape[1]


def test_weights_of_a_dask_array(vectors: np.ndarray) -> None:
    w = np.arange(len(vectors)) % 3
    found = iso.measure(da.from_array(vectors, chunks=(50, 6)), weights=w, metrics="isoscore")
    assert found["isoscore"] == pytest.approx(iso.isoscore(np.repeat(vectors, w, axis=0)), rel=1e-10)
