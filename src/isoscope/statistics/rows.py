"""Rows that are read several times: from a tensor in memory, or from a file in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.engine.source import Source, is_source
from isoscope.errors import ShapeError
from isoscope.space import Space
from isoscope.statistics.declared import declare


def is_streamed(X: Any) -> bool:
    """Whether X is read in blocks. A Space also has blocks, but it is in memory."""
    return not isinstance(X, Space) and is_source(X)


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory, or mapped into it.

    points: (n, d) the caller's rows.
    """

    points: Tensor

    @property
    def whole(self) -> Tensor | None:
        """All rows at once."""
        return self.points

    def blocks(self, n_rows: int) -> Iterator[Tensor]:
        """Yield the rows in order, n_rows at a time, without a copy."""
        for start in range(0, len(self.points), n_rows):
            yield self.points[start : start + n_rows]

    def take(self, index: Tensor) -> Tensor:
        """(m, d) the rows with these indices."""
        return self.points[index]


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of an opened file: no more than a block of them is held.

    source: what is read.
    n: the expected number of rows, one for each label.
    """

    source: Source
    n: int

    @property
    def whole(self) -> Tensor | None:
        """A file is never held whole."""
        return None

    def blocks(self, n_rows: int) -> Iterator[Tensor]:
        """Read the file again and yield its rows in order, n_rows at a time."""
        n_read = 0
        for block in _of_size((block.vectors.detach() for block in self.source.blocks(n_rows)), n_rows):
            n_read += len(block)
            if n_read > self.n:
                break
            yield block
        if n_read != self.n:
            n_vectors = ", but there are more vectors" if n_read > self.n else f" for {n_read} vectors"
            raise ShapeError(f"has {self.n} entries{n_vectors}", argument="labels", wanted="one for each")

    def take(self, index: Tensor) -> Tensor:
        """(m, d) the rows with these indices, read in one pass that stops after the last one."""
        order = index.argsort()
        wanted, parts, start = index[order], [], 0
        for block in self.source.blocks():
            stop = start + len(block)
            here = wanted[(wanted >= start) & (wanted < stop)]
            parts.append(block.vectors.detach()[here - start])
            start = stop
            if start > int(wanted[-1]):
                break
        drawn = torch.cat(parts)
        back = torch.empty_like(drawn)
        back[order] = drawn
        return back


def _of_size(blocks: Iterable[Tensor], n_rows: int) -> Iterator[Tensor]:
    """Regroup the blocks so that each has n_rows rows, except perhaps the last."""
    waiting: list[Tensor] = []
    n_waiting = 0
    for block in blocks:
        while n_waiting + len(block) >= n_rows:
            head, block = block[: n_rows - n_waiting], block[n_rows - n_waiting :]
            yield torch.cat([*waiting, head]) if waiting else head
            waiting, n_waiting = [], 0
        if len(block):
            waiting.append(block)
            n_waiting += len(block)
    if waiting:
        yield torch.cat(waiting)


Rows = HeldRows | FileRows


def as_rows(X: Any, n: int) -> Rows:
    """Return the rows of an opened file or of any array, not yet checked to be finite."""
    if is_streamed(X):
        return FileRows(X, n)
    return HeldRows(as_matrix(X, finite=False).detach())


declare(
    "vectors",
    None,
    lambda space, _: space.vectors,
    merges=False,
    bytes_held=lambda n, d, _k: 4 * n * d,
)
