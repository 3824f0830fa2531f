"""What `advise` returns: in words, tables, JSON and HTML."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__
from isoscope.advice.outcomes import LEAVE, Outcome, TaskAdvice, recommended, signed
from isoscope.errors import InputError
from isoscope.printable import printable
from isoscope.tables import Grid, as_html, as_text

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Advice:
    """Whether to correct a space, and how, by its own tasks. Index it by a task's name; print it.

    Attributes:
        name: what was tried.
        n, d: rows and dimensions.
        tasks: what was found on each.
        geometry: isoscore, mean cosine and effective rank under each correction, and under none.
        folds, repeats: of the cross-validation.
        notes: what the reader should know.
        seed: of folds and samples.
        seconds: how long it took.
        fitted: the recommended correction, fitted on all rows tried; None where there is none.
    """

    name: str | None
    n: int
    d: int
    tasks: tuple[TaskAdvice, ...]
    geometry: Mapping[str, Mapping[str, float | None]]
    folds: int
    repeats: int
    notes: tuple[str, ...]
    seed: int
    seconds: float
    fitted: Any = None

    def __getitem__(self, task: str) -> TaskAdvice:
        for one in self.tasks:
            if one.task == task:
                return one
        raise KeyError(f"{task!r} was not tried; here are {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (one.task for one in self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def recommended(self) -> str | None:
        """The correction that helps most tasks, and hurts none; None where there is no such."""
        return recommended(self.tasks)

    @property
    def headline(self) -> str:
        """The advice, in one line."""
        chosen = self.recommended
        if chosen is not None:
            helped = [one.task for one in self.tasks if chosen in {o.correction for o in one.helping}]
            return f"use {chosen}: it helps {', '.join(helped)} and is not seen to hurt"
        if any(one.helping for one in self.tasks):
            return "it depends on the task: what helps one hurts another; see each"
        return f"{LEAVE}: no correction is seen to help"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the recommended correction, fitted on all rows tried, to a .safetensors file."""
        if self.fitted is None:
            raise InputError(f"there is no correction to save: the advice is to {self.headline}")
        if not hasattr(self.fitted, "save"):
            raise InputError(f"{type(self.fitted).__name__} cannot be saved; wanted a correction of isoscope")
        return Path(self.fitted.save(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything, unrounded, JSON-ready."""
        return {
            "isoscope": __version__,
            "name": self.name,
            "n": self.n,
            "d": self.d,
            "advice": self.headline,
            "recommended": self.recommended,
            "folds": self.folds,
            "repeats": self.repeats,
            "seed": self.seed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "tasks": {one.task: one.to_dict() for one in self.tasks},
            "geometry": {name: dict(figures) for name, figures in self.geometry.items()},
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as strict JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def tables(self) -> list[Table]:
        """Rich tables for terminals: one a task, and the geometry."""
        return [grid.to_rich() for grid in self._grids()]

    def lines(self) -> list[str]:
        """Notes, then the advice for each task and for all."""
        said = [f"note: {note}" for note in self.notes]
        said += [one.sentence for one in self.tasks]
        return list(map(printable, [*said, f"advice: {self.headline}"]))

    def _grids(self) -> Iterator[Grid]:
        heads = ("correction", "score", "gain", "95 % interval", "verdict")
        for one in self.tasks:
            title = f"{one.task}: {one.score_name}, {one.n_items:,} held out in turn"
            rows = [("none", f"{one.baseline:.4f}", "", "", ""), *map(_cells, one.outcomes)]
            yield Grid(title, heads, rows, ("score", "gain"))
        names = tuple(next(iter(self.geometry.values()), {}))
        geometry = [
            (printable(correction), *(_number(figures.get(name)) for name in names))
            for correction, figures in self.geometry.items()
        ]
        yield Grid("how the geometry moves", ("geometry", *names), geometry, names)

    def __str__(self) -> str:
        return as_text(self._grids(), self.lines())

    def _repr_html_(self) -> str:
        return as_html(self._grids(), self.lines())


def _cells(one: Outcome) -> tuple[str, ...]:
    if one.gain is None or one.interval is None:
        return printable(one.correction), "–", "", "", printable(one.verdict)
    low, high = one.interval
    return (
        printable(one.correction),
        f"{one.score:.4f}",
        signed(one.gain),
        f"{signed(low)} … {signed(high)}",
        one.verdict,
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"
