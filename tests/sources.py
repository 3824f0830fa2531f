"""Sources for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isoscope.engine.source import Wrapped
from isoscope.space import Space


class Blocks(Wrapped):
    """Spaces one after another, each a block, as a source that cannot be loaded."""

    n_rows = None

    def __init__(self, spaces: Sequence[Space]) -> None:
        super().__init__(spaces[0])
        self._spaces = spaces

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        yield from self._spaces

    def load(self) -> Space:
        raise AssertionError("a stream is never held whole")
