"""Text from strangers, safe to show: control characters spelled out, so that no terminal obeys them."""

from __future__ import annotations

import json


def printable(text: str, *, keep: str = "") -> str:
    r"""Return the text with every character that does not print as its escape, in the way of JSON.

    So JSON stays JSON when its text passes here. `keep` names characters that are left as they are.

    >>> printable("red: \x1b[31m")
    'red: \\u001b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else json.dumps(c)[1:-1] for c in text)


def shortened(text: str, length: int = 60) -> str:
    """Return the text, or its beginning and an ellipsis where it is longer.

    >>> shortened("an example", 6)
    'an ex…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def counted(n: float, noun: str) -> str:
    """Return a number and its noun, in the plural unless there is one.

    >>> counted(1, "zero vector"), counted(2000, "label")
    ('1 zero vector', '2,000 labels')
    """
    return f"{n:,.0f} {noun}{'' if n == 1 else 's'}"


def quoted(label: object) -> str:
    """Return a label as messages show it: quoted where it is a text, and shortened."""
    return shortened(repr(label))
