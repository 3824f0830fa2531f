"""`Session`: train, measure, log and save the seeds of one call of `train_embeddings`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import FileError
from isoscope.progress import Bar
from isoscope.tracking.trajectory import Trajectory
from isoscope.training.checkpoint import SeedFolder, SeedState, warn_dropped
from isoscope.training.classifier import n_parameters
from isoscope.training.configuration import Configuration
from isoscope.training.interrupts import deferred_interrupt
from isoscope.training.meter import Meter
from isoscope.training.problem import Problem
from isoscope.training.recorder import Listener, Recorder, Row
from isoscope.training.trainer import Trainer, wanted_state

_CHECKPOINT_S = 60.0  # seconds between checkpoints, where no number of updates is given
_COPIES = 10  # largest number of copies of a table and its items while a seed trains and is measured


class Session:
    """Seeds in batches, each trained from its checkpoint to its end."""

    def __init__(
        self,
        problem: Problem,
        configuration: Configuration,
        about: dict[str, Any],
        folder: SeedFolder | None,
        save_every: int | None,
        log: Listener | None,
        callback: Callable[[Row], bool | None] | None,
        bar: Bar,
    ) -> None:
        self._problem, self._configuration, self._about = problem, configuration, about
        self._folder, self._save_every, self._bar = folder, save_every, bar
        self._wanted = None if folder is None else wanted_state(problem, configuration)
        self._meter = Meter(problem, configuration)
        self._measured = set(configuration.measured_steps())
        rows = {} if folder is None else folder.rows(self._meter.columns)
        self._has_rows = bool(rows)
        self._recorder = Recorder(configuration, self._meter.columns, rows=rows, log=log, callback=callback)
        self._tables: dict[int, Tensor] = {}
        self._resumable: set[int] = set()  # seeds whose state in the folder is intact
        self._saved_at = time.monotonic()

    def run(self) -> Trajectory:
        """Train to the end and return the trajectory. With a folder, Ctrl-C saves a checkpoint first."""
        with deferred_interrupt(self._folder is not None) as interrupted:
            for seeds in self._batches():
                self._train(seeds, interrupted)
        seeds = sorted(self._configuration.seeds)
        complete = all(seed in self._tables for seed in seeds)  # not where the folder has only the rows
        return self._trajectory(torch.stack([self._tables[seed] for seed in seeds]) if complete else None)

    def _trajectory(self, tables: Tensor | None = None) -> Trajectory:
        parameters = n_parameters(self._problem, self._configuration)
        return Trajectory(self._recorder.columns, self._about, parameters, tables)

    def _batches(self) -> list[list[int]]:
        """Return batches of unfinished seeds that are at the same step; single seeds on the CPU."""
        by_step: dict[int, list[int]] = {}
        for seed in self._configuration.seeds:
            state, is_damaged = self._state(seed)
            if state is not None and state.done:
                self._tables[seed] = state.tensors["table"].to(self._problem.table.device)
                continue
            if state is None and not is_damaged and self._measured <= self._recorder.steps(seed):
                continue
            if state is not None:
                self._resumable.add(seed)
            step = 0 if state is None else state.step
            self._recorder.drop(seed, since=step)
            by_step.setdefault(step, []).append(seed)
        size = _batch_size(self._problem)
        return [
            seeds[first : first + size]
            for _, seeds in sorted(by_step.items())
            for first in range(0, len(seeds), size)
        ]

    def _state(self, seed: int) -> tuple[SeedState | None, bool]:
        """Return the state of a seed in the folder, and whether there is one that is damaged."""
        if self._folder is None or not self._has_rows:  # a state without rows cannot be resumed
            return None, False
        try:
            state = self._folder.state(seed, self._wanted)
            if state is not None:
                self._check_rows(seed, state)
        except FileError as error:
            warn_dropped(error, "the seed starts again")
            return None, True
        return state, False

    def _check_rows(self, seed: int, state: SeedState) -> None:
        """Raise FileError unless the rows have every measurement before the state."""
        wanted = {step for step in self._measured if step < state.step + state.done}
        if missing := wanted - self._recorder.steps(seed):
            raise FileError(f"seed {seed} is at step {state.step}, but its rows have no step {min(missing)}")

    def _train(self, seeds: list[int], interrupted: Callable[[], bool]) -> None:
        trainer = Trainer(self._problem, self._configuration, seeds)
        self._restore(trainer)
        named = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        self._bar.step(f"training {named}")
        while True:
            losses, accuracies, hidden = trainer.forward()
            if trainer.step in self._measured:
                self._measure(trainer, losses, accuracies, hidden)
            last = trainer.step == self._configuration.steps
            ended = [seed for seed in trainer.seeds if last or self._recorder.ended(seed)]
            if ended:
                rest = self._without(trainer, ended)
                if rest is None:
                    return
                trainer = rest
                losses, _, _ = trainer.forward()
            trainer.update(losses)
            self._bar.share(trainer.step / self._configuration.steps)
            self._checkpoint(trainer)
            if interrupted() and self._folder is not None:
                self._save(trainer.states())
                raise KeyboardInterrupt(
                    f"interrupted after update {trainer.step:,}; resume the run from {self._folder.path}"
                )

    def _measure(self, trainer: Trainer, losses: Tensor, accuracies: Tensor, hidden: list[Tensor]) -> None:
        values = self._meter(trainer.table.detach(), hidden, seeds=trainer.seeds, step=trainer.step)
        values |= {"loss": losses.detach(), "accuracy": accuracies}
        self._recorder.add(trainer.step, trainer.seeds, values)

    def _restore(self, trainer: Trainer) -> None:
        if self._folder is None or not self._resumable.issuperset(trainer.seeds):
            return
        states = [self._folder.state(seed, self._wanted) for seed in trainer.seeds]
        trainer.restore([state for state in states if state is not None])

    def _checkpoint(self, trainer: Trainer) -> None:
        if self._folder is None or trainer.step == self._configuration.steps:
            return
        every = self._save_every
        late = (
            time.monotonic() - self._saved_at > _CHECKPOINT_S if every is None else trainer.step % every == 0
        )
        if late:
            self._save(trainer.states())

    def _without(self, trainer: Trainer, ended: list[int]) -> Trainer | None:
        """Save the ended seeds, and return a trainer of the others; None where there are none."""
        states = trainer.states(done=ended)
        for seed in ended:
            self._tables[seed] = states[seed].tensors["table"].detach().clone()
        if self._folder is not None:
            self._save({seed: states[seed] for seed in ended})
        rest = [seed for seed in trainer.seeds if seed not in ended]
        self._recorder.fetch()
        if not rest:
            return None
        smaller = Trainer(self._problem, self._configuration, rest)
        smaller.restore([states[seed] for seed in rest])
        return smaller

    def _save(self, states: dict[int, SeedState]) -> None:
        assert self._folder is not None
        self._recorder.fetch()
        self._folder.save(self._trajectory(), states)
        self._saved_at = time.monotonic()


def _batch_size(problem: Problem) -> int:
    """Return the number of seeds to train at once: one on the CPU, as many as fit on CUDA."""
    if not problem.table.is_cuda:
        return 1
    numbers = problem.table.numel() + problem.n_items * problem.n_inputs
    free, _ = torch.cuda.mem_get_info(problem.table.device)
    return max(1, free // (_COPIES * numbers * problem.table.element_size()))
