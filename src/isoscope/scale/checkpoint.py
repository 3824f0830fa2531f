"""What is finished, kept in a folder: statistics as .safetensors, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope._version import __version__
from isoscope.errors import FileError
from isoscope.io.atomic import why, write_atomically
from isoscope.io.files import reading
from isoscope.scale.tasks import Outcome, PairSums, RowLabels
from isoscope.statistics.centroids import CentroidDistances
from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.leave_one_out import LeftOutCosines, LeftOutMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.partition import LogPartition

_PLAN = "checkpoint.json"
_LAYOUT = "outcome"  # the metadata entry that says what the tensors make up
_KINDS = {
    kind.__name__: kind
    for kind in (
        CentroidDistances,
        Directions,
        GroupDirections,
        GroupMoments,
        LeftOutCosines,
        LeftOutMoments,
        LogPartition,
        Moments,
        PairSums,
        RowLabels,
    )
}


class Checkpoint:
    """A folder of outcomes by name, all of one run.

    A run is known by what it reads and what it is asked; another one's folder is refused, never mixed in.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self._folder = folder
        self.n_resumed = 0
        self._begin(json.loads(json.dumps({"isoscope": __version__, **run})))

    def _begin(self, run: dict[str, Any]) -> None:
        plan = self._folder / _PLAN
        if plan.exists():
            with reading(plan):
                before = json.loads(plan.read_text())
            if before != run:
                other = [
                    name for name in run if not isinstance(before, dict) or before.get(name) != run[name]
                ]
                raise FileError(
                    f"{self._folder} holds another run's checkpoint ({', '.join(other)} differ); "
                    "name another folder, or delete this one"
                )
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"checkpoint {self._folder} cannot be made: {why(error)}; wanted a folder to keep work in"
            ) from error
        write_atomically(plan, lambda path: path.write_text(json.dumps(run)))

    def load(self, name: str) -> Outcome | None:
        """What was saved under a name; None where nothing was."""
        path = self._folder / f"{name}.safetensors"
        if not path.exists():
            return None
        self.n_resumed += 1
        from safetensors import safe_open

        with reading(path), safe_open(str(path), framework="pt") as file:
            layout = json.loads(file.metadata()[_LAYOUT])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - no mapping
        found = {key: _rebuilt(value, tensors) for key, value in layout["found"].items()}
        return Outcome(found, _by_place(layout["rows"]), _by_place(layout["bad"]))

    def save(self, name: str, outcome: Outcome) -> None:
        """Keep an outcome; a failure leaves what was kept before."""
        from safetensors.torch import save_file

        tensors: dict[str, Tensor] = {}
        found = {key: _laid_out(value, key, tensors) for key, value in outcome.found.items()}
        layout = {"found": found, "rows": list(outcome.rows.items()), "bad": list(outcome.bad.items())}
        metadata = {_LAYOUT: json.dumps(layout)}
        path = self._folder / f"{name}.safetensors"
        try:
            write_atomically(path, lambda beside: save_file(tensors, beside, metadata=metadata))
        except FileError as error:
            raise FileError(f"{error}; what was finished is kept in {self._folder}") from error


def _by_place(pairs: list[list[Any]]) -> dict[int, Any]:
    return {int(place): value for place, value in pairs}


def _laid_out(value: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """A statistic as JSON, its tensors put aside under dotted names."""
    if isinstance(value, Tensor):
        tensors[key] = value.detach().cpu().clone().contiguous()
        return {"tensor": key}
    if is_dataclass(value):
        parts = {
            field.name: _laid_out(getattr(value, field.name), f"{key}.{field.name}", tensors)
            for field in fields(value)
        }
        return {"kind": type(value).__name__, "fields": parts}
    if isinstance(value, tuple):
        return {"tuple": [_laid_out(entry, key, tensors) for entry in value]}
    return {"value": value}


def _rebuilt(layout: Any, tensors: dict[str, Tensor]) -> Any:
    if "tensor" in layout:
        return tensors[layout["tensor"]]
    if "kind" in layout:
        parts = {name: _rebuilt(part, tensors) for name, part in layout["fields"].items()}
        return _KINDS[layout["kind"]](**parts)
    if "tuple" in layout:
        return tuple(_rebuilt(entry, tensors) for entry in layout["tuple"])
    return layout["value"]


def as_tensor_outcome(**columns: torch.Tensor) -> Outcome:
    """Plain tensors as an outcome, to be kept."""
    return Outcome({name: PairSums(column) for name, column in columns.items()})
