"""`Migration`: what `migrate` returns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoscope._version import __version__
from isoscope.comparison.gates import Gate, GateResult
from isoscope.corrections.translate import Translate
from isoscope.engine.readings import Reading, Readings, View
from isoscope.printable import shortened
from isoscope.results import plain
from isoscope.tables import Cell, Grid, percent, span

MAP, AGAIN, UNCLEAR = "map", "embed again", "unclear"


@dataclass(frozen=True)
class Trial:
    """One way to use the old vectors, on rows that no map has seen.

    Attributes:
        method: "procrustes", "ridge" or "features"; "old model" for old vectors and old queries, unmapped.
        overlap, interval: the share of the k nearest neighbours in NEW that it finds, and its 95 % interval.
        first: how often the nearest neighbour in NEW is the first that it finds.
    """

    method: str
    overlap: float
    interval: tuple[float, float]
    first: float


@dataclass(frozen=True)
class LostRow:
    """A row whose neighbours in NEW the mapped vectors do not find: its number, the share found, its text."""

    row: int
    overlap: float
    text: str | None = None


@dataclass(frozen=True)
class Threshold:
    """Cosines above which the same share of random pairs lies.

    Attributes:
        rate: the share, the false-match rate of unrelated pairs.
        old, new: among old vectors, and among new ones.
        mapped: of new vectors with mapped ones.
    """

    rate: float
    old: float
    new: float
    mapped: float


@dataclass(frozen=True, repr=False)
class Migration(View):
    """What mapping old vectors to a new model keeps. Print it, or save the map.

    Attributes:
        n, d_old, d_new: items, and the dimensions of both models.
        n_fit, n_held: rows that the maps were fitted to, and rows that were searched.
        k: neighbours.
        accept: the smallest overlap that is accepted.
        trials: every map, and the old model as it is.
        method: the best map, chosen on rows that are neither fitted nor searched.
        lost: the rows whose neighbours are lost most, with the best map.
        thresholds: the cosines of both models at the same false-match rate.
        correction: the best map, fitted; `save` writes it.
        notes: notes for the reader.
        seed: the seed of everything that was sampled.
        seconds: how long it took.
    """

    n: int
    d_old: int
    d_new: int
    n_fit: int
    n_held: int
    k: int
    accept: float
    trials: tuple[Trial, ...]
    method: str
    lost: tuple[LostRow, ...]
    thresholds: tuple[Threshold, ...]
    correction: Translate = field(repr=False)
    notes: tuple[str, ...]
    seed: int
    seconds: float

    def __getitem__(self, method: str) -> Trial:
        for one in self.trials:
            if one.method == method:
                return one
        raise KeyError(f"{method!r} is not one of {', '.join(one.method for one in self.trials)}")

    @property
    def best(self) -> Trial:
        """The trial of the best map."""
        return self[self.method]

    @property
    def verdict(self) -> str:
        """Return "map", "embed again", or "unclear" where the interval has the accepted overlap inside."""
        low, high = self.best.interval
        return MAP if low >= self.accept else AGAIN if high < self.accept else UNCLEAR

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the best map as a correction, for `isoscope correct FILE --load` and `load_correction`."""
        return self.correction.save(path)

    def check(self, gates: Iterable[Gate]) -> list[GateResult]:
        """Return every gate on the overlap of the best map."""
        return [gate.tested(self.best.overlap) for gate in gates]

    @property
    def readings(self) -> Readings:
        """The overlap of every trial."""
        return Readings(
            [
                Reading("overlap", one.overlap, interval=one.interval, group={"method": one.method})
                for one in self.trials
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the map as JSON-ready values."""
        names = ("n", "d_old", "d_new", "n_fit", "n_held", "k", "accept", "method", "seed", "seconds")
        known: dict[str, Any] = {name: plain(getattr(self, name)) for name in names}
        lists = {name: plain(getattr(self, name)) for name in ("trials", "lost", "thresholds", "notes")}
        return {"isoscope": __version__, "verdict": self.verdict, **known, **lists}

    @property
    def title(self) -> str:
        """What was mapped, in one line."""
        return (
            f"{self.n:,} items, {self.d_old:,} to {self.d_new:,} dimensions; maps fitted to {self.n_fit:,} "
            f"rows, tried on {self.n_held:,} others"
        )

    @property
    def opening(self) -> str:
        """The verdict, in one line."""
        words = {
            MAP: "the old vectors can be mapped",
            AGAIN: "embed again",
            UNCLEAR: "not clear whether the old vectors can be mapped",
        }
        low, high = (percent(end, 1) for end in self.best.interval)
        return (
            f"{words[self.verdict]}: the best map ({self.method}) keeps {percent(self.best.overlap, 1)} of "
            f"the {self.k} nearest neighbours ({low} … {high}; accepted from {percent(self.accept)})"
        )

    def grids(self) -> Iterable[Grid]:
        """Return the trials, the thresholds, and the rows that are lost."""
        trials: list[tuple[Cell, ...]] = [
            (one.method, percent(one.overlap, 1), span(one.interval, _percent), percent(one.first, 1))
            for one in self.trials
        ]
        heads: tuple[str, ...] = ("map", f"of {self.k} neighbours kept", "95 % interval", "first kept")
        yield Grid("", heads, trials, (heads[1], heads[3]))
        thresholds = [(percent(one.rate, 2), one.old, one.new, one.mapped) for one in self.thresholds]
        heads = ("false matches", "old cosine", "new cosine", "new with mapped")
        yield Grid("thresholds of the same false-match rate", heads, thresholds, heads[:1])
        lost: list[tuple[Cell, ...]] = [
            (str(one.row), percent(one.overlap), shortened(one.text or "", 70)) for one in self.lost
        ]
        if lost:
            has_texts = any(one.text for one in self.lost)
            heads = ("row", "neighbours kept", "text")[: 3 if has_texts else 2]
            yield Grid("rows that are lost most", heads, [row[: len(heads)] for row in lost], heads[:2])

    def lines(self) -> list[str]:
        """Return the notes."""
        return [f"note: {note}" for note in self.notes]


def _percent(value: float) -> str:
    return percent(value, 1)
