"""`Comparison`: what `compare` returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from isoscope._version import __version__
from isoscope.comparison.changes import (
    Change,
    Correspondence,
    MovedLabel,
    MovedRow,
    SliceChange,
    SliceOverlap,
)
from isoscope.comparison.gates import DELTA, WORST, Gate, GateResult
from isoscope.comparison.resampling import MIN_ROWS
from isoscope.comparison.search import SEARCH_OVERLAP
from isoscope.engine.readings import Reading, Readings, View
from isoscope.engine.sliced_measurement import shown_p_value, with_total
from isoscope.errors import InputError, Setting
from isoscope.measurement import Measurement
from isoscope.printable import shortened
from isoscope.tables import Cell, Grid, percent, signed, span

_DIFFERS = {True: "differs", False: "no difference seen", None: ""}


@dataclass(frozen=True, repr=False)
class Comparison(View):
    """A comparison of two spaces. Index it by the name of a metric for its `Change`, or print it.

    Attributes:
        a, b: the Measurements of both spaces.
        changes: every metric of both, with the interval of the difference.
        correspondences: linear CKA, plain and debiased, Procrustes distance, and overlap of neighbours.
        moved_rows: the rows that moved most.
        moved_labels: the labels that moved most; empty without labels.
        k: the number of nearest neighbours.
        notes: notes for the reader.
        seed: the seed of everything that was sampled.
        seconds: how long it took.
        by: the columns that name the slices; empty where their values were given.
        slices: the changes of every slice, metric by metric, the worst slice of each metric first; empty
            without `by`.
        slice_overlaps: the overlap of neighbours of every slice, the lowest first.
    """

    a: Measurement
    b: Measurement
    changes: tuple[Change, ...]
    correspondences: tuple[Correspondence, ...]
    moved_rows: tuple[MovedRow, ...]
    moved_labels: tuple[MovedLabel, ...]
    k: int
    notes: tuple[str, ...]
    seed: int
    seconds: float
    by: tuple[str, ...] = ()
    slices: tuple[SliceChange, ...] = ()
    slice_overlaps: tuple[SliceOverlap, ...] = ()

    def __getitem__(self, name: str) -> Change:
        for change in self.changes:
            if change.name == name:
                return change
        raise KeyError(f"{name!r} was not measured; measured were {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (change.name for change in self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def correspondence(self, name: str) -> float | None:
        """Return cka, cka_debiased, procrustes or overlap; None where it is undefined."""
        for one in self.correspondences:
            if one.name == name:
                return one.value
        raise KeyError(f"{name!r} is not one of {', '.join(one.name for one in self.correspondences)}")

    def of(self, name: str) -> dict[str, SliceChange]:
        """Return a slice's changes by metric."""
        changes = {change.name: change for change in self.slices if change.slice == name}
        if not changes:
            names = dict.fromkeys(change.slice for change in self.slices)
            raise KeyError(f"there is no slice {name!r}; there are {', '.join(names) or 'none without by'}")
        return changes

    def check(self, gates: Iterable[Gate]) -> list[GateResult]:
        """Return every gate with the value that it was tested with."""
        return [
            GateResult(gate, *self._worst(gate))
            if gate.name.startswith(WORST)
            else gate.tested(self._value(gate))
            for gate in gates
        ]

    def _worst(self, gate: Gate) -> tuple[float | None, str | None]:
        """Return the worst value of all slices, and its slice; what A has no value of is not asked for."""
        if not self.slices:
            raise InputError(f"gate {str(gate)!r} is on slices", hint="pass by to compare slices")
        if gate.metric is None:
            values = {one.slice: one.overlap for one in self.slice_overlaps}
        else:
            changes = [one for one in self.slices if one.name == gate.metric and one.before is not None]
            is_delta = DELTA in gate.name
            values = {one.slice: one.difference if is_delta else one.after for one in changes}
        if not values:
            return None, None
        name, value = gate.worst(values)
        return value, name

    def _value(self, gate: Gate) -> float | None:
        if gate.is_of_queries and not any(one.name == SEARCH_OVERLAP for one in self.correspondences):
            raise InputError(f"gate {str(gate)!r} is on a search", hint=Setting("queries", to="search both"))
        if gate.is_correspondence:
            return self.correspondence(gate.name)
        change = self[gate.name.removeprefix(DELTA)]
        return change.difference if gate.name.startswith(DELTA) else change.after

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "isoscope": __version__,
            "a": _facts(self.a),
            "b": _facts(self.b),
            "n": self.a.n,
            "n_labels": self.a.n_labels,
            "k": self.k,
            "seed": self.seed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "correspondences": {one.name: one.to_dict() for one in self.correspondences},
            "metrics": {one.name: one.to_dict() for one in self.changes},
            "moved_rows": [one.to_dict() for one in self.moved_rows],
            "moved_labels": [one.to_dict() for one in self.moved_labels],
            **self._sliced(),
        }

    def _sliced(self) -> dict[str, Any]:
        if not self.slices:
            return {}
        slices, overlaps = ([one.to_dict() for one in some] for some in (self.slices, self.slice_overlaps))
        return {"by": list(self.by), "slices": slices, "slice_overlaps": overlaps}

    @property
    def readings(self) -> Readings:
        """The metrics of each side ("a", "b"), their "difference", and the correspondences ("both").

        With `by` also the differences and the overlap of each slice.
        """
        sides = {"a": self.a, "b": self.b}
        rows = [replace(r, group={"side": side}) for side, one in sides.items() for r in one.readings]
        for side, parts in (("difference", self.changes), ("both", self.correspondences)):
            for one in parts:
                value = one.difference if isinstance(one, Change) else one.value
                group = {"side": side}
                rows.append(Reading(one.name, value, interval=one.interval, meaning=one.meaning, group=group))
        for change in self.slices:
            group = {"side": "difference", "slice": change.slice}
            rows.append(
                Reading(
                    change.name,
                    change.difference,
                    interval=change.interval,
                    meaning=change.meaning,
                    group=group,
                )
            )
        for part in self.slice_overlaps:
            group = {"side": "both", "slice": part.slice}
            rows.append(Reading("overlap", part.overlap, interval=part.interval, group=group))
        return Readings(rows)

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        sides = {"A": self.a, "B": self.b}
        a, b = (_side(letter, one) for letter, one in sides.items())
        labels = f", {self.a.n_labels:,} labels" if self.a.n_labels else ""
        by = f", by {', '.join(self.by) or 'slice'}" if self.slices else ""
        return f"{a}, {b}; {self.a.n:,} items{labels}{by}"

    def lines(self) -> list[str]:
        """Return what the columns of slices are, and the notes below the tables."""
        lines = []
        if self.slices:
            lines.append("slices: the worst change comes first, or the largest where neither way is better")
            if any(one.interval is None and one.n < MIN_ROWS for one in self.slices):
                lines.append(f"slices of fewer than {MIN_ROWS} rows have no intervals")
        if n_tests := sum(one.p_value is not None for one in self.slices):
            lines.append(f"p: of no change, adjusted for the {n_tests:,} changes tested (Holm)")
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def grids(self) -> Iterable[Grid]:
        """Return the correspondences, the metrics, and the rows and labels that moved most."""
        heads: tuple[str, ...] = ("A and B", "value", "95 % interval", "meaning")
        correspondences = [
            (one.name, one.value, span(one.interval), one.meaning) for one in self.correspondences
        ]
        yield Grid("", heads, correspondences)
        heads = ("metric", "A", "B", "B − A", "95 % interval", "")
        metrics = [(one.name, *_difference(one), _DIFFERS[one.differs]) for one in self.changes]
        yield Grid("", heads, metrics, ("B − A",))
        if self.slices:
            yield from self._slices()
        if self.moved_rows:
            yield self._moved_rows()
        if self.moved_labels:
            labels = [(shortened(str(one.label)), percent(one.overlap), one.n) for one in self.moved_labels]
            heads = ("label", "shared neighbours", "rows")
            yield Grid("labels that moved most", heads, labels, ("shared neighbours",))

    def _slices(self) -> Iterable[Grid]:
        """Return the overlap of each slice, then a table a metric."""
        (overlap,) = (one for one in self.correspondences if one.name == "overlap")
        heads: tuple[str, ...] = ("slice", "n", "overlap", "95 % interval")
        yield with_total(
            "overlap", heads,
            [(one.slice, one.n, one.overlap, span(one.interval)) for one in self.slice_overlaps],
            (self.a.n, overlap.value, span(overlap.interval)),
        )  # fmt: skip
        heads = ("slice", "n", "A", "B", "B − A", "95 % interval", "p")
        for change in self.changes:
            rows = [
                (one.slice, one.n, *_sliced_difference(one), shown_p_value(one.p_value))
                for one in self.slices
                if one.name == change.name
            ]
            yield with_total(change.name, heads, rows, (self.a.n, *_difference(change), ""), heads[4:])

    def _moved_rows(self) -> Grid:
        columns: dict[str, list[Cell]] = {
            "row": [str(one.row) for one in self.moved_rows],
            "shared neighbours": [
                percent(one.overlap) if one.zero is None else f"zero in {one.zero}" for one in self.moved_rows
            ],
            "distance": [f"{one.displacement:.2f}" for one in self.moved_rows],
        }
        numbers = tuple(columns)
        for name in ("label", "text", "id"):
            values = [getattr(one, name) for one in self.moved_rows]
            if any(value is not None for value in values):
                texts: list[Cell] = ["" if value is None else shortened(str(value)) for value in values]
                columns = {name: texts, **columns} if name == "id" else {**columns, name: texts}
        return Grid(
            "rows that moved most", tuple(columns), list(zip(*columns.values(), strict=True)), numbers
        )


def _difference(one: Change) -> tuple[Cell, ...]:
    write = partial(signed, of=max(abs(one.before or 0.0), abs(one.after or 0.0)))
    return one.before, one.after, write(one.difference), span(one.interval, write)


def _sliced_difference(one: Change) -> tuple[Cell, ...]:
    before, after, difference, interval = _difference(one)
    return before, after, one.meaning if one.difference is None else difference, interval


def _facts(one: Measurement) -> dict[str, Any]:
    return {"name": one.name, "d": one.d, "dtype": one.dtype, "device": one.device}


def _side(letter: str, measured: Measurement) -> str:
    size = f"{measured.d:,} dimensions"
    return f"{letter}: {size if measured.name in (None, '', letter) else f'{measured.name} ({size})'}"
