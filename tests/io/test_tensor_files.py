from __future__ import annotations

import collections
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.raising import raises

from isoscope.errors import FileError, ShapeError
from isoscope.io import open_vectors, read


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.uint8]
)
@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_dtypes(tmp_path: Path, dtype: torch.dtype, suffix: str) -> None:
    X = torch.arange(12).reshape(4, 3).to(dtype)
    path = tmp_path / f"a{suffix}"
    save_file({"x": X}, path) if suffix == ".safetensors" else torch.save(X, path)
    space = read(path)
    assert torch.equal(space.vectors.double(), X.double())
    if dtype.is_floating_point:
        assert space.vectors.dtype == dtype
    blocks = list(open_vectors(path).blocks(3))
    assert torch.equal(torch.cat([block.vectors for block in blocks]), space.vectors)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_choice_by_key(tmp_path: Path, suffix: str) -> None:
    tensors = {"a": torch.ones(3, 2), "b": torch.zeros(4, 5), "flat": torch.ones(3)}
    path = tmp_path / f"a{suffix}"
    save_file(tensors, path) if suffix == ".safetensors" else torch.save(tensors, path)
    with pytest.raises(
        FileError, match=r"has 2 arrays of two axes: 'a' \(3, 2\), 'b' \(4, 5\), 'flat' \(3,\).*`key`"
    ):
        open_vectors(path)
    assert open_vectors(path, key="b").n_dims == 5
    with pytest.raises(FileError, match=r"has no array 'c'; it holds 'a' \(3, 2\)"):
        open_vectors(path, key="c")
    with pytest.raises(ShapeError, match=r"\(flat\) has shape"):
        open_vectors(path, key="flat")


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_labels_inside(tmp_path: Path, suffix: str) -> None:
    tensors = {"x": torch.ones(3, 2), "y": torch.tensor([5, 9, 5]), "labels": torch.tensor([1, 0, 0])}
    path = tmp_path / f"a{suffix}"
    save_file(tensors, path) if suffix == ".safetensors" else torch.save(tensors, path)
    assert read(path, labels="y").labels.names == (5, 9)
    assert read(path, labels="labels").labels.codes.tolist() == [1, 0, 0]


def test_labels_as_a_list_in_pt(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(3, 2), "topic": ["p", "q", "p"]}, tmp_path / "a.pt")
    assert read(tmp_path / "a.pt", labels="topic").labels.names == ("p", "q")


@pytest.mark.parametrize("keep", [4, 30, -100, -1])
def test_truncated_safetensors(tmp_path: Path, keep: int) -> None:
    save_file({"x": torch.ones(100, 5)}, tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "a.safetensors").write_bytes(data[:keep])
    with pytest.raises(FileError, match=r"a\.safetensors cannot be read: .*truncated"):
        open_vectors(tmp_path / "a.safetensors")


def test_safetensors_without_a_matrix(tmp_path: Path) -> None:
    save_file({"x": torch.ones(5)}, tmp_path / "a.safetensors")
    with pytest.raises(ShapeError, match=r"no \(n, d\) array of numbers"):
        open_vectors(tmp_path / "a.safetensors")


def test_safetensors_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"x": torch.zeros(400, 300)}, path)
    space = read(path)
    with path.open("r+b") as file:
        file.seek(-4, 2)
        file.write(np.float32(7).tobytes())
    assert space.vectors[399, 299] == 7


# pt


def test_pt_parameter_and_nested_dict(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.ones(4, 3))
    torch.save(collections.OrderedDict(model={"weight": weight, "bias": torch.ones(3)}), tmp_path / "a.pt")
    space = read(tmp_path / "a.pt", key="model.weight")
    assert not space.vectors.requires_grad
    assert read(tmp_path / "a.pt").n_dims == 3


@pytest.mark.parametrize(
    ("value", "error", "wanted"),
    [
        (torch.ones(5), ShapeError, r"a\.pt has shape \(5,\)"),
        (torch.ones(2, 3, 4), ShapeError, "has shape"),
        (torch.ones(0, 4), ShapeError, r"is empty, shape \(0, 4\)"),
        (torch.ones(2, 2, dtype=torch.complex64), FileError, "complex numbers"),
        (torch.ones(1, 3).expand(1000, 3), FileError, r"expanded view of shape \(1000, 3\).*contiguous"),
        ([1, 2, 3], ShapeError, r"no \(n, d\) array of numbers; it holds nothing"),
        ({"a": "text"}, ShapeError, r"no \(n, d\) array of numbers"),
    ],
)
def test_bad_pt(tmp_path: Path, value: object, error: type[Exception], wanted: str) -> None:
    torch.save(value, tmp_path / "a.pt")
    with pytest.raises(error, match=wanted):
        open_vectors(tmp_path / "a.pt")


def test_sparse_pt(tmp_path: Path) -> None:
    torch.save(torch.eye(3).to_sparse(), tmp_path / "a.pt")
    with pytest.raises(FileError, match=r"sparse, nested or quantized.*to_dense"):
        open_vectors(tmp_path / "a.pt")


def test_pt_with_objects_is_refused(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(3, 2), "path": Path("x")}, tmp_path / "a.pt")
    with pytest.raises(
        FileError, match=r"a\.pt holds Python objects besides tensors; isoscope never unpickles"
    ):
        open_vectors(tmp_path / "a.pt")


def test_malicious_pt(tmp_path: Path, trap: tuple[bytes, Path]) -> None:
    data, sprung = trap

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (sprung,)

    torch.save({"x": torch.ones(3, 2), "bad": Trap()}, tmp_path / "zip.pt")
    torch.save({"bad": Trap()}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    (tmp_path / "bare.pt").write_bytes(data)
    for name in ("zip.pt", "old.pt", "bare.pt"):
        with pytest.raises(FileError, match="never unpickles"):
            read(tmp_path / name)
    assert not sprung.exists()
    pickle.loads(data)  # the trap does work
    assert sprung.exists()


def test_truncated_pt(tmp_path: Path) -> None:
    torch.save(torch.ones(100, 50), tmp_path / "a.pt")
    data = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError, match=r"a\.pt cannot be read: .*truncated"):
        open_vectors(tmp_path / "a.pt")


@pytest.mark.parametrize("member", ["data.pkl", "data/0"])
def test_a_flipped_byte_in_pt_is_noticed(tmp_path: Path, member: str) -> None:
    path = tmp_path / "a.pt"
    torch.save(torch.arange(12.0).reshape(4, 3), path)
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive, archive.open(f"a/{member}") as file:
        raw[raw.index(file.read()) + 5] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"a\.pt cannot be read: Bad CRC-32"):
        read(path)
    with pytest.raises(FileError, match=r"a\.pt cannot be read: Bad CRC-32"):
        list(open_vectors(path).blocks())


def with_member(path: Path, ending: str, content: bytes) -> None:
    """Write an archive again with other content for one member."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            archive.writestr(name, content if name.endswith(ending) else data)


@pytest.mark.parametrize("content", [b"", bytes(8)])
def test_a_tensor_without_its_bytes_in_pt(tmp_path: Path, content: bytes) -> None:
    """torch.load(mmap=True) reads on beyond a member that is too short."""
    path = tmp_path / "a.pt"
    torch.save({"x": torch.ones(4, 3), "same size": torch.ones(12)}, path)
    with_member(path, "data/0", content)
    with pytest.raises(FileError, match="fewer bytes than its tensors"):
        read(path)


def test_a_flipped_byte_in_labels_of_pt(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    labels = torch.arange(4)
    torch.save({"x": torch.ones(4, 3), "y": labels}, path)
    content = bytearray(path.read_bytes())
    content[content.index(labels.numpy().tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError):
        read(path, labels="y")


def test_pt_without_checksums(tmp_path: Path) -> None:
    try:
        torch.serialization.set_crc32_options(False)
        torch.save(torch.ones(4, 3), tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert len(read(tmp_path / "a.pt")) == 4


def test_packed_pt_is_refused(tmp_path: Path) -> None:
    torch.save(torch.ones(4, 3), tmp_path / "a.pt")
    with (
        zipfile.ZipFile(tmp_path / "a.pt") as archive,
        zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    with raises(FileError, message=r"is compressed", wanted="an archive that torch.save wrote"):
        open_vectors(tmp_path / "b.pt")


@pytest.mark.parametrize("names", ["{}", "[", '["p"]', '"pq"'])
def test_names_of_labels_that_do_not_fit(tmp_path: Path, names: str) -> None:
    tensors = {"x": torch.ones(3, 2), "labels": torch.tensor([1, 0, -1])}
    save_file(tensors, tmp_path / "a.safetensors", metadata={"label_names": names})
    with pytest.raises(FileError, match=r"a\.safetensors"):
        read(tmp_path / "a.safetensors", labels="labels")
