"""FILE as a command takes it: vectors, or texts and the model that encodes them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from isoscope.cli.table_options import AS_JUDGED, TableOptions
from isoscope.errors import FileError, InputError
from isoscope.io import VectorFile, VectorShards, open_vectors
from isoscope.io.files import check_file, kind
from isoscope.io.formats import FORMATS
from isoscope.io.shards import is_many
from isoscope.io.tables import KINDS
from isoscope.io.text_files import holds_texts
from isoscope.labels import label_notes
from isoscope.models import TextFile, open_texts
from isoscope.space import as_counts
from isoscope.terminal import say


@dataclass(frozen=True)
class TextOptions:
    """How the texts in FILE are to be encoded, as typed; None is what was not."""

    model: str | None = None
    text_column: str | None = None
    prefix: str | None = None
    pooling: str | None = None
    normalize: bool | None = None
    batch_size: int | None = None
    device: str | None = None
    download: bool | None = None

    def given(self) -> dict[str, Any]:
        """The options that were typed, by name, the model aside."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "model"}
        return {name: value for name, value in values.items() if value is not None}


def open_input(
    file: str,
    *,
    labels: str | None = None,
    key: str | None = None,
    vector_column: str | None = None,
    texts: TextOptions,
    table: TableOptions = AS_JUDGED,
    weights: str | None = None,
    skip_bad: bool = False,
) -> VectorFile | VectorShards | TextFile:
    """FILE opened: its texts where a model is given to encode them, else its vectors."""
    path = Path(file)
    if texts.model is None:
        options = {"key": key, "vector_column": vector_column, "labels": labels, "weights": weights}
        return _vectors(file, texts, options | table.given(), skip_bad=skip_bad)
    of_vectors = {"key": key, "vector_column": vector_column, "weights": weights, **table.given()}
    for name, value in of_vectors.items():
        if value is not None:
            raise InputError(f"{name}={value!r} goes with vectors, and a model is given to encode texts")
    check_file(path, what="texts")
    if kind(path) in FORMATS and kind(path) not in KINDS:
        raise FileError(
            f"{path} holds vectors, which need no model: leave --model out, "
            f"or pass texts in {', '.join(KINDS)}"
        )
    return open_texts(path, model=texts.model, labels=labels, **texts.given())


def say_notes(source: VectorFile | VectorShards | TextFile, *, err: bool = False) -> None:
    """Print how the input was read; to standard error where standard output has no place for notes."""
    labels = source.labels
    for note in source.notes + ([] if labels is None else label_notes(labels, n=len(labels))):
        say(f"note: {note}", err=err)


def _vectors(
    file: str, texts: TextOptions, options: dict[str, Any], *, skip_bad: bool
) -> VectorFile | VectorShards:
    for name in texts.given():
        raise InputError(
            f"--{name.replace('_', '-')} goes with --model NAME, which encodes the texts in FILE"
        )
    chosen = any(options.get(name) is not None for name in ("key", "vector_column", "columns", "delimiter"))
    if not chosen and not is_many(file) and kind(Path(file)) != ".zarr" and _has_only_texts(Path(file)):
        raise FileError(
            f"{file} has texts, not vectors: pass --model NAME to encode its texts, "
            "such as --model all-MiniLM-L6-v2"
        )
    opened = open_vectors(file, skip_bad=skip_bad, **options)
    if isinstance(opened, VectorFile) and opened.weights is not None:  # of many files one may hold little
        as_counts(opened.weights, n=len(opened.weights), name=f"--weights {options['weights']}")
    return opened


def _has_only_texts(path: Path) -> bool:
    check_file(path)
    try:
        return holds_texts(path)
    except InputError:  # broken: the reader of vectors says how
        return False
