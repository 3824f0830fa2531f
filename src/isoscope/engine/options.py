"""What is asked of a run past memory: how much memory, where it runs, what it leaves behind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from isoscope.arrays import block_rows
from isoscope.engine.passes import LEFT_OUT_ROWS
from isoscope.errors import InputError
from isoscope.kernels.workers import AHEAD

PART_BYTES = 256 * 2**20  # of float32 that make a part of a file that is cut into parts
_COPIES = 4  # of a block for each core and task ahead of it: lifted, centred, in float64, kept by allocators
_MATRICES = 24  # of d × d numbers: a tree of scatters, those ahead, their merges, eigenvectors
_LOADED_BYTES = 32 * 10**6  # of code that libraries load when it first runs
_LEFT_OUT_BYTES = 8 * 4 * 3  # for each row left out for a standard error: four numbers, thrice as they merge
_LEFT_OUT_SHARE = 0.25  # of the room, for those
_LEAST_ROWS = 64
_BLOCKS_A_READ = 2  # rows between two merges, which cost several passes over (d, d)


@dataclass(frozen=True)
class Scale:
    """How vectors are passed over.

    Attributes:
        memory: the most bytes this process may take; None for no bound.
        scheduler: the address of a Dask scheduler, "local" to start one here, None to work in this process.
        checkpoint: a folder for what is finished, so that a run that was killed goes on from there.
        skip_bad: leave out files that cannot be read, and say which.
    """

    memory: int | None = None
    scheduler: str | None = None
    checkpoint: Path | None = None
    skip_bad: bool = False

    @property
    def asked(self) -> bool:
        """Whether anything is asked for beyond what `measure` does by itself."""
        return self != Scale()

    def rows_left_out(self) -> int | None:
        """Return about how many rows may have a number each for standard errors; None for no bound."""
        if self.memory is None:
            return None
        room = self.memory - resident_bytes() - _LOADED_BYTES
        return min(LEFT_OUT_ROWS, max(_LEAST_ROWS, int(_LEFT_OUT_SHARE * room) // _LEFT_OUT_BYTES))

    def rows_of_block(self, n_dims: int, n_labels: int = 0) -> int:
        """Return how many rows to read at a time, so that all that is held keeps within the bound.

        Asked once, before anything is read: allocators keep what was freed, which would count as held.
        """
        wanted = _BLOCKS_A_READ * block_rows(n_dims)
        if self.memory is None:
            return wanted
        other_bytes = resident_bytes() + _LOADED_BYTES + _LEFT_OUT_BYTES * (self.rows_left_out() or 0)
        other_bytes += 8 * _MATRICES * n_dims * n_dims + 8 * 4 * n_labels * n_dims
        row_bytes = 4 * _COPIES * n_dims * (AHEAD + 1) * torch.get_num_threads()
        fitting = int((self.memory - other_bytes) // row_bytes)
        if fitting < _LEAST_ROWS:
            least = other_bytes + row_bytes * _LEAST_ROWS
            raise InputError(
                f"is {self.memory / 10**6:,.0f} MB, which leaves no room for a block of {n_dims} "
                "dimensions beside the memory that Python already uses",
                argument="memory",
                wanted=f"at least {least / 10**6:,.0f} MB",
            )
        return min(wanted, fitting)


def resident_bytes() -> int:
    """Return the bytes that this process holds now."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
