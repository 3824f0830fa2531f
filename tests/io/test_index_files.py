"""faiss indexes: exact vectors, decoded codes, identifiers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from file_writers import write_faiss
from tests.raising import raises

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors, read

faiss = pytest.importorskip("faiss")


@pytest.fixture
def many() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


@pytest.mark.parametrize("recipe", ["Flat", "IVF4,Flat", "HNSW8,Flat", "IDMap,Flat", "IDMap2,Flat"])
def test_exact_indexes_give_the_vectors_back(tmp_path: Path, many: np.ndarray, recipe: str) -> None:
    write_faiss(tmp_path / "a.faiss", many, recipe)
    file = open_vectors(tmp_path / "a.faiss")
    assert not file.notes
    assert (file.load().vectors.numpy() == many).all()
    assert (np.concatenate([part.load().vectors for part in file.parts(70)]) == many).all()


def test_identifiers_are_a_column(tmp_path: Path, many: np.ndarray) -> None:
    write_faiss(tmp_path / "a.index", many, "IDMap,Flat")
    file = open_vectors(tmp_path / "a.index")
    assert file.columns == ("id",)
    assert list(file.column("id")) == list(range(100, 400))


@pytest.mark.parametrize("recipe", ["SQ8", "PCA8,Flat", "IVF4,SQ4", "PQ4x4"])
def test_codes_are_decoded_as_faiss_does_and_said(tmp_path: Path, many: np.ndarray, recipe: str) -> None:
    write_faiss(tmp_path / "a.faiss", many, recipe)
    file = open_vectors(tmp_path / "a.faiss")
    index = faiss.read_index(str(tmp_path / "a.faiss"))
    inner = faiss.downcast_index(index)
    if isinstance(inner, faiss.IndexIVF):
        inner.make_direct_map()
    decoded = np.stack([inner.reconstruct(row) for row in range(len(many))])
    np.testing.assert_allclose(file.load().vectors.numpy(), decoded, atol=1e-6)
    assert ("Flat" in recipe) == (not file.notes)


def test_an_empty_index_and_a_broken_one(tmp_path: Path) -> None:
    faiss.write_index(faiss.IndexFlatL2(3), str(tmp_path / "a.faiss"))
    with raises(ShapeError, message="an index without vectors"):
        open_vectors(tmp_path / "a.faiss")
    (tmp_path / "b.faiss").write_bytes(b"no index at all, but some bytes")
    with raises(FileError, message="cannot be read"):
        read(tmp_path / "b.faiss")
