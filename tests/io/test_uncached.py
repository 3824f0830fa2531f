"""Reading past the system's cache gives what reading through it gives, or is not done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import isoscope as iso
from isoscope.errors import FileError
from isoscope.io import uncached
from isoscope.io.raw_rows import RawRows
from isoscope.io.uncached import UncachedFile, fill_memory


@pytest.fixture
def past_the_cache(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file counts as too large; those opened past the cache are listed."""
    opened: list[Path] = []
    real = UncachedFile.open.__func__  # type: ignore[attr-defined]

    def noted(cls: type[UncachedFile], path: Path) -> UncachedFile | None:
        file: UncachedFile | None = real(cls, path)
        if file is not None:
            opened.append(path)
        return file

    monkeypatch.setattr(uncached, "_SHARE", 0.0)
    monkeypatch.setattr(UncachedFile, "open", classmethod(noted))
    return opened


def can_go_past(folder: Path) -> bool:
    (folder / "probe").write_bytes(b"x" * 5000)
    file = UncachedFile.open(folder / "probe")
    if file is None:
        return False
    with file:
        return True


@pytest.mark.parametrize("offset", [0, 1, 127, 4095, 4096, 5000, 9999, 10_000, 20_000])
@pytest.mark.parametrize("n_bytes", [1, 100, 4096, 7000])
def test_any_bytes(tmp_path: Path, offset: int, n_bytes: int) -> None:
    if not can_go_past(tmp_path):
        pytest.skip("this disk is always read through the cache")
    data = np.random.default_rng(0).integers(0, 256, 10_000, dtype=np.uint8).tobytes()
    path = tmp_path / "bytes"
    path.write_bytes(data)
    file = UncachedFile.open(path)
    assert file is not None
    with file:
        assert file.read(offset, n_bytes).tobytes() == data[offset : offset + n_bytes]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_shards_read_either_way_are_the_same(
    tmp_path: Path, past_the_cache: list[Path], rng: Any, dtype: type
) -> None:
    X = rng.normal(size=(3001, 37)).astype(dtype)
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, rows in enumerate(np.array_split(X, 3)):
        np.save(folder / f"{number}.npy", rows)
    source = iso.open_vectors(folder)
    found = np.concatenate([block.vectors.numpy() for block in source.blocks(500)])
    np.testing.assert_array_equal(found, X)
    names = [path.name for path in past_the_cache]
    assert names == (["0.npy", "1.npy", "2.npy"] if can_go_past(tmp_path) else [])


def test_safetensors_whose_numbers_lie_anywhere(tmp_path: Path, past_the_cache: list[Path], rng: Any) -> None:
    del past_the_cache
    X = rng.normal(size=(700, 5)).astype(np.float32)
    save_file({"vectors": X, "other": np.arange(3, dtype=np.int8)}, tmp_path / "x.safetensors")
    source = iso.open_vectors(tmp_path / "x.safetensors", key="vectors")
    found = np.concatenate([block.vectors.numpy() for block in source.blocks(64)])
    np.testing.assert_array_equal(found, X)


def test_numbers_that_do_not_lie_at_a_multiple_of_their_size(tmp_path: Path, rng: Any) -> None:
    X = rng.normal(size=(50, 3)).astype(np.float64)
    path = tmp_path / "raw"
    path.write_bytes(b"abc" + X.tobytes())
    rows = RawRows(path, 3, X.dtype, 3, uncached=True)
    np.testing.assert_array_equal(np.concatenate(list(rows.read(0, 50, 7))), X)


def test_a_file_that_ends_early_is_said(tmp_path: Path, past_the_cache: list[Path], rng: Any) -> None:
    del past_the_cache
    path = tmp_path / "x.npy"
    np.save(path, rng.normal(size=(4000, 20)).astype(np.float32))
    source = iso.open_vectors(path)
    os.truncate(path, path.stat().st_size - 8001)
    with pytest.raises(FileError, match="missing"):
        list(source.blocks(900))


def test_a_system_without_such_a_way(tmp_path: Path, past_the_cache: list[Path], monkeypatch: Any) -> None:
    X = np.arange(600.0).reshape(200, 3)
    np.save(tmp_path / "x.npy", X)

    def refused(*_: Any, **__: Any) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "preadv", refused)
    found = np.concatenate(
        [block.vectors.numpy() for block in iso.open_vectors(tmp_path / "x.npy").blocks(70)]
    )
    np.testing.assert_array_equal(found, X)
    assert past_the_cache == []


def test_only_what_does_not_fit_is_read_so() -> None:
    assert not fill_memory(10**6)
    assert fill_memory(2 * uncached.physical_bytes())


def test_memory_is_that_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(uncached, "_LIMITS", (limit, tmp_path / "absent"))
    assert uncached.physical_bytes() == machine
    for words, wanted in (("max\n", machine), ("1000000\n", 10**6), (f"{2 * machine}\n", machine)):
        limit.write_text(words)
        assert uncached.physical_bytes() == wanted
