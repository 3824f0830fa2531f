"""`order_note`: whether two spaces have the same rows in another order."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.arrays import blocks

_LEAST = 2  # rows; and half of those that differ
_LOOKED_AT = 1000  # rows, to choose the dimension by which rows are looked up


def order_note(A: Tensor, B: Tensor) -> str:
    """Return a note where rows of A are equal to other rows of B; "" where they are not.

    Args:
        A, B: (n, d) and (n, e) vectors.
    """
    if A.shape != B.shape:
        return ""
    B = B.to(A.device)
    moved = [(a != b).any(dim=1) & (a != 0).any(dim=1) for a, b in zip(blocks(A), blocks(B), strict=True)]
    differs = torch.cat(moved).nonzero().flatten()
    if len(differs) < _LEAST:
        return ""
    # few rows are equal in the dimension with the most values
    some = A[differs[:: max(1, len(differs) // _LOOKED_AT)]].sort(dim=0).values
    dimension = int((some[1:] != some[:-1]).sum(dim=0).argmax())
    kind = torch.promote_types(A.dtype, B.dtype)
    a, b = A[differs, dimension].to(kind), B[:, dimension].to(kind)
    places = torch.isin(a, b).nonzero().flatten()
    least = max(_LEAST, len(differs) / 2)
    if len(places) < least:
        return ""
    rows_of_b = set(_as_bytes(B[torch.isin(b, a[places])]))
    n_equal = sum(row in rows_of_b for row in _as_bytes(A[differs[places]]))
    if n_equal < least:
        return ""
    return (
        f"rows seem to be in another order: {n_equal:,} of the {len(A):,} rows of A are equal to another row "
        "of B; pass ids to match them"
    )


def _as_bytes(rows: Tensor) -> list[bytes]:
    """Return each row as bytes, alike in every type of numbers."""
    values = rows.cpu().double() + 0.0  # no −0
    return [row.tobytes() for row in values.numpy()]
