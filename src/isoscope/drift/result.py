"""`Drift`: what `drift` returns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__
from isoscope.comparison.gates import Gate, GateResult
from isoscope.drift.clusters import ClusterChange
from isoscope.engine.readings import Reading, Readings, View
from isoscope.engine.sliced_measurement import shown_p_value
from isoscope.printable import shortened
from isoscope.results import plain
from isoscope.tables import Cell, Grid, percent, shown, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTITIES = ("drift", "separability", "mean_shift", "spread_change", "covariance_change")
ABOVE, WITHIN, UNCLEAR = "above", "within", "unclear"
_SHARES = {"drift": 1, "mean_shift": 2, "spread_change": 1, "covariance_change": 1}  # decimals
_MOST_CLUSTERS = 10


@dataclass(frozen=True)
class StrangeRow:
    """A row of one sample that is least like the other.

    Attributes:
        side: "A" or "B", the sample it is of.
        text: its text.
        score: how much more it is like its own sample than like the other, in standard deviations of all
            rows, by a classifier that has not seen it.
    """

    side: str
    text: str
    score: float


@dataclass(frozen=True, repr=False)
class Drift(View):
    """How far the vectors of B have drifted from those of A. Index it by a name for a `Reading`, or print it.

    Attributes:
        name_a, name_b: what to call the samples.
        n_a, n_b: rows of the samples.
        d: dimensions.
        tolerate: the drift that is tolerated, a share of the rows.
        rows: the readings drift, separability, mean_shift, spread_change and covariance_change.
        p_value: of no difference at all, by permutations; None without permutations.
        n_permutations: how many.
        clusters: the clusters of both samples together, the largest change first.
        strange: the rows of B that are least like A, then those of A that are least like B; empty without
            texts.
        notes: notes for the reader.
        seed: the seed of everything that was sampled.
        seconds: how long it took.
    """

    name_a: str
    name_b: str
    n_a: int
    n_b: int
    d: int
    tolerate: float
    rows: tuple[Reading, ...]
    p_value: float | None
    n_permutations: int
    clusters: tuple[ClusterChange, ...]
    strange: tuple[StrangeRow, ...]
    notes: tuple[str, ...]
    seed: int
    seconds: float

    def __getitem__(self, name: str) -> Reading:
        for reading in self.rows:
            if reading.metric == name:
                return reading
        raise KeyError(f"{name!r} is not one of {', '.join(QUANTITIES)}")

    @property
    def drift(self) -> float:
        """The share of the rows that differs, at least; see `isoscope.comparison.separability`."""
        return self["drift"].number

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the drift."""
        interval = self["drift"].interval
        assert interval is not None
        return interval

    @property
    def alarm(self) -> bool:
        """Whether the drift is above what is tolerated: its whole interval is."""
        return self.interval[0] > self.tolerate

    @property
    def verdict(self) -> str:
        """The drift is "above" or "within" what is tolerated, or "unclear" where its interval has both."""
        if self.alarm:
            return ABOVE
        return WITHIN if self.interval[1] <= self.tolerate else UNCLEAR

    @property
    def came(self) -> list[str]:
        """The texts of B that are least like A."""
        return [row.text for row in self.strange if row.side == "B"]

    @property
    def went(self) -> list[str]:
        """The texts of A that are least like B."""
        return [row.text for row in self.strange if row.side == "A"]

    def check(self, gates: Iterable[Gate]) -> list[GateResult]:
        """Return every gate with the value that it was tested with."""
        return [gate.tested(self[gate.name].value) for gate in gates]

    @property
    def readings(self) -> Readings:
        """The drift and the other quantities, then the change of the share of each cluster."""
        changes = [
            Reading("cluster_share", one.difference, interval=one.interval, group={"cluster": one.cluster})
            for one in self.clusters
        ]
        return Readings([*self.rows, *changes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "isoscope": __version__,
            "a": {"name": self.name_a, "n": self.n_a},
            "b": {"name": self.name_b, "n": self.n_b},
            "d": self.d,
            "tolerate": self.tolerate,
            "alarm": self.alarm,
            "verdict": self.verdict,
            **{row.metric: row.to_dict() for row in self.rows},
            "p_value": self.p_value,
            "n_permutations": self.n_permutations,
            "clusters": [one.to_dict() for one in self.clusters],
            "strange_rows": [plain(one) for one in self.strange],
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": self.seconds,
        }

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        return (
            f"A: {self.name_a} ({self.n_a:,} rows), B: {self.name_b} ({self.n_b:,} rows); "
            f"{self.d:,} dimensions"
        )

    @property
    def opening(self) -> str:
        """The verdict, in one line."""
        words = {
            ABOVE: "drift above what is tolerated",
            WITHIN: "drift within what is tolerated",
            UNCLEAR: "not clear whether the drift is tolerated; more rows narrow the interval",
        }
        of = f"{percent(max(self.drift, 0.0), 1)} of the rows differ, at least"
        between = span(self.interval, lambda value: percent(max(value, 0.0), 1))
        return f"{words[self.verdict]}: {of} ({between}; tolerated {percent(self.tolerate, 1)})"

    def grids(self) -> Iterable[Grid]:
        """Return the quantities, the clusters that changed, and the rows that came and went."""
        rows: list[tuple[Cell, ...]] = []
        for one in self.rows:
            decimals = _SHARES.get(one.metric)
            write = shown if decimals is None else _shares(decimals)
            value = one.value if one.value is None else write(one.value)
            rows.append((one.metric, value, span(one.interval, write), one.meaning))
        yield Grid("", ("", "value", "95 % interval", "meaning"), rows, ("value",))
        changed = [one for one in self.clusters if one.changed][:_MOST_CLUSTERS]
        if changed:
            heads = ("cluster", "of A", "of B", "B − A", "95 % interval", "p", "examples")
            write = _shares(1)
            yield Grid(
                "clusters that came or went", heads,
                [
                    (
                        str(one.cluster), percent(one.share_a, 1), percent(one.share_b, 1),
                        f"{100 * one.difference:+.1f} %".replace("-", "−"), span(one.interval, write),
                        shown_p_value(one.p_value), " · ".join(shortened(text, 40) for text in one.texts),
                    )
                    for one in changed
                ],
                ("cluster", "of A", "of B", "B − A", "p"),
            )  # fmt: skip
        for side, title in (("B", "texts of B least like A"), ("A", "texts of A least like B")):
            texts = [
                (shortened(row.text, 90), f"{row.score:.1f}") for row in self.strange if row.side == side
            ]
            if texts:
                yield Grid(title, ("text", "score"), texts, ("score",))

    def lines(self) -> list[str]:
        """Return the p-value and the notes."""
        lines = []
        if self.p_value is not None:
            lines.append(
                f"p of no difference at all: {self.p_value:.3g}, by {self.n_permutations:,} permutations"
            )
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def plot(self, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the share of each cluster in A and in B."""
        from isoscope.drift.figure import draw_clusters

        return draw_clusters(self, path, ax=ax)


def _shares(decimals: int) -> Any:
    return lambda value: percent(value, decimals).replace("-", "−")
