"""Rows of an array that lies in a file as it would in memory, read with no more than a block held.

A mapped file counts as memory while its pages are mapped; what is read is let go with the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RawRows:
    """Where (n, d) numbers begin in a file, row after row, and what each is.

    Attributes:
        path: the file.
        offset: bytes before the first number.
        dtype: of a number as stored.
        n_dims: d.
    """

    path: Path
    offset: int
    dtype: np.dtype[Any]
    n_dims: int

    def read(self, start: int, stop: int, step: int) -> Iterator[np.ndarray]:
        """Rows start … stop−1, `step` at a time; a file that ends before them is an error."""
        with self.path.open("rb") as file:
            file.seek(self.offset + start * self.n_dims * self.dtype.itemsize)
            for first in range(start, stop, step):
                wanted = (min(first + step, stop) - first) * self.n_dims
                numbers = np.fromfile(file, dtype=self.dtype, count=wanted)
                if len(numbers) < wanted:
                    missing = (wanted - len(numbers)) * self.dtype.itemsize
                    raise EOFError(f"{missing:,} bytes are missing at row {first:,}")
                yield numbers.reshape(-1, self.n_dims)
