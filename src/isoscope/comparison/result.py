"""What `compare` returns: as a table, a dict, JSON, or HTML in a notebook."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__
from isoscope.comparison.gates import DELTA, Gate, GateResult
from isoscope.measurement import Measurement, shown
from isoscope.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 110
_HEADS = ("metric", "A", "B", "B − A", "95 % interval", "")
_TEXT_SHOWN = 60


@dataclass(frozen=True)
class Change:
    """A metric of both spaces.

    Attributes:
        name: in the registry.
        before, after: its value on A and on B; None where undefined.
        interval: the 95 % interval of the difference; None where it has none.
        meaning: what B's value says, in words.
    """

    name: str
    before: float | None
    after: float | None
    interval: tuple[float, float] | None
    meaning: str

    @property
    def difference(self) -> float | None:
        """B − A."""
        if self.before is None or self.after is None:
            return None
        difference = self.after - self.before
        return None if math.isnan(difference) else difference

    @property
    def differs(self) -> bool | None:
        """Whether the interval leaves out zero; None where there is no interval."""
        return None if self.interval is None else not self.interval[0] <= 0 <= self.interval[1]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; infinities as None."""
        return {
            "a": _plain(self.before),
            "b": _plain(self.after),
            "difference": _plain(self.difference),
            "interval": None if self.interval is None else list(self.interval),
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class Correspondence:
    """One number of how alike both spaces are: cka, cka_debiased, procrustes, overlap."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class MovedRow:
    """An item whose neighbours changed: its row, the share of them kept, how far it moved, what it is.

    `displacement` is its distance after the best rotation, 1 on average if the spaces had nothing in common.
    """

    row: int
    overlap: float
    displacement: float
    label: Any = None
    text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**vars(self), "label": None if self.label is None else str(self.label)}


@dataclass(frozen=True)
class MovedLabel:
    """A label, how many of its rows were looked at, and the mean share of neighbours they kept."""

    label: Any
    n: int
    overlap: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**vars(self), "label": str(self.label)}


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
        a, b = (f"{one.name or 'space'} × {one.d:,} dimensions" for one in (self.a, self.b))
        labels = f", {self.a.n_labels:,} labels" if self.a.n_labels else ""
        return f"A: {a}, B: {b}; {self.a.n:,} items{labels}"

    def tables(self) -> list[Table]:
        """Rich tables for terminals: how alike, the metrics, what moved most."""
        return [_table(*part) for part in self._parts()]

    def _parts(self) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Title, heads and cells of each table."""
        alike: list[tuple[str, ...]] = [
            (one.name, shown(one.value), _interval(one.interval), one.meaning) for one in self.correspondences
        ]
        yield self.title, ("A and B", "value", "95 % interval", "what it means"), alike
        yield "", _HEADS, [_metric_cells(one) for one in self.changes]
        if self.moved_rows:
            has_text = any(one.text is not None for one in self.moved_rows)
            heads = (
                "row",
                "neighbours kept",
                "moved",
                *["label"] * bool(self.moved_labels),
                *["text"] * has_text,
            )
            rows = [_row_cells(one, bool(self.moved_labels), has_text) for one in self.moved_rows]
            yield "moved most", heads, rows
        if self.moved_labels:
            labels: list[tuple[str, ...]] = [
                (printable(str(one.label)), f"{one.overlap:.0%}", f"{one.n:,}") for one in self.moved_labels
            ]
            yield "labels that moved most", ("label", "neighbours kept", "rows"), labels

    def __str__(self) -> str:
        from rich.console import Console

        page = StringIO()
        console = Console(width=_WIDTH, file=page, no_color=True, force_terminal=False)
        for table in self.tables():
            console.print(table)
        for note in self.notes:
            console.print(f"note: {note}", markup=False, highlight=False)
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")

    def _repr_html_(self) -> str:
        parts = [_html(*part) for part in self._parts()]
        return "".join(parts) + "".join(f"<p>note: {html.escape(note)}</p>" for note in self.notes)


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


def _row_cells(one: MovedRow, has_label: bool, has_text: bool) -> tuple[str, ...]:
    cells = [str(one.row), f"{one.overlap:.0%}", f"{one.displacement:.2f}"]
    cells += ["" if one.label is None else printable(str(one.label))] * has_label
    return (*cells, *[_cut(printable(one.text or ""))] * has_text)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for head in heads:
        is_number = head in ("A", "B", "B − A", "value", "row", "neighbours kept", "moved", "rows")
        table.add_column(head, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _html(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


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
    return text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 1] + "…"


def _plain(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
