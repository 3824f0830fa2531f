"""Word vectors: GloVe and word2vec text, and word2vec's binary layout; the words become texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, ShapeError
from isoscope.io.chunks import Chunk, Reader
from isoscope.io.files import check_text, first_bytes, is_gzip, open_bytes, sample_lines
from isoscope.io.formats import reads

_CHUNK_BYTES = 8 * 2**20
_MAX_WORD_BYTES = 2**16
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_SPECIAL = {b"nan", b"inf", b"-inf", b"+nan", b"-nan", b"+inf", b"infinity", b"-infinity"}
_WANTED = "a word and its numbers"
_FASTTEXT = (793712314).to_bytes(4, "little")


@reads(".txt", ".vec", ".glove")
class WordTextReader(Reader):
    """A word and d numbers a line, as GloVe writes them; word2vec and fastText put a line "n d" before."""

    def open(self) -> None:
        """Read the first lines: a header if there is one, else the length most lines agree on."""
        lines = [line for line in sample_lines(self.path, what=_WANTED) if line.strip()]
        header = [int(part) for part in lines[0].split()] if lines and _is_header(lines[0]) else []
        self._n_header_lines = 1 if header else 0
        body = [line.split() for line in lines[self._n_header_lines :]]
        if not body:
            raise ShapeError(f"{self.path} has no vectors", wanted="a word and its numbers in each line")
        common = numbers_a_line(body)
        self.n_rows, self.n_dims = header or (None, common)
        if common == 0:
            raise FileError(
                f"{self.path} has no numbers after the first word", wanted="'word 0.1 0.2 …' in each line"
            )
        if header and self.n_dims != common:
            raise ShapeError(
                f"{self.path} says {self.n_dims} dimensions in its first line but has {common} numbers a line"
            )
        self._check_words(body)
        self._check_size()

    def pieces(self) -> Iterator[Chunk]:
        """Yield some megabytes of lines at a time."""
        with open_bytes(self.path) as file:
            line_number = 1
            for lines in _line_groups(file, self):
                skipped = self._n_header_lines if line_number == 1 else 0
                chunk = self._parse(lines[skipped:], line_number + skipped)
                if len(chunk):
                    yield chunk
                line_number += len(lines)

    def _parse(self, lines: list[bytes], first_line: int) -> Chunk:
        words, numbers = [], []
        n_blanks = self.n_dims - 1
        for i, line in enumerate(lines):
            word, _, rest = line.partition(b" ")
            if rest.count(b" ") != n_blanks or b"\t" in line:  # a word with blanks, tabs, or a ragged line
                if not line.strip():
                    continue
                word, rest = self._split(line, first_line + i)
            words.append(word.decode("utf-8", "replace"))
            numbers.append(rest)
        if not words:
            return Chunk(np.empty((0, self.n_dims), np.float32), [])
        try:
            vectors = _parse_numbers(b"\n".join(numbers), self.n_dims)
        except ValueError as error:
            self._explain(lines, first_line, error)
        return Chunk(vectors, words)

    def _split(self, line: bytes, line_number: int) -> tuple[bytes, bytes]:
        """Split a line with a word of several tokens into the word and its last d numbers."""
        parts = line.rsplit(None, self.n_dims)
        # the word may hold blanks, as in GloVe's 840B, but it may not end in what is one number too many
        inner = parts[0].split()
        if len(parts) <= self.n_dims or (len(inner) > 1 and _NUMBER.fullmatch(inner[-1])):
            self._ragged(line, line_number)
        return parts[0], b" ".join(parts[1:])

    def _ragged(self, line: bytes, line_number: int) -> NoReturn:
        found = max(len(line.split()) - 1, 0)
        raise ShapeError(
            f"{self.path} has {found} numbers in line {line_number}",
            wanted=f"{self.n_dims} after the word, as in the other lines",
        )

    def _explain(self, lines: list[bytes], first_line: int, error: Exception) -> NoReturn:
        """Raise an error that names the line and the token that is no number."""
        for i, line in enumerate(lines):
            for token in line.split()[-self.n_dims :]:
                if not (_NUMBER.fullmatch(token) or token.lower() in _SPECIAL):
                    shown = token[:40].decode("utf-8", "replace")
                    raise FileError(
                        f"{self.path} has {shown!r} in line {first_line + i}, which is not a number",
                        wanted=f"a word and {self.n_dims} numbers",
                    ) from error
        raise error  # pragma: no cover - Arrow and the pattern agree on what a number is

    def _check_words(self, body: list[list[bytes]]) -> None:
        if all(_NUMBER.fullmatch(tokens[0]) and not tokens[0].isdigit() for tokens in body):
            raise FileError(
                f"{self.path} begins every line with a number",
                wanted="a word",
                hint="rename the file to .csv if it is a table of numbers",
            )

    def _check_size(self) -> None:
        if self.n_rows is None or is_gzip(self.path):
            return
        if self.n_rows == 0:
            raise ShapeError(f"{self.path} says 0 vectors in its first line", wanted="at least one")
        if self.n_rows * 2 * self.n_dims > self.path.stat().st_size:  # a number takes two bytes at least
            raise _too_short(self)


@reads(".bin")
class WordBinaryReader(Reader):
    """word2vec's binary layout: "n d", then each word, a blank, and d float32."""

    def open(self) -> None:
        """Read the first line and compare what it claims with the size of the file."""
        self._refuse_others()
        with open_bytes(self.path) as file:
            self.n_rows, self.n_dims = self._header(file)
        if self.n_rows == 0 or self.n_dims == 0:
            raise ShapeError(
                f"{self.path} is empty, shape {(self.n_rows, self.n_dims)}", wanted="at least one vector"
            )
        if not is_gzip(self.path) and self.n_rows * (4 * self.n_dims + 2) > self.path.stat().st_size:
            raise _too_short(self)

    def pieces(self) -> Iterator[Chunk]:
        """Yield blocks of rows; raise an error where the file ends early."""
        assert self.n_rows is not None
        step, row_bytes = block_rows(self.n_dims), 4 * self.n_dims
        with open_bytes(self.path) as file:
            self._header(file)
            buffer = _Buffer(file)
            for start in range(0, self.n_rows, step):
                words, rows = [], []
                for i in range(start, min(start + step, self.n_rows)):
                    word, row = buffer.word(), buffer.take(row_bytes)
                    if word is None or row is None:
                        raise FileError(
                            f"{self.path} ends after {i:,} of its {self.n_rows:,} vectors",
                            hint="check that it is not truncated",
                        )
                    words.append(word.lstrip(b"\n").decode("utf-8", "replace"))
                    rows.append(row)
                yield Chunk(np.frombuffer(b"".join(rows), dtype="<f4").reshape(-1, self.n_dims), words)

    def _header(self, file: BinaryIO) -> tuple[int, int]:
        line = file.readline(64)
        if not (line.endswith(b"\n") and _is_header(line)):
            raise FileError(
                f"{self.path} does not begin with a line 'n d'", wanted="word2vec's binary layout"
            )
        n, d = map(int, line.split())
        return n, d

    def _refuse_others(self) -> None:
        magic = first_bytes(self.path, 4)
        if magic == b"PK\x03\x04":
            raise FileError(f"{self.path} looks like a torch archive, not word2vec", hint="rename it to .pt")
        if magic == _FASTTEXT:
            raise FileError(
                f"{self.path} is a fastText model", wanted="its vectors", hint="use the .vec file beside it"
            )


def _too_short(reader: Reader) -> FileError:
    claim = f"{reader.n_rows:,} × {reader.n_dims:,}"
    return FileError(
        f"{reader.path} says {claim} in its first line but is too short for that",
        hint="check that it is not truncated",
    )


class _Buffer:
    """Bytes of a stream, taken in order without a read for each row."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._bytes, self._at = file, b"", 0

    def word(self) -> bytes | None:
        """Return everything up to the next blank; None where a word is too long."""
        while (end := self._bytes.find(b" ", self._at)) < 0:
            if len(self._bytes) - self._at > _MAX_WORD_BYTES or not self._more(1):
                return None
        word = self._bytes[self._at : end]
        self._at = end + 1
        return word

    def take(self, n: int) -> bytes | None:
        """Return the next n bytes, or None where the file has fewer."""
        if len(self._bytes) - self._at < n and not self._more(n):
            return None
        taken = self._bytes[self._at : self._at + n]
        self._at += n
        return taken if len(taken) == n else None

    def _more(self, n: int) -> bool:
        new = self._file.read(max(n, _CHUNK_BYTES))
        self._bytes, self._at = self._bytes[self._at :] + new, 0
        return bool(new)


def _parse_numbers(text: bytes, n_dims: int) -> np.ndarray:
    """Parse lines of n_dims numbers into an (m, n_dims) float32 array; raise ValueError over other lines."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [str(i) for i in range(n_dims)]
    table: Any = arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=len(text) + 1),
        parse_options=arrow_csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.float32()), null_values=[]
        ),
    )
    batch = table.combine_chunks().to_batches()[0]
    return np.asarray(batch.to_tensor(row_major=True).to_numpy())


def _line_groups(file: BinaryIO, reader: Reader) -> Iterator[list[bytes]]:
    """Yield lists of whole lines, stripped at the end, of about a chunk of bytes each."""
    held = b""
    while block := file.read(_CHUNK_BYTES):
        *lines, held = (held + block).split(b"\n")
        check_text(held, reader.path, what=_WANTED)
        if lines:
            yield [line.rstrip() for line in lines]
    if held:
        yield [held.rstrip()]


def numbers_a_line(lines: list[list[bytes]]) -> int:
    """Return how many numbers end most lines, each a list of words; the first line decides a tie."""
    counts = Counter(map(_n_numbers, lines))
    return max(counts, key=lambda n: (counts[n], n == _n_numbers(lines[0])))


def _is_header(line: bytes) -> bool:
    parts = line.split()
    return len(parts) == 2 and all(part.isdigit() and len(part) < 16 for part in parts)


def _n_numbers(tokens: list[bytes]) -> int:
    """Return how many numbers end the line; the first token is the word, even if it looks like a number."""
    n = 0
    for token in reversed(tokens[1:]):
        if not (_NUMBER.fullmatch(token) or token.lower() in _SPECIAL):
            break
        n += 1
    return n
