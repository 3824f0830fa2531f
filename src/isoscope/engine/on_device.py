"""`OnDevice`: the vectors of another source, moved to a device block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from isoscope.arrays import as_device, block_rows
from isoscope.engine.source import Source, Wrapped
from isoscope.space import Space

_SHARE = 4  # of a block on the device: one is read while others lie ready


class OnDevice(Wrapped):
    """A source whose blocks lie on a device.

    Raises:
        InputError: torch does not know the device, or this machine does not have it.
    """

    def __init__(self, source: Source, device: str | torch.device) -> None:
        super().__init__(source)
        self._device = as_device(device) or source.device

    @property
    def device(self) -> torch.device:
        """Where the vectors live."""
        return self._device

    def parts(self, n_rows: int) -> Sequence[Source]:
        """Return the parts of the other source, on the device too."""
        return [OnDevice(part, self._device) for part in self.source.parts(n_rows)]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the rows in order; many at a time for CUDA, where every launch costs the same."""
        if n_rows is None and self._device.type == "cuda":
            n_rows = block_rows(self.n_dims, self._device) // _SHARE
        return map(self._moved, self.source.blocks(n_rows))

    def load(self) -> Space:
        """All rows."""
        return self._moved(self.source.load())

    def _moved(self, space: Space) -> Space:
        return space.with_vectors(space.vectors.to(self._device))
