"""Sums over groups of rows, and rows about the means of their groups."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.precision import two_sum
from isoscope.kernels.products import sum_of_squares
from isoscope.labels import Labels


def group_sums(rows: Tensor, labels: Labels) -> Tensor:
    """(G, …) sums of rows (n, …) over each group."""
    return sums_of(rows, labels.codes, labels.n_labels)


def sums_of(rows: Tensor, codes: Tensor, n_groups: int) -> Tensor:
    """Return (G, …) sums of rows over each code."""
    return rows.new_zeros(n_groups, *rows.shape[1:]).index_add(0, codes, rows)


def about_means(
    block: Tensor, codes: Tensor, counts: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return means, sums of squares about them, what rounding left of the means, and rows less means."""
    block = block.double()
    firsts = codes.new_full((len(counts),), len(block))
    places = torch.arange(len(block), device=block.device)
    shifts = block[firsts.scatter_reduce_(0, codes, places, "amin")].detach()
    steps = less(block, shifts, codes)
    sums = steps if weights is None else steps * weights[:, None]
    means = sums_of(sums, codes, len(counts)) / counts[:, None]
    residuals = less(steps, means, codes)
    squares = sum_of_squares(residuals)
    within = sums_of(squares if weights is None else squares * weights, codes, len(counts))
    means, rest = two_sum(shifts, means)
    return means, within, rest, residuals


def recorded_means(block: Tensor, codes: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    """Return what `about_means` does, and instead of the residuals whether there are any."""
    *found, residuals = about_means(block, codes, counts)
    return *found, residuals.any()


def less(rows: Tensor, points: Tensor, codes: Tensor) -> Tensor:
    """Return rows less the point of each, in the memory of those points where no gradient is asked."""
    taken = points[codes]
    return rows - taken if rows.requires_grad or points.requires_grad else torch.sub(rows, taken, out=taken)
