"""Pairs of texts that belong together, from two columns of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from isoscope.errors import FileError, InputError, Setting
from isoscope.io.files import reading
from isoscope.io.table import Table, Wanted
from isoscope.io.tables import open_table
from isoscope.io.text_files import HEADS, texts_of
from isoscope.printable import listed
from isoscope.table_columns import TEXTS

# columns whose names say that they belong together, the likeliest first
_PAIRS = (
    ("anchor", "positive"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question", "answer"),
    ("query", "passage"),
    ("text1", "text2"),
)


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
        raise FileError(f"{found.path} has {held}; wanted two, with texts that belong together in each row")
    for pair in _PAIRS:
        if named := found.find(*pair, among=texts):
            return named[0], named[1]
    raise FileError(
        f"{found.path} has columns {listed(found.names)}",
        hint=Setting("columns", to="say which two hold the texts"),
    )
