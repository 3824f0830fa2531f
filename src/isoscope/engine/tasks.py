"""What is done with one part, here or on a worker; and what comes of it, which merges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.engine.stream import Pass
from isoscope.errors import IsoscopeError, LabelError, ShapeError
from isoscope.kernels.precision import Frame
from isoscope.kernels.workers import in_order
from isoscope.labels import Labels
from isoscope.space import Space
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.rows import FileRows, HeldRows
from isoscope.statistics.tree import merged

TILE_ROWS = 512  # by as many: a tile that stays in a core's cache; blocks of 16 MB take 3.5 times as long
_SHARES = 4  # of a strip for each core: few, for each places the block anew; more than one, to end together


@dataclass(frozen=True, eq=False)
class RowLabels:
    """The label of every row, under the names met so far.

    Attributes:
        names: sorted.
        codes: (n,) int64, which name each row has.
    """

    names: tuple[Any, ...]
    codes: Tensor

    @classmethod
    def of(cls, labels: Labels) -> RowLabels:
        """The labels of a block, without names that do not occur in it."""
        seen = labels.seen()
        return cls(seen.names, seen.codes.cpu())

    def merge(self, other: RowLabels) -> RowLabels:
        """The rows of both, one after the other."""
        if {type(name) for name in self.names} != {type(name) for name in other.names}:
            raise LabelError("labels are numbers in some files and strings in others; wanted one kind")
        names = tuple(sorted({*self.names, *other.names}))
        return RowLabels(names, torch.cat([self.among(names), other.among(names)]))

    def among(self, names: tuple[Any, ...]) -> Tensor:
        """(n,) the codes of the rows by the order of other names."""
        place = {name: row for row, name in enumerate(names)}
        return torch.tensor([place[name] for name in self.names])[self.codes]


@dataclass(frozen=True, eq=False)
class PairSums:
    """(K, m) summed distances of m rows to the points of each cluster."""

    sums: Tensor

    def merge(self, other: PairSums) -> PairSums:
        """The same rows to the points of both."""
        return PairSums(self.sums + other.sums)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of parts.

    Attributes:
        found: statistics by name; empty where no part could be read.
        rows: how many rows each part read has, by the part's place.
        bad: what was wrong with each part that could not be read, by its place.
    """

    found: dict[str, Any]
    rows: dict[int, int] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)

    def merge(self, other: Outcome) -> Outcome:
        """The parts of both."""
        found = merged(self.found, other.found) if self.found and other.found else self.found or other.found
        return Outcome(found, self.rows | other.rows, self.bad | other.bad)


@dataclass(frozen=True, eq=False)
class PassTask:
    """One pass over a part.

    Attributes:
        work: the statistics to take.
        n_rows: rows of a block.
        n_dims: what every part has to have.
        keep_labels: whether the label of every row is wanted too.
        skip_bad: whether a part that cannot be read is an outcome, or an error.
    """

    work: Pass
    n_rows: int
    n_dims: int
    keep_labels: bool = False
    skip_bad: bool = False

    def __call__(self, place: int, part: Source, seen: Callable[[int], None] | None = None) -> Outcome:
        """The statistics of one part."""
        count, labels = 0, []

        def checked() -> Iterator[Space]:
            nonlocal count
            for block in part.blocks(self.n_rows):
                if block.n_dims != self.n_dims:
                    raise ShapeError(
                        f"{part.title} has {block.n_dims} dimensions where the first file has {self.n_dims}; "
                        "wanted the same"
                    )
                count += len(block)
                if self.keep_labels and block.labels is not None:
                    labels.append(RowLabels.of(block.labels))
                yield block

        try:
            found = self.work.over(checked(), place=place, seen=seen)
            if labels:
                found["row_labels"] = _in_pairs(labels)
        except IsoscopeError as error:
            if not self.skip_bad:
                raise
            return Outcome({}, {}, {place: str(error)})
        return Outcome(found, {place: count}, {})


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


def merge_outcomes(first: Outcome, second: Outcome) -> Outcome:
    """Two outcomes as one; a task of its own, so that merging is done where the statistics are."""
    return first.merge(second)


def _in_pairs(parts: list[Any]) -> Any:
    """Many merged in pairs of pairs, so that what grows is copied few times."""
    while len(parts) > 1:
        parts = [
            parts[i].merge(parts[i + 1]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)
        ]
    return parts[0]
