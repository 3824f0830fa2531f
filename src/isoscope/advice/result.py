"""What `advise` returns: per task what each correction gains, in words, tables, JSON and HTML."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__
from isoscope.advice.validation import LEVEL
from isoscope.errors import InputError
from isoscope.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 110
HELPS, HURTS, NO_DIFFERENCE = "helps", "hurts", "no difference seen"
LEAVE = "leave it alone"


@dataclass(frozen=True)
class Outcome:
    """One correction on one task.

    Attributes:
        correction: its name.
        score: mean over held-out folds; None where it could not be fitted.
        gain: score less that without a correction, and `interval`, its 95 % interval by itself.
        p_value: of no gain, adjusted for all corrections tried on the task (Holm).
        scores: one a fold and repeat.
        reason: why it could not be fitted.
    """

    correction: str
    score: float | None
    gain: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    scores: tuple[float, ...] = ()
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Helps, hurts, no difference seen; or why there is nothing to say."""
        if self.gain is None or self.p_value is None:
            return self.reason or "not fitted"
        if self.p_value >= LEVEL:
            return NO_DIFFERENCE
        return HELPS if self.gain > 0 else HURTS

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        interval = None if self.interval is None else list(self.interval)
        return {**vars(self), "interval": interval, "scores": list(self.scores), "verdict": self.verdict}


@dataclass(frozen=True)
class TaskAdvice:
    """One task: the score without a correction, and what each correction makes of it.

    Attributes:
        task: linear_probe, knn, clustering, retrieval or similarity.
        score_name: what is scored, in words.
        n_items: rows, or pairs, it was tried on.
        baseline: mean score without a correction.
        outcomes: one a correction.
    """

    task: str
    score_name: str
    n_items: int
    baseline: float
    outcomes: tuple[Outcome, ...]

    @property
    def helping(self) -> list[Outcome]:
        """Corrections that help, the most first."""
        found = [one for one in self.outcomes if one.verdict == HELPS]
        return sorted(found, key=lambda one: -(one.gain or 0.0))

    @property
    def hurting(self) -> list[Outcome]:
        """Corrections that hurt, the most first."""
        found = [one for one in self.outcomes if one.verdict == HURTS]
        return sorted(found, key=lambda one: one.gain or 0.0)

    @property
    def best(self) -> Outcome | None:
        """The correction that helps most; None where none does."""
        return self.helping[0] if self.helping else None

    @property
    def sentence(self) -> str:
        """The advice for this task, in one line."""
        if self.best is None or self.best.interval is None:
            tried = len([one for one in self.outcomes if one.gain is not None])
            return f"{self.task}: {LEAVE}; none of {tried} corrections is seen to help"
        low, high = self.best.interval
        return (
            f"{self.task}: {self.best.correction} helps, {self.baseline:.3f} → {self.best.score:.3f} "
            f"(gain {_signed(self.best.gain)}, 95 % {_signed(low)} … {_signed(high)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "score": self.score_name,
            "n_items": self.n_items,
            "baseline": self.baseline,
            "best": None if self.best is None else self.best.correction,
            "advice": self.sentence,
            "corrections": {one.correction: one.to_dict() for one in self.outcomes},
        }


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
        return [_table(*part) for part in self._parts()]

    def _parts(self) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        for one in self.tasks:
            heads = ("correction", "score", "gain", "95 % interval", "verdict")
            rows = [("none", f"{one.baseline:.4f}", "", "", ""), *map(_cells, one.outcomes)]
            yield f"{one.task}: {one.score_name}, {one.n_items:,} held out in turn", heads, rows
        names = list(next(iter(self.geometry.values()), {}))
        rows = [
            (correction, *(_number(figures.get(name)) for name in names))
            for correction, figures in self.geometry.items()
        ]
        yield "how the geometry moves", ("geometry", *names), rows

    def __str__(self) -> str:
        from rich.console import Console

        page = StringIO()
        console = Console(width=_WIDTH, file=page, no_color=True, force_terminal=False)
        for table in self.tables():
            console.print(table)
        for line in self.lines():
            console.print(line, markup=False, highlight=False)
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")

    def lines(self) -> list[str]:
        """Notes, then the advice for each task and for all."""
        said = [f"note: {note}" for note in self.notes]
        return [*said, *(printable(one.sentence) for one in self.tasks), f"advice: {self.headline}"]

    def _repr_html_(self) -> str:
        parts = []
        for title, heads, rows in self._parts():
            head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
            lines = "".join(
                "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            caption = f"<caption>{html.escape(title)}</caption>"
            parts.append(f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>")
        return "".join(parts) + "".join(f"<p>{html.escape(line)}</p>" for line in self.lines())


def recommended(tasks: Sequence[TaskAdvice]) -> str | None:
    """The correction that helps most tasks and hurts none, the larger gain deciding between equals."""
    hurt = {one.correction for task in tasks for one in task.hurting}
    gains: dict[str, list[float]] = {}
    for task in tasks:
        for one in task.helping:
            if one.correction not in hurt:
                gains.setdefault(one.correction, []).append(one.gain or 0.0)
    if not gains:
        return None
    return max(gains, key=lambda name: (len(gains[name]), math.fsum(gains[name])))


def _cells(one: Outcome) -> tuple[str, ...]:
    if one.gain is None or one.interval is None:
        return printable(one.correction), "–", "", "", printable(one.verdict)
    low, high = one.interval
    return (
        printable(one.correction),
        f"{one.score:.4f}",
        _signed(one.gain),
        f"{_signed(low)} … {_signed(high)}",
        one.verdict,
    )


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}".replace("-", "−")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        is_text = head in ("correction", "95 % interval", "verdict", "geometry")
        table.add_column(head, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
