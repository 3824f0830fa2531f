"""Every file whose header lies is refused in one line, soon and in little memory."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import hostile_files
import numpy as np
import pytest

from isoscope.errors import IsoscopeError
from isoscope.io import open_vectors, structure

SECONDS = 20  # of this process; a bomb that is unpacked takes longer, or more memory
MEBIBYTES = 700


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the bound on what is unpacked, so that reaching it takes no time."""
    monkeypatch.setattr(structure, "MAX_UNPACKED_BYTES", 2**20)


def refused(act: Callable[[], object]) -> str:
    """Return the one line with which something is refused, within the bounds of time and memory."""
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings(action="error"), pytest.raises(IsoscopeError) as error:
        act()
    assert time.process_time() - start < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10 < MEBIBYTES
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize("name", hostile_files.VECTORS)
@pytest.mark.parametrize("whole", [True, False])
def test_vectors(tmp_path: Path, name: str, whole: bool) -> None:
    hostile_files.VECTORS[name](tmp_path / name)

    def read() -> None:
        file = open_vectors(tmp_path / name)
        if whole:
            file.load()
        for _ in file.blocks():
            pass

    assert name in refused(read)


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.tsv.gz", "bomb.vec.gz"])
def test_text_that_swells_is_refused_before_its_rows_are_read(tmp_path: Path, name: str) -> None:
    hostile_files.VECTORS[name](tmp_path / name)
    assert "Gunzip it first" in refused(lambda: open_vectors(tmp_path / name))


@pytest.mark.parametrize("name", hostile_files.LABELS)
def test_labels(tmp_path: Path, name: str, vectors: np.ndarray) -> None:
    np.save(tmp_path / "vectors.npy", vectors)
    hostile_files.LABELS[name](tmp_path / name)
    assert name in refused(lambda: open_vectors(tmp_path / "vectors.npy", labels=tmp_path / name).load())


@pytest.mark.parametrize("name", hostile_files.WEIGHTS)
def test_weights(tmp_path: Path, name: str, vectors: np.ndarray) -> None:
    np.save(tmp_path / "vectors.npy", vectors)
    hostile_files.WEIGHTS[name](tmp_path / name)
    assert name in refused(lambda: open_vectors(tmp_path / "vectors.npy", weights=tmp_path / name).load())
