"""Texts from a file: one a line, or one column of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoscope.errors import FileError, InputError, Setting, ShapeError
from isoscope.io.files import kind, reading, sample_lines
from isoscope.io.label_files import split_column
from isoscope.io.table import Table, Wanted
from isoscope.io.tables import KINDS, open_table
from isoscope.io.word_vectors import numbers_a_line
from isoscope.printable import listed
from isoscope.table_columns import LISTS, NUMBERS, TEXTS, VECTORS, names_no_dimension

# how a column of texts is called, the likeliest first
HEADS = (
    *("text", "texts", "sentence", "sentences", "content", "review", "reviews", "body", "document"),
    *("documents", "comment", "message", "utterance", "passage", "paragraph", "question", "query", "tweet"),
    *("abstract", "summary", "description", "headline", "title"),
)
_FEW_NUMBERS = 2  # a sentence may end in a number or two; a word vector has more


@dataclass(frozen=True)
class FileTexts:
    """The texts of a file.

    Attributes:
        texts: the texts.
        column: the column they are from; None where the file has no columns.
        columns: all columns of the file.
        label_column: the column of the labels; None where they are not in the file.
    """

    texts: list[str]
    column: str | None
    columns: Table
    label_column: str | None = None


def read_texts(
    path: str | os.PathLike[str], *, column: str | None = None, skip_blank: bool = False
) -> list[str]:
    """Read the texts in a file, in order, unchanged.

    `.txt` has one a line; `.csv`, `.tsv`, `.parquet`, `.arrow`, `.feather` and `.jsonl` a column; `.json`
    a list of strings or of objects, or an object of lists. An empty text is an error, since rows must
    match those of labels; only blank lines at the end of a file are passed over.

    Args:
        path: the file; `.gz` is undone for the text formats.
        column: which column; by default the only one of strings, else one called text, sentence, content,
            review, …
        skip_blank: leave empty texts out, as for running text; no label would match then.

    Raises:
        FileError: the file is missing, broken, of an unknown kind, not UTF-8, or has no such column.
        InputError: a text is missing or empty; the message names its line or row.
        ShapeError: there are no texts.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "reviews.csv")
    ...     _ = path.write_text("stars,review\\n5,Fine.\\n1,Never again.\\n")
    ...     read_texts(path)
    ['Fine.', 'Never again.']
    """
    return open_text_file(Path(path), column=column, skip_blank=skip_blank).texts


def open_text_file(
    path: Path,
    *,
    column: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    skip_blank: bool = False,
) -> FileTexts:
    """Open the texts and the columns beside them; the column that `labels` names is not taken for texts."""
    own = labels if isinstance(labels, str) and not split_column(labels)[0].exists() else None
    named = [name for name in (column, own) if name is not None]
    columns = open_table(path, Wanted("texts", HEADS, named))
    with reading(path):
        _refuse_word_vectors(path)
        chosen = _choose(columns, column, labels)
        texts = texts_of(columns, chosen, skip_blank=skip_blank)
    label_column = labels if isinstance(labels, str) and labels in columns.names else None
    return FileTexts(texts, chosen, columns, label_column)


def holds_texts(path: Path) -> bool:
    """Whether a file has texts and no vectors: words without numbers, or strings beside no dimensions.

    Judged by its suffix, its first rows or its schema.
    """
    if kind(path) not in KINDS:
        return False
    with reading(path):
        if kind(path) == ".txt":
            lines = _sample(path)
            return bool(lines) and numbers_a_line(lines) < _FEW_NUMBERS
    columns = open_table(path, Wanted("texts", HEADS))
    dimensions = [
        name
        for name, holds in columns.holds.items()
        if holds in (VECTORS, LISTS) or (holds == NUMBERS and not names_no_dimension(name))
    ]
    is_vector = any(columns.holds[name] in (VECTORS, LISTS) for name in dimensions)
    if kind(path) in (".json", ".jsonl"):  # numbers beside a text are no dimensions of it
        return TEXTS in columns.holds.values() and not is_vector if columns.names else _are_texts(columns)
    return TEXTS in columns.holds.values() and len(dimensions) < 2 and not is_vector


def _are_texts(columns: Table) -> bool:
    return all(isinstance(value, str) for value in columns.read(None))


def _choose(columns: Table, column: str | None, labels: Any) -> str | None:
    """Return the column asked for, else the only one of strings, else the one with a name of texts."""
    if column is not None:
        columns.check(column)
        return column
    if not columns.names:
        return None
    strings = [name for name, holds in columns.holds.items() if holds == TEXTS and name != labels]
    if (likely := likely_texts(strings)) is not None:
        return likely
    if not strings:
        raise FileError(
            f"{columns.path} has no column of strings; it has {listed(columns.names)}",
            wanted="a column of texts",
            hint="leave the model out to measure vectors",
        )
    which = Setting("text_column", to="say which holds the texts")
    raise FileError(f"{columns.path} has columns {listed(columns.names)}", hint=which)


def likely_texts(strings: Iterable[str]) -> str | None:
    """Return the column of texts among columns of strings: the only one, else one with a name of texts.

    >>> likely_texts(["author", "review"]), likely_texts(["id", "a"]), likely_texts(["a", "b"])
    ('review', 'a', None)
    """
    likely = [name for name in strings if not names_no_dimension(name)]
    if len(likely) == 1:
        return likely[0]
    by_name = {name.strip().lower(): name for name in reversed(likely)}
    return next((by_name[head] for head in HEADS if head in by_name), None)


def texts_of(columns: Table, column: str | None, *, skip_blank: bool = False) -> list[str]:
    """Read the texts of a column; raise an error where one is empty or no string."""
    texts = columns.read(column)
    if skip_blank:
        texts = [
            text for text in texts if text is not None and not (isinstance(text, str) and not text.strip())
        ]
    if len(texts) == 0:
        raise ShapeError(f"{columns.path} has no texts", wanted="at least one")
    by_tabs = kind(columns.path) == ".tsv"
    for row, text in enumerate(texts):
        is_sound = isinstance(text, str) and text.strip() and _is_unicode(text)
        if not is_sound or (by_tabs and _joins_rows(text)):
            of = "" if column is None else f", column {column!r}"
            raise _fault(text, columns, f"{columns.place(row)}{of}")
    return list(texts)


def _fault(text: Any, columns: Table, where: str) -> InputError:
    if text is None or (isinstance(text, str) and not text.strip()):
        return InputError(
            f"{columns.path} has no text in {where}",
            wanted=f"one in every {columns.unit}",
            hint=["fill it", "remove it (and its label)"],
        )
    if not isinstance(text, str):
        shown = f"{str(text)[:40]} ({type(text).__name__})"
        return FileError(f"{columns.path} has {shown} in {where}", wanted="a text, which is a string")
    if not _is_unicode(text):
        return FileError(f"{columns.path} has half of a surrogate pair in {where}", wanted="Unicode text")
    return FileError(
        f"{columns.path} has tabs and line ends within one text in {where}: a quotation mark at the start of "
        "a cell joins rows up to the next mark",
        hint=["quote the cell", "save the file as .jsonl"],
    )


def _joins_rows(text: str) -> bool:
    return "\t" in text and "\n" in text


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "ignore").decode() == text


def _refuse_word_vectors(path: Path) -> None:
    if kind(path) != ".txt" or not (lines := _sample(path)):
        return
    n_numbers = numbers_a_line(lines)
    if n_numbers > _FEW_NUMBERS:
        raise FileError(
            f"{path} has {n_numbers} numbers in each line, as word vectors have",
            wanted="a text in each line",
            hint="leave the model out to measure the vectors",
        )


def _sample(path: Path) -> list[list[bytes]]:
    return [line.split() for line in sample_lines(path, what="a text") if line.strip()]
