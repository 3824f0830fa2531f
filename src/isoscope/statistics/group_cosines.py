"""What mean cosines within and between groups follow from, without a sum of d numbers for each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, UndefinedError
from isoscope.statistics.directions import pair_cosine, unit_rows
from isoscope.statistics.groups import GroupDirections, GroupMoments


@dataclass(frozen=True, eq=False)
class GroupCosines:
    """Sums of unit vectors by group, reduced to what their mean cosines need.

    Attributes:
        names: the G groups.
        counts: (G,) vectors with a direction.
        squared: (G,) float64, ‖Σu‖² of the unit vectors of each group.
        mean_sum: (d,) float64, the sum of the groups' mean unit vectors.
        unit_sum: (d,) float64, the sum of all unit vectors.
        count: how many vectors have a direction.
        n_zero: zero vectors left out, over all groups.
    """

    names: tuple[Any, ...]
    counts: Tensor
    squared: Tensor
    mean_sum: Tensor
    unit_sum: Tensor
    count: Any
    n_zero: int

    @classmethod
    def of(cls, groups: GroupDirections | GroupCosines) -> GroupCosines:
        """Reduce the sums; GroupCosines pass through unchanged."""
        if isinstance(groups, GroupCosines):
            return groups
        sums, counts = groups.unit_sums, groups.counts
        means = sums / counts.clamp(min=1)[:, None]
        return cls(
            groups.names, counts, (sums * sums).sum(dim=1), means.sum(dim=0), sums.sum(dim=0), counts.sum(),
            groups.n_zero,
        )  # fmt: skip

    @classmethod
    def by(cls, field: str, X: Any, given: Any = None) -> GroupCosines:
        """Group the rows of X by what is known of each; statistics of the groups pass."""
        return cls.of(X if isinstance(X, GroupCosines) else GroupDirections.by(field, X, given))

    @property
    def unit_sums(self) -> Tensor:
        """Raise UndefinedError: the sums themselves are not stored."""
        raise UndefinedError("the sums of unit vectors by group are not stored here")

    @property
    def by_group(self) -> Tensor:
        """(G,) the mean cosine of all pairs of a group's vectors; NaN for groups of fewer than two."""
        n = self.counts.double()
        return torch.where(self.counts > 1, pair_cosine(n, self.squared).clamp(-1, 1), torch.nan)


@dataclass(frozen=True, eq=False)
class MeanCosines:
    """Cosines of vectors with the mean of their group, averaged over each group.

    Attributes:
        total: their sum over the groups whose mean has a direction.
        n_groups: how many groups those are.
        unit_sum: (d,) float64, the sum of all unit vectors.
        count: how many vectors have a direction.
    """

    total: Tensor
    n_groups: Any
    unit_sum: Tensor
    count: Any

    @classmethod
    def by(cls, field: str, X: Any, given: Any = None, moments: GroupMoments | None = None) -> MeanCosines:
        """Group the rows of X by what is known of each; MeanCosines pass, GroupDirections with `moments`."""
        if isinstance(X, MeanCosines):
            return X
        groups = GroupDirections.by(field, X, given)
        if moments is None:
            if groups is X:
                raise InputError(
                    "X is GroupDirections, which hold no sentence means; pass moments=GroupMoments or "
                    "to='pairs'"
                )
            moments = GroupMoments.by(field, X, given)
        if groups.names != moments.names:
            raise InputError(
                f"moments are of {len(moments.names)} sentences, X of {len(groups.names)}, or of others; "
                "wanted both from the same rows"
            )
        means, lengths = unit_rows(moments.means)
        directed = (groups.counts > 0) & (lengths > 0)
        sums = (groups.unit_sums[directed] * means[directed]).sum(dim=1)
        cosines = (sums / groups.counts[directed]).clamp(-1, 1)
        return cls(cosines.sum(), int(directed.sum()), groups.unit_sums.sum(dim=0), groups.counts.sum())

    @property
    def mean(self) -> Tensor:
        """The mean over the groups."""
        if not self.n_groups:
            raise UndefinedError("intra_similarity is undefined: no sentence has a mean with a direction")
        return self.total / self.n_groups
