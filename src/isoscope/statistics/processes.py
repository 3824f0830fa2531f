"""Sums and rows of all processes, with their gradient: a batch spread over processes stays one batch.

Every process computes the same loss of the whole batch. In the backward pass the slopes of all
processes are added up, so that DistributedDataParallel, which averages what each process found, arrives
at the gradient one process would have found with the whole batch.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from isoscope.statistics.moments import Moments


def several(across_processes: bool) -> bool:
    """Whether there are other processes to reckon with."""
    return across_processes and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def all_sum(part: Tensor, *, across_processes: bool) -> Tensor:
    """Return the sum over all processes, differentiable."""
    return _AllSum.apply(part) if several(across_processes) else part  # type: ignore[no-untyped-call]


def all_rows(rows: Tensor, *, across_processes: bool) -> tuple[Tensor, int]:
    """Return the rows of all processes one after another, differentiable, and where this process's own begin.

    Processes may hold different numbers of rows, none included.
    """
    if not several(across_processes):
        return rows, 0
    counts = _counts(rows)
    everyone: Tensor = _AllRows.apply(rows, counts)  # type: ignore[no-untyped-call]
    return everyone, sum(counts[: dist.get_rank()])


def counted_once_each(value: Tensor, *, across_processes: bool) -> Tensor:
    """Return a value that all processes share, with the gradient of all, assumed equal; nothing is sent.

    So processes may ask for it a different number of times.
    """
    if not several(across_processes):
        return value
    return value + (dist.get_world_size() - 1) * (value - value.detach())


def all_max(value: Tensor, *, across_processes: bool) -> Tensor:
    """Return the largest over all processes, without gradient."""
    largest = value.detach().clone()
    if several(across_processes):
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return largest


def summed(tensor: Tensor) -> Tensor:
    """Return the sum over all processes, without gradient."""
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total


def all_moments(moments: Moments | None, *, like: Tensor) -> Moments | None:
    """Return the moments of all processes' vectors: their mean first, then all sums about it.

    None stands for no vectors. `like` is (m, d) on the device of the vectors.
    """
    d = like.shape[1]
    sums = like.new_zeros(d + 1, dtype=torch.float64)
    if moments is not None:
        sums[0], sums[1:] = moments.count, moments.count * moments.mean
    sums = summed(sums)
    n = round(float(sums[0]))
    if n == 0:
        return None
    mean = sums[1:] / n
    parts = like.new_zeros(d * d + d + 1, dtype=torch.float64)
    if moments is not None:
        step = moments.mean - mean
        parts[: d * d] = torch.addr(moments.scatter, step, step, alpha=moments.count).flatten()
        parts[d * d : -1], parts[-1] = moments.moved(mean - moments.mean)
    parts = summed(parts)
    return Moments(n, mean, parts[: d * d].view(d, d), None, parts[d * d : -1], parts[-1])


def _counts(rows: Tensor) -> list[int]:
    counts = rows.new_zeros(dist.get_world_size(), dtype=torch.int64)
    counts[dist.get_rank()] = len(rows)
    return [int(count) for count in summed(counts)]


class _AllSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:  # noqa: ARG004
        return summed(part)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:  # noqa: ARG004
        return summed(slopes[0])


class _AllRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, counts: list[int]) -> Tensor:
        ctx.counts = counts
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return summed(slopes[0]).split(ctx.counts)[dist.get_rank()], None
