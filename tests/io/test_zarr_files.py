"""Zarr: formats 2 and 3, groups by key, labels from another array, nothing unpickled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from file_writers import write_zarr

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors

zarr = pytest.importorskip("zarr", reason="zarr is not installed")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_by_key_with_labels(tmp_path: Path, vectors: np.ndarray, zarr_format: int) -> None:
    write_zarr(tmp_path / "a.zarr", vectors, zarr_format, group=True)
    source = open_vectors(tmp_path / "a.zarr", key="vectors", labels="labels")
    assert (source.n_rows, source.n_dims) == (11, 4)
    np.testing.assert_array_equal(source.load().vectors, vectors)
    assert source.labels.codes.tolist() == [row % 3 for row in range(11)]
    with pytest.raises(FileError, match=r"a\.zarr has no array 'other'; it holds 'labels' \(11,\)"):
        open_vectors(tmp_path / "a.zarr", key="other")


def test_two_candidates(tmp_path: Path, vectors: np.ndarray) -> None:
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    root.create_array("x", data=vectors)
    root.create_array("y", data=vectors)
    with pytest.raises(FileError, match=r"2 arrays of two axes.*say which with key="):
        open_vectors(tmp_path / "a.zarr")
    assert open_vectors(tmp_path / "a.zarr", key="y").n_rows == 11


def test_shape_and_type(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "one.zarr"), data=np.ones(3))
    with pytest.raises(ShapeError, match="wanted two axes"):
        open_vectors(tmp_path / "one.zarr")
    zarr.create_array(str(tmp_path / "complex.zarr"), data=np.ones((3, 2), np.complex64))
    with pytest.raises(FileError, match="holds complex numbers"):
        open_vectors(tmp_path / "complex.zarr")


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    with pytest.raises(FileError, match=r"a\.zarr cannot be read"):
        open_vectors(tmp_path / "a.zarr")


def test_a_truncated_chunk(tmp_path: Path, vectors: np.ndarray) -> None:
    write_zarr(tmp_path / "a.zarr", vectors, 2)
    chunk = next(path for path in sorted((tmp_path / "a.zarr").iterdir()) if path.name.startswith("1"))
    chunk.write_bytes(chunk.read_bytes()[:10])
    with pytest.raises(FileError, match=r"a\.zarr cannot be read"):
        open_vectors(tmp_path / "a.zarr").load()


PICKLE = {"id": "pickle", "protocol": 5}


@pytest.mark.parametrize(
    "how",
    [
        {"dtype": "|O", "filters": [PICKLE]},
        {"dtype": "<f8", "filters": [PICKLE]},
        {"dtype": "<f8", "filters": [{"id": "delta", "dtype": "<f8"}, PICKLE]},
        {"dtype": "<f8", "compressor": PICKLE},
    ],
    ids=["objects", "a filter", "a second filter", "a compressor"],
)
def test_nothing_is_unpickled(tmp_path: Path, trap: tuple[bytes, Path], how: dict[str, object]) -> None:
    pickled, sprung = trap
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    about = {
        "zarr_format": 2,
        "shape": [1, 1],
        "chunks": [1, 1],
        "compressor": None,
        "fill_value": 0,
        "filters": None,
        "order": "C",
        **how,
    }
    (folder / ".zarray").write_text(json.dumps(about))
    (folder / "0.0").write_bytes(pickled)
    with pytest.raises(FileError):
        open_vectors(folder).load()
    assert not sprung.exists()
