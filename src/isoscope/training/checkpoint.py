"""A run's folder: what it was asked, how far it is, and what it found; every file all or nothing, and sealed.

config.json             settings, a fingerprint of the data, versions
trajectory.parquet      the rows so far
seed-N.safetensors      a seed's parameters and optimiser after `step` updates; when done, its vectors
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from isoscope.errors import FileError, InputError
from isoscope.io.files import check_file, listed
from isoscope.io.locks import only_user
from isoscope.io.sealed import check_owner, identity, read_json, read_tensors, write_json, write_tensors
from isoscope.tracking.trajectory import Trajectory

_CONFIG, _ROWS = "config.json", "trajectory.parquet"
_FREE = ("isoscope", "torch", "device")  # of the configuration: noted, not compared


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
        """What is wrong with a state, in a few words; None where nothing is."""
        shapes = dict(self.parameters) if state.done else {**self.parameters, **self.optimizer}
        if missing := sorted(shapes.keys() - state.tensors.keys()):
            return f"it has no {listed(missing, at_most=3)}"
        if unknown := sorted(state.tensors.keys() - shapes.keys()):
            return f"it has {listed(unknown, at_most=3)}, which is not trained here"
        for name, shape in shapes.items():
            found = tuple(state.tensors[name].shape)
            if found != shape:
                return f"{name} has shape {found}; wanted {shape}"
        first = 0 if state.done else 1
        if not first <= state.step <= self.steps:
            return f"it stands at step {state.step}; wanted {first} to {self.steps}"
        return None


class RunFolder:
    """The folder of one configuration; `open` makes it or finds the same run in it."""

    def __init__(self, path: Path, configuration: Mapping[str, Any]) -> None:
        self.path = path
        self.configuration = dict(configuration)

    @classmethod
    @contextmanager
    def open(
        cls, path: str | os.PathLike[str] | None, configuration: Mapping[str, Any], *, resume: bool
    ) -> Iterator[RunFolder | None]:
        """Yield a new folder, or the one of the same configuration to continue; None where no path is given.

        Until the block ends, no other process may use the folder.
        """
        if path is None:
            yield None
            return
        folder = cls(Path(path), configuration)
        with only_user(folder.path, what="run folder"):
            folder._begin(resume=resume)
            yield folder

    @property
    def identity(self) -> str:
        """What the files of this run are known by."""
        return identity({name: self.configuration[name] for name in self.configuration if name not in _FREE})

    def _begin(self, *, resume: bool) -> None:
        config = self.path / _CONFIG
        if not config.exists():
            _refuse_strangers(self.path)
            write_json(config, self.configuration, indent=2)
        elif not resume:
            raise InputError(
                f"run folder {self.path} holds a run already, done or cut short; go on with it by "
                "resume=True, or choose another folder"
            )
        else:
            self._check_same(config)

    def _check_same(self, config: Path) -> None:
        try:
            found = read_json(config, sealed=False)  # a change to one without is a change of settings
        except FileError as error:
            raise FileError(f"{error}, so it is unknown which run it is of; choose another folder") from error
        wanted = json.loads(json.dumps(self.configuration))
        names = sorted((set(found) | set(wanted)) - set(_FREE))
        differing = [name for name in names if found.get(name) != wanted.get(name)]
        if differing:
            shown = "; ".join(
                f"{name} was {_short(found.get(name))}, now {_short(wanted.get(name))}"
                for name in differing[:4]
            )
            raise InputError(
                f"run folder {self.path} holds a run of another configuration ({shown}); "
                "choose another folder"
            )

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
        tensors, about = read_tensors(path, of=self._owner(seed))
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
                write_tensors(self._state_path(seed), state.tensors, about, of=self._owner(seed))
        except FileError as error:
            raise FileError(
                f"{error}; what was written before is kept in {self.path}, to be resumed"
            ) from None

    def _state_path(self, seed: int) -> Path:
        return self.path / f"seed-{seed}.safetensors"

    def _owner(self, seed: int) -> str:
        return f"{self.identity} seed {seed}"


def warn_dropped(error: FileError, then: str) -> None:
    """Say that a file is left out, and what is done instead."""
    warnings.warn(f"{error}; {then}", RuntimeWarning, stacklevel=2)


def _refuse_strangers(path: Path) -> None:
    """A folder with files of something else is not written into."""
    others = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
    if others:
        raise InputError(
            f"run folder {path} holds other files ({', '.join(sorted(others)[:3])}); choose an empty one"
        )


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"
