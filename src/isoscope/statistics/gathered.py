"""`Statistics`: every statistic of one space, each computed once, when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from torch import Tensor

from isoscope.kernels.tiles import Progress
from isoscope.labels import Labels, as_clusters, check_clusters
from isoscope.space import Space
from isoscope.statistics.centroids import CentroidDistances
from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.leave_one_out import LeftOutCosines, LeftOutMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope.statistics.pairs import Separation
from isoscope.statistics.partition import LogPartition
from isoscope.statistics.rows import HeldRows, Rows

MAX_NEIGHBORS = 100  # enough for every manifold metric at its default


class Statistics:
    """A shelf of statistics over one space, filled as metrics ask.

    `stream` puts what it has computed on the shelf by name; the rest comes from `space`.
    `covariance` is a reference the caller brings along, (d, d), from a larger sample.

    >>> shelf = Statistics(Space([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> shelf.moments is shelf.moments
    True
    """

    def __init__(
        self,
        space: Space | None = None,
        *,
        covariance: Any = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self._space = space
        self.covariance = covariance
        self.seed = seed
        self.progress = progress
        self.notes: list[str] = []  # what a reader should know of how the statistics were taken

    @property
    def space(self) -> Space:
        """The whole space, in memory or mapped."""
        if self._space is None:
            raise RuntimeError("this statistic needs all vectors at once, and only a stream is at hand")
        return self._space

    @cached_property
    def vectors(self) -> Tensor:
        """(n, d) the vectors themselves."""
        return self.space.vectors

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
        if self._space is not None:
            return self.labels.n_labels if self._space.labels is not None else None
        moments: GroupMoments | None = self.__dict__.get("label_moments")
        if moments is None:
            return None
        check_clusters(len(moments.names), moments.count, moments.names)
        return len(moments.names)

    @cached_property
    def moments(self) -> Moments:
        """Count, mean, scatter."""
        return Moments.of(self.space, weights=self.space.weights)

    @cached_property
    def directions(self) -> Directions:
        """Sums of unit vectors and lengths."""
        return Directions.of(self.space, weights=self.space.weights)

    @cached_property
    def left_out_moments(self) -> LeftOutMoments:
        """The moments with each vector left out."""
        return LeftOutMoments.of(self.space, self.moments)

    @cached_property
    def left_out_cosines(self) -> LeftOutCosines:
        """What each vector contributes to the mean cosine."""
        return LeftOutCosines.of(self.space, self.directions)

    @cached_property
    def log_partition(self) -> LogPartition:
        """The log partition function along ± every principal direction."""
        return LogPartition.of(self.space, self.moments)

    @cached_property
    def label_moments(self) -> GroupMoments:
        """Mean and spread of each label."""
        return GroupMoments.of(self.space, self.labels, weights=self.space.weights)

    @cached_property
    def label_distances(self) -> CentroidDistances:
        """Distances of points to the mean of their label."""
        return CentroidDistances.of(self.space, self.labels, self.label_moments)

    @cached_property
    def type_directions(self) -> GroupDirections:
        """Unit-vector sums of each token type."""
        return GroupDirections.of(self.space, self.space.token_types)

    @cached_property
    def sentence_directions(self) -> GroupDirections:
        """Unit-vector sums of each sentence."""
        return GroupDirections.of(self.space, self.space.sentences)

    @cached_property
    def sentence_moments(self) -> GroupMoments:
        """Mean vector of each sentence."""
        return GroupMoments.of(self.space, self.space.sentences)

    @cached_property
    def separation(self) -> Separation:
        """For each point the mean distance to its own cluster and to the nearest other one."""
        return Separation.of(self.space, self.labels, progress=self.progress)

    @cached_property
    def neighbors(self) -> Neighbors:
        """The nearest neighbours of each point."""
        return Neighbors.of(self.space, k=min(MAX_NEIGHBORS, len(self.space) - 1), progress=self.progress)
