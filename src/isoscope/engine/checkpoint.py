"""What is finished, kept in a folder: statistics as .safetensors, written whole or not at all."""

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

_SHOWN = 5  # damaged pieces that are named one by one
_LAYOUT = "outcome"  # the metadata entry that says what the tensors make up
_OWN = (RowLabels, Sliced)  # kinds that are kept and are no statistics of a shelf


class Checkpoint(RunFolder):
    """A folder of outcomes by name, all of one run; to be used in a `with` block, by one process at a time.

    A run is known by what it reads and what it is asked; another one's folder is refused, never mixed in.
    An outcome whose file is damaged or of another run counts as not there, and is noted.

    Attributes:
        n_resumed: outcomes that were loaded.
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
        """Return what was saved under a name; None where nothing was, or it is damaged."""
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
        """Keep an outcome; a failure leaves what was kept before."""
        layout, tensors = laid_out(outcome)
        path = self.path / f"{name}.safetensors"
        try:
            write_tensors(path, tensors, {_LAYOUT: layout}, of=self.owner(name))
        except FileError as error:
            raise error.advise(f"run it again to continue from what is in {self.path}") from error

    def notes(self) -> list[str]:
        """Return what is to be said of the folder: what was taken from it, and what was computed again."""
        notes = [f"computed again: {reason}" for reason in self.damaged[:_SHOWN]]
        if len(self.damaged) > _SHOWN:
            notes.append(f"computed again: {len(self.damaged) - _SHOWN:,} more pieces of {self.path}")
        if self.n_resumed:
            notes.append(f"{self.n_resumed:,} finished pieces of work were taken from {self.path}")
        return notes


def laid_out(outcome: Outcome) -> tuple[str, dict[str, Tensor]]:
    """Return an outcome as JSON and tensors by name: what is kept on disk, and sent to other processes."""
    tensors: dict[str, Tensor] = {}
    statistics = {key: _laid_out(value, key, tensors) for key, value in outcome.statistics.items()}
    layout = {"found": statistics, "rows": list(outcome.rows.items()), "bad": list(outcome.bad.items())}
    return json.dumps(layout), tensors


def rebuilt(layout: str, tensors: Mapping[str, Tensor]) -> Outcome:
    """Return the outcome that was laid out."""
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
