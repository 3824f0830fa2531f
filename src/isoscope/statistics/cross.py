"""`CrossMoments`: two spaces over the same items, and what varies in both together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, block_rows
from isoscope.errors import ShapeError, UndefinedError


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """With u = x − mean x and v = y − mean y, summed over the rows, in float64:

        A = Σ u uᵀ,   B = Σ v vᵀ,   C = Σ u vᵀ,   Σ ‖u‖⁴,   Σ ‖v‖⁴,   Σ ‖u‖² ‖v‖²

    Attributes:
        count: rows.
        left_mean, right_mean: (d,) and (e,) means of x and y.
        left, right, cross: A (d, d), B (e, e) and C (d, e).
        left_quartic, right_quartic, cross_quartic: the last three.

    >>> CrossMoments.of([[0.0], [2.0]], [[0.0, 1.0], [0.0, 3.0]]).cross
    tensor([[0., 2.]], dtype=torch.float64)
    """

    count: int
    left_mean: Tensor
    right_mean: Tensor
    left: Tensor
    right: Tensor
    cross: Tensor
    left_quartic: Tensor
    right_quartic: Tensor
    cross_quartic: Tensor

    @classmethod
    def of(cls, X: Any, Y: Any = None) -> CrossMoments:
        """Row i of X goes with row i of Y; dimensions may differ. CrossMoments pass through unchanged."""
        if isinstance(X, CrossMoments):
            return X
        x, y = as_matrix(X).detach(), as_matrix(Y, name="Y").detach()
        if len(x) != len(y):
            raise ShapeError(
                f"has {len(y)} rows", argument="Y", wanted=f"{len(x)}, the items of `X` in the same order"
            )
        y = y.to(x.device)
        means = _mean(x), _mean(y)
        sums: list[Tensor] = []
        step = block_rows(max(x.shape[1], y.shape[1]))
        for x_block, y_block in zip(x.split(step), y.split(step), strict=True):
            u, v = x_block.double() - means[0], y_block.double() - means[1]
            p, q = u.square().sum(dim=1), v.square().sum(dim=1)
            part = [u.T @ u, v.T @ v, u.T @ v, p @ p, q @ q, p @ q]
            sums = part if not sums else [total + more for total, more in zip(sums, part, strict=True)]
        return cls(len(x), *means, *sums)

    def need_spread(self, what: str, n: int = 2) -> None:
        """Raise UndefinedError unless there are n rows, and they differ in both spaces."""
        if self.count < n:
            raise UndefinedError(f"{what} needs at least {n} rows; there are {self.count}")
        for side, name in ((self.left, "X"), (self.right, "Y")):
            if not bool(side.trace() > 0):
                raise UndefinedError(f"{what} is undefined: all {self.count} points of {name} are equal")

    @cached_property
    def nuclear_norm(self) -> Tensor:
        """‖C‖_*, the sum of the singular values of C."""
        return torch.linalg.svdvals(self.cross).sum()


def _mean(X: Tensor) -> Tensor:
    """(d,) float64, block by block: no copy of all of X is made."""
    total = torch.zeros(X.shape[1], dtype=torch.float64, device=X.device)
    for block in X.split(block_rows(X.shape[1])):
        total += block.double().sum(dim=0)
    return total / len(X)
