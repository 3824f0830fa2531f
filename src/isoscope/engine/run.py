"""`run`: compute the statistics of a plan in this process, on Dask workers, or over several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial, reduce
from typing import Any

import torch

from isoscope.arrays import block_rows
from isoscope.engine.checkpoint import Checkpoint
from isoscope.engine.dask_arrays import DaskVectors
from isoscope.engine.on_device import devices_of, rows_of_block
from isoscope.engine.options import PART_BYTES, Scale
from isoscope.engine.passes import (
    ALL,
    Group,
    Outcome,
    Pass,
    PassTask,
    Sliced,
    first_pass,
    sample_precision,
    second_pass,
)
from isoscope.engine.plan import Plan
from isoscope.engine.runners import Here, Job, Runner, runner
from isoscope.engine.slice_names import By
from isoscope.engine.source import Source, Wrapped
from isoscope.engine.strips import separate
from isoscope.errors import FileError, InputError
from isoscope.io.identity import of_knowledge
from isoscope.io.row_knowledge import known_rows
from isoscope.kernels.tiles import Progress
from isoscope.labels import Labels
from isoscope.space import Space
from isoscope.statistics.declared import declared, streamed, with_prerequisites
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.rows import FileRows

_PARTS_A_CORE = 4  # as many, and each core has its own; fewer are read one by one, on all cores
_GROUPS = 64  # parts are kept in so many groups at most: a checkpoint holds as many statistics
_SLICED_ROWS = 16  # times the rows of a block at most, where each is cut into slices

Check = Callable[[Statistics], None]


def run(
    plan: Plan,
    source: Source,
    *,
    covariance: Any = None,
    progress: Progress | None = None,
    check: Check | None = None,
) -> Statistics:
    """Return the shelf with what a plan asks for: lazy over a space in memory, by passes over a file.

    Args:
        plan: of this source.
        source: what is measured.
        covariance: a reference the caller brings along, kept on the shelf.
        progress: told the share of each pass that is done.
        check: looks at the shelf after the first pass, and may refuse to go on.
    """
    about = {"covariance": covariance, "seed": plan.seed, "progress": progress}
    if plan.where != "streamed":
        return Statistics(source.load(), devices=devices_of(source), **about)
    scale = plan.scale if plan.in_parts else None
    return gather(source, plan.needs, scale=scale, check=check, **about)


def gather(
    source: Source,
    needs: Iterable[str],
    *,
    scale: Scale | None = None,
    covariance: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    check: Check | None = None,
    own_runner: Runner | None = None,
) -> Statistics:
    """Return a shelf with the statistics asked for, from the parts of a source.

    Every part is read once for what needs one pass, once more for what builds on that, and for exact
    pairs once for every strip of rows. Statistics are merged in pairs of neighbouring parts, wherever they
    were computed, so that all ways give the same numbers.

    Args:
        source: what is measured.
        needs: names of statistics; those of pairs are computed strip by strip.
        scale: memory, scheduler, checkpoint, bad files; None for the source as its only part, in this
            process.
        covariance, seed, progress, check: as `run` takes them.
        own: who does the work, where not this process or Dask's workers.
    """
    work = Work(source, needs, scale=scale, seed=seed, progress=progress, own_runner=own_runner)
    shelf = Statistics(covariance=covariance, seed=seed, progress=progress)
    with work:
        vars(shelf).update(work.first()[ALL])
        if check:
            check(shelf)
        vars(shelf).update(work.second({ALL: vars(shelf)})[ALL])
        vars(shelf).update(work.pairs())
        shelf.notes += work.notes()
    return shelf


class Work:
    """The parts of one source, passed over group by group; to be used in a `with` block."""

    def __init__(
        self,
        source: Source,
        needs: Iterable[str],
        *,
        by: By | None = None,
        scale: Scale | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        own_runner: Runner | None = None,
    ) -> None:
        self._wanted = with_prerequisites(needs)
        self._pairs = sorted(name for name in self._wanted if declared()[name].of_pairs)
        if at_once := sorted(self._wanted - streamed() - set(self._pairs)):
            raise InputError(
                f"statistics {', '.join(at_once)} need all vectors at once and cannot be streamed"
            )
        self._scale, self._seed, self._progress = scale or Scale(), seed, progress
        rows = max(1, PART_BYTES // (4 * source.n_dims))
        self._parts: Sequence[Source] = [source] if scale is None else source.parts(rows)
        self._by = _by_part(by, self._parts)
        self._n_dims = source.n_dims
        self._n_rows = source.n_rows if len(self._parts) == 1 else None
        client = source.client if isinstance(source, DaskVectors) else None
        self._runner = nullcontext(own_runner) if own_runner else runner(self._scale.scheduler, client)
        self._on_cuda = source.device.type == "cuda"
        self._block_rows = None if scale is None else scale.rows_of_block(self._n_dims)
        if self._on_cuda and self._scale.memory is None and self._block_rows is not None:
            self._block_rows = rows_of_block(self._n_dims, source.device)
        if by is not None and self._scale.memory is None and not isinstance(source, Space):
            self._block_rows = _sliced_rows(source)
        self._most_rows = self._scale.rows_left_out()
        size = -(-len(self._parts) // min(len(self._parts), _GROUPS))
        self._groups = [range(i, min(i + size, len(self._parts))) for i in range(0, len(self._parts), size)]
        self._bad: dict[int, str] | None = None
        self._rows: dict[int, int] = {}
        self._labels: Any = None
        self._later: Pass | None = None

    def __enter__(self) -> Work:
        with ExitStack() as stack:
            self._run: Runner = stack.enter_context(self._runner)
            self._saved: Checkpoint | None = stack.enter_context(self._checkpoint())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def _checkpoint(self) -> AbstractContextManager[Checkpoint | None]:
        if self._scale.checkpoint is None:
            return nullcontext()
        about = {
            "files, labels or weights": [part.identity for part in self._parts],
            "statistics": sorted(self._wanted),
            "seed": self._seed,
            "skip_bad": self._scale.skip_bad,
        }
        if self._by is not None:
            about["slices"] = [of_knowledge(by) if isinstance(by, Labels) else by for by in self._by]
        return Checkpoint(self._scale.checkpoint, about)

    def first(self) -> dict[Group, dict[str, Any]]:
        """Return the statistics of the first pass, of all rows or of every slice."""
        total = self._passed("first", first_pass(self._wanted), keep_labels=bool(self._pairs))
        self._labels, self._rows, self._bad = total.statistics.pop("row_labels", None), total.rows, total.bad
        return _by_group(total.statistics) or {ALL: {}}

    def second(self, first: Mapping[Group, Mapping[str, Any]]) -> dict[Group, dict[str, Any]]:
        """Return the statistics that build on those of the first pass, for the same groups of rows."""
        self._later = second_pass(self._wanted, first, seed=self._seed, most_rows=self._most_rows)
        if self._later is None:
            return {group: {} for group in first}
        return _by_group(self._passed("second", self._later).statistics)

    def pairs(self) -> dict[str, Any]:
        """Return the statistics of all pairs of rows, with the labels and the rows they are of."""
        if not self._pairs:
            return {}
        if self._labels is None:
            raise InputError("is missing; name them in open_vectors(…, labels=…)", argument="labels")
        labels = Labels(self._labels.codes, self._labels.names)
        alive = [(place, self._parts[place], self._rows[place]) for place in sorted(self._rows)]
        separation = separate(
            self._run, alive, labels, scale=self._scale, checkpoint=self._saved, progress=self._progress
        )
        rows = FileRows(_Chain([part for _, part, _ in alive]), len(labels))
        return {**dict.fromkeys(self._pairs, separation), "labels": separation.labels, "rows": rows}

    def notes(self) -> list[str]:
        """Return notes on the parts that were left out, and on the precision of sampled standard errors."""
        bad, notes = self._bad or {}, []
        if bad:
            notes.append(f"left out {len(bad):,} of {len(self._parts):,} files that cannot be read")
            notes += [f"left out: {reason}" for reason in list(bad.values())[:20]]
        if self._later is not None and (share := self._later.sample()) < 1:
            n_rows = self._later.n_rows()
            n_drawn = round(share * n_rows)
            notes.append(
                f"standard errors of isotropy and cosines are from a sample of about {n_drawn:,} of "
                f"{n_rows:,} vectors (seed {self._seed}), accurate to ± {sample_precision(n_drawn):.2g} %"
            )
        return notes if self._saved is None else [*notes, *self._saved.notes()]

    def _passed(self, name: str, work: Pass, *, keep_labels: bool = False) -> Outcome:
        """Return the merged statistics of one pass over every part that can be read."""
        skip_bad = self._scale.skip_bad and self._bad is None
        task = PassTask(work, self._block_rows, self._n_dims, keep_labels=keep_labels, skip_bad=skip_bad)
        total = reduce(Outcome.merge, self._outcomes(name, task))
        if not total.statistics:
            raise FileError(f"no file can be read: {next(iter(total.bad.values()), 'none has rows')}")
        return total

    def _outcomes(self, name: str, task: PassTask) -> Iterator[Outcome]:
        """Yield the outcome of each group of parts: from the checkpoint, or computed now and saved there."""
        bad = self._bad or {}
        groups = [[place for place in group if place not in bad] for group in self._groups]
        ready = {
            number: outcome
            for number in range(len(groups))
            if self._saved is not None and (outcome := self._saved.load(f"{name}-{number:05}")) is not None
        }
        left = [number for number, group in enumerate(groups) if group and number not in ready]
        n_left = sum(len(groups[number]) for number in left)
        n_done = len(self._parts) - n_left

        def report_share(share: float) -> None:
            if self._progress:
                self._progress((n_done + share) / len(self._parts))

        call: Callable[..., Outcome] = pass_over
        if self._n_rows and self._progress and isinstance(self._run, Here):  # one part: told block by block
            call = partial(pass_over, report_rows=partial(_report_rows, report_share, self._n_rows))
        jobs = (
            Job(call, [self._call(place) for place in groups[number]], (identity, (task,))) for number in left
        )
        many = n_left >= _PARTS_A_CORE * torch.get_num_threads()
        fresh = self._run.outcomes(jobs, report_share, one_core=many and not self._on_cuda)
        for number, group in enumerate(groups):
            if number in ready:
                yield ready.pop(number)
            elif group:
                outcome = next(fresh)
                n_done += len(group)
                report_share(0)
                if self._saved is not None:
                    self._saved.save(f"{name}-{number:05}", outcome)
                yield outcome

    def _call(self, place: int) -> tuple[Any, ...]:
        return place, self._parts[place], None if self._by is None else self._by[place]


class _Chain(Wrapped):
    """Parts one after another, as a source."""

    def __init__(self, parts: Sequence[Source]) -> None:
        super().__init__(parts[0])
        self._parts = parts

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        for part in self._parts:
            yield from part.blocks(n_rows)


def pass_over(
    place: int,
    part: Source,
    by: By | None,
    task: PassTask,
    *,
    report_rows: Callable[[int], None] | None = None,
) -> Outcome:
    """Run one pass over one part, as a task."""
    return task(place, part, by, report_rows)


def _report_rows(report_share: Callable[[float], None], n_rows: int, n_read: int) -> None:
    report_share(n_read / n_rows)


def identity(value: Any) -> Any:
    """Return a value as a task, so that it is sent once for all uses, and again if it is lost."""
    return value


def _sliced_rows(source: Source) -> int:
    """Return the rows of a block that is cut into slices: many, because slices are merged block by block."""
    usual = block_rows(source.n_dims)
    a_core = usual if source.n_rows is None else source.n_rows // (_PARTS_A_CORE * torch.get_num_threads())
    return min(_SLICED_ROWS * usual, max(usual, a_core))


def _by_group(statistics: dict[str, Any]) -> dict[Group, dict[str, Any]]:
    """Return statistics by group of rows and name."""
    groups: dict[Group, dict[str, Any]] = {}
    for name, statistic in statistics.items():
        for group, of in statistic.by_group.items() if isinstance(statistic, Sliced) else [(ALL, statistic)]:
            groups.setdefault(group, {})[name] = of
    return groups


def _by_part(by: By | None, parts: Sequence[Source]) -> list[By] | None:
    """Return the slices of the rows of each part, or the columns to read them from."""
    if by is None or isinstance(by, tuple):
        return None if by is None else [by] * len(parts)
    if len(parts) == 1:
        return [by]
    slices: list[By] = []
    start = 0
    for part in parts:
        if part.n_rows is None:
            raise InputError(
                f"{part.title} does not say how many rows it has; name a column of each file in by"
            )
        slices.append(known_rows(by, start, start + part.n_rows))
        start += part.n_rows
    return slices
