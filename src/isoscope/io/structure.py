"""Structure that a stranger wrote: sizes are compared before anything is read, types before anything is used.

Every failure is one FileError that names the file, the field, what came and what is wanted.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NoReturn

from isoscope.errors import FileError
from isoscope.printable import shortened

MAX_JSON_BYTES = 16 * 2**20
MAX_JSON_DEPTH = 64
# what unpacks to less is harmless; what unpacks to more must not be many times what is packed
MAX_UNPACKED_BYTES = 64 * 2**20
MAX_GROWTH = 20
MAX_ENTRIES = 200_000
MAX_NAME = 4096
LARGEST_WHOLE = 2**63 - 1
_LONGEST_SHOWN = 40
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # never fails, so it is linear in any input
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


@dataclass(frozen=True)
class Field:
    """A value in a stranger's file, and where it is; its type is checked as it is taken out.

    Attributes:
        file: the file, for messages.
        name: the way to the value, such as `layers[2].size`; empty for the outermost.
        value: as it was parsed, of any type.
    """

    file: str
    name: str
    value: Any

    def __getitem__(self, name: str) -> Field:
        """Return an entry of a mapping; raise FileError where it is absent."""
        entry = self.get(name)
        if entry is None:
            raise FileError(f"{self.file}: `{self._inside(name)}` is missing")
        return entry

    def get(self, name: str) -> Field | None:
        """Return an entry of a mapping, or None where it is absent."""
        mapping = self._of_type(dict, "an object")
        return Field(self.file, self._inside(name), mapping[name]) if name in mapping else None

    def mapping(self) -> dict[str, Field]:
        """Return the entries of a mapping by name."""
        mapping = self._of_type(dict, "an object")
        return {str(name): Field(self.file, self._inside(name), value) for name, value in mapping.items()}

    def entries(self, *, at_least: int = 0, at_most: int | None = None) -> list[Field]:
        """Return the entries of a list."""
        entries = self._of_type(list, "a list")
        if len(entries) < at_least or (at_most is not None and len(entries) > at_most):
            self.refuse(f"a list of {_span(at_least, at_most)} entries")
        return [Field(self.file, f"{self.name}[{place}]", entry) for place, entry in enumerate(entries)]

    def text(self) -> str:
        """Return a string that can be written as UTF-8."""
        text: str = self._of_type(str, "text")
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            self.refuse("text in Unicode")
        return text

    def choice(self, choices: Collection[str]) -> str:
        """Return a string that is one of the choices."""
        if not isinstance(self.value, str) or self.value not in choices:
            self.refuse(f"one of {', '.join(choices)}")
        return self.value

    def whole(self, *, at_least: int = 0, at_most: int = LARGEST_WHOLE) -> int:
        """Return a whole number between two bounds; true and false are none."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.refuse("a whole number")
        if not at_least <= self.value <= at_most:
            self.refuse(f"a whole number of {_span(at_least, at_most)}")
        return self.value

    def number(self, *, at_least: float = -math.inf, at_most: float = math.inf) -> float:
        """Return a finite number between two bounds; true and false are none."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or not at_least <= number <= at_most:
            bounds = "" if math.isinf(at_least) and math.isinf(at_most) else f" of {_span(at_least, at_most)}"
            self.refuse(f"a finite number{bounds}")
        return number

    def flag(self) -> bool:
        """Return true or false."""
        flag: bool = self._of_type(bool, "true or false")
        return flag

    def refuse(self, wanted: str) -> NoReturn:
        """Raise the FileError over this value."""
        raise FileError(
            f"{self.file}: `{self.name or 'content'}` must be {wanted}, got {described(self.value)}"
        )

    def _of_type(self, kind: type, wanted: str) -> Any:
        if not isinstance(self.value, kind):
            self.refuse(wanted)
        return self.value

    def _inside(self, name: object) -> str:
        shown = shortened(str(name), _LONGEST_SHOWN)
        return f"{self.name}.{shown}" if self.name else shown


def read_json(path: Path, *, max_bytes: int = MAX_JSON_BYTES, max_depth: int = MAX_JSON_DEPTH) -> Field:
    """Return the content of a JSON file, if it is no longer and no deeper than the bounds."""
    try:
        with path.open("rb") as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    return parse_json(raw, str(path), max_bytes=max_bytes, max_depth=max_depth)


def parse_json(
    raw: bytes | str, file: str, *, max_bytes: int = MAX_JSON_BYTES, max_depth: int = MAX_JSON_DEPTH
) -> Field:
    """Return parsed JSON, if it is no longer and no deeper than the bounds; `file` is for messages."""
    if isinstance(raw, str):
        raw = raw.encode("utf-8", "surrogatepass")
    if len(raw) > max_bytes:
        raise FileError(f"{file} has too much JSON", wanted=f"at most {max_bytes:,} bytes")
    brackets = _JSON_STRING.sub(b"", raw).translate(None, _ALL_BUT_BRACKETS)
    if max(accumulate(1 if sign in b"[{" else -1 for sign in brackets), default=0) > max_depth:
        raise FileError(f"{file} has JSON nested too deeply", wanted=f"at most {max_depth} levels")
    try:
        return Field(file, "", json.loads(raw.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, an integer of thousands of digits
        raise FileError(f"{file} is not JSON: {str(error).splitlines()[0][:120]}") from error


def described(value: object) -> str:
    """Return what a value is in a few words, however large it is.

    >>> described([1, 2, 3]), described("abc"), described(True), described(None)
    ('a list of 3', "'abc'", 'true', 'null')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_SHOWN:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(shortened(value, _LONGEST_SHOWN))
    return repr(value)[:_LONGEST_SHOWN]


def declared_bytes(lengths: Collection[int], item_bytes: int, what: str) -> int:
    """Return the bytes that a header's shape asks for; raise FileError over a shape that none can have.

    Items of no bytes could be any number without a file growing by them, so they are refused.
    """
    if any(length < 0 for length in lengths):
        raise FileError(
            f"has a negative length in its shape {tuple(lengths)}: its header is damaged", argument=what
        )
    if item_bytes < 1:
        raise FileError("has items of 0 bytes", argument=what, wanted="at least 1 byte in each")
    return math.prod(lengths) * item_bytes


def check_held(claimed: int, held: int, what: str) -> None:
    """Raise FileError where a header claims more bytes than its file holds."""
    if claimed > held:
        raise FileError(
            f"{what} claims {claimed:,} bytes but holds {held:,}", hint="check that it is not truncated"
        )


def check_growth(unpacked: int, packed: int, what: str, hint: str) -> None:
    """Raise FileError over what unpacks to both very much and very many times its packed size."""
    if unpacked > max(MAX_UNPACKED_BYTES, MAX_GROWTH * packed):
        raise FileError(
            f"{what} unpacks to {unpacked:,} bytes or more from {packed:,}",
            wanted=f"at most {MAX_GROWTH} times as many",
            hint=hint,
        )


class BoundedStream(io.RawIOBase):
    """Bytes unpacked from a file, up to the growth that is allowed of their packed size."""

    def __init__(self, stream: IO[bytes], packed: int, what: str, hint: str) -> None:
        super().__init__()
        self._stream, self._packed, self._what, self._hint = stream, packed, what, hint
        self._n_read = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes and return their number, which is 0 at the end."""
        with memoryview(buffer) as view:
            chunk = self._stream.read(len(view))
            view[: len(chunk)] = chunk
        self._n_read += len(chunk)
        check_growth(self._n_read, self._packed, self._what, self._hint)
        return len(chunk)

    def close(self) -> None:
        """Close the stream beneath as well."""
        self._stream.close()
        super().close()


def leaves(value: object, what: str) -> Iterator[tuple[str, Any]]:
    """Yield what nested mappings hold, under dotted names.

    Mappings that share their entries are small in a file and endless when they are followed: raises FileError
    beyond MAX_ENTRIES mappings and leaves.
    """
    waiting: list[tuple[str, Any]] = [("", value)]
    for _ in range(MAX_ENTRIES):
        if not waiting:
            return
        name, entry = waiting.pop()
        if not isinstance(entry, dict):
            yield name, entry
            continue
        inside = [(f"{name}.{key}" if name else str(key), held) for key, held in entry.items()]
        if any(len(name) > MAX_NAME for name, _ in inside):
            raise FileError(
                "has an entry whose name is too long", argument=what, wanted=f"at most {MAX_NAME:,} letters"
            )
        waiting += reversed(inside)
    raise FileError("has too many nested entries", argument=what, wanted=f"at most {MAX_ENTRIES:,}")


def _span(at_least: float, at_most: float | None) -> str:
    if at_most is None or at_most in (math.inf, LARGEST_WHOLE):
        return f"at least {at_least}"
    return f"at most {at_most}" if math.isinf(at_least) else f"{at_least} to {at_most}"


def check_distinct(names: Iterable[str], what: str) -> None:
    """Raise FileError where an archive holds two members of one name: readers differ in which they take."""
    name, n = max(Counter(names).items(), key=lambda one: one[1], default=("", 0))
    if n > 1:
        raise FileError(f"holds {described(name)} {n} times", argument=what, wanted="each name once")
