"""Rows read from a file, kept in the system's cache or let go, are the rows that were written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import isoscope as iso
from isoscope.errors import FileError
from isoscope.io import raw_rows
from isoscope.io.raw_rows import RawRows, fill_memory, physical_bytes


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every file counts as too large; the bytes let go from the cache are listed."""
    sizes: list[int] = []
    monkeypatch.setattr(raw_rows, "_SHARE", 0.0)
    if hasattr(os, "posix_fadvise"):
        monkeypatch.setattr(os, "posix_fadvise", lambda _file, _place, n_bytes, _how: sizes.append(n_bytes))
    return sizes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_shards_too_large_for_the_cache(tmp_path: Path, let_go: list[int], rng: Any, dtype: type) -> None:
    X = rng.normal(size=(3001, 37)).astype(dtype)
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, rows in enumerate(np.array_split(X, 3)):
        np.save(folder / f"{number}.npy", rows)
    found = np.concatenate([block.vectors.numpy() for block in iso.open_vectors(folder).blocks(500)])
    np.testing.assert_array_equal(found, X)
    assert sum(let_go) == (X.nbytes if hasattr(os, "posix_fadvise") else 0)


def test_a_file_that_fits_stays_in_the_cache(tmp_path: Path, let_go: list[int], monkeypatch: Any) -> None:
    monkeypatch.setattr(raw_rows, "_SHARE", 0.5)
    np.save(tmp_path / "x.npy", np.ones((20, 3)))
    assert sum(map(len, iso.open_vectors(tmp_path / "x.npy").blocks(7))) == 20
    assert let_go == []


def test_safetensors_whose_numbers_lie_anywhere(tmp_path: Path, let_go: list[int], rng: Any) -> None:
    del let_go
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


def test_a_file_that_ends_early_is_said(tmp_path: Path, rng: Any) -> None:
    path = tmp_path / "x.npy"
    np.save(path, rng.normal(size=(4000, 20)).astype(np.float32))
    source = iso.open_vectors(path)
    os.truncate(path, path.stat().st_size - 8001)
    with pytest.raises(FileError, match="8,001 bytes are missing at row 3,600"):
        list(source.blocks(900))


def test_only_what_does_not_fit_is_let_go() -> None:
    assert not fill_memory(10**6)
    assert fill_memory(2 * physical_bytes())


def test_memory_is_that_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(raw_rows, "_LIMITS", (limit, tmp_path / "absent"))
    assert physical_bytes() == machine
    for words, wanted in (("max\n", machine), ("1000000\n", 10**6), (f"{2 * machine}\n", machine)):
        limit.write_text(words)
        assert physical_bytes() == wanted
