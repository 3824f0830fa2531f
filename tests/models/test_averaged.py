from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isoscope.errors import InputError
from isoscope.models.averaged import averaged_vectors


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("cat 1 0 4\ndog 0 2 4\nit 5 5 5\n")
    return path


def test_means_of_known_words(table: Path) -> None:
    vectors, kept = averaged_vectors(["The Cat, the dog!", "unknown", "it", "dog dog cat"], model=table)
    assert kept.tolist() == [0, 2, 3]
    assert np.allclose(vectors, [[0.5, 1, 4], [5, 5, 5], [1 / 3, 4 / 3, 4]])


def test_nothing_known(table: Path) -> None:
    with pytest.raises(InputError, match="none of the"):
        averaged_vectors(["zebra", "!"], model=table)
    with pytest.raises(InputError, match="none of the"):
        averaged_vectors(["!"], model=table)
