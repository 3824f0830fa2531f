"""Exact pair sums of rows that no machine holds: strips of rows, each against every part."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import block_rows
from isoscope.engine.arranged_blocks import ArrangedBlocks
from isoscope.engine.checkpoint import Checkpoint
from isoscope.engine.options import Scale
from isoscope.engine.passes import Outcome
from isoscope.engine.runners import Job, Runner
from isoscope.engine.source import Source
from isoscope.kernels.precision import full_precision
from isoscope.kernels.tiles import Arranged, Progress
from isoscope.labels import Labels, as_clusters
from isoscope.statistics.nearest_clusters import reduce_sums
from isoscope.statistics.pairs import ClusterDistances, Separation, sums_between
from isoscope.statistics.rows import FileRows

STRIP_ROWS = 16_384  # rows that meet all others in one pass; more passes cost reads, more rows memory
SUMS_BYTES = 256 * 2**20  # of the sums of all rows, which are kept where each pair is met once
_STRIP_BYTES = 64 * 2**20
_KEPT = ("cohesion", "separation", "nearest")  # of each row of a strip

Alive = list[tuple[int, Source, int]]  # place, part and number of rows of every part that can be read


@dataclass(frozen=True, eq=False)
class PairSums:
    """Summed distances of rows to the points of each cluster.

    Attributes:
        sums: (K, m) of the rows of a strip.
        others: (K, n) of the rows of each part over the points of the strip, by the number of the part's
            first row; empty where each pair is met from either side.
    """

    sums: Tensor
    others: dict[int, Tensor] = field(default_factory=dict)

    def merge(self, other: PairSums) -> PairSums:
        """Return the sums of the same strip with the points of both."""
        return PairSums(self.sums + other.sums, self.others | other.others)


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

    A strip of some thousand rows is sent to where a part is read; sums come back and are added up. Each pair
    is met once, and the (K, n) sums of all rows are kept to the end. Where these would be large, or finished
    strips are saved to a checkpoint, each pair is met from either side: a strip is then reduced to three
    numbers a row as soon as it has met all parts.
    """
    clusters = as_clusters(labels, n=len(labels))
    once = checkpoint is None and meets_once(len(labels), clusters.n_labels, memory=scale.memory)
    plan = _Strips(parts, clusters, scale, once)
    separated = _at_the_end if once else _strip_by_strip
    return Separation(*separated(run, plan, clusters, checkpoint, progress), clusters)


def _at_the_end(
    run: Runner, plan: _Strips, clusters: Labels, _: Checkpoint | None, progress: Progress | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Cohesion, separation and nearest cluster from the sums of all rows."""
    sums = torch.zeros(clusters.n_labels, len(clusters), dtype=torch.float64)
    for number, outcome in enumerate(run.outcomes(map(plan.job, range(len(plan))))):
        pairs: PairSums = outcome.statistics["pairs"]
        rows = plan.rows(number)
        sums[:, rows] += pairs.sums
        for start, others in pairs.others.items():
            sums[:, start : start + others.shape[1]] += others
        if progress:
            progress(1 - (1 - rows.stop / len(clusters)) ** 2)
    return reduce_sums(sums.T, clusters.codes, clusters.counts.double())


def _strip_by_strip(
    run: Runner, plan: _Strips, clusters: Labels, checkpoint: Checkpoint | None, progress: Progress | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same, each strip reduced once it has met all rows, or taken from the checkpoint."""
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
    return cohesion, separation, nearest


def meets_once(n: int, n_labels: int, *, memory: int | None = None) -> bool:
    """Whether the sums of all rows can be kept, so that each pair is met once.

    >>> meets_once(200_000, 10), meets_once(10**9, 10)
    (True, False)
    """
    return 8 * n * n_labels <= (SUMS_BYTES if memory is None else min(SUMS_BYTES, memory // 16))


def strip_rows(n_dims: int, n_labels: int, *, memory: int | None = None) -> int:
    """How many rows make a strip: fewer where rows are long or labels many, or memory is short.

    >>> strip_rows(128, 10), strip_rows(768, 20)
    (16384, 5256)
    """
    budget = _STRIP_BYTES if memory is None else min(_STRIP_BYTES, memory // 16)
    return max(1, min(STRIP_ROWS, budget // (16 * n_dims + 24 * n_labels)))


class _Strips:
    """Which rows make a strip, and the job of each."""

    def __init__(self, parts: Alive, clusters: Labels, scale: Scale, once: bool) -> None:
        d, K = parts[0][1].n_dims, clusters.n_labels
        n_rows = min(block_rows(max(d, K)), scale.rows_of_block(d, K))
        m = strip_rows(d, K, memory=scale.memory)
        self._parts, self._n_rows, self._once = parts, n_rows, once
        self._blocks = ArrangedBlocks()  # in this process that of all strips
        self._task = StripTask(K, n_rows, once, uuid.uuid4().hex)
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
        """Return the jobs of a strip with every part, or with those from its own on."""
        index, first, stop = self._strips[number]
        codes = self._codes[self.rows(number)].clone()
        read = (self._parts[index][1], first, stop, self._starts[index], self._n_rows, codes, self._blocks)
        return Job(self._task, list(self._calls(index if self._once else 0)), (read_strip, read))

    def _calls(self, first: int) -> Iterator[tuple[Any, ...]]:
        for (place, part, n), start in zip(self._parts[first:], self._starts[first:], strict=True):
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
    """Some rows, the strip, against the rows of a part.

    Attributes:
        n_labels: K.
        n_rows: rows of a block.
        once: whether the strip meets the rows after it only, and their sums are wanted too.
        run: what tells the blocks of this run from those of others.
    """

    n_labels: int
    n_rows: int
    once: bool
    run: str

    @full_precision
    def __call__(self, place: int, part: Source, start: int, codes: Tensor, strip: Strip) -> Outcome:
        """Return the sums of the strip's rows over one part, whose first row is `start` among all."""
        first, stop = strip.start - start, strip.start - start + len(strip.raw)
        strip_rows = self._arranged(strip, strip.start, strip.raw, strip.codes)
        sums = torch.zeros(self.n_labels, len(strip.raw), dtype=torch.float64)
        others = torch.zeros(self.n_labels, len(codes), dtype=torch.float64)
        if 0 <= first < len(codes):
            labels = self._labels(strip.codes.to(strip.raw.device))
            sums += ClusterDistances.of(strip.raw, labels).sums.T.cpu()
        at = 0
        for block in FileRows(part, len(codes)).blocks(self.n_rows):
            spans = [(max(at, stop), at + len(block))]
            if not self.once:
                spans.append((at, min(at + len(block), first)))
            for begin, end in spans:
                if begin < end:
                    inside = block[begin - at : end - at].to(strip.raw.device)
                    rows = self._arranged(strip, start + begin, inside, codes[begin:end])
                    here, there = sums_between(strip_rows, rows, self.n_labels)
                    sums += here.cpu()
                    others[:, begin:end] = there.cpu()
            at += len(block)
        return Outcome({"pairs": PairSums(sums, {start: others} if self.once else {})}, {place: len(codes)})

    def _arranged(self, strip: Strip, start: int, rows: Tensor, codes: Tensor) -> Arranged:
        return strip.blocks.of(
            (self.run, start, start + len(rows)), rows, self._labels(codes.to(rows.device))
        )

    def _labels(self, codes: Tensor) -> Labels:
        return Labels(codes.long(), tuple(range(self.n_labels)))


@dataclass(frozen=True, eq=False)
class Strip:
    """Consecutive rows that meet others.

    Attributes:
        start: the first one's number among all rows.
        raw: (m, d) the rows.
        codes: (m,) the cluster of each.
        blocks: what it met last, arranged.
    """

    start: int
    raw: Tensor
    codes: Tensor
    blocks: ArrangedBlocks


def read_strip(
    part: Source, first: int, stop: int, start: int, n_rows: int, codes: Tensor, blocks: ArrangedBlocks
) -> Strip:
    """Rows first … stop−1 of a part, whose first row is `start` among all, with their clusters."""
    parts, at = [], 0
    for block in part.blocks(n_rows):
        inside = slice(max(first - at, 0), max(stop - at, 0))
        parts.append(block.vectors[inside].clone())
        at += len(block)
        if at >= stop:
            break
    return Strip(start + first, torch.cat(parts), codes, blocks)
