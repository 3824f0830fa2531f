"""Text from strangers, safe to show: control characters spelled out, so that no terminal obeys them."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every control character as its escape.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
