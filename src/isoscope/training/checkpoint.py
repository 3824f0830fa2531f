"""How far a run is, kept in its folder; every file all or nothing, and sealed.

Of `train_embeddings`:
    config.json             settings, a fingerprint of the data, versions
    trajectory.parquet      the rows so far
    seed-N.safetensors      a seed's parameters and optimiser after `step` updates; when done, its vectors

Of a model:
    .checkpoint-N.….tmp/    being written, or being removed; swept away when the run is next opened
    checkpoint-N/           the model (safetensors), optimiser, scheduler and random states after N updates,
                            as transformers reads them, and beside them
        journal.json        every loss, and what was found at the end of each epoch
        task.safetensors    what the task itself keeps: C₀
        tracker.pt          the rows of the geometry so far
        .checksums.json     of all of these, and which step of which run they are of
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
_KEPT = 2


@dataclass(frozen=True)
class SeedState:
    """Where one seed stands: its tensors by name, after how many updates, and whether it has ended."""

    tensors: Mapping[str, Tensor]
    step: int
    done: bool


@dataclass(frozen=True)
class Wanted:
    """What a seed's state must hold for the run to go on from it.

    Attributes:
        parameters: the shape of everything trained, by name.
        optimizer: the shape of everything the optimiser keeps, by name; not of a seed that is done.
        steps: the run's updates.
    """

    parameters: Mapping[str, tuple[int, ...]]
    optimizer: Mapping[str, tuple[int, ...]]
    steps: int

    def fault(self, state: SeedState) -> str | None:
        """Return what is wrong with a state, in a few words; None where nothing is."""
        wanted = dict(self.parameters) if state.done else {**self.parameters, **self.optimizer}
        found = {name: tuple(tensor.shape) for name, tensor in state.tensors.items()}
        if missing := sorted(wanted.keys() - found.keys()):
            return f"it has no {listed(missing, at_most=3)}"
        if unknown := sorted(found.keys() - wanted.keys()):
            return f"it has {listed(unknown, at_most=3)}, which is not trained here"
        for name, shape in wanted.items():
            if found[name] != shape:
                return f"{name} has shape {found[name]}; wanted {shape}"
        first = 0 if state.done else 1
        if not first <= state.step <= self.steps:
            return f"it stands at step {state.step}; wanted {first} to {self.steps}"
        return None


class SeedFolder(RunFolder):
    """The folder of a run of several seeds: their rows, and where each of them stands."""

    def rows(self, metrics: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the columns found so far; none where nothing was written yet, or it is damaged."""
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
            warn_dropped(error, "all seeds begin again")
            return {}
        return dict(trajectory.columns)

    def state(self, seed: int, wanted: Wanted | None = None) -> SeedState | None:
        """Return where a seed stands; None where it has not begun.

        Raises:
            FileError: the file is damaged, or is not what is wanted of this seed of this run.
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
        """Write the rows first, then the states: whatever is cut short, no state is ahead of the rows."""
        try:
            trajectory.save(self.path / _ROWS)
            for seed, state in states.items():
                about = {"step": str(state.step), "done": "yes" if state.done else "no"}
                write_tensors(self._state_path(seed), state.tensors, about, of=self.owner(f"seed {seed}"))
        except FileError as error:
            raise error.advise(f"resume from what was written before, in {self.path}") from None

    def _state_path(self, seed: int) -> Path:
        return self.path / f"seed-{seed}.safetensors"


class Checkpoints:
    """The checkpoints of a model in a run's folder: folders that are whole or not there.

    A folder gets its name when all of it is written, and loses it before any of it is removed, so that one
    that is found can be trusted whenever the process was killed. One that has been damaged since is removed,
    and the run goes on from the one before.
    """

    def __init__(self, run: RunFolder) -> None:
        self.folder, self._run = run.path, run

    def latest(self) -> tuple[int, Path] | None:
        """Return the step and the folder of the furthest one that is whole; remove those that are not."""
        for step, place in reversed(self._found()):
            try:
                check_folder(place, of=self._run.owner(f"step {step}"))
            except FileError as error:
                warn_dropped(error, f"the checkpoint of step {step:,} is left out")
                self._remove(place)
            else:
                return step, place
        return None

    def last_step(self) -> int | None:
        """Return the step of the furthest one, unchecked."""
        return max((step for step, _ in self._found()), default=None)

    def write(self, step: int, fill: Callable[[Path], Path]) -> None:
        """Let `fill` write into a folder and say what in it is the checkpoint; then put that in place."""
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
            kept = "there is none from before" if last is None else f"the checkpoint of step {last:,} is kept"
            raise FileError(
                f"the checkpoint of step {step:,} cannot be written to {self.folder}: {why(error)}; {kept}, "
                "to be resumed"
            ) from error
        finally:
            remove(scratch)
        for _, old in self._found()[:-_KEPT]:
            self._remove(old)

    def clear(self) -> None:
        """Remove all: of a run that is done, its model and its results are what counts."""
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
    """Say that a file is left out, and what is done instead."""
    warnings.warn(f"{error.problem}; {then}", RuntimeWarning, stacklevel=2)
