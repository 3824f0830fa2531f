"""`Checkpoint`: the finished parts of a run, as .safetensors files in a folder, written atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope._version import __version__
from isoscope.engine.passes import Outcome, RowLabels, Sliced
from isoscope.errors import FileError
from isoscope.io.files import reading
from isoscope.io.run_folder import RunFolder
from isoscope.io.sealed import read_tensors, write_tensors
from isoscope.statistics.declared import declared

_SHOWN = 5  # damaged files that are named one by one
_LAYOUT = "outcome"  # the metadata entry with the structure that the tensors belong to
_OWN = (RowLabels, Sliced)  # classes that are saved although they are not declared statistics


class Checkpoint(RunFolder):
    """A folder of named outcomes of one run; used in a `with` block, by one process at a time.

    A run is identified by its source and its options; the folder of a different run raises an error. An
    outcome whose file is damaged or comes from another run is treated as missing, and a note says so.

    Attributes:
        n_resumed: the number of outcomes that were loaded.
        damaged: for each file that was left out, the reason.
    """

    what = "checkpoint"
    config = "checkpoint.json"
    noted = ()
    is_empty_first = False

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        super().__init__(folder, {"isoscope": __version__, **run})
        self.n_resumed = 0
        self.damaged: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Checkpoint:
        return self._stack.enter_context(self.held(resume=True))

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def load(self, name: str) -> Outcome | None:
        """Return the outcome saved under a name; None if there is none, or its file is damaged."""
        path = self.path / f"{name}.safetensors"
        if not path.exists():
            return None
        try:
            tensors, about = read_tensors(path, of=self.owner(name))
        except FileError as error:
            self.damaged.append(error.problem)
            return None
        with reading(path):
            outcome = rebuilt(about[_LAYOUT], tensors)
        self.n_resumed += 1
        return outcome

    def save(self, name: str, outcome: Outcome) -> None:
        """Save an outcome; if this fails, the outcome saved before remains."""
        layout, tensors = laid_out(outcome)
        path = self.path / f"{name}.safetensors"
        try:
            write_tensors(path, tensors, {_LAYOUT: layout}, of=self.owner(name))
        except FileError as error:
            raise error.advise(f"run it again to continue from what is in {self.path}") from error

    def notes(self) -> list[str]:
        """Return notes on how much was loaded from the folder, and what was computed again."""
        notes = [f"computed again: {reason}" for reason in self.damaged[:_SHOWN]]
        if len(self.damaged) > _SHOWN:
            notes.append(f"computed again: {len(self.damaged) - _SHOWN:,} more files of {self.path}")
        if self.n_resumed:
            notes.append(f"{self.n_resumed:,} finished pieces of work were taken from {self.path}")
        return notes


def laid_out(outcome: Outcome) -> tuple[str, dict[str, Tensor]]:
    """Return an outcome as JSON and named tensors, to be saved or sent to another process."""
    tensors: dict[str, Tensor] = {}
    statistics = {key: _laid_out(value, key, tensors) for key, value in outcome.statistics.items()}
    layout = {"found": statistics, "rows": list(outcome.rows.items()), "bad": list(outcome.bad.items())}
    return json.dumps(layout), tensors


def rebuilt(layout: str, tensors: Mapping[str, Tensor]) -> Outcome:
    """Return the outcome that `laid_out` was given."""
    content = json.loads(layout)
    statistics = {key: _rebuilt(value, tensors) for key, value in content["found"].items()}
    rows, bad = ({int(place): value for place, value in content[name]} for name in ("rows", "bad"))
    return Outcome(statistics, rows, bad)


def _laid_out(value: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """Return a statistic as JSON, and store its tensors under dotted names."""
    if isinstance(value, Tensor):
        tensors[key] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": key}
    if is_dataclass(value):
        parts = {
            field.name: _laid_out(getattr(value, field.name), f"{key}.{field.name}", tensors)
            for field in fields(value)
        }
        return {"kind": type(value).__name__, "fields": parts}
    if isinstance(value, tuple):
        return {"tuple": [_laid_out(entry, f"{key}.{n}", tensors) for n, entry in enumerate(value)]}
    return {"value": value}


def _rebuilt(layout: Any, tensors: Mapping[str, Tensor]) -> Any:
    if "tensor" in layout:
        return tensors[layout["tensor"]]
    if "kind" in layout:
        parts = {name: _rebuilt(part, tensors) for name, part in layout["fields"].items()}
        kinds = (*_OWN, *(statistic.kind for statistic in declared().values() if statistic.kind is not None))
        return {kind.__name__: kind for kind in kinds}[layout["kind"]](**parts)
    if "tuple" in layout:
        return tuple(_rebuilt(entry, tensors) for entry in layout["tuple"])
    return layout["value"]
