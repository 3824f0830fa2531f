"""Sums over pairs of points: to every cluster, to the own and the nearest other one; never n × n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, block_rows, blocks, working_dtype
from isoscope.errors import LabelError, UndefinedError
from isoscope.kernels.precision import full_precision
from isoscope.kernels.tiles import Arranged, Progress, Tile
from isoscope.labels import Labels, as_clusters, as_labels
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.fused import can_fuse, fused_sums
from isoscope.statistics.groups import GroupMoments

SUMS_BYTES = 128 * 2**20  # above this, an (n, K) table of sums is not kept: row strips instead


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
        sums = matrix.new_zeros(clusters.n_labels, len(clusters), dtype=torch.float64)  # rows contiguous
        for rows, columns, tile in arranged.squared_distances(progress=progress):
            tile.sqrt_()
            sums[columns.clusters, rows.rows] += _by_cluster(tile.T, arranged, columns)
            if rows != columns:
                sums[rows.clusters, columns.rows] += _by_cluster(tile, arranged, rows)
        back = torch.empty_like(sums)
        back[:, arranged.order] = sums * arranged.unit
        back = back.T
        return cls(back, clusters, clusters.counts.double())

    @classmethod
    def between(cls, queries: Any, query_labels: Any, X: Any, labels: Any) -> ClusterDistances:
        """The queries against a block of points; `query_labels` name the clusters to sum over."""
        query_matrix = as_matrix(queries, name="queries")
        own = as_labels(query_labels, n=query_matrix.shape[0], name="query_labels").to(query_matrix.device)
        others = as_labels(labels)
        if unknown := set(others.names) - set(own.names):
            raise LabelError(f"labels has {min(map(str, unknown))!r}, which query_labels does not name")
        place = {name: row for row, name in enumerate(own.names)}
        order = torch.tensor([place[name] for name in others.names], device=others.codes.device)
        codes = order[others.codes].to(query_matrix.device)
        sums = query_matrix.new_zeros(len(own), own.n_labels, dtype=torch.float64)
        start = 0
        for block in blocks(as_matrix(X), n_rows=max(1, SUMS_BYTES // (8 * len(own)))):
            distances = torch.cdist(query_matrix.double(), block.double(), compute_mode=_DIRECT)
            sums.index_add_(1, codes[start : start + len(block)], distances)
            start += len(block)
        return cls(sums, own, torch.bincount(codes, minlength=own.n_labels).double())

    def update(self, queries: Any, block: Any, labels: Any) -> ClusterDistances:
        """The same queries against one more block of points."""
        return self.merge(ClusterDistances.between(queries, self.labels, block, labels))

    def merge(self, other: ClusterDistances) -> ClusterDistances:
        """The same queries against the points of both."""
        return ClusterDistances(self.sums + other.sums, self.labels, self.counts + other.counts)


_DIRECT = "donot_use_mm_for_euclid_dist"


@dataclass(frozen=True, eq=False)
class Separation:
    """For each point its mean distance to its own cluster and to the nearest other one.

    Attributes:
        cohesion: (n,) float64, mean distance to the other points of the own cluster; 0 for singletons.
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

    @classmethod
    def of(
        cls, X: Any, labels: Any, *, metric: str = "euclidean", progress: Progress | None = None
    ) -> Separation:
        """From any array and its labels; `metric` is euclidean, sqeuclidean or cosine."""
        matrix = as_matrix(X).detach()
        clusters = as_clusters(labels, n=matrix.shape[0]).to(matrix.device)
        if metric == "sqeuclidean":
            return _squared_separation(matrix, clusters)
        if metric == "cosine":
            return _cosine_separation(matrix, clusters)
        if can_fuse(matrix, clusters) or 8 * len(clusters) * clusters.n_labels <= SUMS_BYTES:
            return cls.from_sums(ClusterDistances.of(matrix, clusters, progress=progress))
        return _in_strips(matrix, clusters, progress)

    @classmethod
    def from_sums(cls, distances: ClusterDistances) -> Separation:
        """From the summed distances of all points to all clusters."""
        return cls(*reduce_sums(distances.sums, distances.labels.codes, distances.counts), distances.labels)


@full_precision
def _by_cluster(tile: Tensor, arranged: Arranged, rows: Tile) -> Tensor:
    """(clusters of the rows, columns) sums of a tile of distances over each cluster of its rows."""
    if rows.pure:
        return tile.sum(dim=0, keepdim=True).double()
    codes = arranged.codes[rows.rows] - rows.first
    clusters = torch.arange(rows.last - rows.first + 1, device=tile.device)
    indicator = (clusters[:, None] == codes).to(tile.dtype)
    return (indicator @ tile).double()


def reduce_sums(sums: Tensor, own: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cohesion, separation and nearest cluster from (m, K) summed distances."""
    column = own[:, None]
    cohesion = sums.gather(1, column).squeeze(1) / (counts[own] - 1).clamp(min=1)
    means = sums / counts
    means.scatter_(1, column, torch.inf)
    means[:, counts == 0] = torch.inf
    separation, nearest = means.min(dim=1)
    return cohesion, separation, nearest


def _in_strips(matrix: Tensor, clusters: Labels, progress: Progress | None) -> Separation:
    """Whole rows at a time, reduced at once: for so many clusters that their sums cannot be kept."""
    arranged = Arranged.of(matrix, clusters)
    counts = clusters.counts.double()
    cohesion, separation = (matrix.new_empty(len(clusters), dtype=torch.float64) for _ in range(2))
    nearest = torch.empty_like(clusters.codes)
    last = arranged.tiles[-1]
    for rows, columns, tile in arranged.squared_distances(symmetric=False, progress=progress):
        if columns.start == 0:
            sums = matrix.new_zeros(rows.stop - rows.start, clusters.n_labels, dtype=torch.float64)
        sums[:, columns.clusters] += _by_cluster(tile.sqrt_().T, arranged, columns).T
        if columns == last:
            place = arranged.order[rows.rows]
            parts = reduce_sums(sums * arranged.unit, arranged.codes[rows.rows], counts)
            cohesion[place], separation[place], nearest[place] = parts
    return Separation(cohesion, separation, nearest, clusters)


def _squared_separation(matrix: Tensor, clusters: Labels) -> Separation:
    """Squared distances sum in closed form: Σ_{j∈k} ‖x − x_j‖² = n_k ‖x − μ_k‖² + Σ_{j∈k} ‖x_j − μ_k‖².

    With r = x − μ_own and Δ = μ_own − μ_k, ‖x − μ_k‖² = ‖r‖² + 2Δ·r + ‖Δ‖²: no large terms cancel.
    """
    moments = GroupMoments.of(matrix, clusters)
    means = moments.means - moments.mean
    parts = []
    n_rows = block_rows(matrix.shape[1] + clusters.n_labels)
    for start in range(0, len(clusters), n_rows):
        own = clusters.codes[start : start + n_rows]
        r = (matrix[start : start + n_rows].double() - moments.mean) - means[own]
        along = r @ means.T
        here, place = own.unique(return_inverse=True)
        gaps = torch.cdist(means[here], means, compute_mode=_DIRECT).square()[place]
        squared = (r * r).sum(dim=1, keepdim=True) + 2 * (along.gather(1, own[:, None]) - along) + gaps
        parts.append(reduce_sums(moments.counts * squared + moments.within, own, moments.counts))
    cohesion, separation, nearest = (torch.cat(column) for column in zip(*parts, strict=True))
    return Separation(cohesion, separation, nearest, clusters)


def _cosine_separation(matrix: Tensor, clusters: Labels) -> Separation:
    """1 − cos is half the squared distance of unit vectors; points without a direction are left out."""
    units = torch.empty_like(matrix, dtype=working_dtype(matrix.dtype))
    kept = torch.empty(len(matrix), dtype=torch.bool, device=matrix.device)
    start = 0
    for block in blocks(matrix):
        rows = slice(start, start + len(block))
        directions, norms = unit_rows(block)
        units[rows], kept[rows] = directions.to(units.dtype), norms > 0
        start = rows.stop
    if bool(kept.all()):
        return _halved(_squared_separation(units, clusters), None)
    remaining = Labels(clusters.codes[kept], clusters.names).seen()
    if not 2 <= remaining.n_labels < len(remaining):
        raise UndefinedError(
            f"the cosine silhouette is undefined: {int((~kept).sum())} zero vectors leave {len(remaining)} "
            f"points and {remaining.n_labels} labels"
        )
    return _halved(_squared_separation(units[kept], remaining), kept)


def _halved(squared: Separation, kept: Tensor | None) -> Separation:
    return Separation(squared.cohesion / 2, squared.separation / 2, squared.nearest, squared.labels, kept)
