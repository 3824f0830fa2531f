"""`Neighbors`: the k smallest distances of every point to the others, exact, in row strips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import InputError, ShapeError, UndefinedError, check_choice
from isoscope.kernels.nearest import Search
from isoscope.kernels.precision import pair_dtype
from isoscope.kernels.tiles import Progress
from isoscope.statistics.declared import declare
from isoscope.statistics.directions import has_direction, unit_rows
from isoscope.statistics.equal_rows import first_equal_rows

METRICS = ("euclidean", "cosine")

_MOST = 100  # enough for every manifold metric at its default
_ROWS = 8192  # whose neighbours are listed with their copies at once


@dataclass(frozen=True, eq=False)
class Neighbors:
    """For each query its k nearest points, nearest first; a point is not its own neighbour.

    Attributes:
        distances: (m, k) float64, ‖x − y‖ or 1 − cos(x, y).
        indices: (m, k) int64, rows of the points searched; −1 where fewer than k have been seen, and for a
            query that was left out.
        metric: "euclidean" or "cosine".

    >>> Neighbors.of([[0.0], [1.0], [3.0]], k=1).distances.flatten().tolist()
    [1.0, 1.0, 2.0]
    """

    distances: Tensor
    indices: Tensor
    metric: str = "euclidean"

    @classmethod
    def of(cls, X: Any, *, k: int, metric: str | None = None, progress: Progress | None = None) -> Neighbors:
        """All points among all others; k < n. Neighbors pass through, cut to k.

        Args:
            X: (n, d) vectors in any array, or Neighbors.
            k: how many neighbours.
            metric: "euclidean", unless Neighbors say otherwise, or "cosine": 1 − cos(x, y).
            progress: told the share of the work that is done.
        """
        if isinstance(X, Neighbors):
            return X._of_metric(metric).nearest(k)
        points = as_matrix(X).detach()
        _check_k(k, points.shape[0] - 1)
        metric = _check_metric(metric or "euclidean")
        points, dtype = _vectors(points, metric, "X"), pair_dtype(points)
        search = Search.of(points, points, excludes_self=True, dtype=dtype)
        return _neighbors(search.nearest(k, progress), metric)

    @classmethod
    def of_nonzero(
        cls, X: Any, *, k: int, metric: str | None = None, progress: Progress | None = None
    ) -> Neighbors:
        """All points but zero vectors among each other: zero vectors have index −1 and distance NaN.

        Among vectors of length 1 a zero vector is equally far from every other, so it would be a neighbour
        of all of them or of none. X with fewer than two other vectors is searched as a whole. Neighbors pass
        through.

        >>> Neighbors.of_nonzero([[0.0], [1.0], [3.0]], k=1).indices.flatten().tolist()
        [-1, 2, 1]
        """
        if isinstance(X, Neighbors):
            return cls.of(X, k=k, metric=metric)
        points = as_matrix(X).detach()
        rows = nonzero_rows(points)
        _check_k(k, len(rows) - 1)
        return cls._among(points, rows, k, metric, progress)

    @classmethod
    def of_distinct(
        cls,
        X: Any,
        *,
        k: int,
        metric: str | None = None,
        at_most: bool = False,
        progress: Progress | None = None,
    ) -> Neighbors:
        """All different points but zero vectors: of equal rows, all but the first are left out as well.

        A row and its copy are equally far from any other point, and nearest to each other: their distances
        say nothing of the dimension. X with fewer than two different points is searched as a whole.
        Neighbors pass through.

        Args:
            X: (n, d) vectors in any array, or Neighbors.
            k: how many neighbours.
            metric: "euclidean" or "cosine".
            at_most: whether to return fewer where there are not so many other points.
            progress: told the share of the work that is done.

        >>> Neighbors.of_distinct([[1.0], [1.0], [3.0]], k=1).indices.flatten().tolist()
        [2, -1, 0]
        """
        if isinstance(X, Neighbors):
            return cls.of(X, k=min(k, X.k) if at_most else k, metric=metric)
        points = as_matrix(X).detach()
        rows = distinct_rows(points)
        k = min(k, len(rows) - 1) if at_most else k
        _check_k(k, len(rows) - 1)
        return cls._among(points, rows, k, metric, progress)

    @classmethod
    def _among(
        cls, points: Tensor, rows: Tensor, k: int, metric: str | None, progress: Progress | None
    ) -> Neighbors:
        """Return the neighbours of some rows among each other; the others have index −1 and distance NaN."""
        if len(rows) == len(points):
            return cls.of(points, k=k, metric=metric, progress=progress)
        among = cls.of(points[rows], k=k, metric=metric, progress=progress)
        distances = among.distances.new_full((len(points), k), torch.nan)
        indices = among.indices.new_full((len(points), k), -1)
        distances[rows], indices[rows] = among.distances, rows[among.indices]
        return cls(distances, indices, among.metric)

    def with_copies(self, points: Tensor, k: int) -> Neighbors:
        """Return the neighbours of all points but zero vectors, from those of the different ones.

        The copies of a point come first, then each neighbour with its copies.
        """
        rows = nonzero_rows(points)
        n_searched = int(self.has_any.sum())
        if n_searched >= len(rows):  # more where all rows were searched, for want of different ones
            return self.nearest(k) if n_searched == len(rows) else Neighbors.of_nonzero(points, k=k)
        first = first_equal_rows(points)[rows]
        members = rows[first.argsort(stable=True)]  # the copies of a point follow each other
        sizes = torch.bincount(first, minlength=len(points))
        starts = sizes.cumsum(0) - sizes
        places = torch.empty_like(sizes).index_copy_(0, members, torch.arange(len(rows)).to(members))
        distances = self.distances.new_full((len(points), k), torch.nan)
        indices = self.indices.new_full((len(points), k), -1)
        ranks = torch.arange(k, device=rows.device)
        for some, own in zip(rows.split(_ROWS), first.split(_ROWS), strict=True):
            near = torch.cat([own[:, None], self.indices[own]], dim=1)
            counts = sizes[near]
            counts[:, 0] -= 1  # a point is not its own neighbour
            ends = counts.cumsum(1)
            column = torch.searchsorted(ends, ranks.expand(len(some), k).contiguous(), right=True)
            within = ranks - (ends - counts).gather(1, column)
            place = starts[near.gather(1, column)] + within
            place += (column == 0) & (place >= places[some][:, None])  # past the point itself
            indices[some] = members[place]
            away = torch.nn.functional.pad(self.distances[own], (1, 0))
            distances[some] = away.gather(1, column)
        return Neighbors(distances, indices, self.metric)

    @classmethod
    def between(
        cls, queries: Any, X: Any, *, k: int, offset: int = 0, metric: str = "euclidean"
    ) -> Neighbors:
        """Return the neighbours of queries in a block of points whose first row has index `offset`."""
        wanted, points = as_matrix(queries, name="queries").detach(), as_matrix(X).detach()
        if wanted.shape[1] != points.shape[1]:
            raise ShapeError(
                f"has {wanted.shape[1]} dimensions",
                argument="queries",
                wanted=f"{points.shape[1]}, as `X` has",
            )
        dtype = torch.promote_types(pair_dtype(wanted), pair_dtype(points))
        _check_metric(metric)
        wanted, points = _vectors(wanted, metric, "queries"), _vectors(points, metric, "X")
        search = Search.of(wanted, points, excludes_self=False, dtype=dtype)
        neighbors = _neighbors(search.nearest(min(k, points.shape[0])), metric)
        missing = k - neighbors.k
        return cls(
            torch.nn.functional.pad(neighbors.distances, (0, missing), value=torch.inf),
            torch.nn.functional.pad(neighbors.indices + offset, (0, missing), value=-1),
            metric,
        )

    def update(self, queries: Any, block: Any, *, offset: int) -> Neighbors:
        """Return the neighbours with one more block of points, whose first row has index `offset`."""
        return self.merge(Neighbors.between(queries, block, k=self.k, offset=offset, metric=self.metric))

    def merge(self, other: Neighbors) -> Neighbors:
        """Return the nearest of both, for the same queries."""
        other = other._of_metric(self.metric)
        distances = torch.cat([self.distances, other.distances], dim=1)
        indices = torch.cat([self.indices, other.indices], dim=1)
        distances, order = distances.sort(dim=1, stable=True)
        return Neighbors(distances[:, : self.k], indices.gather(1, order)[:, : self.k], self.metric)

    @property
    def k(self) -> int:
        """How many neighbours are held."""
        return int(self.distances.shape[1])

    @property
    def has_any(self) -> Tensor:
        """(m,) whether a query has neighbours: not where it was left out."""
        return self.indices[:, 0] >= 0

    def nearest(self, k: int) -> Neighbors:
        """Return the first k neighbours."""
        _check_k(k, self.k)
        return Neighbors(self.distances[:, :k], self.indices[:, :k], self.metric)

    def without(self, rows: Tensor) -> Neighbors:
        """Return the k − 1 neighbours that are left without the row that each query is.

        Where it is not among them, the last is left out.

        Args:
            rows: (m,) the row of each query.
        """
        own = self.indices == rows.to(self.indices.device)[:, None]
        own[:, -1] |= ~own.any(dim=1)
        others = (~own).nonzero()[:, 1].view(len(own), self.k - 1)
        return Neighbors(self.distances.gather(1, others), self.indices.gather(1, others), self.metric)

    def _of_metric(self, metric: str | None) -> Neighbors:
        if metric is not None and _check_metric(metric) != self.metric:
            raise InputError(
                f"is {metric!r}, but these Neighbors are {self.metric}; search X again", argument="metric"
            )
        return self


def _check_k(k: int, most: int) -> None:
    if not isinstance(k, int) or not 1 <= k <= most:
        raise InputError(
            argument="k", got=k, wanted=f"a whole number from 1 to {most}, the number of other points"
        )


def _check_metric(metric: str) -> str:
    check_choice("metric", metric, METRICS)
    return metric


def _vectors(rows: Tensor, metric: str, name: str) -> Tensor:
    """Return the vectors for the Euclidean search: the rows, or unit vectors in float64."""
    if metric == "euclidean":
        return rows
    parts = []
    start = 0
    for block in blocks(rows):
        units, lengths = unit_rows(block)
        if not bool(lengths.all()):
            row = start + int((lengths == 0).nonzero()[0])
            raise UndefinedError(f"row {row} of {name} is zero and has no direction; leave it out")
        parts.append(units)
        start += len(block)
    return torch.cat(parts)


def _neighbors(nearest: tuple[Tensor, Tensor], metric: str) -> Neighbors:
    distances, indices = nearest
    if metric == "cosine":
        distances = distances.square_().div_(2)  # ‖u − v‖² = 2(1 − cos)
    return Neighbors(distances, indices, metric)


def nonzero_rows(points: Tensor) -> Tensor:
    """Return the rows that are not zero; all rows where fewer than two are not."""
    rows = has_direction(points).nonzero().flatten()
    return rows if len(rows) >= 2 else torch.arange(len(points), device=points.device)


def distinct_rows(points: Tensor) -> Tensor:
    """Return the rows that are neither zero nor equal to an earlier one; all where fewer than two are."""
    every = torch.arange(len(points), device=points.device)
    rows = every[has_direction(points) & (first_equal_rows(points) == every)]
    return rows if len(rows) >= 2 else every


declare(
    "distinct_neighbors",
    Neighbors,
    lambda space, shelf: Neighbors.of_distinct(space, k=_MOST, at_most=True, progress=shelf.progress),
    merges=False,
    bytes_held=lambda n, _d, _k: 16 * n * min(_MOST, n - 1),
)
declare(
    "neighbors",
    Neighbors,
    lambda space, shelf: shelf.distinct_neighbors.with_copies(
        space.vectors, k=min(_MOST, len(nonzero_rows(space.vectors)) - 1)
    ),
    builds_on="distinct_neighbors",
    merges=False,
    bytes_held=lambda n, _d, _k: 16 * n * min(_MOST, n - 1),
)
