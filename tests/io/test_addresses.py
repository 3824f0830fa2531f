"""Files at an address are fetched one at a time, and errors name the address."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from file_writers import WRITERS

import isoscope as iso
from isoscope.errors import FileError, ShapeError
from isoscope.io import addresses, open_vectors
from isoscope.io.files import kind

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


def test_a_full_disk_here(bucket: str, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def get(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store(f"{bucket}/tensors/a.pt", vectors)
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "get", get)
    with pytest.raises(FileError, match="cannot be reached: No space left on device"):
        open_vectors(f"{bucket}/tensors")


def store(address: str, X: np.ndarray) -> None:
    """Write vectors in the format of the address."""
    name = PurePosixPath(address).name
    with tempfile.TemporaryDirectory() as folder:
        WRITERS[next(one for one in WRITERS if kind(Path(one)) == kind(Path(name)))](Path(folder) / name, X)
        fsspec.filesystem("memory").put(f"{folder}/{name}", address, recursive=True)


@pytest.fixture
def n_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many bytes have been read from the address since it was last asked."""
    sizes: list[int] = []
    kind_of_file = type(fsspec.filesystem("memory").open("/counted", "wb"))

    def read(self: io.BytesIO, n: int | None = -1) -> bytes:
        data = io.BytesIO.read(self, n)
        sizes.append(len(data))
        return data

    def readinto(self: io.BytesIO, buffer: Any) -> int:
        sizes.append(io.BytesIO.readinto(self, buffer))
        return sizes[-1]

    monkeypatch.setattr(kind_of_file, "read", read, raising=False)
    monkeypatch.setattr(kind_of_file, "readinto", readinto, raising=False)

    def told() -> int:
        total = sum(sizes)
        sizes.clear()
        return total

    return told


@pytest.mark.parametrize("name", ["a.parquet", "list.parquet", "plain.arrow"])
def test_no_more_is_read_of_a_table_than_is_asked(bucket: str, n_read: Callable[[], int], name: str) -> None:
    """The width is in the footer, or the head; labels are one column, a pass is another."""
    n, d = 20_000, 32
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), d)
    column = pa.array(X.tolist(), pa.list_(pa.float32())) if name.startswith("list") else lists
    texts = pa.array([f"{row} {'x' * 100}" for row in range(n)])
    table = pa.table({"vector": column, "topic": np.arange(n) % 7, "passage": texts})
    buffer = io.BytesIO()
    if name.endswith(".parquet"):
        pq.write_table(table, buffer, row_group_size=5000, use_dictionary=["topic"], compression="none")
    else:
        pyarrow.feather.write_feather(table, buffer, compression="uncompressed")
    address = f"{bucket}/tables/{name}"
    fsspec.filesystem("memory").makedirs("/bucket/tables")
    with fsspec.filesystem("memory").open(address, "wb") as file:
        file.write(buffer.getvalue())
    size, few = len(buffer.getvalue()), 80_000  # the end of a file, where its footer is, is read as one range
    assert size > X.nbytes + 100 * n

    source = open_vectors(address, labels="topic")
    assert (source.n_dims, source.n_rows) == (d, None if name.endswith(".arrow") else n)
    assert n_read() < few
    assert source.labels.n_labels == 7
    assert n_read() < few + 9 * n  # eight bytes each
    np.testing.assert_array_equal(np.concatenate([block.vectors for block in source.blocks()]), X)
    assert X.nbytes < n_read() < 1.2 * X.nbytes + few
    assert list(source.column("topic")[:9]) == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert n_read() < few + 9 * n
    iso.measure(source, metrics="isoscore,mean_cosine", errors=False)
    assert n_read() < 2.3 * X.nbytes  # the first block, and a pass


@pytest.mark.parametrize(
    "suffix", [".npy", ".npz", ".safetensors", ".csv", ".csv.gz", ".jsonl", ".vec", ".bin"]
)
def test_the_width_takes_the_head_of_a_file(bucket: str, n_read: Callable[[], int], suffix: str) -> None:
    X = np.random.default_rng(0).normal(size=(30_000, 16)).astype(np.float32)
    store(address := f"{bucket}/wide/a{suffix}", X)
    size = fsspec.filesystem("memory").size(address)
    n_read()
    source = open_vectors(address)
    assert source.n_dims == 16
    # a small archive is unpacked to its end, so that one that swells is refused
    assert n_read() <= (size if suffix == ".csv.gz" else 2 * 2**20 + 2**17)
    found = np.concatenate([block.vectors for block in source.blocks(7000)])
    np.testing.assert_allclose(found, X, rtol=1e-6)
    assert n_read() < size + 2**21


def test_labels_of_tensors_at_an_address(bucket: str, vectors: np.ndarray, tmp_path: Path) -> None:
    iso.save(iso.Space(vectors, labels=list("abcabcabcab")), tmp_path / "a.safetensors")
    fsspec.filesystem("memory").put(str(tmp_path / "a.safetensors"), address := f"{bucket}/l/a.safetensors")
    labels = open_vectors(address, labels="labels").labels
    assert (labels.names, labels.codes.tolist()) == (("a", "b", "c"), [0, 1, 2] * 3 + [0, 1])


@pytest.mark.parametrize(
    "header",
    [
        {"v": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 17]}},
        {"v": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 16]}},
        {"v": {"dtype": "F8_E4M3", "shape": [4, 4], "data_offsets": [0, 16]}},
        {"v": {"dtype": "F32", "shape": [2, -2], "data_offsets": [0, 16]}},
        {"v": {"dtype": "F32", "shape": [2, 2], "data_offsets": [16, 0]}},
        {"v": {"dtype": "F32", "shape": [2, 2]}},
        {"v": 3},
        [],
    ],
)
def test_hostile_tensors_at_an_address(bucket: str, header: Any) -> None:
    raw = json.dumps(header).encode()
    for length in (len(raw), len(raw) - 1, 2**40):
        data = length.to_bytes(8, "little") + raw + bytes(16)
        fsspec.filesystem("memory").pipe_file(f"{bucket}/h/a.safetensors", data)
        with pytest.raises(FileError, match=r"memory://\S*a\.safetensors"):
            open_vectors(f"{bucket}/h/a.safetensors").load()


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read_as_here(bucket: str, vectors: np.ndarray, name: str) -> None:
    store(address := f"{bucket}/formats/{name}", vectors)
    with tempfile.TemporaryDirectory() as folder:
        WRITERS[name](path := Path(folder) / name, vectors)
        fsspec.filesystem("memory").put(str(path), address, recursive=True)
        here = open_vectors(path).load()
    source = open_vectors(address)
    np.testing.assert_array_equal(source.load().vectors, here.vectors)
    assert [len(block) for block in source.blocks(4)] == [4, 4, 3]
    assert source.load().texts == here.texts
    assert source.columns == source.shards[0].columns


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl"])
def test_a_bad_row_at_an_address(bucket: str, suffix: str) -> None:
    """In a process of its own: Arrow's reading thread may be at work when the error ends it."""
    rows = {".jsonl": '{"v": [1.5, 2.5]}\n'}.get(suffix, "1.5,2.5\n")
    code = f"""
import gzip, fsspec, isoscope as iso
data = {rows!r}.encode() * 60_000 + b"oops,3\\n" + {rows!r}.encode() * 60_000
data = gzip.compress(data, 1) if {suffix!r}.endswith("gz") else data
fsspec.filesystem("memory").pipe_file("/b/a{suffix}", data)
for block in iso.open_vectors("memory://b/a{suffix}").blocks(): pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "FileError: memory://" in last
    assert "line 60001" in last


def test_nothing_is_fetched_for_labels_that_are_not_asked(
    bucket: str, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        store(f"{bucket}/tensors/{number}.pt", vectors)
    fetched, real = [], fsspec.filesystem("memory").get
    monkeypatch.setattr(
        type(fsspec.filesystem("memory")), "get", lambda _, *a, **k: fetched.append(a) or real(*a, **k)
    )
    source = open_vectors(f"{bucket}/tensors")
    assert (source.labels, source.weights, len(fetched)) == (None, None, 1)  # one, to know its width
    iso.measure(source, metrics="isoscore", errors=False, skip_bad=True)
    assert len(fetched) == 1 + 1 + 3  # the first block, and a pass


def test_large_files_are_known_by_their_length(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what does not fit is never loaded whole."""
    from isoscope import measure

    files = fsspec.filesystem("memory")
    source = open_vectors(bucket)
    sizes = [files.size(f"/bucket/part-{number}.npy") for number in range(3)]
    assert source.n_bytes == 4 * 4 * 4 + 2 * sum(sizes[1:])  # the first was opened for its width
    monkeypatch.setattr(
        importlib.import_module("isoscope.engine.plan"), "physical_bytes", lambda: source.n_bytes
    )
    monkeypatch.setattr(type(source), "load", None)
    assert any("all vectors in memory at once" in note for note in measure(source, metrics="all").notes)


def test_a_file_written_since_is_told_apart(bucket: str, tmp_path: Path, vectors: np.ndarray) -> None:
    def measured() -> iso.Measurement:
        return iso.measure(open_vectors(bucket), metrics="isoscore", checkpoint=tmp_path / "kept")

    assert measured().readings == measured().readings
    put("/bucket/part-1.npy", vectors[:5])
    with pytest.raises(FileError, match="holds a run of another configuration"):
        measured()


def test_a_first_file_that_cannot_be_read(bucket: str) -> None:
    with fsspec.filesystem("memory").open("/bucket/part-0.npy", "wb") as file:
        file.write(b"nothing")
    with pytest.raises(FileError, match=r"part-0\.npy"):
        open_vectors(bucket)
    found = iso.measure(open_vectors(bucket, skip_bad=True), metrics="isoscore", skip_bad=True)
    assert found.n == 7
    assert any("left out: memory:" in note and "part-0.npy" in note for note in found.notes)
