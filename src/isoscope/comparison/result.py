"""`Comparison`: what `compare` returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from isoscope._version import __version__
from isoscope.comparison.changes import Change, Correspondence, MovedLabel, MovedRow
from isoscope.comparison.gates import DELTA, Gate, GateResult
from isoscope.engine.readings import Reading, Readings, View
from isoscope.measurement import Measurement
from isoscope.printable import shortened
from isoscope.tables import Cell, Grid, signed, span

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

    def check(self, gates: Iterable[Gate]) -> list[GateResult]:
        """Return every gate with the value that it was tested with."""
        return [GateResult(gate, self._value(gate)) for gate in gates]

    def _value(self, gate: Gate) -> float | None:
        if gate.metric is None:
            return self.correspondence(gate.name)
        change = self[gate.metric]
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
        }

    @property
    def readings(self) -> Readings:
        """The metrics of each side ("a", "b"), their "difference", and the correspondences ("both")."""
        sides = {"a": self.a, "b": self.b}
        rows = [replace(r, group={"side": side}) for side, one in sides.items() for r in one.readings]
        for side, parts in (("difference", self.changes), ("both", self.correspondences)):
            for one in parts:
                value = one.difference if isinstance(one, Change) else one.value
                group = {"side": side}
                rows.append(Reading(one.name, value, interval=one.interval, meaning=one.meaning, group=group))
        return Readings(rows)

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        sides = {"A": self.a, "B": self.b}
        a, b = (_side(letter, one) for letter, one in sides.items())
        labels = f", {self.a.n_labels:,} labels" if self.a.n_labels else ""
        return f"{a}, {b}; {self.a.n:,} items{labels}"

    def lines(self) -> list[str]:
        """Return the notes below the tables."""
        return [f"note: {note}" for note in self.notes]

    def grids(self) -> Iterable[Grid]:
        """Return the correspondences, the metrics, and the rows and labels that moved most."""
        heads: tuple[str, ...] = ("A and B", "value", "95 % interval", "meaning")
        correspondences = [
            (one.name, one.value, span(one.interval), one.meaning) for one in self.correspondences
        ]
        yield Grid("", heads, correspondences)
        heads = ("metric", "A", "B", "B − A", "95 % interval", "")
        metrics = [
            (
                one.name, one.before, one.after, signed(one.difference), span(one.interval, signed),
                _DIFFERS[one.differs],
            )
            for one in self.changes
        ]  # fmt: skip
        yield Grid("", heads, metrics, ("B − A",))
        if self.moved_rows:
            yield self._moved_rows()
        if self.moved_labels:
            labels = [(shortened(str(one.label)), f"{one.overlap:.0%}", one.n) for one in self.moved_labels]
            heads = ("label", "shared neighbours", "rows")
            yield Grid("labels that moved most", heads, labels, ("shared neighbours",))

    def _moved_rows(self) -> Grid:
        columns: dict[str, list[Cell]] = {
            "row": [str(one.row) for one in self.moved_rows],
            "shared neighbours": [f"{one.overlap:.0%}" for one in self.moved_rows],
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


def _facts(one: Measurement) -> dict[str, Any]:
    return {"name": one.name, "d": one.d, "dtype": one.dtype, "device": one.device}


def _side(letter: str, measured: Measurement) -> str:
    name = "" if measured.name in (None, "", letter) else f"{measured.name} × "
    return f"{letter}: {name}{measured.d:,} dimensions"
