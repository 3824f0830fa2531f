"""One pass over the rows of a part: statistics of each block, of all its rows or slice by slice, merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.on_device import statistic_on
from isoscope.engine.slice_names import By, slices_of
from isoscope.engine.source import Source
from isoscope.errors import IsoscopeError, LabelError, ShapeError
from isoscope.kernels.workers import go_on, in_order, n_workers_on
from isoscope.labels import Labels
from isoscope.space import Space
from isoscope.statistics.ahead import ahead
from isoscope.statistics.declared import declared, streamed, together
from isoscope.statistics.tree import Tree, merged

# rows left out one by one for a standard error; of more, a sample: the error is then known to 0.1 %
LEFT_OUT_ROWS = 1_000_000
REST_ROWS = 5_000  # likewise of the rows outside a slice, of which there are as many sets as slices: 2 %

Group = tuple[str, str]  # ALL; ("slice", its name); ("rest", the name of the slice that is left out)
ALL: Group = ("all", "")
Grounds = Mapping[Group, Mapping[str, Any]]  # statistics by group of rows and name
_CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Sliced:
    """A statistic of several groups of rows.

    Attributes:
        groups: which rows.
        statistics: one a group.
    """

    groups: tuple[Group, ...]
    statistics: tuple[Any, ...]

    @classmethod
    def of(cls, by_group: Mapping[Group, Any]) -> Sliced:
        """From a statistic by group."""
        return cls(tuple(by_group), tuple(by_group.values()))

    @property
    def by_group(self) -> dict[Group, Any]:
        """The statistic of each group."""
        return dict(zip(self.groups, self.statistics, strict=True))

    def merge(self, other: Sliced) -> Sliced:
        """Return the groups of both, rows of the same group together."""
        by_group = self.by_group
        for group, statistic in other.by_group.items():
            by_group[group] = by_group[group].merge(statistic) if group in by_group else statistic
        return Sliced.of(by_group)


@dataclass(frozen=True)
class Pass:
    """One pass over blocks: which statistics, and what they build on.

    Attributes:
        names: the statistics.
        built_on: those of the first pass that a second one needs, by group of rows and name; empty for a
            first pass, which takes all rows, or every slice there is.
        seed: of the sample that statistics with a number for every row look at.
        most_rows: about how many rows have such a number.
    """

    names: tuple[str, ...]
    built_on: Mapping[Group, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0
    most_rows: int = LEFT_OUT_ROWS

    def over(
        self,
        blocks: Iterable[Space],
        *,
        slices: Labels | None = None,
        place: int = 0,
        report_rows: Callable[[int], None] | None = None,
        device: torch.device = _CPU,
    ) -> dict[str, Any]:
        """Return the statistics of the blocks, read while those before are measured.

        `slices` has the slice of every row of the blocks; `place` tells samples of different parts apart;
        `report_rows` is called with the number of rows after each block; the statistics lie on `device`,
        which a block need not.
        """
        n_threads, n_workers = torch.get_num_threads(), n_workers_on(device)
        # a core a block: none waits for another inside a product, and any number gives the same bits
        torch.set_num_threads(1)
        try:
            return self._merged(blocks, slices, place, report_rows, device, n_workers)
        finally:
            torch.set_num_threads(n_threads)

    def _merged(
        self,
        blocks: Iterable[Space],
        slices: Labels | None,
        place: int,
        report_rows: Callable[[int], None] | None,
        device: torch.device,
        n_workers: int,
    ) -> dict[str, Any]:
        tree = Tree()
        n_rows = 0
        grounds: dict[torch.device, Grounds] = {device: self.built_on}
        # closed here, whatever happens: later they would put back the one core they found
        with closing(ahead(blocks)) as read:
            tasks = (
                partial(self._measured, block, here, place, number, grounds)
                for number, (block, here) in enumerate(_with_slices(read, slices))
            )
            with closing(in_order(tasks, n_workers=n_workers)) as measured:
                for size, part in measured:
                    if part:
                        tree.add(part)
                    n_rows += size
                    go_on()
                    if report_rows:
                        report_rows(n_rows)
        return tree.total()

    def _measured(
        self,
        block: Space,
        slices: Labels | None,
        place: int,
        number: int,
        grounds: dict[torch.device, Grounds],
    ) -> tuple[int, dict[str, Any]]:
        """How many rows a block has, and its statistics; none where no row counts.

        `grounds` has `built_on` by device, that of the statistics first; each other gets a copy of its own.
        """
        home = next(iter(grounds))
        if block.device not in grounds:
            grounds[block.device] = statistic_on(self.built_on, block.device)
        statistics = self._of_block(block, slices, place, number, grounds[block.device])
        return len(block), statistics if block.device == home else statistic_on(statistics, home)

    def _of_block(
        self, block: Space, slices: Labels | None, place: int, number: int, ground: Grounds
    ) -> dict[str, Any]:
        draw = torch.Generator().manual_seed(_mixed(self.seed, place, number))
        if slices is None:
            return self._of(block, None, ALL, draw, ground)
        statistics: dict[str, dict[Group, Any]] = {name: {} for name in self.names}
        for group, rows in self._groups(slices):
            for name, statistic in self._of(block, rows, group, draw, ground).items():
                statistics[name][group] = statistic
        return {name: Sliced.of(by_group) for name, by_group in statistics.items()}

    def _groups(self, slices: Labels) -> Iterator[tuple[Group, Tensor]]:
        """Return the groups that have rows in a block, with the numbers of those rows."""
        order = slices.codes.argsort(stable=True)
        rows = dict(zip(slices.names, order.split(slices.counts.tolist()), strict=True))
        for group in self.built_on or [("slice", name) for name in slices.names]:
            kind, name = group
            here = rows.get(name, order[:0])
            if kind != "slice":
                chosen = torch.ones(len(order), dtype=torch.bool)
                chosen[here] = False
                here = chosen.nonzero().flatten()
            if len(here):
                yield group, here

    def _of(
        self, block: Space, rows: Tensor | None, group: Group, draw: torch.Generator, ground: Grounds
    ) -> dict[str, Any]:
        """Return the statistics of some rows of a block, or of all; none if no row counts."""
        sampled, sample = block, self.sample(group)
        if sample < 1:  # first, for few of many rows may be wanted
            index = torch.arange(len(block)) if rows is None else rows
            chosen = torch.rand(len(index), generator=draw) < sample
            sampled = block.take(index[chosen] if bool(chosen.any()) else index[:1])
        if rows is not None and (sample == 1 or not all(declared()[name].by_row for name in self.names)):
            block = block.take(rows)
            sampled = block if sample == 1 else sampled
        if block.weights is not None and not bool((block.weights > 0).any()):
            return {}
        statistics: dict[str, Any] = {}
        for joint in together(self.names) if block.weights is None else ():
            statistics |= zip(joint.names, joint.of(block), strict=True)
        shelf = SimpleNamespace(labels=block.labels, progress=None, **ground.get(group, {}))
        for name in self.names:
            if name not in statistics:
                declaration = declared()[name]
                statistics[name] = declaration.of(sampled if declaration.by_row else block, shelf)
        return statistics

    def n_rows(self, group: Group = ALL) -> int:
        """How many rows a group has, as the first pass counted them."""
        return int(max(statistic.count for statistic in self.built_on[group].values()))

    def sample(self, group: Group = ALL) -> float:
        """Return the share of a group's rows that have a number each, or 1 if no statistic holds any."""
        if group not in self.built_on or not any(declared()[name].by_row for name in self.names):
            return 1.0
        most = min(self.most_rows, REST_ROWS) if group[0] == "rest" else self.most_rows
        return min(1.0, most / self.n_rows(group))


def first_pass(needs: Iterable[str]) -> Pass:
    """Return the pass for statistics that need only the rows."""
    return Pass(tuple(sorted(name for name in set(needs) & streamed() if not declared()[name].builds_on)))


def second_pass(
    needs: Iterable[str],
    first: Mapping[Group, Mapping[str, Any]],
    *,
    seed: int = 0,
    most_rows: int | None = None,
) -> Pass | None:
    """Return the pass for what builds on the first one's statistics; None where nothing asked for does.

    first: the statistics of the first pass, of every group of rows.
    most_rows: about how many rows may have a number each; LEFT_OUT_ROWS by default.
    """
    earlier = {name: ground for name in sorted(needs) if (ground := declared()[name].builds_on)}
    if not earlier:
        return None
    built_on = {group: {name: of[name] for name in set(earlier.values())} for group, of in first.items()}
    return Pass(tuple(earlier), built_on, seed, most_rows or LEFT_OUT_ROWS)


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
        """Return the labels of a block, without names that do not occur in it."""
        present = labels.seen()
        return cls(present.names, present.codes.cpu())

    def merge(self, other: RowLabels) -> RowLabels:
        """Return the rows of both, in order."""
        if {type(name) for name in self.names} != {type(name) for name in other.names}:
            raise LabelError(
                "has numbers in some files and strings in others", argument="labels", wanted="one kind"
            )
        names = tuple(sorted({*self.names, *other.names}))
        return RowLabels(names, torch.cat([self.among(names), other.among(names)]))

    def among(self, names: tuple[Any, ...]) -> Tensor:
        """(n,) the codes of the rows by the order of other names."""
        place = {name: row for row, name in enumerate(names)}
        return torch.tensor([place[name] for name in self.names])[self.codes]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of parts.

    Attributes:
        statistics: the statistics by name; empty where no part could be read.
        rows: how many rows each part read has, by the part's place.
        bad: what was wrong with each part that could not be read, by its place.
    """

    statistics: dict[str, Any]
    rows: dict[int, int] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)

    def merge(self, other: Outcome) -> Outcome:
        """Return the parts of both."""
        statistics = (
            merged(self.statistics, other.statistics)
            if self.statistics and other.statistics
            else self.statistics or other.statistics
        )
        return Outcome(statistics, self.rows | other.rows, self.bad | other.bad)


@dataclass(frozen=True, eq=False)
class PassTask:
    """One pass over a part, here or on a worker.

    Attributes:
        work: the statistics to take.
        n_rows: rows of a block; None for as many as the source finds right.
        n_dims: what every part has to have.
        keep_labels: whether the label of every row is wanted too.
        skip_bad: whether a part that cannot be read is an outcome, or an error.
    """

    work: Pass
    n_rows: int | None
    n_dims: int
    keep_labels: bool = False
    skip_bad: bool = False

    def __call__(
        self, place: int, part: Source, by: By | None = None, report_rows: Callable[[int], None] | None = None
    ) -> Outcome:
        """Return the statistics of one part, of all its rows or by slices."""
        count, labels = 0, Tree()

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
                    labels.add({"row_labels": RowLabels.of(block.labels)})
                yield block

        try:
            slices = slices_of(part, by) if isinstance(by, tuple) else by
            statistics = self.work.over(
                checked(), slices=slices, place=place, report_rows=report_rows, device=part.device
            )
            statistics |= labels.total()
        except IsoscopeError as error:
            if not self.skip_bad:
                raise
            return Outcome({}, {}, {place: error.problem})
        return Outcome(statistics, {place: count}, {})


def _with_slices(blocks: Iterable[Space], slices: Labels | None) -> Iterator[tuple[Space, Labels | None]]:
    """Each block with the slices of its rows."""
    start = 0
    for block in blocks:
        stop = start + len(block)
        if slices is not None and stop > len(slices):
            raise ShapeError(
                f"has {len(slices):,} entries for {stop:,} vectors or more",
                argument="by",
                wanted="one for each",
            )
        yield block, None if slices is None else slices.rows(start, stop)
        start = stop
    if slices is not None and start < len(slices):
        raise ShapeError(
            f"has {len(slices):,} entries for {start:,} vectors", argument="by", wanted="one for each"
        )


def sample_precision(n_drawn: int) -> float:
    """How closely a standard error is known from so many rows, in per cent (half a 95 % interval)."""
    return 100 * 1.96 / (2 * n_drawn) ** 0.5


def _mixed(*numbers: int) -> int:
    """One seed of several numbers."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % 2**63
    return mixed
