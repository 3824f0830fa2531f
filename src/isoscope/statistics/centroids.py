"""Second passes over groups: distances and cosines of rows to the mean of their group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from isoscope.labels import Labels
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.groups import GroupMoments, group_sums, labelled_blocks


@dataclass(frozen=True, eq=False)
class CentroidDistances:
    """For each group the summed Euclidean distance of its rows to its mean.

    Attributes:
        moments: the groups' means and counts.
        distance_sums: (G,) float64, Σ ‖x − mean_g‖ over the rows seen so far.
    """

    moments: GroupMoments
    distance_sums: Tensor

    @classmethod
    def of(cls, X: Any, groups: Any, moments: GroupMoments) -> CentroidDistances:
        """One pass over X; `groups` must name the groups that `moments` has."""
        sums = moments.within.new_zeros(len(moments.names))
        for block, labels in labelled_blocks(X, groups):
            known = _in_order(labels, moments)
            residuals = block.double() - moments.means[known.codes]
            sums = sums + group_sums(residuals.norm(dim=1), known)
        return cls(moments, sums)

    def merge(self, other: CentroidDistances) -> CentroidDistances:
        """The rows of both, about the same means."""
        return CentroidDistances(self.moments, self.distance_sums + other.distance_sums)


@dataclass(frozen=True, eq=False)
class CentroidCosines:
    """For each group the summed cosine of its rows with its mean, and how many rows had one.

    Attributes:
        cosine_sums: (G,) float64.
        counts: (G,) float64; zero vectors, and groups whose mean is zero, are left out.
    """

    cosine_sums: Tensor
    counts: Tensor

    @classmethod
    def of(cls, X: Any, groups: Any, moments: GroupMoments) -> CentroidCosines:
        """One pass over X; `groups` must name the groups that `moments` has."""
        means, lengths = unit_rows(moments.means)
        sums = counts = moments.within.new_zeros(len(moments.names))
        for block, labels in labelled_blocks(X, groups):
            known = _in_order(labels, moments)
            units, norms = unit_rows(block)
            cosines = (units * means[known.codes]).sum(dim=1)
            present = ((norms > 0) & (lengths[known.codes] > 0)).double()
            sums = sums + group_sums(cosines, known)
            counts = counts + group_sums(present, known)
        return cls(sums, counts)

    def merge(self, other: CentroidCosines) -> CentroidCosines:
        """The rows of both, about the same means."""
        return CentroidCosines(self.cosine_sums + other.cosine_sums, self.counts + other.counts)


def _in_order(labels: Labels, moments: GroupMoments) -> Labels:
    """The same rows coded by the order of the groups in `moments`."""
    if labels.names == moments.names:
        return labels
    place = {name: row for row, name in enumerate(moments.names)}
    order = labels.codes.new_tensor([place[name] for name in labels.names])
    return Labels(order[labels.codes], moments.names)
