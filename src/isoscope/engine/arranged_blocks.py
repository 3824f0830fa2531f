"""Arranged blocks of rows, held as long as strips that met them: the next strip meets most of them again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakValueDictionary

from torch import Tensor

from isoscope.kernels.tiles import Arranged
from isoscope.labels import Labels

HELD_BYTES = 128 * 2**20  # of arranged blocks

Key = tuple[str, int, int]  # run, first row among all, row after the last
_here: WeakValueDictionary[Key, Arranged] = WeakValueDictionary()  # of all strips in this process
_lock = threading.Lock()


class ArrangedBlocks:
    """The blocks that strips met last; gone with the strips.

    In one process all strips of a run share them. A strip that is sent to another process leaves them behind
    and holds its own there, which other strips in that process find.
    """

    def __init__(self) -> None:
        self._blocks: OrderedDict[Key, Arranged] = OrderedDict()

    def __reduce__(self) -> tuple[Callable[[], ArrangedBlocks], tuple[()]]:
        return ArrangedBlocks, ()

    def of(self, key: Key, rows: Tensor, labels: Labels) -> Arranged:
        """Return the arranged rows, arranged now unless some strip in this process has them."""
        with _lock:
            arranged = _here.get(key)
        if arranged is None:
            arranged = Arranged.of(rows.clone(), labels)
        with _lock:
            _here[key] = self._blocks[key] = arranged
            self._blocks.move_to_end(key)
            while len(self._blocks) > 1 and self._n_bytes > HELD_BYTES:
                self._blocks.popitem(last=False)
        return arranged

    @property
    def _n_bytes(self) -> int:
        return sum(block.points.nbytes + block.augmented.nbytes for block in self._blocks.values())
