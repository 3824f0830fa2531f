"""Checkpoints of a model in training: folders that are whole or not there.

    .HEX.tmp/               being written, or being removed; swept away when the run is next opened
    checkpoint-N/           the model (safetensors), optimiser, scheduler and random states after N updates,
                            as transformers reads them, and beside them
        journal.json        every loss, and what was found at the end of each epoch
        task.safetensors    what the task itself keeps: C₀
        tracker.pt          the rows of the geometry so far

A folder gets its name when all of it is written, and loses it before any of it is removed, so that one
that is found can be trusted whenever the process was killed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from isoscope.errors import FileError
from isoscope.io.atomic import why

_NAME = re.compile(r"checkpoint-(\d+)")
_KEPT = 2


class Checkpoints:
    """The checkpoints in a run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for leftover in folder.glob(".*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)

    def latest(self) -> tuple[int, Path] | None:
        """The furthest one: its step and its folder."""
        return max(self._found(), default=None)

    def write(self, step: int, fill: Callable[[Path], Path]) -> None:
        """Let `fill` write into a folder and say what in it is the checkpoint; then put that in place."""
        place = self.folder / f"checkpoint-{step}"
        if place.exists():
            return
        beside = self._beside()
        try:
            beside.mkdir()
            os.replace(fill(beside), place)
        except (OSError, RuntimeError, ValueError) as error:  # torch and safetensors have kinds of their own
            if isinstance(error, FileError):
                raise
            last = self.latest()
            kept = f"the checkpoint of step {last[0]:,} is kept" if last else "there is none from before"
            raise FileError(
                f"the checkpoint of step {step:,} cannot be written to {self.folder}: {why(error)}; {kept}, "
                "to be resumed"
            ) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        for _, old in sorted(self._found())[:-_KEPT]:
            self._remove(old)

    def clear(self) -> None:
        """Remove all: of a run that is done, its model and its results are what counts."""
        for _, place in self._found():
            self._remove(place)

    def _found(self) -> list[tuple[int, Path]]:
        named = ((_NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        return [(int(match[1]), path) for match, path in named if match]

    def _remove(self, place: Path) -> None:
        beside = self._beside()
        os.replace(place, beside)
        shutil.rmtree(beside, ignore_errors=True)

    def _beside(self) -> Path:
        return self.folder / f".{secrets.token_hex(4)}.tmp"
