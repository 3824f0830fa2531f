"""Checkpoints of a model in training: folders that are whole or not there.

    .checkpoint-N.….tmp/    being written, or being removed; swept away when the run is next opened
    checkpoint-N/           the model (safetensors), optimiser, scheduler and random states after N updates,
                            as transformers reads them, and beside them
        journal.json        every loss, and what was found at the end of each epoch
        task.safetensors    what the task itself keeps: C₀
        tracker.pt          the rows of the geometry so far
        .checksums.json     of all of these, and which step of which run they are of

A folder gets its name when all of it is written, and loses it before any of it is removed, so that one
that is found can be trusted whenever the process was killed. One that has been damaged since is removed,
and the run goes on from the one before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from isoscope.errors import FileError
from isoscope.io.atomic import beside, failures, remove, why
from isoscope.io.sealed import check_folder, seal_folder
from isoscope.training.checkpoint import RunFolder, warn_dropped

_NAME = re.compile(r"checkpoint-(\d+)")
_KEPT = 2


class Checkpoints:
    """The checkpoints in a run's folder."""

    def __init__(self, run: RunFolder) -> None:
        self.folder = run.path
        self._identity = run.identity

    def latest(self) -> tuple[int, Path] | None:
        """Return the step and the folder of the furthest one that is whole; remove those that are not."""
        for step, place in reversed(self._found()):
            try:
                check_folder(place, of=self._owner(step))
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
            seal_folder(made, of=self._owner(step))
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

    def _owner(self, step: int) -> str:
        return f"{self._identity} step {step}"
