"""A second pass over labelled rows: where they lie relative to the means of all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.labels import Labels
from isoscope.statistics.declared import declare
from isoscope.statistics.group_sums import group_sums
from isoscope.statistics.groups import GroupMoments, counting, labelled_blocks, recoded

_NUMBERS = 2**22  # distances of rows to means held at once


@dataclass(frozen=True, eq=False)
class LabelCollapse:
    """For each label, the spread of its rows within the span of the means, and which mean they are near.

    With m̃_k the means less their own mean over labels, whose K × d matrix is U·diag(s)·V, and r = x − mean_k
    for a row of label k, c = V r are the coordinates of r in the span of the means. Every row counts as often
    as its weight says.

    Attributes:
        moments: the labels' counts and means.
        squares: (K,) float64, Σ ‖c/s‖².
        fourths: (K,) float64, Σ ‖c/s‖⁴.
        products: (q, d) float64, Σ c rᵀ over the rows of all labels.
        wrong: (K,) float64, rows nearer to the mean of another label than to their own.
        wrong_left_out: (K,) float64, the same where a row is left out of the mean of its own label, less the
            noise that this adds.
    """

    moments: GroupMoments
    squares: Tensor
    fourths: Tensor
    products: Tensor
    wrong: Tensor
    wrong_left_out: Tensor

    @classmethod
    def of(cls, X: Any, groups: Any, moments: GroupMoments, *, weights: Any = None) -> LabelCollapse:
        """One pass over X; `groups` must name the groups that `moments` has."""
        K = len(moments.names)
        w = None
        if weights is not None:
            X, groups, w = counting(X, groups, weights)
        sums = moments.counts.new_zeros(4, K)
        products = torch.zeros_like(moments.axes)
        gram = moments.coordinates @ moments.coordinates.T
        gaps = gram.diagonal()[:, None] + gram.diagonal() - 2 * gram  # ‖m̃_k − m̃_l‖²
        gaps[:, moments.counts == 0] = torch.inf
        start = 0
        for block, labels in labelled_blocks(X, groups):
            codes = recoded(labels, moments.names).codes
            held = w[start : start + len(block)] if w is not None else codes.new_ones(len(block)).double()
            start += len(block)
            size = max(1, _NUMBERS // K)
            for rows, own, weight in zip(block.split(size), codes.split(size), held.split(size), strict=True):
                columns, product = _of_rows(rows, own, weight, moments, gaps)
                sums = sums + group_sums(columns, Labels(own, moments.names)).T
                products = products + product
        return cls(moments, sums[0], sums[1], products, sums[2], sums[3])

    def merge(self, other: LabelCollapse) -> LabelCollapse:
        """Return the rows of both, about the same means."""
        return LabelCollapse(
            self.moments,
            self.squares + other.squares,
            self.fourths + other.fourths,
            self.products + other.products,
            self.wrong + other.wrong,
            self.wrong_left_out + other.wrong_left_out,
        )


def _of_rows(
    rows: Tensor, own: Tensor, weight: Tensor, moments: GroupMoments, gaps: Tensor
) -> tuple[Tensor, Tensor]:
    """Return (m, 4) numbers of each row, and Σ c rᵀ."""
    residuals = moments.residuals(rows, own)
    within_span = residuals @ moments.axes.T
    squares = (within_span / moments.lengths_along).square().sum(dim=1)
    wrong = _nearest_is_another(residuals, within_span, own, moments, gaps)
    columns = torch.stack([squares, squares.square(), *wrong], dim=1)
    return columns * weight[:, None], (within_span * weight[:, None]).T @ residuals


def _nearest_is_another(
    residuals: Tensor, within_span: Tensor, own: Tensor, moments: GroupMoments, gaps: Tensor
) -> list[Tensor]:
    """Return whether another mean is nearer than the own one, with the row in its own mean and without.

    For another label l:  ‖x − mean_l‖² − ‖x − mean_k‖² = ‖m̃_k − m̃_l‖² + 2 c·(m̃_k − m̃_l). Leaving a row out
    of its mean, or one of as many as its weight says, multiplies its distance to it by n_k/(n_k − 1). A mean
    of n_k − 1 rows is noisier than those of the other labels. What that adds to the square is taken off,
    tr Σ_k/(n_k(n_k − 1)), or where labels have few rows in many dimensions all would be missed by chance.
    """
    means = moments.coordinates
    towards = (within_span * means[own]).sum(dim=1, keepdim=True) - within_span @ means.T
    excess = towards.mul_(2).add_(gaps[own]).scatter_(1, own[:, None], torch.inf)
    nearest = excess.amin(dim=1)
    counts = moments.counts[own]
    rest = (counts - 1).clamp(min=0)
    farther = torch.where(rest > 0, (counts / rest).square() - 1, torch.inf)  # of the squared distance
    variance = moments.within[own] / rest  # of the label, over all dimensions
    noise = variance / (counts * rest)  # what one row fewer adds to the squared distance to the own mean
    lost = torch.where(rest > 0, farther * (residuals * residuals).sum(dim=1) - noise, torch.inf)
    return [(nearest < 0).double(), (nearest < lost).double()]


declare(
    "label_collapse",
    LabelCollapse,
    lambda space, shelf: LabelCollapse.of(space, shelf.labels, shelf.label_moments, weights=space.weights),
    builds_on="label_moments",
    groups="labels",
    weighted=True,
    operations=lambda d: 8 * d,
    bytes_held=lambda _n, d, k: 16 * k * (d + 4),
)
