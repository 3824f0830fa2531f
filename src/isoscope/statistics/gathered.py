"""`Statistics`: every statistic of one space, each computed once, when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.kernels.tiles import Progress
from isoscope.labels import Labels, as_clusters, check_clusters
from isoscope.space import Space
from isoscope.statistics.centroids import CentroidDistances
from isoscope.statistics.declared import declared
from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.leave_one_out import LeftOutCosines, LeftOutMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope.statistics.pairs import Separation
from isoscope.statistics.partition import LogPartition
from isoscope.statistics.rows import HeldRows, Rows


class Statistics:
    """A shelf of statistics over one space, filled as metrics ask: an attribute for each one declared.

    `stream` puts what it has computed on the shelf by name; the rest comes from `space`.
    `space` may be a function that makes it, where only some statistics need all vectors at once.
    `covariance` is a reference the caller brings along, (d, d), from a larger sample.
    `devices` share what is computed of all pairs, where there are several.

    >>> shelf = Statistics(Space([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> shelf.moments is shelf.moments
    True
    """

    # types of what __getattr__ gives, for readers and type checkers; one that is not here is of any type
    vectors: Tensor
    moments: Moments
    directions: Directions
    left_out_moments: LeftOutMoments
    left_out_cosines: LeftOutCosines
    log_partition: LogPartition
    label_moments: GroupMoments
    label_distances: CentroidDistances
    type_directions: GroupDirections
    sentence_directions: GroupDirections
    sentence_moments: GroupMoments
    separation: Separation
    neighbors: Neighbors
    distinct_neighbors: Neighbors

    def __init__(
        self,
        space: Space | Callable[[], Space] | None = None,
        *,
        covariance: Any = None,
        seed: int = 0,
        progress: Progress | None = None,
        devices: Sequence[torch.device] = (),
    ) -> None:
        self._space = space
        self.devices = devices
        self.covariance = covariance
        self.seed = seed
        self.progress = progress
        self.notes: list[str] = []  # what a reader should know of how the statistics were taken

    def over(self, space: Space | None) -> Statistics:
        """Return a shelf with the same statistics over another Space of the same vectors, or over none."""
        other = Statistics(space, covariance=self.covariance, seed=self.seed, devices=self.devices)
        statistics = {
            name: value for name, value in vars(self).items() if name in declared() or name == "labels"
        }
        vars(other).update({name: value for name, value in statistics.items() if name != "vectors"})
        other.notes = list(self.notes)
        return other

    @property
    def space(self) -> Space:
        """The whole space, in memory or mapped."""
        if self._space is None:
            raise RuntimeError("this statistic needs all vectors at once, and only a stream is at hand")
        if not isinstance(self._space, Space):
            self._space = self._space()
        return self._space

    @property
    def checked(self) -> Tensor | None:
        """The vectors of a space in memory, which are finite; None where they are not there yet."""
        return self._space.vectors if isinstance(self._space, Space) else None

    @property
    def has_rows(self) -> bool:
        """Whether there is a Space, and not only what a stream has left."""
        return self._space is not None

    @cached_property
    def rows(self) -> Rows:
        """The vectors, to be passed over block by block."""
        return HeldRows(self.vectors.detach())

    @property
    def partners(self) -> Tensor:
        """(n, d) the vector each row is matched with."""
        assert self.space.partners is not None  # measured only where it is known
        return self.space.partners

    @cached_property
    def labels(self) -> Labels:
        """The cluster of each row, checked to be clusters."""
        return as_clusters(self.space.labels, n=len(self.space)).to(self.space.device)

    @property
    def n_labels(self) -> int | None:
        """How many labels there are, checked to describe clusters; None where rows carry none."""
        if isinstance(self._space, Space):
            return self.labels.n_labels if self._space.labels is not None else None
        moments: GroupMoments | None = self.__dict__.get("label_moments")
        if moments is None:
            return None
        check_clusters(len(moments.names), moments.count, moments.names)
        return len(moments.names)

    def __getattr__(self, name: str) -> Any:
        """Compute a statistic and keep it; `declared` says how."""
        declaration = declared().get(name)
        if declaration is None:
            raise AttributeError(f"there is no statistic {name!r}")
        statistic = vars(self)[name] = declaration.of(self.space, self)
        return statistic
