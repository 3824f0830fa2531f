"""`Compression`: what `compress` returns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoscope._version import __version__
from isoscope.compression.recalls import Share
from isoscope.errors import InputError, check_choice
from isoscope.results import Result
from isoscope.tables import Cell, Grid, percent, shown, signed, span


@dataclass(frozen=True)
class Compressed:
    """One method of compression.

    Attributes:
        method: its name.
        n_bytes: the bytes of one vector; None where the method could not be fitted.
        recall: the recall of a search in the codes.
        rescored: the recall where the best of the returned rows are chosen by exact distance.
        score: the score of the task; None without one.
        score_change: its difference to the score of the vectors themselves, and the 95 % interval.
        reason: why the method could not be fitted.
    """

    method: str
    n_bytes: int | None = None
    recall: Share | None = None
    rescored: Share | None = None
    score: float | None = None
    score_change: tuple[float, tuple[float, float] | None] | None = None
    reason: str | None = None


@dataclass(frozen=True, repr=False)
class Compression(Result):
    """What methods of compression cost in recall. Index it by the name of a method, or print it.

    Attributes:
        name: the name of the space.
        n, d: the number of rows and dimensions.
        k: the number of neighbours.
        target: the recall that a method must hold.
        oversample: rescoring chooses among so many times k rows.
        metric: "cosine" or "euclidean".
        n_queries, n_fit: the number of queries, and of rows to fit on.
        methods: the methods, the one with most bytes first.
        score_name: the name of the task, or None.
        exact_score: the score of the vectors themselves, or None.
        notes: notes for the reader.
        seed: the seed of samples, rotations and k-means.
        seconds: how long it took.
        fitted: the fitted corrections by method.
    """

    name: str | None
    n: int
    d: int
    k: int
    target: float
    oversample: int
    metric: str
    n_queries: int
    n_fit: int
    methods: tuple[Compressed, ...]
    score_name: str | None
    exact_score: float | None
    notes: tuple[str, ...]
    seed: int
    seconds: float
    fitted: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, method: str) -> Compressed:
        for one in self.methods:
            if one.method == method:
                return one
        raise KeyError(f"{method!r} was not tried; tried were {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (one.method for one in self.methods)

    def __len__(self) -> int:
        return len(self.methods)

    @property
    def chosen(self) -> Compressed | None:
        """The method of fewest bytes that holds the target, or None."""
        return self._fewest("recall")

    @property
    def chosen_rescored(self) -> Compressed | None:
        """The method of fewest bytes that holds the target with rescoring, or None."""
        return self._fewest("rescored")

    def _fewest(self, which: str) -> Compressed | None:
        holding = [
            (one.n_bytes, -share.mean, one)
            for one in self.methods
            if (share := getattr(one, which)) is not None and share.interval[0] >= self.target
        ]
        return min(holding, key=lambda entry: entry[:2])[2] if holding else None

    @property
    def front(self) -> tuple[Compressed, ...]:
        """The methods that no other one equals in recall with fewer bytes: the Pareto front, by bytes."""
        return self.front_of("recall")

    def front_of(self, which: str) -> tuple[Compressed, ...]:
        """Return the Pareto front of "recall" or of "rescored"."""
        known = [
            (one.n_bytes, -share.mean, one)
            for one in self.methods
            if one.n_bytes is not None and (share := getattr(one, which)) is not None
        ]
        best, front = 0.0, []
        for _, negative, one in sorted(known, key=lambda entry: entry[:2]):
            if negative < best:
                best = negative
                front.append(one)
        return tuple(front)

    @property
    def title(self) -> str:
        """What was compressed, and how it was searched."""
        what = self.name or "vectors"
        return (
            f"{what}: {self.n:,} × {self.d}, recall of the {self.k} nearest by {self.metric}, "
            f"{self.n_queries:,} queries"
        )

    def grids(self) -> Iterable[Grid]:
        """Return one table, a row a method."""
        with_score = self.score_name is not None
        heads = ["method", "bytes", "smaller", f"recall@{self.k}", "95 % interval", "5th pct.", "rescored"]
        heads += ["score", "change"] if with_score else []
        front = {one.method for one in self.front}
        rows: list[list[Cell]] = []
        for one in self.methods:
            if one.n_bytes is None or one.recall is None or one.rescored is None:
                rows.append(
                    [one.method, None, "", None, one.reason or "", None, None, *[""] * (2 * with_score)]
                )
                continue
            row: list[Cell] = [
                f"{one.method} *" if one.method in front else one.method,
                one.n_bytes,
                f"{4 * self.d / one.n_bytes:.3g} ×",
                f"{one.recall.mean:.3f}",
                span(one.recall.interval, lambda end: f"{end:.3f}"),
                f"{one.recall.low:.2f}",
                f"{one.rescored.mean:.3f}",
            ]
            if with_score and one.score_change is not None:
                row += [shown(one.score, 4), signed(one.score_change[0])]
            rows.append(row)
        numbers = ("smaller", f"recall@{self.k}", "5th pct.", "rescored", "score", "change")
        yield Grid("", heads, rows, numbers)

    def lines(self) -> list[str]:
        """Return what the columns say, the notes, and the method of fewest bytes that holds the target."""
        lines = [
            "*: no method has as much recall with fewer bytes. 5th pct.: the recall that all but 5 % of the "
            f"queries reach. rescored: the best {self.k} by exact distance of "
            f"{self.oversample * self.k} returned"
        ]
        if self.score_name is not None:
            lines.append(f"score: {self.score_name}, {shown(self.exact_score, 4)} for the vectors themselves")
        lines += [f"note: {note}" for note in self.notes]
        return [*lines, self.sentence]

    @property
    def sentence(self) -> str:
        """The fewest bytes that hold the target, without and with rescoring."""
        what = f"fewest bytes that hold {self.target:g}"
        plain, rescored = self._said(self.chosen, "recall"), self._said(self.chosen_rescored, "rescored")
        if rescored is None:
            return f"{what}: none of these methods, with or without rescoring"
        with_rescoring = f"with {self.oversample * self.k} rows rescored by exact distance: {rescored}"
        return f"{what}: {plain or 'none without rescoring'}; {with_rescoring}"

    def _said(self, one: Compressed | None, which: str) -> str | None:
        if one is None or one.n_bytes is None:
            return None
        share: Share = getattr(one, which)
        size = f"{one.n_bytes:,} bytes a vector ({percent(one.n_bytes / (4 * self.d), 1)} of float32)"
        interval = span(share.interval, lambda end: f"{end:.3f}")
        return f"{one.method}, {size}, recall {share.mean:.3f} ({interval})"

    def save(self, path: str | os.PathLike[str], method: str | None = None) -> Path:
        """Write the fitted correction of a method to a .safetensors file; of the chosen one by default."""
        if method is None:
            if self.chosen is None:
                raise InputError(
                    f"No method holds {self.target:g}", hint="name the method to save, or lower `target`"
                )
            method = self.chosen.method
        check_choice("method", method, self.fitted)
        written: Path = self.fitted[method].save(path)
        return written

    def figure(self, path: str | os.PathLike[str]) -> Path:
        """Draw recall against bytes and write the figure: .png, .pdf or .svg."""
        from isoscope.compression.figure import draw_compression

        return draw_compression(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values, unrounded."""
        names = ("name", "n", "d", "k", "target", "oversample", "metric", "n_queries", "n_fit")
        columns = self._columns()
        return {
            "isoscope": __version__,
            **{name: getattr(self, name) for name in names},
            "chosen": self.chosen and self.chosen.method,
            "chosen_rescored": self.chosen_rescored and self.chosen_rescored.method,
            "front": [one.method for one in self.front],
            "methods": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            "score_name": self.score_name,
            "exact_score": self.exact_score,
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def _columns(self) -> dict[str, list[Any]]:
        rows = [_flat(one) for one in self.methods]
        return {name: [row[name] for row in rows] for name in rows[0]}


def _flat(one: Compressed) -> dict[str, Any]:
    row: dict[str, Any] = {"method": one.method, "n_bytes": one.n_bytes}
    for name, share in (("recall", one.recall), ("rescored", one.rescored)):
        low, high = share.interval if share else (None, None)
        row |= {
            name: share and share.mean,
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_5th_percentile": share and share.low,
        }
    change, interval = one.score_change or (None, None)
    low, high = interval or (None, None)
    changes = {"score_change": change, "score_change_low": low, "score_change_high": high}
    return row | {"score": one.score} | changes | {"reason": one.reason}
