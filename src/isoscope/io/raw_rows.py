"""Rows of an array that lies in a file as it would in memory, read with no more than a block held.

A mapped file counts as memory while its pages are mapped; what is read is let go with the block. Files too
large for the system's cache are let go from there too: they are gone from it before they are read again, and
making room costs time. Measured on 4 GB, cold: 17 s of processor time in place of 23, 32 in place of 36 in
half precision; reading past the cache (O_DIRECT) takes 16 and 30.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from isoscope.io.addresses import FilePath

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_SHARE = 0.5  # of memory that files may fill and still be found in the cache the next time


def physical_bytes() -> int:
    """Return the memory of this machine in bytes, or the limit of the container."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [path.read_text().strip() for path in _LIMITS if path.is_file()]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit())])


def fill_memory(n_bytes: int) -> bool:
    """Whether files of this size together are too large for the cache."""
    return n_bytes > _SHARE * physical_bytes()


@dataclass(frozen=True)
class RawRows:
    """Where (n, d) numbers begin in a file, row after row, and what each is.

    Attributes:
        path: the file.
        offset: bytes before the first number.
        dtype: of a number as stored.
        n_dims: d.
        uncached: whether what is read is let go from the system's cache.
    """

    path: FilePath
    offset: int
    dtype: np.dtype[Any]
    n_dims: int
    uncached: bool = False

    def read(self, start: int, stop: int, step: int) -> Iterator[np.ndarray]:
        """Yield rows start … stop−1, `step` at a time; raise FileError where the file ends before."""
        row_bytes = self.n_dims * self.dtype.itemsize
        lets_go = self.uncached and isinstance(self.path, Path) and hasattr(os, "posix_fadvise")
        with self.path.open("rb") as file:
            file.seek(self.offset + start * row_bytes)
            for first in range(start, stop, step):
                rows = np.empty((min(step, stop - first), self.n_dims), self.dtype)
                n_read = file.readinto(rows.reshape(-1).view(np.uint8))  # type: ignore[attr-defined]
                if n_read < rows.nbytes:
                    raise EOFError(f"{rows.nbytes - n_read:,} bytes are missing at row {first:,}")
                if lets_go:
                    place = self.offset + first * row_bytes
                    os.posix_fadvise(file.fileno(), place, rows.nbytes, os.POSIX_FADV_DONTNEED)
                yield rows
