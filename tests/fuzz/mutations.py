"""Damage to bytes, to lines of text and to JSON, drawn from a seeded generator."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

ESCAPE = "\x1b[31mred\x1b[0m\x1b]0;title\x07"
STRINGS = (
    "", " ", ESCAPE, "\u202eabc", "\ud7ff", "é\u0301", "1²2", "١٢", "a\x00b", "a\nb", "\r", "\u2028", "nan", "None",
    "</script><script>alert(1)</script>", "__import__('os')", "../../etc/passwd", "x" * 5000, "-1", "\ufeff", "𝕏",
)  # fmt: skip
TOKENS = (
    "nan", "inf", "-inf", "1e400", "-1e400", "1e308", "1e-320", "-0", "", " ", "1,5", "0x10", "1_000", "١", "1e", "--1",
    "NULL", "true", "1.2.3", "9" * 400, "1e39", "2**3", '"', '"1', "'1'", "1 2", "\x00", ESCAPE, "é", "1d5", "½", "∞",
    "+1", ".5", "5.", "1e+2", "infinity", "NaN", "NA", "-", "1\t2", "1;2", "0.1f", "１", "1e5000000",
)  # fmt: skip
INTEGERS = (
    0,
    1,
    -1,
    2,
    127,
    128,
    255,
    256,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**53 + 1,
    2**63 - 1,
    2**63,
)
VALUES: tuple[Any, ...] = (
    None, True, False, *INTEGERS, -(2**63), 2**64, 10**40, 0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), "F32",
    "relu", [], {}, [1], [[]], [None], ["a", 1], {"a": 1}, {"": {}}, [1e308] * 3, *STRINGS,
)  # fmt: skip


def damaged(data: bytes, rng: random.Random, other: bytes = b"") -> tuple[str, bytes]:
    """Damage bytes once or a few times; what was done, and the result."""
    names = []
    for _ in range(rng.choice((1, 1, 1, 1, 1, 3))):
        name, change = rng.choice(_BYTE_CHANGES)
        data = change(data, rng) if name != "splice" else _splice(data, rng, other)
        names.append(name)
    return " ".join(names), data


def _place(data: bytes, rng: random.Random) -> int:
    """A place, half of the time near an end, where headers and footers are."""
    n = max(1, len(data))
    if rng.random() < 0.5:
        near = rng.randrange(min(n, 160))
        return near if rng.random() < 0.6 else n - 1 - near
    return rng.randrange(n)


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    changed[_place(changed, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    changed[_place(changed, rng)] = rng.choice(
        (0, 1, 0x7F, 0x80, 0xFF, 0x1B, 10, 13, 34, 44, rng.randrange(256))
    )
    return bytes(changed)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.choice((_place(data, rng), len(data) - 1, len(data) // 2, 0, 8))]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.randbytes(rng.choice((1, 1, 2, 8, 64))) + data[at:]


def _delete(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + rng.choice((1, 1, 2, 4, 16)) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    at, length = _place(data, rng), rng.choice((1, 4, 16, 64))
    return data[: at + length] + data[at : at + length] * rng.choice((1, 1, 3, 50)) + data[at + length :]


def _zero(data: bytes, rng: random.Random) -> bytes:
    at, length = _place(data, rng), rng.choice((2, 8, 32))
    return data[:at] + bytes(len(data[at : at + length])) + data[at + length :]


def _integer(data: bytes, rng: random.Random) -> bytes:
    at, width = _place(data, rng), rng.choice((2, 4, 8))
    number = rng.choice(INTEGERS) % 2 ** (8 * width)
    return data[:at] + number.to_bytes(width, rng.choice(("little", "big"))) + data[at + width :]


def _digits(data: bytes, rng: random.Random) -> bytes:
    """Replace a run of digits, such as a length in a header, by another number."""
    runs = list(re.finditer(rb"\d+", data))
    if not runs:
        return _flip(data, rng)
    run = rng.choice(runs[:12] if rng.random() < 0.5 else runs)
    return data[: run.start()] + str(rng.choice((*INTEGERS, 10**25))).encode() + data[run.end() :]


def _append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice((b"\0", b"\n", b"junk", rng.randbytes(100), data, b"\x1b[31m"))


def _swap(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((_place(data, rng), _place(data, rng)))
    length = rng.choice((1, 4, 16))
    return data[:a] + data[b : b + length] + data[a + length : b] + data[a : a + length] + data[b + length :]


def _splice(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return data[: _place(data, rng)] + other[_place(other, rng) :]


_BYTE_CHANGES: tuple[tuple[str, Callable[[bytes, random.Random], bytes]], ...] = (
    ("flip", _flip), ("flip", _flip), ("set", _set), ("truncate", _truncate), ("insert", _insert),
    ("delete", _delete), ("repeat", _repeat), ("zero", _zero), ("integer", _integer), ("digits", _digits),
    ("append", _append), ("swap", _swap), ("splice", _flip),
)  # fmt: skip


def damaged_text(text: str, rng: random.Random, delimiter: str) -> tuple[str, bytes]:
    """Damage a table or list of texts as a table: tokens, delimiters, lines, encodings."""
    lines = text.split("\n")
    at = rng.randrange(min(len(lines), rng.choice((1, 3, len(lines)))))
    cells = lines[at].split(delimiter)
    cell = rng.randrange(len(cells))
    change = rng.choice(
        [
            "token",
            "token",
            "token",
            "token",
            "drop",
            "add",
            "quote",
            "blank",
            "repeat",
            "remove",
            "header",
            "crlf",
            "bom",
            "latin",
            "utf16",
            "nul",
            "comma",
            "index",
        ]
    )
    if change == "token":
        cells[cell] = rng.choice(TOKENS)
    elif change == "drop":
        del cells[cell]
    elif change == "add":
        cells.insert(cell, rng.choice((*TOKENS, "1.0")))
    elif change == "quote":
        cells[cell] = rng.choice(('"{}"', '"{}', "'{}'", '"[{}]"', ' "{}"', '""{}""')).format(cells[cell])
    lines[at] = delimiter.join(cells)
    if change == "blank":
        lines.insert(at, rng.choice(("", " ", delimiter, delimiter * len(cells), "#", "\t")))
    elif change == "repeat":
        lines.insert(at, lines[at])
    elif change == "remove":
        del lines[at]
    elif change == "header":
        lines.insert(
            0,
            delimiter.join(
                rng.choice((str(i), f"x{i}", "x", "id", rng.choice(STRINGS))) for i in range(len(cells))
            ),
        )
    elif change == "index":
        start = rng.choice((0, 1, 17))
        lines = [f"{start + i}{delimiter}{line}" if line else line for i, line in enumerate(lines)]
    elif change == "comma":
        lines = [line.replace(".", ",") for line in lines]
    joined = {"crlf": "\r\n", "nul": "\n\x00"}.get(change, "\n").join(lines)
    if change == "latin":
        return change, joined.encode().replace(b"0", b"\xe9", 1)
    if change == "utf16":
        return change, joined.encode("utf-16")
    return change, (b"\xef\xbb\xbf" if change == "bom" else b"") + joined.encode(errors="surrogatepass")


def damaged_json(value: Any, rng: random.Random) -> tuple[str, Any]:
    """Change one place in a JSON value: another type, a missing or a doubled entry, deep nesting."""
    value = json.loads(json.dumps(value))
    holder, key = _spot(value, rng)
    if holder is None:
        return "whole", rng.choice(VALUES)
    change = rng.choice(("value", "value", "value", "delete", "rename", "nest", "double", "wrap"))
    old = holder[key]
    if change == "delete":
        del holder[key]
    elif change == "rename" and isinstance(holder, dict):
        holder[rng.choice((*STRINGS, "name", "type"))] = holder.pop(key)
    elif change == "nest":
        deep: Any = old
        for _ in range(rng.choice((3, 50, 900))):
            deep = [deep]
        holder[key] = deep
    elif change == "double" and isinstance(old, (list, str)):
        holder[key] = old + old
    elif change == "wrap":
        holder[key] = rng.choice(([old], {"a": old}, str(old)))
    else:
        holder[key] = rng.choice(VALUES)
    return f"{change} of {str(key)[:40]!r}", value


def _spot(value: Any, rng: random.Random) -> tuple[Any, Any]:
    """A place in nested containers: the container and the key."""
    holder, key = None, None
    while isinstance(value, (dict, list)) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, rng.choice(list(keys))
        value = holder[key]
        if rng.random() < 0.35:
            break
    return holder, key


def json_bytes(value: Any, rng: random.Random) -> bytes:
    """JSON as bytes; rarely nested a hundred thousand deep or not JSON at all."""
    if rng.random() < 0.02:
        return b"[" * 100_000 + b"]" * 100_000
    return json.dumps(value).encode(errors="surrogatepass")
