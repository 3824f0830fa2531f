"""Moments on CUDA whose checks are read back together, for many blocks at once.

`Moments.of` asks the device after each block whether float32 was enough. Where many blocks come one after
another, as the layers of a model do, each question would wait for everything launched before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.precision import full_precision
from isoscope.statistics.moments import Moments, of_whole_block


@dataclass(frozen=True, eq=False)
class Unchecked:
    """The moments of a block, and the block itself, which is needed again if they cannot be trusted."""

    moments: Moments
    rows: Tensor


def can_defer(rows: Tensor) -> bool:
    """Whether moments of these rows can be taken before they are checked."""
    return (
        rows.is_cuda and not rows.requires_grad and rows.dtype == torch.float32 and len(rows) >= rows.shape[1]
    )


@full_precision
def unchecked(rows: Tensor) -> Unchecked:
    """Launch the sums of a block; nothing waits for the device."""
    return Unchecked(of_whole_block(rows), rows)


def checked(blocks: Sequence[Unchecked]) -> list[Moments]:
    """Return the moments of all blocks, after one wait for the device; what lost digits is taken again."""
    numbers = torch.stack([block.moments.numbers for block in blocks]).tolist()
    moments_of_blocks = []
    for block, block_numbers in zip(blocks, numbers, strict=True):
        moments = block.moments
        vars(moments)["_numbers"] = tuple(block_numbers)  # read: asking again would wait again
        moments_of_blocks.append(
            moments if moments.suits_float32 and not moments.is_flat else Moments.of(block.rows)
        )
    return moments_of_blocks
