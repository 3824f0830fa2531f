"""An extension of griffe: the doctests of a docstring are its examples, shown as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_PARAGRAPH = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def with_examples(text: str) -> str:
    """Return the docstring with each unindented paragraph that begins with `>>>` under a heading of examples.

    >>> print(with_examples("One line.\\n\\n>>> 1 + 1\\n2"))
    One line.
    <BLANKLINE>
    Examples:
        >>> 1 + 1
        2
    """
    return _PARAGRAPH.sub(
        lambda found: "Examples:\n" + "\n".join(f"    {line}" for line in found.group().splitlines()), text
    )


class Doctests(griffe.Extension):
    """Rewrites docstrings as they are loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Format a docstring; griffe calls this for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = with_examples(obj.docstring.value)
