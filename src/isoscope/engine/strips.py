"""Exact pair sums of rows that no machine holds: strips of rows, each against every part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.checkpoint import Checkpoint
from isoscope.engine.options import Scale
from isoscope.engine.passes import Outcome
from isoscope.engine.runners import Job, Runner
from isoscope.engine.source import Source
from isoscope.kernels.precision import Frame
from isoscope.kernels.tiles import Progress
from isoscope.kernels.workers import in_order
from isoscope.labels import Labels, as_clusters
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.nearest_clusters import reduce_sums
from isoscope.statistics.pairs import Separation
from isoscope.statistics.rows import FileRows, HeldRows

STRIP_ROWS = 16_384  # rows that meet all others in one pass; more passes cost reads, more rows memory
_STRIP_BYTES = 64 * 2**20
_FRAME_ROWS = 256
_BLOCK_BYTES = 16 * 2**20
TILE_ROWS = 512  # by as many: a tile that stays in a core's cache; blocks of 16 MB take 3.5 times as long
_SHARES = 4  # of a strip for each core: few, for each places the block anew; more than one, to end together
_KEPT = ("cohesion", "separation", "nearest")  # of each row of a strip

Alive = list[tuple[int, Source, int]]  # place, part and number of rows of every part that can be read


@dataclass(frozen=True, eq=False)
class PairSums:
    """(K, m) summed distances of m rows to the points of each cluster."""

    sums: Tensor

    def merge(self, other: PairSums) -> PairSums:
        """Return the sums of the same rows over the points of both."""
        return PairSums(self.sums + other.sums)


def separate(
    run: Runner,
    parts: Alive,
    labels: Labels,
    *,
    scale: Scale,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Separation:
    """For each row the mean distance to its own cluster and to the nearest other one, exactly.

    A strip of some thousand rows is sent to where a part is read; (K, m) sums come back, are added up over
    the parts and reduced. Nothing grows with n but three numbers a row. Every pair is met twice, once from
    either side: the sums of a pair's other side would have to be kept for all rows.
    """
    clusters = as_clusters(labels, n=len(labels))
    plan = _Strips(parts, clusters, scale)
    counts = clusters.counts.double()
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    ready = {
        number: reduced
        for number in range(len(plan))
        if (reduced := _load(checkpoint, plan.rows(number))) is not None
    }
    left = [number for number in range(len(plan)) if number not in ready]
    fresh = run.outcomes(map(plan.job, left))
    for number in range(len(plan)):
        reduced = ready.pop(number, None)
        if reduced is None:
            sums = next(fresh).statistics["pairs"].sums
            reduced = reduce_sums(sums.T, clusters.codes[plan.rows(number)], counts)
            if checkpoint is not None:
                checkpoint.save(_name(plan.rows(number)), Outcome(dict(zip(_KEPT, reduced, strict=True))))
        columns.append(reduced)
        if progress:
            progress((number + 1) / len(plan))
    cohesion, separation, nearest = (torch.cat(column) for column in zip(*columns, strict=True))
    return Separation(cohesion, separation, nearest, clusters)


def strip_rows(n_dims: int, n_labels: int, *, memory: int | None = None) -> int:
    """How many rows make a strip: fewer where rows are long or labels many, or memory is short.

    >>> strip_rows(128, 10), strip_rows(768, 20)
    (16384, 5256)
    """
    budget = _STRIP_BYTES if memory is None else min(_STRIP_BYTES, memory // 16)
    return max(1, min(STRIP_ROWS, budget // (16 * n_dims + 24 * n_labels)))


class _Strips:
    """Which rows make a strip, and the job of each."""

    def __init__(self, parts: Alive, clusters: Labels, scale: Scale) -> None:
        first = next(iter(parts[0][1].blocks(_FRAME_ROWS))).vectors[:_FRAME_ROWS]
        d, K = first.shape[1], clusters.n_labels
        width = max(d, K)
        n_rows = min(max(256, _BLOCK_BYTES // (4 * width)), scale.rows_of_block(d, K))
        m = strip_rows(d, K, memory=scale.memory)
        self._parts, self._n_rows = parts, n_rows
        self._task = StripTask(Frame.of(first), K, n_rows)
        kind = torch.uint8 if K <= 256 else torch.int16 if K <= 2**15 else torch.int64
        self._codes, self._starts = clusters.codes.to(kind), []
        self._strips: list[tuple[int, int, int]] = []  # index into parts, first row of it, row after the last
        start = 0
        for index, (_, _, n) in enumerate(parts):
            self._starts.append(start)
            cuts = list(range(0, n, m))
            self._strips += [(index, cut, min(cut + m, n)) for cut in cuts]
            start += n

    def __len__(self) -> int:
        return len(self._strips)

    def rows(self, number: int) -> slice:
        """Return the numbers of a strip's rows."""
        index, first, stop = self._strips[number]
        return slice(self._starts[index] + first, self._starts[index] + stop)

    def job(self, number: int) -> Job:
        """Return the jobs of a strip with every part."""
        index, first, stop = self._strips[number]
        read = (self._parts[index][1], first, stop, self._starts[index], self._n_rows)
        return Job(self._task, list(self._calls()), (read_strip, read))

    def _calls(self) -> Iterator[tuple[Any, ...]]:
        for (place, part, n), start in zip(self._parts, self._starts, strict=True):
            yield place, part, start, self._codes[start : start + n].clone()


def _name(rows: slice) -> str:
    """Return the key of a strip: its rows, as another memory limit makes other strips."""
    return f"strip-{rows.start:012}-{rows.stop:012}"


def _load(checkpoint: Checkpoint | None, rows: slice) -> tuple[Tensor, Tensor, Tensor] | None:
    outcome = None if checkpoint is None else checkpoint.load(_name(rows))
    if outcome is None:
        return None
    cohesion, separation, nearest = (outcome.statistics[name] for name in _KEPT)
    return cohesion, separation, nearest


@dataclass(frozen=True, eq=False)
class StripTask:
    """Some rows, the strip, against all rows of a part.

    Attributes:
        frame: how rows are placed for products.
        n_labels: K.
        n_rows: rows of a block.
    """

    frame: Frame
    n_labels: int
    n_rows: int

    def __call__(self, place: int, part: Source, start: int, codes: Tensor, strip: Strip) -> Outcome:
        """(K, m) sums of the strip's rows over one part, whose first row is `start` among all."""
        sums = torch.zeros(self.n_labels, len(strip.raw), dtype=torch.float64)
        index = torch.arange(strip.start, strip.start + len(strip.raw)) - start
        at = 0
        for block in FileRows(part, len(codes)).blocks(self.n_rows):
            sums += self._met(block, codes[at : at + len(block)], strip.raw, index - at)
            at += len(block)
        return Outcome({"pairs": PairSums(sums)}, {place: len(codes)})

    def _met(self, block: Tensor, codes: Tensor, raw: Tensor, index: Tensor) -> Tensor:
        """(K, m) sums over one block, in tiles that stay in a core's cache; each core takes some rows."""
        labels = Labels(codes.long(), tuple(range(self.n_labels)))
        here = AnchorRows(HeldRows(block), labels, self.frame, max(TILE_ROWS, 2 * self.n_labels))
        n_workers = torch.get_num_threads()
        share = max(TILE_ROWS, -(-len(raw) // (_SHARES * n_workers)))
        shares = [slice(first, first + share) for first in range(0, len(raw), share)]
        tasks = (partial(here.sums, raw[rows], index[rows]) for rows in shares)
        return torch.cat(list(in_order(tasks, n_workers=n_workers)), dim=1)


@dataclass(frozen=True, eq=False)
class Strip:
    """Consecutive rows that meet all others.

    Attributes:
        start: the first one's number among all rows.
        raw: (m, d) the rows.
    """

    start: int
    raw: Tensor


def read_strip(part: Source, first: int, stop: int, start: int, n_rows: int) -> Strip:
    """Rows first … stop−1 of a part, whose first row is `start` among all."""
    parts, at = [], 0
    for block in part.blocks(n_rows):
        inside = slice(max(first - at, 0), max(stop - at, 0))
        parts.append(block.vectors[inside].clone())
        at += len(block)
        if at >= stop:
            break
    return Strip(start + first, torch.cat(parts))
