"""Vectors in .fvecs and .bvecs, the files of search benchmarks: for each row d, then its d numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, ShapeError
from isoscope.io.chunks import Chunk, Reader
from isoscope.io.files import kind
from isoscope.io.formats import reads
from isoscope.io.raw_rows import RawRows

_NUMBER: dict[str, np.dtype[Any]] = {".fvecs": np.dtype("<f4"), ".bvecs": np.dtype("u1")}
_HEAD_BYTES = 4  # the number of dimensions, before each row


@reads(".fvecs", ".bvecs")
class FvecsReader(Reader):
    """A .fvecs file of float32 numbers, or a .bvecs file of bytes, which are numbers from 0 to 255."""

    def open(self) -> None:
        """Take d from the first row, and n from the size of the file."""
        with self.path.open("rb") as file:
            self.n_dims = int.from_bytes(file.read(_HEAD_BYTES), "little", signed=True)
        if self.n_dims < 1:
            raise ShapeError(f"{self.path} has vectors of {self.n_dims} dimensions", wanted="at least 1")
        number = _NUMBER[kind(self.path)]
        row_bytes = _HEAD_BYTES + self.n_dims * number.itemsize
        self.n_rows, rest = divmod(self.path.stat().st_size, row_bytes)
        if rest:
            raise FileError(
                f"{self.path} has {self.path.stat().st_size:,} bytes, "
                f"which are no rows of {self.n_dims} numbers",
                hint="check that it is not truncated",
            )
        self._rows = RawRows(self.path, 0, np.dtype("u1"), row_bytes, uncached=self.request.uncached)
        self._number = number
        self.seeks = True

    def pieces(self) -> Iterator[Chunk]:
        """Yield all rows, a block at a time."""
        yield from self.rows(0, None, block_rows(self.n_dims))

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Yield rows start … stop−1; the number before each is compared and cut off."""
        first, stop = start, self.n_rows if stop is None else stop
        assert stop is not None
        for stored in self._rows.read(start, stop, step):
            lengths = np.ascontiguousarray(stored[:, :_HEAD_BYTES]).view("<i4").ravel()
            if (lengths != self.n_dims).any():
                row = int(np.flatnonzero(lengths != self.n_dims)[0])
                raise FileError(
                    f"{self.path} has {lengths[row]} numbers in row {first + row:,}, where the first row "
                    f"has {self.n_dims}",
                    wanted="rows of one length",
                )
            numbers = np.ascontiguousarray(stored[:, _HEAD_BYTES:]).view(self._number)
            yield Chunk(numbers if self._number.itemsize > 1 else numbers.astype(np.float32))
            first += len(stored)
