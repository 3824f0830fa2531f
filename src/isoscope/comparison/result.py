"""What `compare` returns: as a table, a dict, JSON, or HTML in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__
from isoscope.comparison.changes import Change, Correspondence, MovedLabel, MovedRow
from isoscope.comparison.gates import DELTA, Gate, GateResult
from isoscope.measurement import Measurement
from isoscope.printable import printable, shortened
from isoscope.tables import Grid, as_html, as_text, shown

if TYPE_CHECKING:
    from rich.table import Table

_NUMBERS = ("A", "B", "B − A", "value", "row", "neighbours kept", "moved", "rows")
_TEXT_SHOWN = 60


@dataclass(frozen=True)
class Comparison:
    """Two spaces of the same items. Index it by a metric's name for its `Change`; print it for the table.

    Attributes:
        a, b: the Measurements.
        changes: every metric of both, with the interval of the difference.
        correspondences: linear CKA, plain and debiased; Procrustes distance; overlap of neighbours.
        moved_rows: the rows whose neighbours changed most, the most moved first.
        moved_labels: labels by how few of their neighbours they kept; empty without labels.
        k: neighbours looked at.
        notes: what the reader should know.
        seed: of everything sampled.
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
        raise KeyError(f"{name!r} was not measured; here are {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (change.name for change in self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def correspondence(self, name: str) -> float | None:
        """cka, cka_debiased, procrustes or overlap; None where undefined."""
        for one in self.correspondences:
            if one.name == name:
                return one.value
        raise KeyError(f"{name!r} is not one of {', '.join(one.name for one in self.correspondences)}")

    def check(self, gates: Iterable[Gate]) -> list[GateResult]:
        """Every gate with the value it met."""
        return [GateResult(gate, self._asked(gate)) for gate in gates]

    def _asked(self, gate: Gate) -> float | None:
        if gate.metric is None:
            return self.correspondence(gate.name)
        change = self[gate.metric]
        return change.difference if gate.name.startswith(DELTA) else change.after

    def to_dict(self) -> dict[str, Any]:
        """Everything, unrounded, JSON-ready."""
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

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as strict JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        sides = {"A": self.a, "B": self.b}
        a, b = (_side(letter, one) for letter, one in sides.items())
        labels = f", {self.a.n_labels:,} labels" if self.a.n_labels else ""
        return f"{a}, {b}; {self.a.n:,} items{labels}"

    def tables(self) -> list[Table]:
        """Rich tables for terminals: how alike, the metrics, what moved most."""
        return [grid.to_rich() for grid in self._grids()]

    def lines(self) -> list[str]:
        """The notes, as they stand under the tables."""
        return [f"note: {note}" for note in self.notes]

    def _grids(self) -> Iterator[Grid]:
        heads: tuple[str, ...] = ("A and B", "value", "95 % interval", "what it means")
        alike = [
            (one.name, shown(one.value), _interval(one.interval), one.meaning) for one in self.correspondences
        ]
        yield Grid(printable(self.title), heads, alike, _NUMBERS)
        heads = ("metric", "A", "B", "B − A", "95 % interval", "")
        yield Grid("", heads, [_metric_cells(one) for one in self.changes], _NUMBERS)
        if self.moved_rows:
            yield self._moved_rows()
        if self.moved_labels:
            labels = [
                (_cut(printable(str(one.label))), f"{one.overlap:.0%}", f"{one.n:,}")
                for one in self.moved_labels
            ]
            yield Grid("labels that moved most", ("label", "neighbours kept", "rows"), labels, _NUMBERS)

    def _moved_rows(self) -> Grid:
        columns = {
            "row": [str(one.row) for one in self.moved_rows],
            "neighbours kept": [f"{one.overlap:.0%}" for one in self.moved_rows],
            "moved": [f"{one.displacement:.2f}" for one in self.moved_rows],
        }
        if any(one.id is not None for one in self.moved_rows):
            columns = {"id": [_cut(printable(str(one.id))) for one in self.moved_rows], **columns}
        if any(one.label is not None for one in self.moved_rows):
            columns["label"] = [_cut(printable(str(one.label))) for one in self.moved_rows]
        if any(one.text is not None for one in self.moved_rows):
            columns["text"] = [_cut(printable(one.text or "")) for one in self.moved_rows]
        return Grid("moved most", tuple(columns), list(zip(*columns.values(), strict=True)), _NUMBERS)

    def __str__(self) -> str:
        return as_text(self._grids(), self.lines())

    def _repr_html_(self) -> str:
        return as_html(self._grids(), self.lines())


def _facts(one: Measurement) -> dict[str, Any]:
    return {"name": one.name, "d": one.d, "dtype": one.dtype, "device": one.device}


def _metric_cells(one: Change) -> tuple[str, ...]:
    return (
        one.name,
        shown(one.before),
        shown(one.after),
        _signed(one.difference),
        _interval(one.interval, signed=True),
        {True: "differs", False: "no difference seen", None: ""}[one.differs],
    )


def _side(letter: str, measured: Measurement) -> str:
    name = "" if measured.name in (None, "", letter) else f"{measured.name} × "
    return f"{letter}: {name}{measured.d:,} dimensions"


def _interval(interval: tuple[float, float] | None, *, signed: bool = False) -> str:
    if interval is None:
        return ""
    show = _signed if signed else shown
    return f"{show(interval[0])} … {show(interval[1])}"


def _signed(value: float | None) -> str:
    """A difference as tables show it, with its sign."""
    if value is None:
        return "–"
    text = shown(abs(value))
    return f"+{text}" if value > 0 else f"−{text}" if value < 0 else text


def _cut(text: str) -> str:
    return shortened(text, _TEXT_SHOWN)
