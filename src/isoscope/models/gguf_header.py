"""Read and check the header of a GGUF file before a library uses it.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoscope.errors import FileError
from isoscope.io.structure import Field, check_held, declared_bytes, described

_MAX_VALUES = 4_000_000  # in all lists together; a large vocabulary with its merges has one million
_MAX_DIMS = 4
_TEXT, _LIST = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_LEAST_FIELD_BYTES, _LEAST_TENSOR_BYTES = 13, 24


@dataclass(frozen=True)
class GgufHeader:
    """The metadata of a GGUF file.

    Attributes:
        fields: texts and numbers by name; a list is replaced by as many None.
        shapes: the shape of each tensor by name.
    """

    fields: dict[str, Field]
    shapes: dict[str, tuple[int, ...]]


def read_gguf_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file; raise FileError if it is damaged or its sizes exceed the file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        cursor = _Cursor(raw, str(path))
        if raw[:4] != b"GGUF" or len(raw) < 24:
            raise FileError(f"{path} does not begin like a GGUF file")
        cursor.at = 4
        version = cursor.number("I")
        if version not in (2, 3):
            raise FileError(
                f"{path} is GGUF version {described(version)}", wanted="version 2 or 3, little-endian"
            )
        n_tensors, n_fields = cursor.number("Q"), cursor.number("Q")
        check_held(
            n_fields * _LEAST_FIELD_BYTES + n_tensors * _LEAST_TENSOR_BYTES, len(raw), f"{path} (header)"
        )
        fields: dict[str, Field] = {}
        for _ in range(n_fields):
            name = cursor.text()
            if name in fields:
                raise FileError(f"{path} has `{described(name)}` twice in its header")
            fields[name] = Field(str(path), name, cursor.value())
        tensors = [cursor.tensor() for _ in range(n_tensors)]
        alignment = fields.get("general.alignment", Field(str(path), "general.alignment", 32))
        step = alignment.whole(at_least=1, at_most=2**20)
        n_data = len(raw) - -(-cursor.at // step) * step
        for name, shape, kind, offset in tensors:
            what = f"{path} ({described(name)})"
            check_held(offset + declared_bytes(shape, 1, what) * kind[1] // kind[0], n_data, what)
    return GgufHeader(fields, {name: shape for name, shape, _, _ in tensors})


@dataclass
class _Cursor:
    """A position in the header; reading beyond the end of the file raises FileError."""

    raw: mmap.mmap
    file: str
    at: int = 0
    n_values: int = field(default=0)

    def take(self, n_bytes: int) -> bytes:
        if n_bytes > len(self.raw) - self.at:
            raise FileError(f"{self.file} ends within its header, at byte {self.at:,}: is it truncated?")
        self.at += n_bytes
        return self.raw[self.at - n_bytes : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0]

    def text(self) -> str:
        raw = self.take(self.number("Q"))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise FileError(f"{self.file} has text that is not UTF-8 in its header: is it damaged?") from None

    def value(self) -> Any:
        kind = self.number("I")
        if kind == _LIST:
            return self._skipped_list()
        return self.text() if kind == _TEXT else self.number(self._form(kind))

    def tensor(self) -> tuple[str, tuple[int, ...], tuple[int, int], int]:
        name, n_dims = self.text(), self.number("I")
        if not 1 <= n_dims <= _MAX_DIMS:
            raise FileError(f"{self.file} ({described(name)}) has {n_dims} axes", wanted=f"1 to {_MAX_DIMS}")
        shape = tuple(self.number("Q") for _ in range(n_dims))
        if 0 in shape:
            raise FileError(f"{self.file} ({described(name)}) is empty, with shape {shape}")
        return name, shape, self._packing(self.number("I"), name), self.number("Q")

    def _skipped_list(self) -> list[None]:
        kind, n = self.number("I"), self.number("Q")
        self.n_values += n
        if self.n_values > _MAX_VALUES:
            raise FileError(
                f"{self.file} has lists of {self.n_values:,} values", wanted=f"at most {_MAX_VALUES:,}"
            )
        if kind == _TEXT:
            for _ in range(n):
                self.text()
        else:
            self.take(n * struct.calcsize(f"<{self._form(kind)}"))
        return [None] * n

    def _form(self, kind: int) -> str:
        if kind not in _NUMBERS:
            raise FileError(
                f"{self.file} has a value of type {kind} in its header", wanted="text, numbers or lists"
            )
        return _NUMBERS[kind]

    def _packing(self, kind: int, name: str) -> tuple[int, int]:
        """Return the numbers and the bytes of a block of the quantization."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            n_numbers, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (KeyError, ValueError):
            raise FileError(f"{self.file} ({described(name)}) has the unknown quantization {kind}") from None
        return n_numbers, n_bytes
