"""`Columns`: count, mean and scatter of each dimension alone, where the full scatter would be wasted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Columns:
    """Of each dimension: count n, mean (d,) and Σ(x − mean)² (d,), in float64; exact under any split."""

    count: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, block: Tensor) -> Columns:
        """Of a block in float64; its first row is taken off before sums, so an offset gathers no rounding."""
        moved = block - block[0]
        mean = moved.mean(dim=0)
        return cls(len(block), mean + block[0], (moved - mean).square_().sum(dim=0))

    def merge(self, other: Columns) -> Columns:
        """Of both sets of vectors together."""
        count = self.count + other.count
        step = other.mean - self.mean
        scatter = self.scatter + other.scatter + step.square() * (self.count * other.count / count)
        return Columns(count, self.mean + step * (other.count / count), scatter)

    @property
    def variance(self) -> Tensor:
        """(d,) with divisor n."""
        return self.scatter / self.count

    @property
    def constant(self) -> Tensor:
        """(d,) which dimensions vary by no more than rounding leaves of their own size."""
        rounding = self.count * torch.finfo(torch.float64).eps
        return self.variance <= rounding * self.variance + (rounding * self.mean).square()
