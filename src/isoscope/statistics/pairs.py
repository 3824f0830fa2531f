"""Sums over pairs of points: to every cluster, to the own and the nearest other one; never n × n."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from isoscope.arguments import as_mebibytes, renamed
from isoscope.arrays import as_matrix, as_spaces, block_rows, blocks
from isoscope.errors import LabelError, UndefinedError
from isoscope.kernels.precision import crowded_squares, direct_distances
from isoscope.kernels.tile_plan import Tile
from isoscope.kernels.tiles import Arranged, Progress
from isoscope.labels import Labels, as_clusters, as_labels
from isoscope.printable import counted, quoted
from isoscope.space import Space
from isoscope.statistics.budget import TilePlan, no_room, tile_plans
from isoscope.statistics.declared import declare
from isoscope.statistics.directions import cone_axis, has_direction, unit_rows, unit_steps
from isoscope.statistics.few_points import squared_cosine_fields
from isoscope.statistics.fused import fixed_order, fused_separation, fused_sums
from isoscope.statistics.groups import GroupMoments, recoded
from isoscope.statistics.nearest_clusters import NearestClusters, Part, part_of, reduce_sums
from isoscope.statistics.tree import Tree

_BETWEEN_BYTES = 128 * 2**20  # of distances between queries and a block of points
_KEPT_BYTES = 512 * 2**20  # of unit vectors kept for a second pass; more are made again
_NEAR_MEAN = 1e-6  # a squared distance to a mean under this share of its terms is taken by difference
_PLAIN_LENGTHS = (1e-100, 1e100)  # coordinates whose squares and their sums float64 holds in full
_PARALLEL = 2e-31  # a mean of 1 − cos under this is rounding of unit vectors in float64

Blocks = Callable[[int, int], Tensor]  # rows from one place to another


@dataclass(frozen=True, eq=False)
class ClusterDistances:
    """For each point the summed Euclidean distance to each cluster.

    Attributes:
        sums: (n, K) float64, rows in the caller's order.
        labels: the cluster of each point.
        counts: (K,) float64, points the sums run over.
    """

    sums: Tensor
    labels: Labels
    counts: Tensor

    @classmethod
    def of(cls, X: Any, labels: Any, *, progress: Progress | None = None) -> ClusterDistances:
        """All points against all points, each pair once: in cache-sized tiles, or fused on CUDA."""
        matrix = as_matrix(X).detach()
        clusters = as_labels(labels, n=matrix.shape[0]).to(matrix.device)
        fused = fused_sums(matrix, clusters)
        if fused is not None:
            return cls(fused.double(), clusters, clusters.counts.double())
        arranged = Arranged.of(matrix, clusters)
        sums = _sums_within(arranged, clusters.n_labels, progress)
        return cls(sums.T, clusters, clusters.counts.double())

    @classmethod
    def between(cls, queries: Any, query_labels: Any, X: Any, labels: Any) -> ClusterDistances:
        """Return the sums of queries over a block of points; `query_labels` are the clusters."""
        query_matrix = as_matrix(queries, name="queries")
        clusters = as_labels(query_labels, n=query_matrix.shape[0], name="query_labels").to(
            query_matrix.device
        )
        others = as_labels(labels)
        if unknown := set(others.names) - set(clusters.names):
            raise LabelError(
                f"has {quoted(min(map(str, unknown)))}, which query_labels does not name", argument="labels"
            )
        codes = recoded(others, clusters.names).codes.to(query_matrix.device)
        sums = query_matrix.new_zeros(len(clusters), clusters.n_labels, dtype=torch.float64)
        start = 0
        for block in blocks(as_matrix(X), n_rows=max(1, _BETWEEN_BYTES // (8 * len(clusters)))):
            distances = direct_distances(query_matrix.double(), block.double())
            sums.index_add_(1, codes[start : start + len(block)], distances)
            start += len(block)
        return cls(sums, clusters, torch.bincount(codes, minlength=clusters.n_labels).double())

    def update(self, queries: Any, block: Any, labels: Any) -> ClusterDistances:
        """Return the sums with one more block of points."""
        return self.merge(ClusterDistances.between(queries, self.labels, block, labels))

    def merge(self, other: ClusterDistances) -> ClusterDistances:
        """Return the sums over the points of both, for the same queries."""
        return ClusterDistances(self.sums + other.sums, self.labels, self.counts + other.counts)


@dataclass(frozen=True, eq=False)
class Separation:
    """For each point its mean distance to its own cluster and to the nearest other one.

    Attributes:
        cohesion: (n,) float64, mean distance to the other points of the own cluster; 0 for singletons.
            Of B spaces at once (B, n), as the next two.
        separation: (n,) float64, smallest mean distance to another cluster.
        nearest: (n,) which cluster that is.
        labels: the cluster of each point.
        kept: (N,) which of the N points given are here, where some have no direction (cosine only).
    """

    cohesion: Tensor
    separation: Tensor
    nearest: Tensor
    labels: Labels
    kept: Tensor | None = None

    @cached_property
    def scores(self) -> Tensor:
        """(n,) (b − a)/max(a, b), 0 where both are: silhouettes, but for points alone in their cluster."""
        a, b = self.cohesion, self.separation
        larger = torch.maximum(a, b)
        return torch.where(larger > 0, (b - a) / larger, 0.0)

    @classmethod
    @renamed(as_mebibytes, memory_mb="memory")
    def of(
        cls,
        X: Any,
        labels: Any,
        *,
        metric: str = "euclidean",
        deterministic: bool = False,
        memory: str | float | None = None,
        progress: Progress | None = None,
    ) -> Separation:
        """From any array and its labels; `metric` is euclidean, sqeuclidean or cosine.

        See `silhouette_samples` for `deterministic` and `memory`.
        """
        matrix = as_matrix(X).detach()
        clusters = as_clusters(labels, n=matrix.shape[0]).to(matrix.device)
        with fixed_order(deterministic, matrix.device):
            if metric == "sqeuclidean":
                return _squared_separation(_scaled(matrix), clusters, matrix.shape[1])
            if metric == "cosine":
                return _cosine_separation(matrix, clusters)
            return cls._euclidean(matrix, clusters, deterministic, memory, progress)

    @classmethod
    @renamed(as_mebibytes, memory_mb="memory")
    def of_spaces(
        cls, X: Any, labels: Any, *, deterministic: bool = False, memory: str | float | None = None
    ) -> Separation:
        """Of B spaces that share their labels, (B, n, d), at once: (B, n) fields instead of (n,)."""
        spaces = as_spaces(X).detach()
        clusters = as_clusters(labels, n=spaces.shape[1]).to(spaces.device)
        with fixed_order(deterministic, spaces.device):
            if memory is None:
                fields = fused_separation(spaces, clusters, deterministic=deterministic)
                if fields is not None:
                    return cls(*fields, clusters)
            parts = [cls._euclidean(space, clusters, deterministic, memory) for space in spaces]
            each = zip(*((part.cohesion, part.separation, part.nearest) for part in parts), strict=True)
            cohesion, separation, nearest = (torch.stack(field) for field in each)
            return cls(cohesion, separation, nearest, clusters)

    @classmethod
    def _euclidean(
        cls,
        matrix: Tensor,
        clusters: Labels,
        deterministic: bool,
        memory: str | float | None,
        progress: Progress | None = None,
    ) -> Separation:
        if memory is None:
            fields = fused_separation(matrix[None], clusters, deterministic=deterministic)
            if fields is not None:
                cohesion, separation, nearest = (field[0] for field in fields)
                return cls(cohesion, separation, nearest, clusters)
        plans = tile_plans(matrix, clusters, memory)
        for plan in plans:
            with contextlib.suppress(torch.cuda.OutOfMemoryError):
                return _by_plan(plan, matrix, clusters, progress)
            torch.cuda.empty_cache()
        raise no_room(plans[-1], matrix.device)

    @classmethod
    def from_sums(cls, distances: ClusterDistances) -> Separation:
        """From the summed distances of all points to all clusters."""
        return cls(*reduce_sums(distances.sums, distances.labels.codes, distances.counts), distances.labels)


def _sums_within(arranged: Arranged, n_clusters: int, progress: Progress | None) -> Tensor:
    """(K, n) summed distances of every point to every cluster; each pair of points is met once."""
    sums = _no_sums(arranged, arranged)
    both_ways = partial(_both_ways, arranged)
    for rows, columns, (across, down) in arranged.reduced(both_ways, progress=progress):
        sums[columns.clusters, rows.rows].add_(across)
        if rows != columns:
            sums[rows.clusters, columns.rows].add_(down)
    return _unarranged(sums.mul_(arranged.unit), arranged, arranged, n_clusters)


def sums_between(A: Arranged, B: Arranged, n_clusters: int) -> tuple[Tensor, Tensor]:
    """(K, n) sums of the points of A over each cluster of B, and (K, m) of those of B over A's.

    The points come in the order in which they were given; both number the same K clusters.
    """
    A, B = A.fitting(B)
    here, there = _no_sums(A, B), _no_sums(B, A)
    for rows, columns, (across, down) in A.reduced_with(B, partial(_both_ways, A)):
        here[columns.clusters, rows.rows].add_(across)
        there[rows.clusters, columns.rows].add_(down)
    here, there = here.mul_(B.unit), there.mul_(B.unit)
    return _unarranged(here, A, B, n_clusters), _unarranged(there, B, A, n_clusters)


def _both_ways(arranged: Arranged, rows: Tile, columns: Tile, tile: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of a tile over the clusters of its columns and over those of its rows."""
    across = arranged.sums_across(tile.sqrt_(), columns).clone()
    return across, arranged.sums_down(tile, rows).clone()


def _no_sums(points: Arranged, others: Arranged) -> Tensor:
    """(clusters of the others, n) zeros."""
    return points.points.new_zeros(len(others.clusters), len(points.order), dtype=torch.float64)


def _unarranged(sums: Tensor, points: Arranged, others: Arranged, n_clusters: int) -> Tensor:
    """(K, n) sums of points over the clusters of others, both in the order in which they were given."""
    unarranged = sums.new_zeros(n_clusters, sums.shape[1])
    for place, cluster in enumerate(others.clusters.tolist()):
        unarranged[cluster, points.order] = sums[place]
    return unarranged


def _by_plan(plan: TilePlan, matrix: Tensor, clusters: Labels, progress: Progress | None) -> Separation:
    arranged = Arranged.of(matrix, clusters, tile_rows=plan.tile_rows)
    return (_in_tiles if plan.keeps_sums else _in_strips)(arranged, clusters, progress)


def _in_tiles(arranged: Arranged, clusters: Labels, progress: Progress | None) -> Separation:
    """Every pair once, what is known of all points kept until all pairs are met."""
    known = NearestClusters(arranged, clusters, 0, len(clusters))
    reduce = partial(part_of, arranged, clusters.counts[arranged.clusters].to(arranged.augmented.dtype))

    def both_ways(rows: Tile, columns: Tile, tile: Tensor) -> tuple[Part, Part | None]:
        across = reduce(rows, columns, arranged.sums_across(tile.sqrt_(), columns))
        return across, None if rows == columns else reduce(columns, rows, arranged.sums_down(tile, rows))

    for rows, columns, (across, down) in arranged.reduced(both_ways, progress=progress):
        known.add(rows, columns, across)
        if down is not None:
            known.add(columns, rows, down)
    cohesion, separation, nearest = (_unsorted(field, arranged.order) for field in known.fields())
    return Separation(cohesion, separation, nearest, clusters)


def _in_strips(arranged: Arranged, clusters: Labels, progress: Progress | None) -> Separation:
    """Whole rows at a time, each pair twice: for so many large clusters that their sums cannot be kept."""
    reduce = partial(part_of, arranged, clusters.counts[arranged.clusters].to(arranged.augmented.dtype))

    def across(rows: Tile, columns: Tile, tile: Tensor) -> Part:
        return reduce(rows, columns, arranged.sums_across(tile.sqrt_(), columns))

    parts = []
    for rows, columns, part in arranged.reduced(across, symmetric=False, progress=progress):
        if columns.start == 0:
            known = NearestClusters(arranged, clusters, rows.start, rows.stop)
        known.add(rows, columns, part)
        if columns == arranged.tiles[-1]:
            parts.append(known.fields())
    cohesion, separation, nearest = (
        _unsorted(torch.cat(field), arranged.order) for field in zip(*parts, strict=True)
    )
    return Separation(cohesion, separation, nearest, clusters)


def _unsorted(values: Tensor, order: Tensor) -> Tensor:
    """Values of arranged points in the caller's order."""
    return torch.empty_like(values).scatter_(0, order, values)


def _squared_separation(rows: Blocks, clusters: Labels, n_dims: int) -> Separation:
    """Squared distances sum in closed form: Σ_{j∈k} ‖x − x_j‖² = n_k ‖x − μ_k‖² + Σ_{j∈k} ‖x_j − μ_k‖².

    `rows(start, stop)` gives rows in float64, each time they are asked for.
    """
    n_rows = block_rows(n_dims + clusters.n_labels, clusters.codes.device)
    cuts = [(start, min(start + n_rows, len(clusters))) for start in range(0, len(clusters), n_rows)]
    tree = Tree()
    for cut in cuts:
        tree.add({"moments": GroupMoments.of(rows(*cut), clusters.rows(*cut))})
    moments: GroupMoments = tree.total()["moments"]
    point, means = moments.about
    parts = []
    for start, stop in cuts:
        squared = crowded_squares(rows(start, stop) - point, means, near=_NEAR_MEAN)
        sums = moments.counts * squared + moments.within
        parts.append(reduce_sums(sums, clusters.codes[start:stop], moments.counts))
    cohesion, separation, nearest = (torch.cat(column) for column in zip(*parts, strict=True))
    return Separation(cohesion, separation, nearest, clusters)


def _scaled(matrix: Tensor) -> Blocks:
    """Return what gives rows of a matrix in float64, divided by a power of two where squares need it."""
    least, most = (float(extreme) for extreme in torch.aminmax(matrix))
    unit = 2.0 ** math.frexp(max(-least, most))[1]
    if _PLAIN_LENGTHS[0] < unit < _PLAIN_LENGTHS[1]:
        return partial(_cut, matrix)
    return lambda start, stop: _cut(matrix, start, stop) / unit


def _cut(matrix: Tensor, start: int, stop: int) -> Tensor:
    return matrix[start:stop].double()


def _cosine_separation(matrix: Tensor, clusters: Labels) -> Separation:
    """1 − cos is half the squared distance of unit vectors; points without a direction are left out."""
    if fields := squared_cosine_fields(matrix, clusters):
        return _halved(Separation(*fields, clusters), None)
    directed = has_direction(matrix)
    if not bool(directed.all()):
        matrix, clusters = matrix[directed], Labels(clusters.codes[directed], clusters.names).seen()
        if not 2 <= clusters.n_labels < len(clusters):
            raise UndefinedError(
                f"the cosine silhouette is undefined: {counted(int((~directed).sum()), 'zero vector')} leave "
                f"{counted(len(clusters), 'point')} and {counted(clusters.n_labels, 'label')}"
            )
    axis, n = cone_axis(matrix), block_rows(matrix.shape[1], matrix.device)
    rows = partial(_directions, matrix, axis)
    if 8 * matrix.numel() <= _KEPT_BYTES:
        units = torch.cat([rows(start, start + n) for start in range(0, len(matrix), n)])
        rows = partial(_cut, units)
    return _halved(
        _squared_separation(rows, clusters, matrix.shape[1]), None if bool(directed.all()) else directed
    )


def _directions(matrix: Tensor, axis: Tensor | None, start: int, stop: int) -> Tensor:
    block = matrix[start:stop]
    return unit_rows(block)[0] if axis is None else unit_steps(block, axis)


def _halved(squared: Separation, directed: Tensor | None) -> Separation:
    cohesion, separation = (
        torch.where(half > _PARALLEL, half, 0.0) for half in (squared.cohesion / 2, squared.separation / 2)
    )
    return Separation(cohesion, separation, squared.nearest, squared.labels, directed)


def _of_shelf(space: Space, shelf: Any) -> Separation:
    if len(shelf.devices) < 2:
        return Separation.of(space, shelf.labels, progress=shelf.progress)
    from isoscope.statistics.device_pairs import separation_across

    return separation_across(space.vectors.detach(), shelf.labels, shelf.devices, progress=shelf.progress)


declare(
    "separation",
    Separation,
    _of_shelf,
    merges=False,
    of_pairs=True,
    groups="labels",
    bytes_held=lambda n, _d, _k: 24 * n,
    operations=lambda d: 2 * d + 6,  # a product, a root and the sums by cluster
)
