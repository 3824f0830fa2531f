"""One small set of vectors, and a file of it in each format."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from file_writers import WRITERS, D, N


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


@pytest.fixture(params=sorted(WRITERS))
def any_file(request: pytest.FixtureRequest, tmp_path: Path, vectors: np.ndarray) -> Path:
    path = tmp_path / request.param
    WRITERS[request.param](path, vectors)
    return path


@pytest.fixture
def trap(tmp_path: Path) -> tuple[bytes, Path]:
    """A pickle that makes a file when it is read, and that file."""
    sprung = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (sprung,)

    return pickle.dumps(Trap()), sprung
