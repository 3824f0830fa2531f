"""`gather`: the statistics of a source part by part, here or on workers, kept as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from isoscope.engine.checkpoint import Checkpoint
from isoscope.engine.dask_arrays import DaskVectors
from isoscope.engine.options import PART_BYTES, Scale
from isoscope.engine.runners import Job, Runner, runner
from isoscope.engine.separation import separate
from isoscope.engine.source import Source, Wrapped
from isoscope.engine.stream import Pass, first_pass, note_sample, refuse_unstreamed, second_pass
from isoscope.engine.tasks import Outcome, PassTask
from isoscope.errors import FileError, InputError
from isoscope.kernels.tiles import Progress
from isoscope.labels import Labels
from isoscope.space import Space
from isoscope.statistics.declared import with_prerequisites
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.rows import FileRows

_PARTS_A_CORE = 4  # as many, and each core has its own; fewer are read one by one, on all cores
_GROUPS = 64  # parts are kept in so many groups at most: a checkpoint holds as many statistics


def gather(
    source: Source,
    needs: Iterable[str],
    *,
    scale: Scale,
    covariance: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    check: Callable[[Statistics], None] | None = None,
) -> Statistics:
    """A shelf with the statistics asked for, from the parts of a source.

    Every part is read once for what needs one pass, once more for what builds on that, and for exact
    pairs once for every strip of rows. Statistics are merged in pairs of neighbouring parts, wherever they
    were computed, so that all ways give the same numbers.

    Args:
        source: what is measured.
        needs: names of statistics; "separation" is computed strip by strip.
        scale: memory, scheduler, checkpoint, bad files.
        covariance, seed, progress, check: as `statistics.stream` takes them.
    """
    wanted = with_prerequisites(set(needs) - {"vectors"})
    refuse_unstreamed(wanted - {"separation"})  # which is taken strip by strip
    shelf = Statistics(covariance=covariance, seed=seed, progress=progress)
    parts = source.parts(max(1, PART_BYTES // (4 * source.n_dims)))
    with (
        runner(scale.scheduler, source.client if isinstance(source, DaskVectors) else None) as run,
        _kept(scale, parts, wanted, seed) as kept,
    ):
        most_rows = scale.rows_left_out()
        work = _Work(run, parts, source.n_dims, scale, kept, progress)
        first = work.passed("first", first_pass(wanted), keep_labels="separation" in wanted)
        labels = first.found.pop("row_labels", None)
        vars(shelf).update(first.found)
        shelf.notes += work.notes()
        if check:
            check(shelf)
        later = second_pass(wanted, vars(shelf), seed=seed, most_rows=most_rows)
        if later:
            vars(shelf).update(work.passed("second", later).found)
            note_sample(shelf, later)
        if "separation" in wanted:
            if labels is None:
                raise InputError("labels is missing; name them in open_vectors(…, labels=…)")
            coded = Labels(labels.codes, labels.names)
            alive = [(place, parts[place], first.rows[place]) for place in sorted(first.rows)]
            found = separate(run, alive, coded, scale=scale, kept=kept, progress=progress)
            vars(shelf).update(separation=found, labels=found.labels)
            vars(shelf)["rows"] = FileRows(_Chain([part for _, part, _ in alive]), len(coded))
    if kept is not None:
        shelf.notes += kept.notes()
    return shelf


class _Chain(Wrapped):
    """Parts one after another, as a source."""

    def __init__(self, parts: Sequence[Source]) -> None:
        super().__init__(parts[0])
        self._parts = parts

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        for part in self._parts:
            yield from part.blocks(n_rows)


class _Work:
    """The parts of one source, passed over group by group."""

    def __init__(
        self,
        run: Runner,
        parts: Sequence[Source],
        n_dims: int,
        scale: Scale,
        kept: Checkpoint | None,
        progress: Progress | None,
    ) -> None:
        self._run, self._parts, self._n_dims = run, parts, n_dims
        self._scale, self._kept, self._progress = scale, kept, progress
        self._block_rows = scale.rows_of_block(n_dims)
        size = -(-len(parts) // min(len(parts), _GROUPS))
        self._groups = [range(i, min(i + size, len(parts))) for i in range(0, len(parts), size)]
        self._bad: dict[int, str] | None = None

    def passed(self, name: str, work: Pass, *, keep_labels: bool = False) -> Outcome:
        """The merged statistics of one pass over every part that can be read."""
        again = self._bad is not None
        task = PassTask(
            work,
            self._block_rows,
            self._n_dims,
            keep_labels=keep_labels,
            skip_bad=self._scale.skip_bad and not again,
        )
        total: Outcome | None = None
        for outcome in self._outcomes(name, task):
            total = outcome if total is None else total.merge(outcome)
        assert total is not None  # a source has a part
        if not again:
            self._bad = total.bad
        if not total.found:
            raise FileError(f"no file can be read: {next(iter(total.bad.values()), 'none has rows')}")
        return total

    def notes(self) -> list[str]:
        """Which parts were left out."""
        bad = self._bad or {}
        if not bad:
            return []
        head = f"left out {len(bad):,} of {len(self._parts):,} files that cannot be read"
        return [head, *(f"left out: {reason}" for reason in list(bad.values())[:20])]

    def _outcomes(self, name: str, task: PassTask) -> Iterator[Outcome]:
        """Group by group: as kept, or worked on now and kept."""
        bad = self._bad or {}
        groups = [[place for place in group if place not in bad] for group in self._groups]
        ready = {
            number: outcome
            for number in range(len(groups))
            if self._kept is not None and (outcome := self._kept.load(f"{name}-{number:05}")) is not None
        }
        left = [number for number, group in enumerate(groups) if group and number not in ready]
        jobs = (
            Job(pass_over, [(place, self._parts[place]) for place in groups[number]], (itself, (task,)))
            for number in left
        )
        n_left = sum(len(groups[number]) for number in left)
        n_done = len(self._parts) - n_left

        def told(calls: int) -> None:
            if self._progress:
                self._progress((n_done + calls) / len(self._parts))

        fresh = self._run.outcomes(jobs, told, one_core=n_left >= _PARTS_A_CORE * torch.get_num_threads())
        for number, group in enumerate(groups):
            if number in ready:
                yield ready.pop(number)
            elif group:
                outcome = next(fresh)
                n_done += len(group)
                told(0)
                if self._kept is not None:
                    self._kept.save(f"{name}-{number:05}", outcome)
                yield outcome


def pass_over(place: int, part: Source, task: PassTask) -> Outcome:
    """One pass over one part, as a task."""
    return task(place, part)


def itself(value: Any) -> Any:
    """A value as a task, so that it is sent once for all that use it, and again where it was lost."""
    return value


def _kept(
    scale: Scale, parts: Sequence[Source], wanted: set[str], seed: int
) -> AbstractContextManager[Checkpoint | None]:
    if scale.checkpoint is None:
        return nullcontext()
    run = {
        "files, labels or weights": [part.identity for part in parts],
        "statistics": sorted(wanted),
        "seed": seed,
        "skip_bad": scale.skip_bad,
    }
    return Checkpoint(scale.checkpoint, run)
