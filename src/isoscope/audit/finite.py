"""`Finite`: a source whose rows with NaN or infinity are read as zero vectors, and remembered."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from isoscope.engine.source import Source, Wrapped
from isoscope.space import Space
from isoscope.unchecked import unchecked


class Finite(Wrapped):
    """A source that survives numbers that are not finite.

    Attributes:
        bad: (b,) the rows with NaN or infinity, known once all blocks have been read.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._bad: dict[int, list[int]] = {}

    @property
    def bad(self) -> Tensor:
        """The rows with NaN or infinity."""
        return torch.tensor(sorted(row for rows in self._bad.values() for row in rows), dtype=torch.int64)

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the rows in order; a row that is not finite is zero."""
        start, blocks = 0, self.source.blocks(n_rows)
        while True:
            with unchecked():
                block = next(blocks, None)
            if block is None:
                return
            yield self._mended(block, start)
            start += len(block)

    def load(self) -> Space:
        """All rows."""
        with unchecked():
            space = self.source.load()
        return self._mended(space, 0)

    def _mended(self, block: Space, start: int) -> Space:
        vectors = block.vectors.detach()
        if bool(torch.isfinite(vectors.sum(dtype=torch.float64))):
            return block
        bad = (~torch.isfinite(vectors)).any(dim=1)
        if not bool(bad.any()):
            return block
        self._bad[start] = (bad.nonzero().flatten() + start).tolist()
        return block.with_vectors(vectors.masked_fill(bad[:, None], 0.0))
