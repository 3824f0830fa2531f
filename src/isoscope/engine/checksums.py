"""`checksums`: whether tensors in memory have changed, by every byte of them; fast, for one process.

`isoscope.arrays.digest` identifies tensors across processes and machines.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import torch
from torch import Tensor

from isoscope.labels import Labels
from isoscope.space import Space
from isoscope.statistics.fused import can_launch

_AT_ONCE = 1 << 22  # values
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int32, 16: torch.int32}  # by bytes


def checksums(space: Space) -> dict[str, tuple[torch.Size, torch.dtype, int]]:
    """Return shape, type and checksum of each tensor of a Space by its name, for labels those of their codes.

    >>> before = checksums(Space([[0.0, 1.0], [1.0, 0.0]]))
    >>> before == checksums(Space([[0.0, 1.0], [1.0, 0.0]])), before == checksums(Space([[1.0, 0], [0, 1]]))
    (True, False)
    """
    columns = {name: value for name, value in vars(space).items() if isinstance(value, Labels | Tensor)}
    tensors = {name: value.codes if isinstance(value, Labels) else value for name, value in columns.items()}
    return {name: (value.shape, value.dtype, checksum(value)) for name, value in tensors.items()}


def checksum(values: Tensor) -> int:
    """Return a checksum of all bytes of a tensor, in their order; computed on the tensor's device.

    It is a CRC-32 on the CPU. Elsewhere it is the sum of the bit patterns modulo 2⁶⁴, each times an odd
    number that its row and column determine.
    """
    values = values.detach()
    if values.device.type == "cpu" and values.is_contiguous():
        return zlib.crc32(values.view(torch.uint8).numpy().data)
    rows = values.flatten(1) if values.ndim > 1 else values.reshape(-1, 1)
    if rows.is_cuda and can_launch(rows.new_empty(0, dtype=torch.float32)):
        from isoscope.kernels.triton_checksum import checksum_of_bits

        return int(checksum_of_bits(rows.contiguous().view(_INTEGERS[rows.element_size()])))
    blocks = rows.split(max(1, _AT_ONCE // max(1, rows.shape[1])))
    if rows.device.type != "cpu":
        return weighted_sum(blocks)
    code = 0
    for block in blocks:
        code = zlib.crc32(block.contiguous().view(torch.uint8).numpy().data, code)
    return code


def weighted_sum(blocks: Iterable[Tensor]) -> int:
    """Return Σ rᵢ cⱼ xᵢⱼ modulo 2⁶⁴ over the bit patterns x of a matrix, given in blocks of its rows."""
    total: Tensor | None = None
    start = 0
    for block in blocks:
        bits = block.contiguous().view(_INTEGERS[block.element_size()])
        rows = _odd(start, len(bits), block.device)
        columns = _odd(-bits.shape[1], bits.shape[1], block.device)
        of_block = ((bits * columns).sum(1) * rows).sum()
        total = of_block if total is None else total + of_block
        start += len(bits)
    return 0 if total is None else int(total)


def _odd(start: int, n: int, device: torch.device) -> Tensor:
    """Return odd 64-bit numbers for the places start … start+n−1, mixed as in SplitMix64."""
    mixed = torch.arange(start, start + n, device=device) * -7046029254386353131
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return (mixed ^ (mixed >> 31)) | 1
