from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import FileError, InputError, NotFiniteError
from isoscope.io import read, save
from isoscope.io.writers import write_blocks
from isoscope.space import Space

SUFFIXES = [".npy", ".npz", ".safetensors", ".parquet"]
LABELS = {".npz": "labels", ".safetensors": "labels", ".parquet": "label"}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_round_trip(tmp_path: Path, suffix: str, dtype: torch.dtype) -> None:
    X = torch.arange(12).reshape(4, 3).to(dtype)
    path = save(X, tmp_path / f"a{suffix}")
    assert path == tmp_path / f"a{suffix}"
    space = read(path)
    assert torch.equal(space.vectors.double(), X.double())
    kept = suffix == ".safetensors" or dtype != torch.bfloat16
    assert space.vectors.dtype == (dtype if kept else torch.float32)
    assert [entry.name for entry in tmp_path.iterdir()] == [f"a{suffix}"]


@pytest.mark.parametrize("suffix", sorted(LABELS))
@pytest.mark.parametrize("labels", [["p", "q", "p"], [7, 3, 7]])
def test_labels_come_back(tmp_path: Path, suffix: str, labels: list[object]) -> None:
    space = Space(np.eye(3), labels=labels, texts=["one", "two", "three"])
    save(space, tmp_path / f"a{suffix}")
    back = read(tmp_path / f"a{suffix}", labels=LABELS[suffix])
    assert back.labels.names == space.labels.names
    assert back.labels.codes.tolist() == space.labels.codes.tolist()
    if suffix == ".parquet":
        assert back.texts == ["one", "two", "three"]
    if suffix == ".npz":
        assert read(tmp_path / "a.npz", labels="texts").labels.names == ("one", "three", "two")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_memory_layout(tmp_path: Path, suffix: str) -> None:
    X = np.arange(12.0).reshape(3, 4)[:, ::2]
    save(X, str(tmp_path / f"a{suffix}"))
    np.testing.assert_array_equal(read(tmp_path / f"a{suffix}").vectors.numpy(), X)
    Y = torch.nn.Parameter(torch.arange(6.0).reshape(3, 2).T)
    save(Y, tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(read(tmp_path / f"a{suffix}").vectors.numpy(), Y.detach().numpy())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_may_be_saved_over_itself(tmp_path: Path, suffix: str) -> None:
    path = save(np.eye(3), tmp_path / f"a{suffix}")
    save(read(path).vectors * 2, path)
    save(read(path), path)
    np.testing.assert_array_equal(read(path).vectors.numpy(), 2 * np.eye(3))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(np.eye(3), tmp_path / f"a{suffix}")

    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(FileError, match=rf"a\{suffix} cannot be written: No space left on device"):
        save(np.ones((2, 2)), path)
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    np.testing.assert_array_equal(read(path).vectors.numpy(), np.eye(3))


def test_bad_targets(tmp_path: Path) -> None:
    with raises(FileError, message=r"ends in \.csv", wanted=r"\.npy or \.npz or \.safetensors or \.parq"):
        save(np.eye(2), tmp_path / "a.csv")
    with pytest.raises(FileError, match=r"a\.npy cannot be written: .*nowhere is not a folder"):
        save(np.eye(2), tmp_path / "nowhere" / "a.npy")
    (tmp_path / "b.npy").mkdir()
    with pytest.raises(FileError, match=r"b\.npy is a folder"):
        save(np.eye(2), tmp_path / "b.npy")
    with pytest.raises(NotFiniteError):
        save(np.full((2, 2), np.nan), tmp_path / "c.npy")
    assert not (tmp_path / "c.npy").exists()


def test_a_flipped_byte_in_parquet_that_was_saved_here_is_noticed(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    path = tmp_path / "a.parquet"
    save(Space(X), path)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 4] ^= 1  # within the numbers: the footer is at the end
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"a\.parquet cannot be read"):
        read(path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16])
def test_npy_in_blocks_is_npy(rng, tmp_path: Path, dtype: torch.dtype) -> None:
    space = Space(torch.tensor(rng.normal(size=(1234, 3))).to(dtype))
    path, n_rows = write_blocks(space.blocks(100), tmp_path / "x.npy")
    found = np.load(path)
    assert (n_rows, found.shape) == (1234, (1234, 3))
    assert np.array_equal(found, space.vectors.float().numpy() if dtype == torch.bfloat16 else space.vectors)


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    for suffix in ("npy", "parquet"):
        path = tmp_path / f"x.{suffix}"
        path.write_text("before")

        def broken():
            yield Space(np.eye(3))
            raise FileError("the second block is broken")

        with pytest.raises(FileError, match="second block"):
            write_blocks(broken(), path)
        assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 2


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    blocks = iter([Space(np.eye(3))])
    with raises(FileError, wanted=r"\.npy or \.parquet"):
        write_blocks(blocks, tmp_path / "x.csv")
    with raises(FileError, hint="create it first"):
        write_blocks(blocks, tmp_path / "no" / "x.npy")
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        write_blocks(blocks, tmp_path / "d.npy")


def test_arguments_the_wrong_way_round() -> None:
    with raises(InputError, argument="path", hint=r"save\(X, path\)"):
        save("a.npy", np.eye(3))
