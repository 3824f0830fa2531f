from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors, read


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "u1", "i4", "i8", "u2", "?"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_dtypes(tmp_path: Path, dtype: str, suffix: str) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    (np.save if suffix == ".npy" else np.savez)(tmp_path / f"a{suffix}", X)
    space = read(tmp_path / f"a{suffix}")
    assert space.vectors.dtype.is_floating_point
    np.testing.assert_array_equal(space.vectors.double().numpy(), X.astype(float))


def test_npy_is_mapped_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((4, 3), np.float32))
    space = read(path)
    with path.open("r+b") as file:  # a write to the file shows through the map
        file.seek(-4, 2)
        file.write(np.float32(7).tobytes())
    assert space.vectors[3, 2] == 7


def test_half_precision_stays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 3), np.float16))
    assert read(tmp_path / "a.npy").vectors.dtype == torch.float16


@pytest.mark.parametrize(
    ("X", "wanted"),
    [
        (np.zeros(5), r"a\.npy has shape \(5,\)"),
        (np.zeros((2, 3, 4)), r"a\.npy has shape \(2, 3, 4\).*X\.reshape\(-1, d\)"),
        (np.zeros(()), r"has shape \(\)"),
        (np.zeros((0, 4)), r"a\.npy is empty, shape \(0, 4\)"),
        (np.zeros((4, 0)), r"is empty, shape \(4, 0\)"),
    ],
)
def test_shapes(tmp_path: Path, X: np.ndarray, wanted: str) -> None:
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ShapeError, match=wanted):
        open_vectors(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("X", "wanted"),
    [
        (np.zeros((2, 2), complex), r"holds complex numbers \(complex128\)"),
        (np.array([["a", "b"]]), r"holds strings \(<U1\)"),
        (np.zeros((2, 2), "M8[s]"), r"holds datetime64\[s\] values"),
        (np.zeros((2, 2), [("x", "f4")]), "values"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_no_real_numbers(tmp_path: Path, X: np.ndarray, wanted: str, suffix: str) -> None:
    (np.save if suffix == ".npy" else np.savez)(tmp_path / f"a{suffix}", X)
    with pytest.raises(FileError, match=wanted):
        open_vectors(tmp_path / f"a{suffix}", **({} if suffix == ".npy" else {"key": "arr_0"}))


def test_object_arrays_are_refused(tmp_path: Path) -> None:
    X = np.array([[1, 2], [3, None]], dtype=object)
    np.save(tmp_path / "a.npy", X, allow_pickle=True)
    with pytest.raises(
        FileError, match=r"a\.npy holds pickled Python objects; isoscope never unpickles.*np\.stack"
    ):
        open_vectors(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", X=X)
    with pytest.raises(FileError, match=r"a\.npz \(X\) holds pickled Python objects"):
        open_vectors(tmp_path / "a.npz", key="X")


def test_malicious_object_array(tmp_path: Path, trap: tuple[bytes, Path]) -> None:
    data, sprung = trap
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": (1, 1)})
    (tmp_path / "a.npy").write_bytes(header.getvalue() + data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("v.npy", header.getvalue() + data)
    with pytest.raises(FileError, match="never unpickles"):
        read(tmp_path / "a.npy")
    with pytest.raises(FileError, match="never unpickles"):
        read(tmp_path / "a.npz", key="v")
    np.save(tmp_path / "x.npy", np.ones((1, 2)))
    for labels in (tmp_path / "a.npy", f"{tmp_path}/a.npz:v"):
        with pytest.raises(FileError, match="never unpickles"):
            read(tmp_path / "x.npy", labels=labels)
    assert not sprung.exists()


@pytest.mark.parametrize("keep", [7, 60, 129, 140])
def test_truncated_npy(tmp_path: Path, keep: int) -> None:
    np.save(tmp_path / "a.npy", np.ones((100, 5)))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:keep])
    with pytest.raises(FileError, match=r"a\.npy (cannot be read|claims 4,000 bytes but holds).*truncated"):
        open_vectors(tmp_path / "a.npy")


def test_a_claim_of_many_rows_allocates_nothing(tmp_path: Path) -> None:
    header = io.BytesIO()
    shape = (10**12, 300)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    (tmp_path / "a.npy").write_bytes(header.getvalue() + bytes(100))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("v.npy", header.getvalue() + bytes(100))
    with pytest.raises(FileError, match=r"a\.npy claims .* bytes but holds 100"):
        read(tmp_path / "a.npy")
    with pytest.raises(
        FileError, match=r"a\.npz \(v\) claims 1,200,000,000,000,000 bytes but holds 100. Check"
    ):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"0.1 0.2\n", r"does not begin as a \.npy file does"),
        (b"PK\x03\x04....", r"is a \.npz archive under another name. Rename it to \.npz"),
    ],
)
def test_wrong_magic(tmp_path: Path, data: bytes, wanted: str) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(FileError, match=wanted):
        open_vectors(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.npy.gz", "a.npz.gz", "a.pt.gz", "a.safetensors.gz", "a.parquet.gz"])
def test_compressed_from_outside(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b")
    with raises(FileError, hint="gunzip it first"):
        open_vectors(tmp_path / name)


# npz


def test_npz_by_key(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", first=np.ones((3, 2)), second=np.zeros((4, 5)), flat=np.ones(3))
    with pytest.raises(
        FileError, match=r"has 2 arrays of two axes: 'first' \(3, 2\), 'second' \(4, 5\), 'flat'.*`key`"
    ):
        open_vectors(tmp_path / "a.npz")
    assert open_vectors(tmp_path / "a.npz", key="second").n_dims == 5
    with pytest.raises(FileError, match=r"has no array 'third'; it holds 'first' \(3, 2\)"):
        open_vectors(tmp_path / "a.npz", key="third")
    with pytest.raises(ShapeError, match=r"a\.npz \(flat\) has shape"):
        open_vectors(tmp_path / "a.npz", key="flat")


def test_npz_without_a_matrix(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", flat=np.ones(3))
    with pytest.raises(ShapeError, match=r"has no \(n, d\) array of numbers; it holds 'flat' \(3,\)"):
        open_vectors(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "y", [np.array(["a", "b", "a"]), np.array([2, 7, 2]), np.array([[1, 1], [0, 1], [1, 1]])]
)
def test_npz_labels_inside(tmp_path: Path, y: np.ndarray) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.eye(3), y=y)
    space = read(tmp_path / "a.npz", labels="y")
    assert space.labels.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_truncated_npz(tmp_path: Path, keep: float, compressed: bool) -> None:
    (np.savez_compressed if compressed else np.savez)(
        tmp_path / "a.npz", np.random.default_rng(0).normal(size=(99, 9))
    )
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(data[: int(keep * len(data))])
    with pytest.raises(FileError, match=r"a\.npz cannot be read: .*truncated"):
        open_vectors(tmp_path / "a.npz")


@pytest.mark.parametrize("compressed", [True, False])
def test_damaged_npz(tmp_path: Path, compressed: bool) -> None:
    (np.savez_compressed if compressed else np.savez)(
        tmp_path / "a.npz", np.random.default_rng(0).normal(size=(99, 9))
    )
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[3000] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FileError, match=r"a\.npz cannot be read"):
        read(tmp_path / "a.npz")
    with pytest.raises(FileError, match=r"a\.npz cannot be read"):
        list(open_vectors(tmp_path / "a.npz").blocks(10))


def test_member_that_ends_early(tmp_path: Path) -> None:
    # the archive's directory claims more than its member holds
    np.savez(tmp_path / "a.npz", X=np.ones((50, 4)))
    data = (tmp_path / "a.npz").read_bytes()
    at = data.rindex(b"PK\x01\x02")
    size = int.from_bytes(data[at + 24 : at + 28], "little")
    header = bytearray(data)
    short = (size - 800).to_bytes(4, "little")
    header[at + 20 : at + 24] = short
    (tmp_path / "a.npz").write_bytes(header)
    with pytest.raises(FileError, match=r"a\.npz"):
        read(tmp_path / "a.npz")


def test_npy_under_the_name_npz(tmp_path: Path) -> None:
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.eye(3))
    with raises(FileError, hint=r"rename it to \.npy"):
        open_vectors(tmp_path / "a.npz")


def test_a_flipped_byte_in_npz_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(12.0).reshape(4, 3), y=np.ones(4))
    raw = bytearray(path.read_bytes())
    raw[raw.index(np.float64(7.0).tobytes())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"a\.npz cannot be read: Bad CRC-32"):
        list(open_vectors(path).blocks())


def test_a_packing_that_numpy_does_not_write_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", bytes(1000))
    with raises(
        FileError,
        argument=f"{tmp_path / 'a.npz'} (x)",
        message=r"is compressed by method 14",
        wanted=r"an archive that np\.savez",
    ):
        open_vectors(tmp_path / "a.npz")
