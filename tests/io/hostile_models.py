"""Damaged copies of a model's folder, and GGUF files whose headers lie; all must be refused in one line."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STRANGE: tuple[Any, ...] = (None, True, -1, 0, 2**63, 10**30, 1.5, "x", "", [], [1], {}, {"a": [1]}, [[]])
TEXT, U32, U64, ARRAY = 8, 4, 10, 9  # types of values in a GGUF header
F32 = 0  # a type of tensors


def strange_values(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every place in parsed JSON with every value of another kind that could stand there."""
    for strange in STRANGE:
        if type(strange) is not type(value) or strange != value:
            yield place, strange
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inside:
        yield from strange_values(entry, (*place, key))


def replaced(value: Any, place: tuple[Any, ...], strange: Any) -> Any:
    """Return parsed JSON with the value at one place replaced."""
    if not place:
        return strange
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], strange)
    return copy


def settings_files(folder: Path) -> list[Path]:
    """Return the JSON files of a model's folder, without its vocabulary."""
    return sorted(
        path for path in folder.rglob("*.json") if path.name not in ("tokenizer.json", "vocab.json")
    )


def write_replaced(path: Path, place: tuple[Any, ...], strange: Any) -> None:
    """Write a JSON file again with the value at one place replaced."""
    path.write_text(json.dumps(replaced(json.loads(path.read_text()), place, strange)))


def text(content: str | bytes) -> bytes:
    """Return a string as GGUF stores it."""
    raw = content.encode() if isinstance(content, str) else content
    return struct.pack("<Q", len(raw)) + raw


def field(name: str, kind: int, value: bytes) -> bytes:
    """Return one entry of a GGUF header."""
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: str, dims: tuple[int, ...], kind: int = F32, offset: int = 0) -> bytes:
    """Return the description of one tensor in a GGUF header."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def gguf_bytes(
    fields: list[bytes],
    tensors: list[bytes],
    body: bytes = b"",
    *,
    n_fields: int | None = None,
    n_tensors: int | None = None,
) -> bytes:
    """Return a GGUF file of any header, which may claim other counts."""
    counts = (
        len(tensors) if n_tensors is None else n_tensors,
        len(fields) if n_fields is None else n_fields,
    )
    head = b"GGUF" + struct.pack("<IQQ", 3, *counts) + b"".join(fields) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + body


ARCHITECTURE = field("general.architecture", TEXT, text("llama"))
WEIGHT = tensor("token_embd.weight", (4, 8))
BODY = bytes(128)


def _array(kind: int, n: int, content: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, n) + content


GGUF: dict[str, bytes] = {
    "empty": gguf_bytes([], []),
    "cut": gguf_bytes([ARCHITECTURE], [WEIGHT], BODY)[:40],
    "no-tensors": gguf_bytes([ARCHITECTURE], []),
    "fields": gguf_bytes([ARCHITECTURE], [WEIGHT], BODY, n_fields=2**60),
    "tensors": gguf_bytes([ARCHITECTURE], [WEIGHT], BODY, n_tensors=2**60),
    "long-array": gguf_bytes([ARCHITECTURE, field("a", ARRAY, _array(U32, 2**60))], [WEIGHT], BODY),
    "long-texts": gguf_bytes([ARCHITECTURE, field("a", ARRAY, _array(TEXT, 2**40))], [WEIGHT], BODY),
    "array-of-arrays": gguf_bytes([ARCHITECTURE, field("a", ARRAY, _array(ARRAY, 1) * 2000)], [WEIGHT], BODY),
    "long-text": gguf_bytes([field("a", TEXT, struct.pack("<Q", 2**63))], [WEIGHT], BODY),
    "no-utf8": gguf_bytes([ARCHITECTURE, field("a", TEXT, text(b"\xff"))], [WEIGHT], BODY),
    "twice": gguf_bytes([ARCHITECTURE, ARCHITECTURE], [WEIGHT], BODY),
    "type": gguf_bytes([ARCHITECTURE, field("a", 77, b"")], [WEIGHT], BODY),
    "architecture-is-a-number": gguf_bytes(
        [field("general.architecture", U32, struct.pack("<I", 3))], [WEIGHT], BODY
    ),
    "dims": gguf_bytes([ARCHITECTURE], [tensor("a", (2**40, 2**40))], BODY),
    "many-dims": gguf_bytes([ARCHITECTURE], [text("a") + struct.pack("<I", 2**31)], BODY),
    "no-dims": gguf_bytes([ARCHITECTURE], [tensor("a", (0, 4))], BODY),
    "kind": gguf_bytes([ARCHITECTURE], [tensor("a", (4, 8), kind=999)], BODY),
    "offset": gguf_bytes([ARCHITECTURE], [tensor("a", (4, 8), offset=2**62)], BODY),
    "behind": gguf_bytes([ARCHITECTURE], [WEIGHT], BODY[:64]),
    "layers": gguf_bytes(
        [ARCHITECTURE, field("llama.block_count", U64, struct.pack("<Q", 2**62))], [WEIGHT], BODY
    ),
    "width": gguf_bytes(
        [ARCHITECTURE, field("llama.embedding_length", U32, struct.pack("<I", 2**31))], [WEIGHT], BODY
    ),
    "no-width": gguf_bytes(
        [ARCHITECTURE, field("llama.embedding_length", U32, struct.pack("<I", 0))], [WEIGHT], BODY
    ),
    "no-heads": gguf_bytes(
        [ARCHITECTURE, field("llama.attention.head_count", U32, struct.pack("<I", 0))],
        [tensor("blk.0.attn_q.weight", (4, 8))],
        BODY,
    ),
    "width-is-text": gguf_bytes(
        [ARCHITECTURE, field("llama.embedding_length", TEXT, text("x"))], [WEIGHT], BODY
    ),
}
