"""`TextFile`: a file of texts as a source of vectors, encoded once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoscope.errors import ShapeError
from isoscope.io.files import check_file, reading, stem
from isoscope.io.identity import of_file, of_knowledge
from isoscope.io.label_files import column_labels, locate_labels
from isoscope.io.text_files import FileTexts, open_text_file
from isoscope.labels import Labels, as_labels
from isoscope.models.cache import VectorStore
from isoscope.models.model_files import running
from isoscope.models.resolve import model_folder
from isoscope.models.sentences import checked, encode_by, load_encoder, package_version, vector_store
from isoscope.space import Space
from isoscope.table_columns import VECTORS

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_COUNT_ROWS = 1024  # texts tokenised at a time to see which are too long
_UNLIMITED = 10**9  # models that know no limit say infinity, tokenizers 10³⁰


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

    def __init__(self, path: Path, found: FileTexts, labels: Labels | None, encoding: _Encoding) -> None:
        self.path = path
        self.texts = found.texts
        self.labels = labels
        self.model = encoding.name
        self.n_rows = len(found.texts)
        self.notes: list[str] = [f"{_counted(found)}, encoded by {encoding.name}{encoding.settings}"]
        self.notes += [
            f"column {name!r} holds vectors, which are not read: leave the model out to measure them"
            for name, holds in found.columns.holds.items()
            if holds == VECTORS
        ]
        self._encoding = encoding
        self._columns = found.columns

    def __repr__(self) -> str:
        return f"TextFile({self.path.name}, {self.n_rows:,} texts, {self.model})"

    weights = None
    n_bytes = None  # unknown before the model is loaded
    device = torch.device("cpu")

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
        vectors, n_cut, limit = self._encoding.encode(self.texts)
        if n_cut:
            self.notes.append(
                f"{n_cut:,} of {self.n_rows:,} texts cut after the {limit:,} tokens the model takes"
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
    encoding = _Encoding(
        name=folder.resolve().name if Path(model).expanduser().exists() else os.fspath(model),
        folder=folder,
        prefix=prefix,
        pooling=pooling,
        normalize=normalize,
        batch_size=batch_size,
        progress=progress,
        load=partial(load_encoder, folder, device=device, pooling=pooling, normalize=normalize),
    )
    return TextFile(path, found, _labels(path, found, labels), encoding)


@dataclass(frozen=True)
class _Encoding:
    """A model, and how texts go through it."""

    name: str
    folder: Path
    prefix: str
    pooling: str | None
    normalize: bool | None
    batch_size: int
    progress: bool | None
    load: Callable[[], SentenceTransformer]

    @property
    def settings(self) -> str:
        """What was chosen, for a note."""
        chosen = {"prefix": self.prefix or None, "pooling": self.pooling, "normalize": self.normalize}
        told = [f"{name} {value!r}" for name, value in chosen.items() if value is not None]
        return f" ({', '.join(told)})" if told else ""

    def encode(self, texts: list[str]) -> tuple[Tensor, int, int]:
        """The vectors, how many texts were cut, and after how many tokens."""
        whole = [self.prefix + text for text in texts] if self.prefix else texts
        loaded: list[SentenceTransformer] = []

        def load() -> SentenceTransformer:  # for the vectors and for the lengths, once
            loaded[:] = loaded or [self.load()]
            return loaded[0]

        with running(self.folder, "run"):
            vectors = encode_by(
                load,
                whole,
                store=vector_store(self.folder, pooling=self.pooling, normalize=self.normalize),
                batch_size=self.batch_size,
                progress=self.progress,
            )
            limits = _limits(whole, load, self.folder)
        return vectors, sum(limit > 0 for limit in limits), max(limits)


def _limits(texts: list[str], load: Callable[[], SentenceTransformer], folder: Path) -> list[int]:
    """For each text that is longer than the model takes, what it takes, in tokens; for others 0.

    Kept on disk as vectors are, so that texts seen before need no tokenizer, and no model.
    """
    store = VectorStore.of(folder, what="longer than this", transformers=package_version("transformers"))
    distinct = list(dict.fromkeys(texts))
    known = store.find(distinct)
    missing = [text for text in distinct if text not in known]
    if missing:
        found = torch.tensor(_overlong(load(), missing), dtype=torch.float32)[:, None]
        known.update(zip(missing, found, strict=True))
        store.keep(missing, found)
    return [int(known[text]) for text in texts]


def _overlong(encoder: SentenceTransformer, texts: list[str]) -> list[int]:
    tokenizer: Any = getattr(encoder, "tokenizer", None)
    limit = encoder.max_seq_length
    if not callable(tokenizer) or not limit or limit > _UNLIMITED:
        return [0] * len(texts)
    found: list[int] = []
    for start in range(0, len(texts), _COUNT_ROWS):
        some = texts[start : start + _COUNT_ROWS]
        tokens = tokenizer(some, truncation=False, return_attention_mask=False, verbose=False)
        found += [limit if len(ids) > limit else 0 for ids in tokens["input_ids"]]
    return found


def _labels(path: Path, found: FileTexts, labels: str | os.PathLike[str] | None) -> Labels | None:
    """The labels, as many as texts: told before hours of encoding, not after."""
    if labels is None:
        return None
    read, where = locate_labels(
        labels, path=path, columns=found.columns.names, read=partial(column_labels, found.columns)
    )
    with reading(path):
        coded = as_labels(read(), name=f"labels ({where})")
    if len(coded) != len(found.texts):
        raise ShapeError(
            f"labels has {len(coded)} entries for {len(found.texts)} texts in {path} "
            f"(labels from {where}); wanted one for each text"
        )
    return coded


def _counted(found: FileTexts) -> str:
    n, n_distinct = len(found.texts), len(set(found.texts))
    of = f" of column {found.column!r}" if len(found.columns.names) > 1 else ""
    few = "" if n == n_distinct else f" ({n_distinct:,} distinct)"
    return f"{n:,} text{'s' if n > 1 else ''}{of}{few}"
