"""Checkpoints in the folder of a run. Every file is written atomically and has a checksum.

A run of `train_embeddings` has:
    config.json             settings, a fingerprint of the data, versions
    trajectory.parquet      the rows so far
    seed-N.safetensors      a seed's parameters and optimiser after `step` updates; when done, its vectors

A run that trains a model has:
    .checkpoint-N.….tmp/    being written or removed; deleted when the run is opened again
    checkpoint-N/           the model (safetensors), optimiser, scheduler and random states after N updates,
                            as transformers reads them, and also
        journal.json        every loss, and the scores at the end of each epoch
        task.safetensors    the tensors of the task, such as C₀
        tracker.pt          the rows of the geometry tracker so far
        .checksums.json     checksums of all of these, with the step and the run
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from isoscope.errors import FileError
from isoscope.io.atomic import beside, failures, remove, why
from isoscope.io.files import check_file
from isoscope.io.run_folder import RunFolder
from isoscope.io.sealed import check_folder, check_owner, read_tensors, seal_folder, write_tensors
from isoscope.printable import listed
from isoscope.tracking.trajectory import Trajectory

_ROWS = "trajectory.parquet"
_NAME = re.compile(r"checkpoint-(\d+)")
_N_LATEST = 2  # checkpoints that are not deleted


@dataclass(frozen=True)
class SeedState:
    """The tensors of one seed by name, the number of updates made, and whether it is finished."""

    tensors: Mapping[str, Tensor]
    step: int
    done: bool


@dataclass(frozen=True)
class Wanted:
    """The shapes and steps that the state of a seed must have for the run to resume from it.

    Attributes:
        parameters: shapes of the trained parameters, by name.
        optimizer: shapes of the optimiser's state, by name; a finished seed has none.
        steps: number of updates of the run.
    """

    parameters: Mapping[str, tuple[int, ...]]
    optimizer: Mapping[str, tuple[int, ...]]
    steps: int

    def fault(self, state: SeedState) -> str | None:
        """Return what is wrong with a state in a few words, or None."""
        wanted = dict(self.parameters) if state.done else {**self.parameters, **self.optimizer}
        shapes = {name: tuple(tensor.shape) for name, tensor in state.tensors.items()}
        if missing := sorted(wanted.keys() - shapes.keys()):
            return f"it has no {listed(missing, at_most=3)}"
        if unknown := sorted(shapes.keys() - wanted.keys()):
            return f"it has {listed(unknown, at_most=3)}, which is not trained here"
        for name, shape in wanted.items():
            if shapes[name] != shape:
                return f"{name} has shape {shapes[name]}, not {shape}"
        first = 0 if state.done else 1
        if not first <= state.step <= self.steps:
            return f"its step is {state.step}, not from {first} to {self.steps}"
        return None


class SeedFolder(RunFolder):
    """The folder of a run with several seeds: the rows of all seeds, and the state of each."""

    def rows(self, metrics: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the columns written so far; none where there are none yet, or the file is damaged."""
        path = self.path / _ROWS
        if not path.exists() and not any(self.path.glob("seed-*.safetensors")):
            return {}
        try:
            check_file(path, what="rows")
            trajectory = Trajectory.load(path)
            check_owner(path, RunFolder(self.path, trajectory.configuration).identity, self.identity)
            if missing := set(metrics) - trajectory.columns.keys():
                raise FileError(f"{path} has no {listed(sorted(missing))}")
        except FileError as error:
            warn_dropped(error, "all seeds start again")
            return {}
        return dict(trajectory.columns)

    def state(self, seed: int, wanted: Wanted | None = None) -> SeedState | None:
        """Return the state of a seed; None where it has not started.

        Raises:
            FileError: the file is damaged, or does not belong to this seed of this run.
        """
        path = self._state_path(seed)
        if not path.exists():
            return None
        tensors, about = read_tensors(path, of=self.owner(f"seed {seed}"))
        state = SeedState(tensors, int(about["step"]), about["done"] == "yes")
        fault = None if wanted is None else wanted.fault(state)
        if fault:
            raise FileError(f"{path} is no checkpoint of this run: {fault}")
        return state

    def save(self, trajectory: Trajectory, states: Mapping[int, SeedState]) -> None:
        """Write the rows, then the states, so that no state is ever ahead of the rows."""
        try:
            trajectory.save(self.path / _ROWS)
            for seed, state in states.items():
                about = {"step": str(state.step), "done": "yes" if state.done else "no"}
                write_tensors(self._state_path(seed), state.tensors, about, of=self.owner(f"seed {seed}"))
        except FileError as error:
            raise error.advise(f"resume the run from the last checkpoint in {self.path}") from None

    def _state_path(self, seed: int) -> Path:
        return self.path / f"seed-{seed}.safetensors"


class Checkpoints:
    """The checkpoints of a model in a run's folder. Each is complete or absent.

    A checkpoint is renamed into place when it is complete, and renamed away before it is deleted, so that
    killing the process never leaves a partial one. A checkpoint that was damaged later is deleted, and the
    run resumes from the previous one.
    """

    def __init__(self, run: RunFolder) -> None:
        self.folder, self._run = run.path, run

    def latest(self) -> tuple[int, Path] | None:
        """Return the step and the folder of the latest intact checkpoint; delete damaged ones."""
        for step, place in reversed(self._found()):
            try:
                check_folder(place, of=self._run.owner(f"step {step}"))
            except FileError as error:
                warn_dropped(error, f"the checkpoint of step {step:,} is ignored")
                self._remove(place)
            else:
                return step, place
        return None

    def last_step(self) -> int | None:
        """Return the step of the latest checkpoint, without checking it."""
        return max((step for step, _ in self._found()), default=None)

    def write(self, step: int, fill: Callable[[Path], Path]) -> None:
        """Call `fill` with a temporary folder, and move the checkpoint that it returns into place."""
        place = self.folder / f"checkpoint-{step}"
        if place.exists():
            return
        scratch = beside(place)
        try:
            scratch.mkdir()
            made = fill(scratch)
            seal_folder(made, of=self._run.owner(f"step {step}"))
            os.replace(made, place)
        except failures() as error:
            last = self.last_step()
            earlier = "there is no earlier one" if last is None else f"resume from that of step {last:,}"
            raise FileError(
                f"the checkpoint of step {step:,} cannot be written to {self.folder}: {why(error)}; {earlier}"
            ) from error
        finally:
            remove(scratch)
        for _, old in self._found()[:-_N_LATEST]:
            self._remove(old)

    def clear(self) -> None:
        """Delete all checkpoints, once the model and the results of the run are saved."""
        for _, place in self._found():
            self._remove(place)

    def _found(self) -> list[tuple[int, Path]]:
        named = ((_NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        return sorted((int(match[1]), path) for match, path in named if match)

    def _remove(self, place: Path) -> None:
        doomed = beside(place)
        os.replace(place, doomed)
        remove(doomed)


def warn_dropped(error: FileError, then: str) -> None:
    """Warn that a file is ignored, and say what happens instead."""
    warnings.warn(f"{error.problem}; {then}", RuntimeWarning, stacklevel=2)
