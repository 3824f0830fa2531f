"""`Sides`: what `sides` returns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from isoscope._version import __version__
from isoscope.comparison.gates import Gate, GateResult
from isoscope.engine.readings import Reading, Readings, View
from isoscope.tables import Cell, Grid, percent, shown, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GATED = ("gap", "separability", "hit_rate", "mrr", "asymmetry")
_APART = ("gap", "separability", "identical_pairs", "asymmetry")


@dataclass(frozen=True, repr=False)
class Sides(View):
    """The sides of a space. Index it by a quantity, or a quantity and a side, for a `Reading`, or print it.

    Attributes:
        sizes: the rows of each side.
        d: dimensions.
        rows: the readings. Their groups are the side and, of a search, the vectors, "as they are" or
            "centred", with the mean of each side taken off.
        findings: what stands out, the worst first.
        ranks: by side and vectors, the rank of the nearest partner of each row that searched.
        notes: notes for the reader.
        seed: the seed of everything that was sampled.
        seconds: how long it took.
    """

    sizes: Mapping[str, int]
    d: int
    rows: tuple[Reading, ...]
    findings: tuple[str, ...]
    ranks: Mapping[tuple[str, str], Tensor] = field(repr=False)
    notes: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 0.0

    def __getitem__(self, key: str | tuple[str, ...]) -> Reading:
        """Return the first reading of a metric, or that of a side, or of a side and vectors."""
        metric, *group = (key,) if isinstance(key, str) else key
        for row in self.rows:
            if row.metric == metric and group == [*row.group.values()][: len(group)]:
                return row
        raise KeyError(f"{key!r} was not measured; the metrics are {', '.join(dict.fromkeys(self._names()))}")

    def _names(self) -> list[str]:
        return [row.metric for row in self.rows]

    @property
    def readings(self) -> Readings:
        """Every number, one row a reading."""
        return Readings(self.rows)

    def check(self, gates: Iterable[Gate]) -> list[GateResult]:
        """Return every gate with the worst value of all sides; hit_rate is that among the first 10."""
        results = []
        for gate in gates:
            metric = "hit_rate@10" if gate.name == "hit_rate" else gate.name
            values = {
                str(row.group.get("side", "")): row.value
                for row in self.rows
                if row.metric == metric and row.group.get("vectors") != "centred"
            }
            side, value = gate.worst(values) if values else (None, None)
            results.append(GateResult(gate, value, side or None))
        return results

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "isoscope": __version__,
            "sides": dict(self.sizes),
            "d": self.d,
            "findings": list(self.findings),
            "readings": [{"metric": row.metric, **row.group, **row.to_dict()} for row in self.rows],
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": self.seconds,
        }

    @property
    def title(self) -> str:
        """The sides and their sizes, in one line."""
        listed = ", ".join(f"{name} ({n:,} rows)" for name, n in self.sizes.items())
        return f"{listed}; {self.d:,} dimensions"

    def grids(self) -> Iterable[Grid]:
        """Return how far the sides lie apart, and how well each finds its partners."""
        rows = [row for row in self.rows if row.metric in _APART]
        sides: list[tuple[Cell, ...]] = []
        for row in rows:
            write = shown if row.metric == "separability" else _percent
            sides.append(
                (
                    row.metric, str(row.group.get("side", "")),
                    None if row.value is None else write(row.value),
                    span(row.interval, write), row.meaning,
                )
            )  # fmt: skip
        yield Grid("", ("", "sides", "value", "95 % interval", "meaning"), sides, ("value",))
        found: list[tuple[Cell, ...]] = []
        for side in self.sizes:
            for vectors in ("as they are", "centred"):
                own = {
                    row.metric: row for row in self.rows if row.group == {"side": side, "vectors": vectors}
                }
                if own:
                    found.append(
                        (side, vectors, own["median_rank"].value, _percent(own["hit_rate@1"].number),
                         _percent(own["hit_rate@10"].number), span(own["hit_rate@10"].interval, _percent),
                         own["mrr"].value)
                    )  # fmt: skip
        heads = ("rows of", "vectors", "median rank", "first", "of first 10", "95 % interval", "mrr")
        if found:
            yield Grid("how well a side finds its partners on the other", heads, found, heads[2:5])
        gains = [row for row in self.rows if row.metric == "centring"]
        if gains:
            write = _points
            cells: list[tuple[Cell, ...]] = [
                (str(row.group["side"]), write(row.number), span(row.interval, write)) for row in gains
            ]
            gained = ("rows of", "gain", "95 % interval")
            yield Grid("what centring each side brings, of first 10", gained, cells, ("gain",))

    def lines(self) -> list[str]:
        """Return the findings and the notes."""
        return [*(f"• {line}" for line in self.findings), *(f"note: {note}" for note in self.notes)]

    def plot(self, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the share of each side's rows that have a partner among the first k, against k."""
        from isoscope.sides.figure import draw

        return draw(self, path, ax=ax)


def _percent(value: float) -> str:
    return percent(value, 1).replace("-", "−")


def _points(value: float) -> str:
    return f"{100 * value:+z.1f} points".replace("-", "−").replace("+0.0", "0.0")
