"""A run's folder: what it was asked, how far it is, and what it found; every file all or nothing.

config.json             settings, a fingerprint of the data, versions
trajectory.parquet      the rows so far
seed-N.safetensors      a seed's parameters and optimiser after `step` updates; when done, its vectors
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from isoscope.errors import FileError, InputError
from isoscope.io.atomic import why, write_atomically
from isoscope.io.files import listed
from isoscope.training.trajectory import Trajectory

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
    def open(
        cls, path: str | os.PathLike[str], configuration: Mapping[str, Any], *, resume: bool
    ) -> RunFolder:
        """A new folder, or the one of the same configuration to continue."""
        folder = cls(Path(path), configuration)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"run folder {path} cannot be made: {why(error)}") from error
        config = folder.path / _CONFIG
        if not config.exists():
            _refuse_strangers(folder.path)
            text = json.dumps(folder.configuration, indent=2, ensure_ascii=False)
            write_atomically(config, lambda beside: _write_text(beside, text + "\n"))
            return folder
        if not resume:
            raise InputError(
                f"run folder {path} holds a run already, done or cut short; go on with it by resume=True, "
                "or choose another folder"
            )
        folder._check_same(config)
        return folder

    def _check_same(self, config: Path) -> None:
        try:
            found = json.loads(config.read_text())
        except (OSError, ValueError) as error:
            raise FileError(f"{config} cannot be read: {why(error)}") from error
        wanted = json.loads(json.dumps(self.configuration))
        names = sorted((set(found) | set(wanted)) - set(_FREE)) if isinstance(found, dict) else [_CONFIG]
        differing = [n for n in names if not isinstance(found, dict) or found.get(n) != wanted.get(n)]
        if differing:
            shown = "; ".join(
                f"{name} was {_short(found.get(name))}, now {_short(wanted.get(name))}"
                if isinstance(found, dict)
                else f"{name} is no configuration"
                for name in differing[:4]
            )
            raise InputError(
                f"run folder {self.path} holds a run of another configuration ({shown}); "
                "choose another folder"
            )

    def rows(self) -> dict[str, np.ndarray]:
        """The columns found so far; none where nothing was written yet."""
        path = self.path / _ROWS
        return dict(Trajectory.load(path).columns) if path.exists() else {}

    def state(self, seed: int, wanted: Wanted | None = None) -> SeedState | None:
        """Where a seed stands, checked against what is wanted of it; None where it has not begun."""
        from safetensors import SafetensorError, safe_open

        path = self._state_path(seed)
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            state = SeedState(tensors, int(about["step"]), about["done"] == "yes")
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise FileError(f"{path} cannot be read as a checkpoint: {why(error)}") from error
        fault = None if wanted is None else wanted.fault(state)
        if fault:
            raise FileError(f"{path} is no checkpoint of this run: {fault}")
        return state

    def save(self, trajectory: Trajectory, states: Mapping[int, SeedState]) -> None:
        """Rows first, then states: whatever is cut short, no state is ahead of the rows."""
        from safetensors.torch import save_file

        self._write(_ROWS, trajectory.write_parquet)
        for seed, state in states.items():
            about = {"step": str(state.step), "done": "yes" if state.done else "no"}
            tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors.items()}
            name = self._state_path(seed).name
            self._write(name, lambda path, t=tensors, a=about: save_file(t, path, metadata=a))  # type: ignore[misc]

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        try:
            write_atomically(self.path / name, write)
        except FileError as error:
            raise FileError(
                f"{error}; what was written before is kept in {self.path}, to be resumed"
            ) from None

    def _state_path(self, seed: int) -> Path:
        return self.path / f"seed-{seed}.safetensors"


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


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
