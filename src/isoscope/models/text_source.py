"""`TextFile`: a file of texts as a source of vectors, encoded once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from isoscope.errors import ShapeError
from isoscope.io.files import check_file, reading, stem
from isoscope.io.identity import of_file, of_knowledge
from isoscope.io.label_files import column_labels, locate
from isoscope.io.text_files import FileTexts, open_text_file
from isoscope.labels import Labels, as_labels
from isoscope.models.resolve import model_folder
from isoscope.models.sentences import Encoding, checked
from isoscope.space import Space
from isoscope.table_columns import VECTORS


class TextFile:
    """The texts of a file, read and checked; encoding starts with `blocks` or `load`, and is done once.

    Attributes:
        path: the file.
        model: the model's name, as it was asked for.
        texts: the texts as they stand in the file, without the prefix.
        labels: one for each text; None where none were named.
        n_rows: how many texts.
        notes: what a user should know: how many texts, by which model, how many were cut.
    """

    weights = None
    n_bytes = None  # unknown before the model is loaded
    device = torch.device("cpu")

    def __init__(
        self,
        path: Path,
        found: FileTexts,
        labels: Labels | None,
        encoding: Encoding,
        *,
        model: str,
        prefix: str,
    ) -> None:
        self.path, self.texts, self.labels, self.model = path, found.texts, labels, model
        self.n_rows = len(found.texts)
        chosen = {"prefix": prefix or None, "pooling": encoding.pooling, "normalize": encoding.normalize}
        told = ", ".join(f"{name} {value!r}" for name, value in chosen.items() if value is not None)
        self.notes = [f"{_counted(found)}, encoded by {model}{f' ({told})' if told else ''}"]
        self.notes += [
            f"column {name!r} holds vectors, which are not read: leave the model out to measure them"
            for name, holds in found.columns.holds.items()
            if holds == VECTORS
        ]
        self._encoding, self._prefix, self._columns = encoding, prefix, found.columns

    def __repr__(self) -> str:
        return f"TextFile({self.path.name}, {self.n_rows:,} texts, {self.model})"

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return str(self.path)

    @property
    def name(self) -> str:
        """What to call it in tables."""
        return stem(self.path)

    @property
    def n_dims(self) -> int:
        """How many dimensions the model gives; the texts are encoded."""
        return self.load().n_dims

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the file's columns."""
        return tuple(self._columns.names)

    def column(self, name: str) -> list[Any]:
        """One value a text of a column of the file."""
        self._columns.check(name)
        with reading(self.path):
            return list(column_labels(self._columns, name))

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the file as it is now, the model and settings, the labels."""
        return [self.title, *of_file(self.path), self.notes[0], of_knowledge(self.labels)]

    def parts(self, n_rows: int) -> list[TextFile]:
        """Itself: texts are encoded once, and held."""
        del n_rows
        return [self]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """The vectors in blocks of n_rows, in order; each call begins at the first."""
        return self.load().blocks(n_rows)

    def load(self) -> Space:
        """The vectors with their texts and labels; a second call encodes nothing."""
        return self._space

    @cached_property
    def _space(self) -> Space:
        whole = [self._prefix + text for text in self.texts]
        vectors, limits = self._encoding.vectors(whole), self._encoding.limits(whole)
        vars(self._encoding).pop("encoder", None)  # it is not needed again
        if n_cut := sum(limit > 0 for limit in limits):
            self.notes.append(
                f"{n_cut:,} of {self.n_rows:,} texts cut after the {max(limits):,} tokens the model takes"
            )
        return Space(vectors, labels=self.labels, texts=self.texts, name=stem(self.path))


def open_texts(
    path: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str],
    text_column: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    prefix: str = "",
    pooling: str | None = None,
    normalize: bool | None = None,
    batch_size: int = 64,
    device: str | torch.device | None = None,
    download: bool = False,
    progress: bool | None = None,
) -> TextFile:
    """Open a file of texts to be measured or trained: it is read and checked, its texts not yet encoded.

    What `measure` does with an opened file of vectors it does with this: `measure(open_texts(…))`. The
    vectors are kept on disk as those of `encode` are.

    Args:
        path: .txt with a text a line, .csv, .tsv, .jsonl, .json (perhaps .gz), .parquet, .arrow, .feather.
        model: a short name, a folder, or an id on Hugging Face's hub; see `resolve_model`.
        text_column: which column; by default the only one of strings, else one called text, sentence, ….
        labels: a column of the same file, else a file of labels (`file.csv:topic` for a column).
        prefix: put before each text, as models such as e5 want it: "query: ".
        pooling: tokens to one vector by `mean`, `cls`, `max`, …; by default as the model says.
        normalize: vectors of length 1, or as they are pooled; by default as the model says.
        batch_size: how many texts at a time.
        device: where to encode; by default a CUDA device where there is one.
        download: fetch the model where it is not on this machine. Nothing is fetched otherwise.
        progress: show a bar; by default on a terminal.

    Raises:
        FileError: the file is absent, broken, of an unknown kind, or has no such column.
        InputError: a text is missing or empty, or the model is not here; the message says what to do.
        ShapeError: there are more or fewer labels than texts.
    """
    path = Path(path)
    check_file(path, what="texts")
    folder = model_folder(model, download=download)
    found = open_text_file(path, column=text_column, labels=labels)
    checked(found.texts, batch_size, pooling)
    encoding = Encoding(
        folder, batch_size=batch_size, device=device, pooling=pooling, normalize=normalize, progress=progress
    )
    name = folder.resolve().name if Path(model).expanduser().exists() else os.fspath(model)
    return TextFile(path, found, _labels(path, found, labels), encoding, model=name, prefix=prefix)


def _labels(path: Path, found: FileTexts, labels: str | os.PathLike[str] | None) -> Labels | None:
    """The labels, as many as texts: told before hours of encoding, not after."""
    if labels is None:
        return None
    read, where = locate(
        labels, of=path, columns=found.columns.names, read=partial(column_labels, found.columns)
    )
    with reading(path):
        coded = as_labels(read(), name=f"labels ({where})")
    if len(coded) != len(found.texts):
        raise ShapeError(
            f"has {len(coded)} entries for {len(found.texts)} texts in {path} "
            f"(labels from {where}); wanted one for each text",
            argument="labels",
        )
    return coded


def _counted(found: FileTexts) -> str:
    n, n_distinct = len(found.texts), len(set(found.texts))
    of = f" of column {found.column!r}" if len(found.columns.names) > 1 else ""
    few = "" if n == n_distinct else f" ({n_distinct:,} distinct)"
    return f"{n:,} text{'s' if n > 1 else ''}{of}{few}"
