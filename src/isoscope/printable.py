"""Text from files, made safe to print: control characters are escaped, so that no terminal obeys them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches


def printable(text: str, *, keep: str = "") -> str:
    r"""Return the text with unprintable characters as JSON escapes, except those in `keep`.

    JSON remains valid JSON.

    >>> printable("red: \x1b[31m")
    'red: \\u001b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else json.dumps(c)[1:-1] for c in text)


def shortened(text: str, length: int = 60) -> str:
    """Return the text, cut to the length with an ellipsis if it is longer.

    >>> shortened("an example", 6)
    'an ex…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def capitalized(sentence: str) -> str:
    """Return a sentence with its first letter in upper case, and the others as they are.

    >>> capitalized("the IsoScore")
    'The IsoScore'
    """
    return sentence[:1].upper() + sentence[1:]


def counted(n: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> counted(1, "zero vector"), counted(2000, "label")
    ('1 zero vector', '2,000 labels')
    """
    return f"{n:,.0f} {noun}{'' if n == 1 else 's'}"


def quoted(label: object) -> str:
    """Return a label as shown in messages: shortened, and quoted if it is a text."""
    return shortened(repr(label))


def listed(names: Iterable[object], *, at_most: int = 12) -> str:
    """Return names separated by commas, cut off where there are many.

    >>> listed("abcd", at_most=3)
    'a, b, c, … (4 in all)'
    """
    texts = [str(name) for name in names]
    return ", ".join(texts[:at_most]) + (f", … ({len(texts)} in all)" if len(texts) > at_most else "")


def some_rows(rows: Iterable[int], n_found: int, n_rows: int) -> str:
    """Return how many rows were found, with the numbers of the first ones.

    >>> some_rows([3, 17], 2, 300)
    '2 of 300 rows (row 3, 17, counted from 0)'
    """
    first = [str(row) for row in rows][:5]
    more = ", …" if n_found > len(first) else ""
    return f"{n_found:,} of {n_rows:,} rows (row {', '.join(first)}{more}, counted from 0)"


def close_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the name in other capitals, or else up to two names spelt nearly the same.

    >>> close_names("NC1", ["nc1", "nc2"]), close_names("IsoScor", ["isoscore", "lid"])
    (['nc1'], ['isoscore'])
    """
    by_spelling = {known.lower(): known for known in names}
    spelling = name.lower()
    close = [spelling] if spelling in by_spelling else get_close_matches(spelling, by_spelling, n=2)
    return [by_spelling[one] for one in close]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a question that names the nearest spelling, or "" where none is near.

    >>> nearest("topc", ["id", "topic"])
    "did you mean 'topic'?"
    """
    close = close_names(name, names)
    return f"did you mean {close[0]!r}?" if close else ""
