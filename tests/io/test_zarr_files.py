"""Zarr: formats 2 and 3, groups by key, labels from another array, nothing unpickled."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from file_writers import write_zarr
from tests.raising import raises

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors, read

zarr = pytest.importorskip("zarr", reason="zarr is not installed")
numcodecs = pytest.importorskip("numcodecs")


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
    with pytest.raises(FileError, match=r"2 arrays of two axes.*Pass `key` to say which"):
        open_vectors(tmp_path / "a.zarr")
    assert open_vectors(tmp_path / "a.zarr", key="y").n_rows == 11


def test_shape_and_type(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "one.zarr"), data=np.ones(3))
    with raises(ShapeError, wanted="two axes"):
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


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("codec", ["blosc", "zlib", "none"])
@pytest.mark.parametrize("keep", [0, 1, 15, 16, 0.5, -1])
def test_a_truncated_chunk_is_an_error(tmp_path: Path, zarr_format: int, codec: str, keep: float) -> None:
    if zarr_format == 3:
        from zarr.codecs import BloscCodec, GzipCodec

        packers = {"blosc": BloscCodec(cname="lz4", typesize=4), "zlib": GzipCodec(), "none": None}
    else:
        packers = {"blosc": numcodecs.Blosc(), "zlib": numcodecs.Zlib(), "none": None}
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    path = tmp_path / "a.zarr"
    made = zarr.create_array(
        str(path), data=X, chunks=(10, 4), zarr_format=zarr_format, compressors=packers[codec]
    )
    np.testing.assert_array_equal(read(path).vectors, X)
    chunk = path / made.metadata.encode_chunk_key((1, 0))
    data = chunk.read_bytes()
    chunk.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(FileError, match=r"a\.zarr"):
        read(path)


def test_absent_chunks_are_noted(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 4))
    path = tmp_path / "a.zarr"
    made = zarr.create_array(str(path), data=X, chunks=(10, 4), fill_value=1.5)
    assert open_vectors(path).notes == []
    (path / made.metadata.encode_chunk_key((2, 0))).unlink()
    file = open_vectors(path)
    assert file.notes == ["1 of 4 chunks are not in the folder; their numbers are the fill value, 1.5"]
    assert (file.load().vectors[20:30] == 1.5).all()


def test_a_truncated_chunk_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    root = zarr.open_group(str(path), mode="w", zarr_format=2)
    root.create_array("vectors", data=np.random.default_rng(0).normal(size=(40, 4)))
    labels = np.random.default_rng(0).integers(0, 2**30, 40)
    root.create_array("y", data=labels, compressors=numcodecs.Blosc())
    chunk = path / "y" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-8])
    with raises(FileError, hint="not truncated"):
        read(path, labels="y")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("shape", "chunks", "message"),
    [
        ([10**8, 8], [5, 4], r"40,000,000 chunks, but its folder has \d+ files"),
        ([10**18, 8], [5, 4], r"chunks, but its folder has \d+ files"),
        ([2**23, 1], [1, 1], r"8,388,608 chunks, but its folder has \d+ files"),
        ([11, 4], [10**8, 8], r"claims chunks of 6,400,000,000 bytes, but its largest file has \d+"),
        ([10**18, 8], [10**18, 8], r"claims chunks of 64,0[0,]+ bytes, but its largest file has \d+"),
    ],
)
def test_what_is_only_claimed_is_refused_before_it_is_read(
    tmp_path: Path, zarr_format: int, shape: list[int], chunks: list[int], message: str
) -> None:
    folder = tmp_path / "a.zarr"
    zarr.create_array(
        str(folder), data=np.ones((11, 4)), chunks=(5, 4), zarr_format=zarr_format, compressors=None
    )
    metadata = folder / (".zarray" if zarr_format == 2 else "zarr.json")
    about = json.loads(metadata.read_text())
    about["shape"] = shape
    if zarr_format == 2:
        about["chunks"] = chunks
    else:
        about["chunk_grid"]["configuration"]["chunk_shape"] = chunks
    metadata.write_text(json.dumps(about))
    start = time.process_time()
    with pytest.raises(FileError, match=message):
        open_vectors(folder)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("shards", [None, (10, 4)])
def test_absent_chunks_are_counted(tmp_path: Path, shards: tuple[int, int] | None) -> None:
    array = zarr.create_array(
        str(tmp_path / "a.zarr"), shape=(40, 4), chunks=(5, 4), shards=shards, dtype="f8", fill_value=0.5
    )
    array[10:20] = 1.0
    source = open_vectors(tmp_path / "a.zarr")
    counted = "3 of 4" if shards else "6 of 8"
    assert any(note.startswith(f"{counted} chunks are not in the folder") for note in source.notes)
    assert source.load().vectors.sum() == 4 * (10 * 1.0 + 30 * 0.5)
