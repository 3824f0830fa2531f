"""Anchors: exact silhouette parts for a few points, and a proxy for every point, in linear time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from isoscope.arrays import blocks
from isoscope.kernels.precision import NEAR, center_and_unit, direct_squares, full_precision, pair_dtype
from isoscope.kernels.products import sum_of_squares
from isoscope.labels import Labels
from isoscope.statistics.pairs import Separation, reduce_sums

_CROWDED = 0.01  # share of near pairs above which a block is taken whole by direct difference
_BLOCK_BYTES = 3 * 2**20  # of float32: every temporary of a block stays in cache
_CUDA_BLOCK_BYTES = 256 * 2**20  # of float32: a launch has to keep a whole device busy
_KEPT_BYTES = 64 * 2**20  # of placed points kept between passes
_UNIT_ROWS = 256  # looked at for the unit of length
_INDICATOR_LABELS = 512  # up to here a product with an indicator beats adding row by row


_Block = tuple[slice, Tensor, Tensor]  # rows, placed points, their squared lengths


@dataclass(frozen=True, eq=False)
class Proxies:
    """For every point the root mean square distance to its own cluster and to the nearest other one.

    Mean squared distances to a cluster are exact in closed form, O(nKd):
    mean_{j∈k} ‖x − x_j‖² = ‖x − μ_k‖² + mean_{j∈k} ‖x_j − μ_k‖². Their roots stand for mean distances.

    Attributes:
        cohesion: (n,) to the own cluster, the point itself left out.
        separation: (n,) to the nearest other cluster.
    """

    cohesion: Tensor
    separation: Tensor


@dataclass(frozen=True, eq=False)
class AnchorRows:
    """The points about one centre, ready to be met block by block by proxies and anchors.

    Attributes:
        points: (n, d) the caller's rows.
        labels: the cluster of each.
        center: (d,) float64.
        unit: root mean square distance to it.
    """

    points: Tensor
    labels: Labels
    center: Tensor
    unit: float

    @classmethod
    def of(cls, points: Tensor, labels: Labels) -> AnchorRows:
        """One light pass for the mean; the unit is only a scale, so some rows suffice for it."""
        points = points.detach()
        n = points.shape[0]
        parts = [block.mean(dim=0).double() * (len(block) / n) for block in blocks(points)]
        center = torch.stack(parts).sum(dim=0)
        some = points[:: -(-n // _UNIT_ROWS)]
        _, unit = center_and_unit(torch.cat([some.double(), center[None]]))
        return cls(points, labels, center, unit)

    def proxies(self) -> Proxies:
        """One pass for the clusters' means, one for every point against them."""
        K = self.labels.n_labels
        counts = self.labels.counts.to(self.points.device)
        sums = self.points.new_zeros(K, self.points.shape[1], dtype=torch.float64)
        squares = self.points.new_zeros(K, dtype=torch.float64)
        for rows, U, own in self._blocks():
            codes = self.labels.codes[rows]
            sums += _sums_by_label(U, codes, K)
            squares += _sums_by_label(own[:, None], codes, K)[:, 0]
        means = sums / counts[:, None]
        spread = (squares / counts - means.square().sum(dim=1)).clamp(min=0)
        parts = [self._block_proxies(*block, means, spread, counts) for block in self._blocks()]
        return Proxies(*(torch.cat(column) for column in zip(*parts, strict=True)))

    @full_precision
    def _block_proxies(
        self, rows: slice, U: Tensor, own_squares: Tensor, means: Tensor, spread: Tensor, counts: Tensor
    ) -> tuple[Tensor, Tensor]:
        centers = means.to(U.dtype)
        offset = (centers.square().sum(dim=1) + spread.to(U.dtype))[None]
        squared = torch.addmm(offset, U, centers.T, alpha=-2).add_(own_squares[:, None])
        own = self.labels.codes[rows, None]
        size = counts[own]
        inside = squared.gather(1, own) * (size / (size - 1).clamp(min=1)).to(U.dtype)
        others = squared.scatter(1, own, torch.inf).amin(dim=1)
        root = (inside.squeeze(1).clamp(min=0).sqrt(), others.clamp(min=0).sqrt())
        return root[0].double() * self.unit, root[1].double() * self.unit

    def exact(self, anchors: Tensor) -> Separation:
        """Cohesion and separation of the anchors (row indices) against all points, exactly."""
        K = self.labels.n_labels
        sums = torch.zeros(K, len(anchors), dtype=torch.float64, device=self.points.device)
        for rows, distances in self._distances(anchors):
            sums += _sums_by_label(distances, self.labels.codes[rows], K)
        own = Labels(self.labels.codes[anchors], self.labels.names)
        counts = self.labels.counts.to(sums.device).double()
        return Separation(*reduce_sums(sums.T * self.unit, own.codes, counts), own)

    def distances(self, anchors: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Block by block, (rows, anchors) distances of the points to the anchors (row indices)."""
        for rows, distances in self._distances(anchors):
            yield rows, distances.double() * self.unit

    def _distances(self, anchors: Tensor) -> Iterator[tuple[slice, Tensor]]:
        A = self._placed(self.points[anchors])
        squares = A.double().square().sum(dim=1).to(A.dtype)
        for rows, U, own in self._blocks():
            yield rows, self._block_distances(rows, U, own, A, squares, anchors)

    @full_precision
    def _block_distances(
        self, rows: slice, U: Tensor, own: Tensor, A: Tensor, squares: Tensor, anchors: Tensor
    ) -> Tensor:
        """(block, anchors) distances in units; too near pairs by direct difference, an anchor to itself 0."""
        squared = torch.addmm(squares[None], U, A.T, alpha=-2).add_(own[:, None])
        here = ((anchors >= rows.start) & (anchors < rows.stop)).nonzero().flatten()
        itself = (anchors[here] - rows.start, here)
        scale = float(own.max() + squares.max())
        squared[itself] = scale
        if scale > 0 and squared.min() < NEAR[U.dtype] * scale:
            self._mend(squared, rows, anchors, NEAR[U.dtype] * scale)
        squared[itself] = 0.0
        return squared.sqrt_()

    def _mend(self, squared: Tensor, rows: slice, anchors: Tensor, near: float) -> None:
        close = squared < near
        if int(close.sum()) > _CROWDED * squared.numel():
            a, b = self.points[rows].double() / self.unit, self.points[anchors].double() / self.unit
            squared.copy_(torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square())
            return
        i, j = close.nonzero(as_tuple=True)
        exact = direct_squares(self.points, rows.start + i, self.points, anchors[j], self.unit)
        squared[i, j] = exact.to(squared.dtype)

    def _blocks(self) -> Iterator[_Block]:
        """Rows, their placed points and squared lengths; kept for the next pass where they are few."""
        if self.points.numel() * 4 > _KEPT_BYTES:
            yield from self._make_blocks()
        else:
            yield from self._kept_blocks

    @cached_property
    def _kept_blocks(self) -> list[_Block]:
        return list(self._make_blocks())

    def _make_blocks(self) -> Iterator[_Block]:
        n, d = self.points.shape
        n_rows = max(256, (_CUDA_BLOCK_BYTES if self.points.is_cuda else _BLOCK_BYTES) // (4 * d))
        for start in range(0, n, n_rows):
            rows = slice(start, min(start + n_rows, n))
            U = self._placed(self.points[rows])
            yield rows, U, sum_of_squares(U)

    def _placed(self, rows: Tensor) -> Tensor:
        dtype = pair_dtype(self.points)
        if rows.dtype == dtype and self._small_offset:
            return (rows - self.center.to(dtype)).mul_(1 / self.unit)
        return ((rows.double() - self.center) / self.unit).to(dtype)

    @property
    def _small_offset(self) -> bool:
        """Whether subtracting the centre in the rows' own type loses nothing that matters."""
        return float(self.center.abs().max()) < 10 * self.unit


def _sums_by_label(rows: Tensor, codes: Tensor, n_labels: int) -> Tensor:
    """(K, m) float64 sums of (n, m) rows over each label."""
    if n_labels <= _INDICATOR_LABELS:
        indicator = torch.zeros(n_labels, len(rows), dtype=rows.dtype, device=rows.device)
        indicator[codes, torch.arange(len(rows), device=rows.device)] = 1
        return (indicator @ rows).double()
    sums = torch.zeros(n_labels, rows.shape[1], dtype=torch.float64, device=rows.device)
    return sums.index_add_(0, codes, rows.double())
