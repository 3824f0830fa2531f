from __future__ import annotations

from pathlib import Path

import numpy as np
from file_writers import write_fvecs
from tests.raising import raises

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors, read


def test_bytes_are_numbers_up_to_255(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 256, size=(7, 12)).astype("u1")
    lengths = np.full((7, 1), 12, "<i4").view("u1")
    np.hstack([lengths, numbers]).tofile(tmp_path / "a.bvecs")
    assert (read(tmp_path / "a.bvecs").vectors.numpy() == numbers).all()


def test_parts_are_the_rows_in_order(tmp_path: Path, vectors: np.ndarray) -> None:
    write_fvecs(tmp_path / "a.fvecs", vectors)
    parts = open_vectors(tmp_path / "a.fvecs").parts(4)
    assert [part.n_rows for part in parts] == [3, 4, 4]
    assert (np.concatenate([part.load().vectors for part in parts]) == vectors).all()


def test_broken_files(tmp_path: Path, vectors: np.ndarray) -> None:
    path = tmp_path / "a.fvecs"
    write_fvecs(path, vectors)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with raises(FileError, message=r"which are no rows of 4 numbers", hint="not truncated"):
        open_vectors(path)
    path.write_bytes(whole[:100] + (5).to_bytes(4, "little") + whole[104:])  # the sixth row's length
    with raises(FileError, message=r"has 5 numbers in row 5, where the first row has 4"):
        read(path)
    path.write_bytes((-1).to_bytes(4, "little", signed=True) + whole[4:])
    with raises(ShapeError, message="vectors of -1 dimensions"):
        open_vectors(path)
