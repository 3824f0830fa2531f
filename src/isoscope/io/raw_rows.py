"""Rows of an array that lies in a file as it would in memory, read with no more than a block held.

A mapped file counts as memory while its pages are mapped; what is read is let go with the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.io.uncached import UncachedFile


@dataclass(frozen=True)
class RawRows:
    """Where (n, d) numbers begin in a file, row after row, and what each is.

    Attributes:
        path: the file.
        offset: bytes before the first number.
        dtype: of a number as stored.
        n_dims: d.
        uncached: whether to read past the system's cache where that can be done.
    """

    path: Path
    offset: int
    dtype: np.dtype[Any]
    n_dims: int
    uncached: bool = False

    def read(self, start: int, stop: int, step: int) -> Iterator[np.ndarray]:
        """Rows start … stop−1, `step` at a time; a file that ends before them is an error."""
        # past the cache numbers lie in memory as they do in the file, which has to suit their type
        file = (
            UncachedFile.open(self.path) if self.uncached and self.offset % self.dtype.itemsize == 0 else None
        )
        blocks = self._cached(start, stop, step) if file is None else self._uncached(file, start, stop, step)
        for first, numbers in zip(range(start, stop, step), blocks, strict=True):
            wanted = (min(first + step, stop) - first) * self.n_dims
            if len(numbers) < wanted:
                missing = (wanted - len(numbers)) * self.dtype.itemsize
                raise EOFError(f"{missing:,} bytes are missing at row {first:,}")
            yield numbers.reshape(-1, self.n_dims)

    def _cached(self, start: int, stop: int, step: int) -> Iterator[np.ndarray]:
        with self.path.open("rb") as file:
            file.seek(self._place(start))
            for first in range(start, stop, step):
                yield np.fromfile(
                    file, dtype=self.dtype, count=(min(first + step, stop) - first) * self.n_dims
                )

    def _uncached(self, file: UncachedFile, start: int, stop: int, step: int) -> Iterator[np.ndarray]:
        with file:
            for first in range(start, stop, step):
                place = self._place(first)
                raw = file.read(place, self._place(min(first + step, stop)) - place)
                yield raw[: len(raw) // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype)

    def _place(self, row: int) -> int:
        return self.offset + row * self.n_dims * self.dtype.itemsize
