"""Check the argument `texts`."""

from __future__ import annotations

from collections.abc import Sequence

from isoscope.errors import InputError, ShapeError


def checked_texts(texts: Sequence[str], *, name: str = "texts", filled: bool = False) -> list[str]:
    """Return the texts as a list; raise an error unless all are strings that can be encoded as UTF-8.

    Args:
        texts: at least one string, or a pandas, Arrow or Hugging Face column of strings.
        name: the name of the argument.
        filled: whether empty strings raise an error.

    >>> checked_texts(("a cat", "a dog"))
    ['a cat', 'a dog']
    """
    if isinstance(texts, str | bytes):
        raise InputError(
            argument=name,
            got=texts,
            wanted="a sequence of strings",
            hint=["pass [text] for one text", "read a file with isoscope.io.read_texts"],
        )
    texts = list(texts)
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
