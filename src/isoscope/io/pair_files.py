"""Pairs from a file: scored pairs of rows or texts, texts that belong together, and row numbers."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isoscope.errors import FileError, InputError, Setting, ShapeError
from isoscope.io.files import reading, reason, text_lines
from isoscope.io.label_files import split_column
from isoscope.io.numpy_files import map_npy
from isoscope.io.table import Table, Wanted
from isoscope.io.tables import KINDS, open_table
from isoscope.io.text_files import HEADS, texts_of
from isoscope.printable import listed
from isoscope.table_columns import TEXTS

_SCORES = ("score", "similarity", "relatedness", "rating", "gold", "label")
_ITEMS = (
    ("sentence1", "sentence2"),
    ("text1", "text2"),
    ("word1", "word2"),
    ("row1", "row2"),
    ("first", "second"),
    ("a", "b"),
    ("i", "j"),
)


_RELEVANT = (  # of a query and a document
    ("query", "document"),
    ("query_id", "document_id"),
    ("query_id", "doc_id"),
    ("query_id", "corpus_id"),
    ("query-id", "corpus-id"),
    ("qid", "docid"),
    ("row1", "row2"),
    ("i", "j"),
)
_GAINS = ("score", "relevance", "gain", "label")

# columns whose names say that they belong together, the likeliest first
_PAIRS = (
    ("anchor", "positive"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question", "answer"),
    ("query", "passage"),
    ("text1", "text2"),
)


@dataclass(frozen=True)
class FilePairs:
    """Pairs of rows (whole numbers) or of texts, and their scores."""

    firsts: list[Any]
    seconds: list[Any]
    scores: list[float]

    @property
    def are_rows(self) -> bool:
        """Whether the pairs are of row numbers."""
        return all(isinstance(item, int) for item in (*self.firsts, *self.seconds))

    @property
    def texts(self) -> list[str]:
        """The distinct items, in the order they are met, as texts."""
        pairs = zip(self.firsts, self.seconds, strict=True)
        return list(dict.fromkeys(str(item) for pair in pairs for item in pair))


def read_scored_pairs(path: str | os.PathLike[str]) -> FilePairs:
    """Read scored pairs from a .csv, .tsv, .jsonl, .json, .parquet, .arrow or .feather file.

    Columns are taken by name (sentence1, sentence2, score; text1, …; i, j, score), else the only three in
    order; `pairs.csv:left,right,score` says which. Whole numbers are rows, counted from 0; else texts.

    Raises:
        FileError: the file is missing, broken, has no such columns, an item that is absent, or a score that
            is no number.
    """
    file, named = split_column(os.fspath(path))
    asked = [part.strip() for part in named.split(",")] if named else []
    columns = open_table(file, Wanted("scored pairs", _SCORES, asked), KINDS[1:])
    with reading(file):
        first, second, score = _chosen(columns, asked)
        items = [_items(columns.read(name), columns) for name in (first, second)]
        scores = [_score(value, columns, row) for row, value in enumerate(columns.read(score))]
    if not scores:
        raise ShapeError(f"{file} has no pairs", wanted="two items and a score in every row")
    return FilePairs(*_alike(*items), scores)


def read_relevant_pairs(path: str | os.PathLike[str]) -> FilePairs:
    """Read which documents are relevant to which queries from a table: two columns, perhaps with a score.

    Columns are taken by name (query, document; query_id, doc_id; query-id, corpus-id; …; score), else the
    first two or three in order; `pairs.csv:a,b` or `pairs.csv:a,b,gain` says which. Without a score it is 1.

    Raises:
        FileError: the file is missing or broken, or has no such columns.
    """
    file, named = split_column(os.fspath(path))
    asked = [part.strip() for part in named.split(",")] if named else []
    heads = {head for pair in _RELEVANT for head in pair} | set(_GAINS)
    columns = open_table(file, Wanted("relevant pairs", heads, asked), KINDS[1:])
    with reading(file):
        for name in asked:
            columns.check(name)
        known = (columns.find(*pair) for pair in _RELEVANT)
        names = asked or next((found for found in known if found), columns.names[:2])
        scored = names[2:] or ([] if asked else next(filter(None, (columns.find(one) for one in _GAINS)), []))
        if len(names) < 2:
            raise FileError(f"{file} has columns {listed(columns.names)}", wanted="a query and a document")
        items = [_items(columns.read(name), columns) for name in names[:2]]
        scores = [
            _score(value, columns, row) for name in scored for row, value in enumerate(columns.read(name))
        ]
    if not items[0]:
        raise ShapeError(f"{file} has no pairs", wanted="a query and a document in every row")
    return FilePairs(*_alike(*items), scores or [1.0] * len(items[0]))


def _chosen(columns: Table, asked: list[str]) -> tuple[str, str, str]:
    if asked:
        if len(asked) != 3:
            raise FileError(f"{columns.path}:{','.join(asked)} names {len(asked)} columns", wanted="three")
        for name in asked:
            columns.check(name)
        return asked[0], asked[1], asked[2]
    for pair, score in itertools.product(_ITEMS, _SCORES):
        if found := columns.find(*pair, score):
            return found[0], found[1], found[2]
    if len(columns.names) == 3:
        return columns.names[0], columns.names[1], columns.names[2]
    raise FileError(
        f"{columns.path} has columns {listed(columns.names)}",
        wanted="two of items and one of scores",
        hint=f"name them as {columns.path}:FIRST,SECOND,SCORE",
    )


def _items(values: Any, columns: Table) -> list[Any]:
    items = [value.item() if hasattr(value, "item") else value for value in values]
    for row, item in enumerate(items):
        is_text = isinstance(item, str) and bool(item.strip())
        if not is_text and not (isinstance(item, int | float) and math.isfinite(item)):
            raise FileError(
                f"{columns.path} has the item {item!r:.40} in {columns.place(row)}",
                wanted="a text or the number of a row",
            )
    return items


def _alike(firsts: list[Any], seconds: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return both columns as row numbers where all are whole numbers, else as texts."""
    try:
        return [_row(item) for item in firsts], [_row(item) for item in seconds]
    except ValueError:
        return [str(item) for item in firsts], [str(item) for item in seconds]


def _row(item: Any) -> int:
    if isinstance(item, float) and not item.is_integer():
        raise ValueError(item)
    return int(item)


def _score(value: Any, columns: Table, row: int) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise FileError(
            f"{columns.path} has the score {value!r:.40} in {columns.place(row)}", wanted="a number"
        )
    return score


class TextPairs(NamedTuple):
    """Pairs of texts, and the columns they are from.

    Attributes:
        pairs: two texts each.
        columns: the names of the two columns.
    """

    pairs: list[tuple[str, str]]
    columns: tuple[str, str]


def read_text_pairs(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> TextPairs:
    """Return the texts of two columns of a .csv, .tsv, .jsonl, .json, .parquet, .arrow or .feather file.

    Args:
        path: the file.
        columns: the two columns; by default the only two of texts, or two whose names say so (anchor,
            positive; sentence1, sentence2; question, answer; …).

    Raises:
        FileError: the file is missing or broken, or has no two such columns.
    """
    path = Path(path)
    if columns is not None and len(columns) != 2:
        raise InputError(
            argument="columns", got=",".join(columns), wanted="two names with a comma between them"
        )
    heads = {head for pair in _PAIRS for head in pair} | set(HEADS)
    table = open_table(path, Wanted("pairs of texts", heads, columns or ()))
    first, second = _two_columns(table, columns)
    with reading(path):
        both = zip(texts_of(table, first), texts_of(table, second), strict=True)
        return TextPairs(list(both), (first, second))


def _two_columns(found: Table, asked: Sequence[str] | None) -> tuple[str, str]:
    if asked is not None:
        for name in asked:
            found.check(name)
        return asked[0], asked[1]
    texts = [name for name, holds in found.holds.items() if holds == TEXTS]
    if len(texts) == 2:
        return texts[0], texts[1]
    if len(texts) < 2:
        held = f"one column of texts ({texts[0]})" if texts else "no columns of texts"
        raise FileError(f"{found.path} has {held}", wanted="two, with texts that belong together in each row")
    for pair in _PAIRS:
        if named := found.find(*pair, among=texts):
            return named[0], named[1]
    raise FileError(
        f"{found.path} has columns {listed(found.names)}",
        hint=Setting("columns", to="say which two hold the texts"),
    )


def read_row_pairs(path: str | os.PathLike[str]) -> np.ndarray:
    """Return (m, c) row numbers from a .npy, or from text with commas, tabs or blanks between them."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} does not exist", wanted="a file of pairs")
    if path.suffix.lower() == ".npy":
        with reading(path):
            return np.array(map_npy(path))
    try:
        lines = [line.replace(",", " ").split() for line in text_lines(path, what="pairs")]
        return np.array([[int(cell) for cell in line] for line in lines if line])
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as pairs of whole numbers: {reason(error)}") from error
