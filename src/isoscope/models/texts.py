"""Check the argument `texts`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from isoscope.errors import InputError, Setting, ShapeError
from isoscope.frames import Frame, as_frame
from isoscope.io.files import kind
from isoscope.io.tables import KINDS
from isoscope.io.text_files import likely_texts, read_texts
from isoscope.printable import listed
from isoscope.table_columns import TEXTS


def checked_texts(
    texts: Any, *, column: str | None = None, name: str = "texts", filled: bool = False
) -> list[str]:
    """Return the texts as a list; raise an error unless all are strings that can be encoded as UTF-8.

    Args:
        texts: at least one string; a column of a data frame, or the data frame; or the path of a file.
        column: the column of a data frame or file that holds the texts; by default the only one of strings,
            or one called text, sentence, ….
        name: the name of the argument.
        filled: whether empty strings raise an error.

    >>> checked_texts(("a cat", "a dog"))
    ['a cat', 'a dog']
    """
    if isinstance(texts, os.PathLike) or (isinstance(texts, str) and _is_file(texts)):
        return read_texts(texts, column=column)
    if isinstance(texts, str | bytes):
        raise InputError(
            argument=name,
            got=texts,
            wanted="a sequence of strings, a data frame, or the path of a file of texts",
            hint="pass [text] for one text",
        )
    if (frame := as_frame(texts, name)) is not None:
        texts = frame.values(_text_column(frame, column), argument="text_column")
    elif column is not None:
        raise InputError(f"names a column; `{name}` is no table", argument="text_column", hint="leave it out")
    texts = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)  # Arrow's, or any
    if not texts:
        raise ShapeError("is empty", argument=name, wanted="at least one string")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(argument=f"{name}[{row}]", got=text, wanted="a string")
        if not text.isascii() and text.encode("utf-8", "ignore").decode() != text:
            raise InputError("has half of a surrogate pair", argument=f"{name}[{row}]", wanted="Unicode text")
        if filled and not text.strip():
            raise InputError(
                "is empty",
                argument=f"{name}[{row}]",
                wanted="words in each text",
                hint="leave the text out, and its label",
            )
    return texts


def _is_file(text: str) -> bool:
    """Return whether a string is the path of a file of texts, rather than a text."""
    return len(text) < 4096 and "\n" not in text and kind(Path(text)) in KINDS and Path(text).is_file()


def _text_column(frame: Frame, column: str | None) -> str:
    if column is not None:
        return column
    strings = [one.name for one in frame.columns if one.holds == TEXTS]
    likely = likely_texts(strings)
    if likely is None:
        raise InputError(
            f"has the columns {listed(frame.names)}, of which "
            + (f"{listed(strings)} hold strings" if strings else "none holds strings"),
            argument=frame.name,
            wanted="one column of texts",
            hint=Setting("text_column", to="say which holds the texts") if strings else (),
        )
    return likely
