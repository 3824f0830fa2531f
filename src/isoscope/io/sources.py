"""`VectorFile`: a file of vectors of any known format, whole or in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from isoscope.arrays import as_tensor, block_rows
from isoscope.errors import FileError, InputError, NotFiniteError, ShapeError
from isoscope.io.arrow_files import ArrowReader
from isoscope.io.chunks import Chunk, Reader, Request, regroup, stack
from isoscope.io.delimited import DelimitedReader
from isoscope.io.files import check_file, kind, reading, stem
from isoscope.io.label_files import locate_labels
from isoscope.io.numpy_files import NpyReader, NpzReader
from isoscope.io.tensor_files import SafetensorsReader, TorchReader
from isoscope.io.word_vectors import WordBinaryReader, WordTextReader
from isoscope.labels import Labels, as_labels
from isoscope.space import Space


@dataclass(frozen=True)
class Format:
    """How files of one suffix are read, and which options say where in them the vectors are."""

    reader: Callable[[Request], Reader]
    takes: tuple[str, ...] = ()


# one entry a suffix; .gz is set aside before
FORMATS: dict[str, Format] = {
    ".npy": Format(NpyReader),
    ".npz": Format(NpzReader, takes=("key",)),
    ".safetensors": Format(SafetensorsReader, takes=("key",)),
    ".pt": Format(TorchReader, takes=("key",)),
    ".pth": Format(TorchReader, takes=("key",)),
    ".parquet": Format(ArrowReader, takes=("vector_column",)),
    ".arrow": Format(ArrowReader, takes=("vector_column",)),
    ".feather": Format(ArrowReader, takes=("vector_column",)),
    ".csv": Format(DelimitedReader),
    ".tsv": Format(DelimitedReader),
    ".txt": Format(WordTextReader),
    ".vec": Format(WordTextReader),
    ".glove": Format(WordTextReader),
    ".bin": Format(WordBinaryReader),
}


class VectorFile:
    """A file of vectors, opened far enough to know its shape; reading starts with `blocks` or `load`.

    Attributes:
        path: the file.
        n_rows: how many vectors, or None where only reading to the end tells (CSV, GloVe, Arrow streams).
        n_dims: how many dimensions.
        notes: what a user should know about how the file was taken, such as columns left out.
    """

    def __init__(self, reader: Reader, read_label_values: Callable[[], Any] | None, labels_from: str) -> None:
        self.path: Path = reader.path
        self.n_rows: int | None = reader.n_rows
        self.n_dims: int = reader.n_dims
        self.notes: list[str] = reader.notes
        self._reader = reader
        self._read_label_values = read_label_values
        self._labels_from = labels_from

    def __repr__(self) -> str:
        rows = "?" if self.n_rows is None else f"{self.n_rows:,}"
        return f"VectorFile({self.path.name}, {rows} × {self.n_dims})"

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32, or None where the number of rows is unknown."""
        return None if self.n_rows is None else 4 * self.n_rows * self.n_dims

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of all rows, read once; None where none were named."""
        if self._read_label_values is None:
            return None
        with reading(self.path):
            labels = as_labels(self._read_label_values(), name=f"labels ({self._labels_from})")
        if self.n_rows is not None:
            self._check_length(labels, self.n_rows)
        return labels

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """The file in blocks of n_rows vectors, in order; each call begins at the first row.

        Memory is bounded by the block, not by the file. Each block has its labels, under the names of the
        whole file. By default a block is about 16 MB of float32.
        """
        if n_rows is not None and n_rows < 1:
            raise InputError(f"n_rows is {n_rows}; wanted at least one vector a block")
        return self._blocks(n_rows or block_rows(self.n_dims))

    def load(self) -> Space:
        """The whole file as one Space; .npy, .safetensors and .pt stay on disk, mapped into memory."""
        labels = self.labels
        with reading(self.path):
            pieces = list(self._pieces())
            self._check_count(sum(map(len, pieces)), labels)
            return self._space(stack(pieces), labels)

    def _blocks(self, n_rows: int) -> Iterator[Space]:
        labels = self.labels
        start = 0
        for chunk in regroup(self._pieces(), n_rows):
            stop = start + len(chunk)
            if labels is not None and stop > len(labels):
                self._check_length(labels, sum(map(len, self._pieces())))
            yield self._space(chunk, labels and labels.rows(start, stop))
            start = stop
        self._check_count(start, labels)

    def _pieces(self) -> Iterator[Chunk]:
        with reading(self.path):
            yield from self._reader.pieces()

    def _space(self, chunk: Chunk, labels: Labels | None) -> Space:
        try:
            return Space(chunk.vectors, labels=labels, texts=chunk.texts, name=stem(self.path))
        except NotFiniteError:
            raise NotFiniteError(self._not_finite()) from None

    def _check_count(self, n_read: int, labels: Labels | None) -> None:
        if n_read == 0:
            raise ShapeError(f"{self.path} has no rows; wanted at least one vector")
        if self.n_rows is not None and n_read != self.n_rows:
            raise FileError(
                f"{self.path} has {n_read:,} vectors where it promises {self.n_rows:,}: is it truncated?"
            )
        if labels is not None:
            self._check_length(labels, n_read)

    def _check_length(self, labels: Labels, n_rows: int) -> None:
        if len(labels) != n_rows:
            raise ShapeError(
                f"labels has {len(labels)} entries for {n_rows} vectors in {self.path} "
                f"(labels from {self._labels_from}); wanted one for each vector"
            )

    def _not_finite(self) -> str:
        """Which rows of the file are bad, and how many: the whole file is looked through."""
        bad: list[int] = []
        n_bad = n_rows = 0
        for chunk in regroup(self._pieces(), block_rows(self.n_dims)):
            rows = (~torch.isfinite(as_tensor(chunk.vectors))).any(dim=1).nonzero().flatten()
            bad += [n_rows + int(row) for row in rows[: 5 - len(bad)]]
            n_bad += len(rows)
            n_rows += len(chunk)
        shown = ", ".join(map(str, bad)) + (", …" if n_bad > len(bad) else "")
        return (
            f"{self.path} has NaN, Inf or missing numbers in {n_bad} of {n_rows} rows "
            f"(row {shown}, counting from 0); wanted finite numbers: drop or fill those rows and save again"
        )


def open_vectors(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    vector_column: str | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> VectorFile:
    """Open a file of vectors: its kind and shape are checked, its vectors not yet read.

    Args:
        path: .npy, .npz, .safetensors, .pt, .parquet, .arrow, .feather, .csv, .tsv (perhaps .gz), word2vec
            text or .bin, GloVe .txt, .vec or .glove. Nothing is ever unpickled.
        key: which array of a .npz, .safetensors or .pt file, where it has several of two axes.
        vector_column: which column of lists of a .parquet, .arrow or .feather file, where it has several.
        labels: a column or array of the same file, else a file of labels (`file.csv:topic` for a column).

    Raises:
        FileError: the file is absent, empty, broken, of an unknown kind, or would have to be unpickled.
        ShapeError: what it holds is not (n, d).
    """
    path = Path(path)
    check_file(path)
    form = FORMATS.get(kind(path))
    if form is None:
        raise FileError(f"{path} is of an unknown kind {kind(path)!r}; wanted one of {', '.join(FORMATS)}")
    _refuse_options(path, form, key=key, vector_column=vector_column)
    name = labels if isinstance(labels, str) else None  # a Path is a path, whatever columns there are
    with reading(path):
        reader = form.reader(Request(path, key, vector_column, name))
    if labels is None:
        return VectorFile(reader, None, "")
    return _with_labels(reader, labels)


def read(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    vector_column: str | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> Space:
    """A file of vectors as a Space: `open_vectors(...).load()`, with the same arguments."""
    return open_vectors(path, key=key, vector_column=vector_column, labels=labels).load()


def _with_labels(reader: Reader, labels: str | os.PathLike[str]) -> VectorFile:
    read, where = locate_labels(labels, path=reader.path, columns=reader.columns, read=reader.label_values)
    return VectorFile(reader, read, where)


def _refuse_options(path: Path, form: Format, **options: str | None) -> None:
    for option, value in options.items():
        if value is not None and option not in form.takes:
            kinds = ", ".join(suffix for suffix, other in FORMATS.items() if option in other.takes)
            raise FileError(f"{option}={value!r} is for {kinds}; {path} has no such choice: leave it out")
