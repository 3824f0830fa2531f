"""`Advice`: what `advise` returns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isoscope._version import __version__
from isoscope.advice.outcomes import LEAVE, Outcome, TaskAdvice, recommended
from isoscope.advice.tasks import SEARCH_TASK
from isoscope.engine.readings import Reading, Readings, View
from isoscope.errors import InputError
from isoscope.tables import Cell, Grid, signed, span


@dataclass(frozen=True, repr=False)
class Advice(View):
    """Advice on corrections of a space. Index it by the name of a task, or print it.

    Attributes:
        name: the name of the space.
        n, d: the number of rows and dimensions.
        tasks: the results of each task.
        geometry: isoscore, mean cosine and effective rank after each correction, and without one.
        folds, repeats: the folds and repeats of the cross-validation.
        notes: notes for the reader.
        seed: the seed of folds and samples.
        seconds: how long it took.
        fitted: the recommended correction, fitted; None where none is recommended.
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
        raise KeyError(f"{task!r} was not tried; tried were {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (one.task for one in self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def recommended(self) -> str | None:
        """The correction that helps the most tasks and hurts none; None where there is none."""
        return recommended(self.tasks)

    @property
    def headline(self) -> str:
        """The advice, in one line."""
        chosen = self.recommended
        if chosen is not None:
            helped = [one.task for one in self.tasks if chosen in {o.correction for o in one.helping}]
            return f"use {chosen}: it helps {', '.join(helped)} and hurts no task"
        if any(one.helping for one in self.tasks):
            return "it depends on the task: each correction that helps one task hurts another"
        return f"{LEAVE}: no correction clearly helps"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the recommended correction, fitted, to a .safetensors file, and return its path."""
        if self.fitted is None:
            raise InputError(f"there is no correction to save; the advice is: {self.headline}")
        if not hasattr(self.fitted, "save"):
            raise InputError(f"only corrections of isoscope can be saved, got {type(self.fitted).__name__}")
        return Path(self.fitted.save(path))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
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

    @property
    def readings(self) -> Readings:
        """Score and gain by `task` and `correction`, then the metrics of the space after each correction."""
        rows = []
        for task in self.tasks:
            rows.append(Reading("score", task.baseline, group={"task": task.task, "correction": "none"}))
            for one in task.outcomes:
                group = {"task": task.task, "correction": one.correction}
                rows.append(Reading("score", one.score, meaning=one.reason, group=group))
                gain = Reading("gain", one.gain, interval=one.interval, meaning=one.verdict, group=group)
                rows.append(gain)
        for correction, figures in self.geometry.items():
            of_space = {"task": None, "correction": correction}
            rows += [Reading(name, value, group=of_space) for name, value in figures.items()]
        return Readings([replace(row, space=self.name) for row in rows])

    def lines(self) -> list[str]:
        """Return the notes, the advice for each task, and the advice for all tasks."""
        notes = [f"note: {note}" for note in self.notes]
        return [*notes, *(one.sentence for one in self.tasks), f"advice: {self.headline}"]

    def grids(self) -> Iterable[Grid]:
        """Return a table for each task, and one of the metrics of the space."""
        heads = ("correction", "score", "gain", "95 % interval", "verdict")
        for one in self.tasks:
            title = f"{one.task}: {one.score_name}, {_how(one)}"
            none: tuple[Cell, ...] = ("none", one.baseline, "", "", "")
            yield Grid(title, heads, [none, *map(_cells, one.outcomes)], ("gain",))
        names = tuple(next(iter(self.geometry.values()), {}))
        rows = [(name, *(figures.get(key) for key in names)) for name, figures in self.geometry.items()]
        yield Grid("metrics of the space after each correction", ("correction", *names), rows)


def _how(one: TaskAdvice) -> str:
    if one.task == SEARCH_TASK:
        return f"{one.n_items:,} queries"
    return f"cross-validated on {one.n_items:,} items"


def _cells(one: Outcome) -> tuple[Cell, ...]:
    if one.gain is None:
        return one.correction, one.score, "", "", one.verdict
    return one.correction, one.score, signed(one.gain), span(one.interval, signed), one.verdict
