"""What may be passed as texts."""

from __future__ import annotations

from collections.abc import Sequence

from isoscope.errors import InputError, ShapeError


def checked_texts(texts: Sequence[str], *, name: str = "texts", filled: bool = False) -> list[str]:
    """The texts as a list: at least one, every one a string that can be written as UTF-8.

    Args:
        texts: what came.
        name: what the argument is called.
        filled: whether every one must have words in it.

    >>> checked_texts(("a cat", "a dog"))
    ['a cat', 'a dog']
    """
    if isinstance(texts, str | bytes):
        raise InputError(
            f"is one {type(texts).__name__}; wanted a sequence of strings: pass [text]", argument=name
        )
    texts = list(texts)
    if not texts:
        raise ShapeError("is empty; wanted at least one string", argument=name)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{row}] is a {type(text).__name__} ({text!r:.40}); wanted a string")
        if not text.isascii() and text.encode("utf-8", "ignore").decode() != text:
            raise InputError(
                f"{name}[{row}] has half of a surrogate pair ({text!r:.40}); wanted Unicode text"
            )
        if filled and not text.strip():
            raise InputError(
                f"{name}[{row}] is empty; wanted words in each: leave it out, and what belongs to it"
            )
    return texts
