"""A second pass over groups: distances of rows to the mean of their group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from isoscope.statistics.declared import declare
from isoscope.statistics.group_sums import group_sums
from isoscope.statistics.groups import GroupMoments, labelled_blocks, recoded


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
            recoded_labels = recoded(labels, moments.names)
            residuals = moments.residuals(block, recoded_labels.codes)
            sums = sums + group_sums(residuals.norm(dim=1), recoded_labels)
        return cls(moments, sums)

    def merge(self, other: CentroidDistances) -> CentroidDistances:
        """Return the rows of both, about the same means."""
        return CentroidDistances(self.moments, self.distance_sums + other.distance_sums)


declare(
    "label_distances",
    CentroidDistances,
    lambda space, shelf: CentroidDistances.of(space, shelf.labels, shelf.label_moments),
    builds_on="label_moments",
    groups="labels",
    operations=lambda d: 4 * d,
    bytes_held=lambda _n, _d, k: 8 * k,
)
