"""Files at an address are fetched one at a time, and errors name the address."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import FileError, ShapeError
from isoscope.io import addresses, open_vectors

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture
def bucket(vectors: np.ndarray) -> Iterator[str]:
    files = fsspec.filesystem("memory")
    for number, rows in enumerate((slice(0, 4), slice(4, 9), slice(9, 11))):
        put(f"/bucket/part-{number}.npy", vectors[rows])
    yield "memory://bucket"
    files.rm("/bucket", recursive=True)


def put(path: str, X: np.ndarray) -> None:
    buffer = io.BytesIO()
    np.save(buffer, X)
    with fsspec.filesystem("memory").open(path, "wb") as file:
        file.write(buffer.getvalue())


def test_a_folder_a_pattern_a_file(bucket: str, vectors: np.ndarray) -> None:
    for address in (bucket, f"{bucket}/*.npy"):
        source = open_vectors(address)
        assert (source.n_rows, source.n_dims, len(source.shards)) == (None, 4, 3)
        np.testing.assert_array_equal(source.load().vectors, vectors)
    np.testing.assert_array_equal(open_vectors(f"{bucket}/part-1.npy").load().vectors, vectors[4:9])


def test_measured_as_here(bucket: str, vectors: np.ndarray) -> None:
    found = iso.measure(open_vectors(bucket), metrics="isoscore,mean_cosine", skip_bad=True)
    assert found["isoscore"] == pytest.approx(iso.isoscore(vectors), rel=1e-6)


def test_nothing_stays_behind(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses.tempfile, "tempdir", str(tmp_path))
    iso.measure(open_vectors(bucket), metrics="isoscore")
    assert not list(tmp_path.iterdir())


def test_errors_name_the_address(bucket: str, vectors: np.ndarray) -> None:
    put("/bucket/part-1.npy", vectors[:, :3])
    with pytest.raises(ShapeError, match=r"memory://.*part-1\.npy has 3 dimensions where the first"):
        open_vectors(bucket).load()
    with fsspec.filesystem("memory").open("/bucket/part-1.npy", "wb") as file:
        file.write(b"\x93NUMPY")
    with pytest.raises(FileError, match=r"memory://\S*bucket/part-1\.npy cannot be read"):
        open_vectors(bucket).load()
    found = iso.measure(open_vectors(bucket), metrics="isoscore", skip_bad=True)
    assert found.n == 6
    assert any("part-1.npy" in note for note in found.notes)


def test_what_cannot_be_reached() -> None:
    with pytest.raises(FileError, match="memory://nowhere does not exist"):
        open_vectors("memory://nowhere")
    with pytest.raises(FileError, match="nonsense://a cannot be reached: Protocol not known"):
        open_vectors("nonsense://a")
    with pytest.raises(FileError, match=r"memory://no/\*\.npy matches no file"):
        open_vectors("memory://no/*.npy")


def test_secrets_are_not_shown() -> None:
    assert addresses.shown("s3://me:secret@host/a") == "s3://…@host/a"
    with pytest.raises(FileError) as caught:
        open_vectors("nonsense://me:secret@host/a")
    assert "secret" not in str(caught.value)


def test_a_full_disk_here(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def get(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "get", get)
    with pytest.raises(FileError, match="cannot be reached: No space left on device"):
        open_vectors(bucket)


def test_nothing_is_fetched_for_labels_that_are_not_asked(
    bucket: str, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched, real = [], addresses._file_system("memory://")[0].get
    monkeypatch.setattr(
        type(fsspec.filesystem("memory")), "get", lambda _, *a, **k: fetched.append(a) or real(*a, **k)
    )
    source = open_vectors(bucket)
    assert (source.labels, source.weights, len(fetched)) == (None, None, 1)  # one, to know its width
    iso.measure(source, metrics="isoscore", errors=False, skip_bad=True)
    assert len(fetched) == 1 + 1 + 3  # the first block, and a pass


def test_large_files_are_known_by_their_length(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what does not fit is never loaded whole."""
    from isoscope import measure

    files = fsspec.filesystem("memory")
    source = open_vectors(bucket)
    assert source.n_bytes == 2 * sum(files.size(f"/bucket/part-{number}.npy") for number in range(3))
    monkeypatch.setattr(sys.modules["isoscope.engine.plan"], "physical_bytes", lambda: source.n_bytes)
    monkeypatch.setattr(type(source), "load", None)
    assert any("all vectors in memory at once" in note for note in measure(source, metrics="all").notes)


def test_a_file_written_since_is_told_apart(bucket: str, tmp_path: Path, vectors: np.ndarray) -> None:
    def measured() -> iso.Measurement:
        return iso.measure(open_vectors(bucket), metrics="isoscore", checkpoint=tmp_path / "kept")

    assert measured().readings == measured().readings
    put("/bucket/part-1.npy", vectors[:5])
    with pytest.raises(FileError, match="holds another run's checkpoint"):
        measured()


def test_a_first_file_that_cannot_be_read(bucket: str) -> None:
    with fsspec.filesystem("memory").open("/bucket/part-0.npy", "wb") as file:
        file.write(b"nothing")
    with pytest.raises(FileError, match=r"part-0\.npy"):
        open_vectors(bucket)
    found = iso.measure(open_vectors(bucket, skip_bad=True), metrics="isoscore", skip_bad=True)
    assert found.n == 7
    assert any("left out: memory:" in note and "part-0.npy" in note for note in found.notes)
