"""Text from strangers, safe to show: control characters spelled out, so that no terminal obeys them."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every control character as its escape.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str, length: int = 60) -> str:
    """Return the text, or its beginning and an ellipsis where it is longer.

    >>> shortened("an example", 6)
    'an ex…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def quoted(label: object) -> str:
    """Return a label as messages show it: quoted where it is a text, and shortened."""
    return shortened(repr(label))
