"""`TextFile`: a file of texts as a source of vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from isoscope.errors import ShapeError
from isoscope.io.delimited import integers_or_strings
from isoscope.io.files import check_file, reading, stem
from isoscope.io.identity import of_file, of_knowledge
from isoscope.io.label_files import column_labels, locate
from isoscope.io.table import Table
from isoscope.io.table_rows import TableRows
from isoscope.io.text_files import FileTexts, open_text_file
from isoscope.labels import Labels, as_labels
from isoscope.models.resolve import model_folder
from isoscope.models.sentences import Encoding, checked
from isoscope.space import Space
from isoscope.table_columns import VECTORS

_VECTOR = "vector"  # the column of vectors, where they are written


class TextFile:
    """The texts of a file, read and checked. They are encoded once, when `blocks` or `load` is first called.

    Attributes:
        path: the file.
        model: the name of the model.
        texts: the texts of the file, without the prefix.
        labels: one for each text, or None.
        n_rows: the number of texts.
        notes: remarks for the user: the number of texts, the model, how many texts were truncated.
    """

    weights = None
    n_bytes = None  # not known before the model is loaded
    device = torch.device("cpu")

    def __init__(
        self,
        path: Path,
        content: FileTexts,
        labels: Labels | None,
        encoding: Encoding,
        *,
        model: str,
        prefix: str,
    ) -> None:
        self.path, self.texts, self.labels, self.model = path, content.texts, labels, model
        self.n_rows = len(content.texts)
        chosen = {"prefix": prefix or None, "pooling": encoding.pooling, "normalize": encoding.normalize}
        settings = ", ".join(f"{name} {value!r}" for name, value in chosen.items() if value is not None)
        self.notes = [f"{_counted(content)}, encoded by {model}{f' ({settings})' if settings else ''}"]
        self.notes += [
            f"column {name!r} holds vectors, which are not read: leave the model out to measure them"
            for name, kind in content.columns.holds.items()
            if kind == VECTORS
        ]
        self._encoding, self._prefix, self._columns = encoding, prefix, content.columns
        self._used = {content.column, content.label_column}

    def __repr__(self) -> str:
        return f"TextFile({self.path.name}, {self.n_rows:,} texts, {self.model})"

    @property
    def title(self) -> str:
        """The path, for messages."""
        return str(self.path)

    @property
    def name(self) -> str:
        """The name of the file without its suffix, for tables."""
        return stem(self.path)

    @property
    def n_dims(self) -> int:
        """The number of dimensions of the vectors; the texts are encoded to find it."""
        return self.load().n_dims

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the file's columns."""
        return tuple(self._columns.names)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column of the file, one for each text."""
        self._columns.check(name)
        with reading(self.path):
            return list(column_labels(self._columns, name))

    def table_rows(self) -> TableRows | None:
        """Return the columns to write beside the vectors; None where the file has no columns.

        They are the labels as `label`, the texts as `text`, and every other column under its own name, with
        "_" after it where that is one of these names.
        """
        import pyarrow as pa

        if not self._columns.names:
            return None
        columns = {"text": pa.array(self.texts, pa.string())}
        if self.labels is not None:
            columns = {"label": pa.array([self.labels.names[code] for code in self.labels.codes])} | columns
        for name in self._columns.names:
            if name not in self._used:
                new = name
                while new in columns or new == _VECTOR:
                    new += "_"
                columns[new] = _arrow_column(self._columns, name)
        table = pa.table(columns)
        return TableRows(
            (_VECTOR, *columns), (_VECTOR,), pa.list_(pa.float32(), 1), True, lambda: iter(table.to_batches())
        )

    @property
    def identity(self) -> list[Any]:
        """The file with its size and time, the model, the settings and the labels."""
        return [self.title, *of_file(self.path), self.notes[0], of_knowledge(self.labels)]

    def parts(self, n_rows: int) -> list[TextFile]:
        """Return one part, the source itself."""
        del n_rows
        return [self]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the vectors in blocks of n_rows."""
        return self.load().blocks(n_rows)

    def load(self) -> Space:
        """Return the vectors with their texts and labels; only the first call encodes them."""
        return self._space

    @cached_property
    def _space(self) -> Space:
        prefixed = [self._prefix + text for text in self.texts]
        vectors, limits = self._encoding.vectors(prefixed), self._encoding.limits(prefixed)
        vars(self._encoding).pop("encoder", None)  # frees its memory
        if n_cut := sum(limit > 0 for limit in limits):
            self.notes.append(
                f"{n_cut:,} of {self.n_rows:,} texts truncated to {max(limits):,} tokens, the model's maximum"
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
    """Open a file of texts as a source for `measure`; the texts are read and checked, but not yet encoded.

    The vectors are cached on disk, as those of `encode` are.

    Args:
        path: .txt (one text a line), .csv, .tsv, .jsonl or .json (also .gz), .parquet, .arrow or .feather.
        model: a short name, a folder, or an id on Hugging Face's hub; see `resolve_model`.
        text_column: the column of texts; by default the only column of strings, or one called text,
            sentence, ….
        labels: a column of the same file, or a file of labels (`file.csv:topic` for a column).
        prefix: a prefix for each text, which models such as e5 expect: "query: ".
        pooling: how token states become one vector: `mean`, `cls`, `max`, …; by default the model's own.
        normalize: whether to scale vectors to length 1; by default as the model does.
        batch_size: texts in a batch.
        device: the device to encode on; by default a CUDA device if there is one.
        download: download the model if it is not on this machine. Nothing is downloaded otherwise.
        progress: show a progress bar; by default on a terminal.

    Raises:
        FileError: the file does not exist, is damaged, has an unknown format, or has no such column.
        InputError: a text is missing or empty, or the model is not on this machine.
        ShapeError: the number of labels is not the number of texts.
    """
    path = Path(path)
    check_file(path, what="texts")
    folder = model_folder(model, download=download)
    content = open_text_file(path, column=text_column, labels=labels)
    checked(content.texts, batch_size, pooling)
    encoding = Encoding(
        folder, batch_size=batch_size, device=device, pooling=pooling, normalize=normalize, progress=progress
    )
    name = folder.resolve().name if Path(model).expanduser().exists() else os.fspath(model)
    return TextFile(path, content, _labels(path, content, labels), encoding, model=name, prefix=prefix)


def _labels(path: Path, content: FileTexts, labels: str | os.PathLike[str] | None) -> Labels | None:
    """Return the labels; raise ShapeError, before any text is encoded, unless there is one for each text."""
    if labels is None:
        return None
    read, origin = locate(
        labels, of=path, columns=content.columns.names, read=partial(column_labels, content.columns)
    )
    with reading(path):
        coded = as_labels(read(), name=f"labels ({origin})")
    if len(coded) != len(content.texts):
        raise ShapeError(
            f"has {len(coded)} entries for {len(content.texts)} texts in {path} (labels from {origin})",
            argument="labels",
            wanted="one label for each text",
        )
    return coded


def _arrow_column(columns: Table, name: str) -> Any:
    """Return a column as an Arrow array of its own type, or of strings where its values are of several."""
    import pyarrow as pa

    if columns.is_typed and columns.can_rewrite:
        return pa.Table.from_batches(columns.beside([columns.places[name]])).column(0)
    values = columns.read(name)
    if not columns.is_typed:
        values = integers_or_strings(values)
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


def _counted(content: FileTexts) -> str:
    n, n_distinct = len(content.texts), len(set(content.texts))
    column = f" of column {content.column!r}" if len(content.columns.names) > 1 else ""
    distinct = "" if n == n_distinct else f" ({n_distinct:,} distinct)"
    return f"{n:,} text{'s' if n > 1 else ''}{column}{distinct}"
