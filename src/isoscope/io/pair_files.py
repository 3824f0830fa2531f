"""Scored pairs from a file: two rows or two texts, and how alike they are."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass
from typing import Any

from isoscope.errors import FileError, ShapeError
from isoscope.io.files import reading
from isoscope.io.label_files import split_column
from isoscope.io.table import Table, Wanted
from isoscope.io.tables import KINDS, open_table
from isoscope.printable import listed

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
    """The scored pairs in a file: `.csv`, `.tsv`, `.jsonl`, `.json`, `.parquet`, `.arrow`, `.feather`.

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
        raise ShapeError(f"{file} has no pairs; wanted two items and a score in every row")
    return FilePairs(*_alike(*items), scores)


def _chosen(columns: Table, asked: list[str]) -> tuple[str, str, str]:
    if asked:
        if len(asked) != 3:
            raise FileError(f"{columns.path}:{','.join(asked)} names {len(asked)} columns; wanted three")
        for name in asked:
            columns.check(name)
        return asked[0], asked[1], asked[2]
    for pair, score in itertools.product(_ITEMS, _SCORES):
        if found := columns.find(*pair, score):
            return found[0], found[1], found[2]
    if len(columns.names) == 3:
        return columns.names[0], columns.names[1], columns.names[2]
    raise FileError(
        f"{columns.path} has columns {listed(columns.names)}; wanted two of items and one of scores: "
        f"say which with {columns.path}:FIRST,SECOND,SCORE"
    )


def _items(values: Any, columns: Table) -> list[Any]:
    items = [value.item() if hasattr(value, "item") else value for value in values]
    for row, item in enumerate(items):
        is_text = isinstance(item, str) and bool(item.strip())
        if not is_text and not (isinstance(item, int | float) and math.isfinite(item)):
            raise FileError(
                f"{columns.path} has the item {item!r:.40} in {columns.place(row)}; wanted a text or a row"
            )
    return items


def _alike(firsts: list[Any], seconds: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both columns as row numbers where all are whole numbers, else as texts."""
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
            f"{columns.path} has the score {value!r:.40} in {columns.place(row)}; wanted a number"
        )
    return score
