"""Anchors: exact silhouette parts for a few points, and a proxy for every point, in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from isoscope.arrays import block_rows
from isoscope.kernels.precision import NEAR, Frame, crowded_squares, direct_squares, full_precision
from isoscope.kernels.products import sum_of_squares
from isoscope.kernels.workers import Room, in_order
from isoscope.labels import Labels
from isoscope.statistics.fused import can_launch
from isoscope.statistics.nearest_clusters import reduce_sums
from isoscope.statistics.pairs import Separation
from isoscope.statistics.rows import HeldRows, Rows

_FRAME_ROWS = 256  # looked at for a centre and a unit
_CROWDED = 0.01  # share of near pairs above which they are not taken one by one
_BLOCKS_A_WORKER = 4  # or more: fewer blocks are taken in turn, by all cores together
_GROUP_ANCHORS = 512  # meet a block at a time
_CUDA_GROUP_ANCHORS = 1024
_CUDA_BLOCKS = 4  # usual blocks in one on a device, where every launch costs the same
_TABLE_BYTES = 64 * 2**20  # of sums, and of anchors, held at a time: above, the rows are passed over again
_INDICATOR_LABELS = 8  # up to here a product with an indicator beats adding row by row
_CUDA_INDICATOR_LABELS = 512


_R = TypeVar("_R")


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows: as they came, placed in the frame, and the placed rows' squared lengths."""

    rows: slice
    raw: Tensor
    placed: Tensor
    squares: Tensor


@dataclass(frozen=True, eq=False)
class Anchors:
    """Rows that meet all others.

    Attributes:
        index: (m,) which rows they are.
        block: the rows themselves.
    """

    index: Tensor
    block: Block

    def __len__(self) -> int:
        return len(self.index)

    def part(self, start: int, stop: int) -> Anchors:
        """Anchors start … stop−1."""
        rows = slice(start, stop)
        b = self.block
        return Anchors(self.index[rows], Block(rows, b.raw[rows], b.placed[rows], b.squares[rows]))


@dataclass(frozen=True, eq=False)
class ClusterMeans:
    """Where the clusters are and how wide, in the frame of an `AnchorRows`.

    Attributes:
        means: (K, d) float64.
        spreads: (K,) float64, mean squared distance of a cluster's points to its mean.
        counts: (K,) int64.
        finite: whether every sum is; if not, a number is not, or squares are beyond the type.
        squares: (n,) squared length of every point.
    """

    means: Tensor
    spreads: Tensor
    counts: Tensor
    finite: bool
    squares: Tensor

    def proxies(self, block: Block, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Root mean square distance of each row to its own cluster and to the nearest other one.

        Mean squared distances to a cluster are exact in closed form, O(Kd) a row:
        mean_{j∈k} ‖x − x_j‖² = ‖x − μ_k‖² + mean_{j∈k} ‖x_j − μ_k‖². Their roots stand for mean distances.
        The point itself is left out of its cluster.
        """
        U = block.placed
        centers = self.means.to(U.dtype)
        offset = (self.means.square().sum(dim=1) + self.spreads).to(U.dtype)
        larger = (self.counts / (self.counts - 1).clamp(min=1)).to(U.dtype)
        if can_launch(U) and U.dtype == torch.float32:
            from isoscope.kernels.triton_proxies import mean_square_roots

            inside, outside = mean_square_roots(U, block.squares, codes, centers, offset, larger)
            return inside, outside
        squared = torch.addmm(offset[None], U, centers.T, alpha=-2)
        column = codes[:, None]
        inside = squared.gather(1, column).squeeze(1) + block.squares
        outside = squared.scatter_(1, column, torch.inf).amin(dim=1) + block.squares
        return (inside * larger[codes]).clamp_(min=0).sqrt_(), outside.clamp_(min=0).sqrt_()


@dataclass(frozen=True, eq=False)
class AnchorRows:
    """The points in one frame, passed over block by block to meet clusters and anchors.

    Attributes:
        rows: the caller's rows, in memory or in a file.
        labels: the cluster of each.
        frame: how they are placed.
        n_rows: how many make a block.
    """

    rows: Rows
    labels: Labels
    frame: Frame
    n_rows: int
    _room: Room = field(default_factory=Room, init=False, repr=False)

    @classmethod
    def of(cls, rows: Tensor | Rows, labels: Labels) -> AnchorRows:
        """Return anchors with the frame of the first rows, which only has to be near and fixed."""
        source = HeldRows(rows.detach()) if isinstance(rows, Tensor) else rows
        first = next(source.blocks(_FRAME_ROWS))
        width = max(first.shape[1], labels.n_labels)
        n_rows = block_rows(width, first.device) * (_CUDA_BLOCKS if first.is_cuda else 1)
        return cls(source, labels, Frame.of(first), n_rows)

    @full_precision
    def clusters(self, pick: Tensor) -> tuple[ClusterMeans, Anchors]:
        """One pass: the clusters' means and spreads, and the rows of the given numbers as anchors."""
        K = self.labels.n_labels
        counts = self.labels.counts
        order = pick.argsort()
        wanted = pick[order]

        def met(block: Block) -> tuple[Tensor, Tensor, Tensor]:
            first, last = torch.searchsorted(wanted, wanted.new_tensor([block.rows.start, block.rows.stop]))
            sums = sums_by_label(block.placed, self.labels.codes[block.rows], K)
            return sums, block.squares, block.raw[wanted[first:last] - block.rows.start]

        sums = torch.zeros(K, self.frame.n_dims, dtype=torch.float64, device=pick.device)
        lengths, picked = [], []
        for part, lengths_here, rows in self._each_block(met):
            sums += part
            lengths.append(lengths_here)
            picked.append(rows)
        squares = torch.cat(lengths)
        by_cluster = sums_by_label(squares.double()[:, None], self.labels.codes, K)[:, 0]
        means = sums / counts[:, None]
        spreads = (by_cluster / counts - means.square().sum(dim=1)).clamp(min=0)
        raw = torch.cat(picked)[order.argsort()]
        finite = bool(torch.isfinite(sums.sum() + by_cluster.sum()))
        cluster_means = ClusterMeans(means, spreads, counts, finite, squares)
        return cluster_means, self._anchors(pick, raw)

    def anchors(self, index: Tensor) -> Anchors:
        """Return the rows of the given numbers as anchors, by one pass over a file."""
        return self._anchors(index, self.rows.take(index))

    def exact(self, index: Tensor, *, clusters: ClusterMeans | None = None) -> Separation:
        """Cohesion and separation of rows (by number) against all points, exactly, some thousands a pass."""
        return self._exact(index, self.anchors, clusters, None)[0]

    def meet(
        self, anchors: Anchors, clusters: ClusterMeans, also: Callable[[Block], Tensor] | None = None
    ) -> tuple[Separation, Tensor | None]:
        """Return the same for given anchors, and the sum of `also` over every block."""
        at_hand = (anchors.part(*span) for span in self._spans(len(anchors)))
        return self._exact(anchors.index, lambda _: next(at_hand), clusters, also)

    @full_precision
    def _exact(
        self,
        index: Tensor,
        fetch: Callable[[Tensor], Anchors],
        clusters: ClusterMeans | None,
        also: Callable[[Block], Tensor] | None,
    ) -> tuple[Separation, Tensor | None]:
        labels = Labels(self.labels.codes[index], self.labels.names)
        counts = self.labels.counts.double()
        parts, gathered = [], None
        for start, stop in self._spans(len(index)):
            first = start == 0
            sums, more = self._sums(fetch(index[start:stop]), clusters, also if first else None)
            gathered = more if first else gathered
            parts.append(reduce_sums(sums.T * self.frame.unit, labels.codes[start:stop], counts))
        cohesion, separation, nearest = (torch.cat(column) for column in zip(*parts, strict=True))
        return Separation(cohesion, separation, nearest, labels), gathered

    def _spans(self, m: int) -> list[tuple[int, int]]:
        """Anchors that are taken in one pass."""
        batch = max(1, _TABLE_BYTES // (8 * max(self.frame.n_dims, self.labels.n_labels)))
        return [(start, min(start + batch, m)) for start in range(0, m, batch)]

    @full_precision
    def sums(self, raw: Tensor, index: Tensor) -> Tensor:
        """(K, m) summed distances of m rows to the points here, by cluster; `index` is their place here.

        A row from elsewhere has a place before the first or after the last.
        """
        return self._sums(self._anchors(index, raw), None, None)[0] * self.frame.unit

    def distances(self, index: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Block by block, (rows, anchors) distances of the points to the anchors (row indices)."""
        anchors = self.anchors(index)
        for start, raw in zip(
            range(0, len(self.labels), self.n_rows), self.rows.blocks(self.n_rows), strict=True
        ):
            block = self._block(start, raw)
            distances = full_precision(self._distances)(block, anchors, None)
            yield block.rows, distances.double() * self.frame.unit  # a product is new: the tile is not kept

    def _sums(
        self, anchors: Anchors, clusters: ClusterMeans | None, also: Callable[[Block], Tensor] | None
    ) -> tuple[Tensor, Tensor | None]:
        """(K, m) summed distances of the anchors to every cluster, in units; the sum of what `also` makes."""
        K, m = self.labels.n_labels, len(anchors)
        width = _CUDA_GROUP_ANCHORS if anchors.index.is_cuda else _GROUP_ANCHORS
        groups = [anchors.part(start, start + width) for start in range(0, m, width)]

        def met(block: Block) -> tuple[list[Tensor], Tensor | None]:
            codes = self.labels.codes[block.rows]
            parts = [sums_by_label(self._distances(block, group, clusters), codes, K) for group in groups]
            return parts, also(block) if also else None

        sums = torch.zeros(K, m, dtype=torch.float64, device=anchors.index.device)
        gathered = None
        for parts, more in self._each_block(met, clusters):
            sums += torch.cat(parts, dim=1)
            gathered = more if gathered is None or more is None else gathered + more
        return sums, gathered

    def _distances(self, block: Block, anchors: Anchors, clusters: ClusterMeans | None) -> Tensor:
        """(block, anchors) distances in units, overwritten by this thread's next ones.

        Too near pairs are taken by direct difference; an anchor to itself is 0.
        """
        A, index = anchors.block, anchors.index
        room = self._room.of(len(block.placed), len(A.placed), A.placed)
        squared = torch.addmm(A.squares[None], block.placed, A.placed.T, alpha=-2, out=room)
        squared += block.squares[:, None]
        here = ((index >= block.rows.start) & (index < block.rows.stop)).nonzero().flatten()
        self_pairs = (index[here] - block.rows.start, here)
        scale = float(block.squares.max() + A.squares.max())
        squared[self_pairs] = scale
        near = NEAR[squared.dtype] * scale
        if scale > 0 and float(squared.min()) < near:
            self._recompute_close(squared, block, anchors, near, clusters)
        squared[self_pairs] = 0.0
        return squared.sqrt_()

    def _recompute_close(
        self, squared: Tensor, block: Block, anchors: Anchors, near: float, clusters: ClusterMeans | None
    ) -> None:
        """Take pairs under `near` again: about their own cluster's mean if many, then by difference."""
        raw = anchors.block.raw
        close = squared < near
        if clusters is not None and int(close.sum()) > _CROWDED * squared.numel():
            close &= ~self._recentered(squared, block, anchors, clusters)
        if int(close.sum()) > _CROWDED * squared.numel():
            a, b = block.raw.double() / self.frame.unit, raw.double() / self.frame.unit
            squared.copy_(crowded_squares(a, b))
            return
        i, j = close.nonzero(as_tuple=True)
        squared[i, j] = direct_squares(block.raw, i, raw, j, self.frame.unit).to(squared.dtype)

    def _recentered(self, squared: Tensor, block: Block, anchors: Anchors, clusters: ClusterMeans) -> Tensor:
        """Pairs within a cluster taken anew about its mean; which of all pairs are right thereby."""
        codes, anchor_codes = self.labels.codes[block.rows], self.labels.codes[anchors.index]
        U = self.frame.residuals(block.raw, clusters.means[codes])
        A = self.frame.residuals(anchors.block.raw, clusters.means[anchor_codes])
        scales = sum_of_squares(U)[:, None] + sum_of_squares(A)
        within = (scales - 2 * (U @ A.T)).to(squared.dtype)
        same = codes[:, None] == anchor_codes
        torch.where(same, within.clamp_(min=0), squared, out=squared)
        return same & (within >= NEAR[squared.dtype] * scales)

    def _each_block(self, work: Callable[[Block], _R], clusters: ClusterMeans | None = None) -> Iterator[_R]:
        """Yield the result of the work for every block, in order; many blocks take one core each."""
        spans = range(0, len(self.labels), self.n_rows)
        n_workers = torch.get_num_threads()
        few = len(spans) < _BLOCKS_A_WORKER * n_workers or self.labels.codes.is_cuda

        def worked(start: int, raw: Tensor) -> _R:
            return work(self._block(start, raw, clusters))

        blocks = zip(spans, self.rows.blocks(self.n_rows), strict=True)
        tasks = (partial(worked, start, raw) for start, raw in blocks)
        return in_order(tasks, n_workers=1 if few else n_workers)

    def _block(self, start: int, raw: Tensor, clusters: ClusterMeans | None = None) -> Block:
        placed, rows = self.frame.place(raw), slice(start, start + len(raw))
        return Block(rows, raw, placed, clusters.squares[rows] if clusters else sum_of_squares(placed))

    def _anchors(self, index: Tensor, raw: Tensor) -> Anchors:
        return Anchors(index, self._block(0, raw))


def sums_by_label(rows: Tensor, codes: Tensor, n_labels: int) -> Tensor:
    """(K, m) float64 sums of (n, m) rows over each label."""
    if n_labels <= (_CUDA_INDICATOR_LABELS if rows.is_cuda else _INDICATOR_LABELS):
        indicator = torch.zeros(n_labels, len(rows), dtype=rows.dtype, device=rows.device)
        indicator[codes, torch.arange(len(rows), device=rows.device)] = 1
        return (indicator @ rows).double()
    sums = torch.zeros(n_labels, rows.shape[1], dtype=rows.dtype, device=rows.device)
    return sums.index_add_(0, codes, rows).double()
