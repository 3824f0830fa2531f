"""The HTML of a page: one self-contained file in which no label or text can be executed.

The contents are embedded as JSON in a block that browsers do not execute. Every character that could end the
block is escaped. Scripts insert the contents as text, never as markup. The content security policy allows
only the script and the style sheet of the page, by their hashes, and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from torch import Tensor

from isoscope.tables import escaped

_SCRIPTS = ("values.js", "draw.js", "what_if.js", "charts.js", "scatter.js", "page.js")
_UNSAFE = "<>&\u2028\u2029"


def assemble(contents: dict[str, Any]) -> str:
    """Return the HTML of a page with these contents."""
    style = asset("page.css")
    script = "(() => {\n'use strict';\n" + "\n".join(map(asset, _SCRIPTS)) + "\n})();"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": escaped(contents["title"]),
        "STYLE": style,
        "CONTENTS": as_json(contents),
        "SCRIPT": script,
    }
    head, *pieces = asset("page.html").split("{{")
    for piece in pieces:  # in one pass: a placeholder inside a label is not replaced
        name, _, rest = piece.partition("}}")
        head += parts[name] + rest
    return head


def as_json(contents: Any) -> str:
    """Return JSON that is safe inside a script element: it can neither close the element nor open another.

    >>> as_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(contents, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in _UNSAFE:  # faster than str.translate
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def packed(values: Tensor) -> str:
    """Return the numbers of a tensor as base64-encoded little-endian bytes."""
    array = values.detach().cpu().contiguous().numpy()
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return files("isoscope.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
