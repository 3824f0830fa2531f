"""HDF5: datasets by key, labels beside the vectors, and nothing outside the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from file_writers import write_hdf5
from tests.raising import raises

from isoscope.errors import FileError
from isoscope.io import open_vectors, read

h5py = pytest.importorskip("h5py")


def test_labels_are_datasets_of_one_value_a_row(tmp_path: Path, vectors: np.ndarray) -> None:
    write_hdf5(tmp_path / "a.h5", vectors)
    file = open_vectors(tmp_path / "a.h5", labels="labels")
    assert file.columns == ("labels",)
    assert file.labels.names == ("l0", "l1", "l2")
    assert file.labels.codes.tolist() == [row % 3 for row in range(len(vectors))]


def test_files_of_ann_benchmarks_are_their_train_rows(tmp_path: Path, vectors: np.ndarray) -> None:
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["train"], file["test"] = vectors, vectors[:3]
        file["neighbors"], file["distances"] = np.zeros((3, 5), int), np.zeros((3, 5))
    assert (read(tmp_path / "a.hdf5").vectors.numpy() == vectors).all()
    assert len(read(tmp_path / "a.hdf5", key="test")) == 3


def test_several_candidates_and_a_wrong_key(tmp_path: Path, vectors: np.ndarray) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["y"] = vectors, vectors
    with raises(FileError, message="2 arrays of two axes", hint="key"):
        open_vectors(tmp_path / "a.h5")
    with raises(FileError, message="has no array 'z'"):
        open_vectors(tmp_path / "a.h5", key="z")


def test_numbers_in_other_files_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    secret = tmp_path / "secret.bin"
    vectors.tofile(secret)
    with h5py.File(tmp_path / "external.h5", "w") as file:
        file.create_dataset("x", vectors.shape, "f4", external=[(str(secret), 0, vectors.nbytes)])
    with raises(FileError, message="keeps its numbers in other files"):
        open_vectors(tmp_path / "external.h5")
    write_hdf5(tmp_path / "other.h5", vectors)
    layout = h5py.VirtualLayout(vectors.shape, "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "data/vectors", vectors.shape)
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    with raises(FileError, message="keeps its numbers in other files"):
        open_vectors(tmp_path / "virtual.h5")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["x"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "data/vectors")
    with raises(FileError, message="no|holds nothing"):
        open_vectors(tmp_path / "link.h5", key="x")


def test_a_shape_that_the_file_cannot_hold(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (10**7, 1000), "f4", chunks=(10, 1000))  # no chunk is written
    with raises(FileError, message="unpacks to 40,000,000,000 bytes"):
        open_vectors(tmp_path / "a.h5")
