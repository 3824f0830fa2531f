"""`by=`: a measurement cut by the values of a column, each slice beside the rows outside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from isoscope.engine.passes import ALL, Group, slices_of
from isoscope.engine.plan import Plan
from isoscope.engine.readings import Reading
from isoscope.engine.run import Work
from isoscope.engine.source import Source
from isoscope.errors import InputError
from isoscope.io.raw_rows import physical_bytes
from isoscope.labels import Labels
from isoscope.measurement import Measurement, shown_half_width
from isoscope.metrics.registry import Metric, registered
from isoscope.results import Result, plain
from isoscope.space import Space, unchecked
from isoscope.statistics.declared import declared, streamed, whole
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.tree import merged
from isoscope.tables import Cell, Grid, shown, signed

TESTED_ROWS = 20  # a standard error of fewer rows is too rough to test a difference by
_SHOWN = 12  # slices of a table
_Z95 = 1.959964
_SHARE_OF_MEMORY = 0.25  # for the statistics of all slices, and of the rows outside each
Read = Callable[[Metric, Statistics], Reading]


@dataclass(frozen=True)
class SliceReading(Reading):
    """A metric's value on one slice, and how far it is from that of all other rows.

    Attributes:
        n: how many vectors the slice has.
        difference: its value less that of all other rows.
        difference_error: the standard error of the difference, where one is known.
        p_value: of no difference, two-sided, adjusted by Holm for all differences that are tested.
    """

    n: int = 0
    difference: float | None = None
    difference_error: float | None = None
    p_value: float | None = None

    def row(self) -> dict[str, Any]:
        """Return the columns of a long table."""
        return {
            **self.group,
            "n": self.n,
            "metric": self.metric,
            "value": self.value,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "difference": self.difference,
            "difference_standard_error": self.difference_error,
            "p_value": self.p_value,
            "reason": self.reason,
        }


@dataclass(frozen=True, repr=False)
class SlicedMeasurement(Measurement):
    """The readings of a space, and of every slice of its rows: what `measure(…, by=…)` returns.

    It prints a table a metric, the worst slice first. Indexing it gives the value on all rows.

    Attributes:
        by: the columns that name the slices; empty where their values were given.
        slices: one reading for each metric and slice, the worst slice of each metric first: the lowest value
            where a high one is better, the highest where a low one is, else the largest difference.
    """

    by: tuple[str, ...] = ()
    slices: tuple[SliceReading, ...] = ()

    def of(self, name: str) -> dict[str, SliceReading]:
        """Return a slice's readings by metric."""
        found = {reading.metric: reading for reading in self.slices if reading.group["slice"] == name}
        if not found:
            names = dict.fromkeys(reading.group["slice"] for reading in self.slices)
            raise KeyError(f"there is no slice {name!r}; there are {', '.join(names)}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values: that of all rows, and a list of the slices' readings."""
        rows = [plain(reading.row()) for reading in self.slices]
        return {**super().to_dict(), "by": list(self.by), "slices": rows}

    def _columns(self) -> dict[str, list[Any]]:
        """Return the columns of the long table, one row a slice and metric."""
        rows = [reading.row() for reading in self.slices]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_arrow(self) -> Any:
        """Return the long table as a pyarrow table."""
        return Result.to_arrow(self)

    @property
    def title(self) -> str:
        """What was measured, and how it was sliced."""
        return f"{super().title}, by {', '.join(self.by) or 'slice'}"

    def grids(self) -> Iterable[Grid]:
        """Return a table a metric: all rows, then a row a slice."""
        heads = ("slice", "n", "value", "± 95 %", "difference", "± 95 % ", "p")
        for whole_reading in self.readings:
            metric, half = whole_reading.metric, shown_half_width(whole_reading)
            slices = [reading for reading in self.slices if reading.metric == metric]
            rows: list[Sequence[Cell]] = [_cells(reading) for reading in slices[:_SHOWN]]
            if len(slices) > _SHOWN:
                rows.append((f"… {len(slices) - _SHOWN:,} more", *("" for _ in heads[1:])))
            rows.append(("all", self.n, whole_reading.value, half, "", "", ""))
            yield Grid(metric, heads, rows, numbers=heads[4:])

    def lines(self) -> list[str]:
        """Return what the columns are, and the notes."""
        n_tested = sum(reading.p_value is not None for reading in self.slices)
        said = ["difference: from all other rows; the worst slice comes first"]
        if n_tested:
            said.append(f"p: of no difference, adjusted for the {n_tested:,} differences tested (Holm)")
        for reading in self.readings:
            metric = registered().get(reading.metric)
            if metric is not None and metric.biased_by_rows:
                instead = f"{metric.fair} is tested instead" if metric.fair else "it is not tested"
                said.append(f"{metric.name} depends on the number of rows: {instead}")
        return [*said, *super().lines()]


def _cells(reading: SliceReading) -> tuple[Cell, ...]:
    name = str(reading.group["slice"])
    if reading.value is None:
        return name, reading.n, None, "", reading.reason or "", "", ""
    half = f"± {shown(_Z95 * reading.difference_error)}" if reading.difference_error else ""
    p = "" if reading.p_value is None else "<0.0001" if reading.p_value < 1e-4 else f"{reading.p_value:.4f}"
    return (
        name,
        reading.n,
        reading.value,
        shown_half_width(reading),
        signed(reading.difference),
        half,
        p,
    )


def measure_slices(
    plan: Plan,
    source: Source,
    *,
    read: Read,
    check: Callable[[Statistics], None],
    covariance: Any = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Statistics, list[SliceReading]]:
    """Return the shelf of all rows, and the readings of every slice, the worst of each metric first.

    Statistics that merge are taken in the same passes for all slices; the rows outside a slice are all other
    slices merged. What needs all vectors at once is taken of each slice in memory.

    Args:
        plan: of this source, with `by`.
        source: what is measured.
        read: a metric's reading on a shelf.
        check: looks at the shelf of all rows, and may refuse it.
        covariance, progress: as `run` takes them.
    """
    by = by_pass = plan.by
    space: Space | None = None
    if plan.where != "streamed":
        space = source.load()
        by = by if isinstance(by, Labels) else slices_of(source, by or ())
        # sorted for the passes alone, so that a block has few slices: some metrics depend on the rows' order
        order = by.codes.argsort(stable=True)
        source, by_pass = space.take(order), Labels(by.codes[order], by.names)
    about = {"covariance": covariance, "seed": plan.seed, "progress": None}
    work = Work(
        source,
        plan.needs & streamed(),
        by=by_pass,
        scale=plan.scale if plan.in_parts else None,
        seed=plan.seed,
        progress=progress,
    )
    with work:
        found = work.first()
        _check_memory(len(found), plan)
        found |= _merged_groups(found)
        everything = Statistics(space, **about)
        vars(everything).update(found[ALL])
        check(everything)
        sound = {group: of for group, of in found.items() if _why_not(of) is None}
        second = work.second(sound)
        everything.notes += work.notes()
    for group in sound:
        found[group] = {**found[group], **second.get(group, {})}
    vars(everything).update(found[ALL])
    readings = []
    for name in sorted({name for kind, name in found if kind == "slice"}):
        inside, outside = ("slice", name), ("rest", name)
        n, why_not = int(found[inside]["moments"].count), _why_not(found[inside])
        named = {"slice": name}
        if why_not is not None:
            readings += [
                SliceReading(one.name, None, meaning=why_not, group=named, n=n) for one in plan.metrics
            ]
            continue
        shelves = {
            key: _shelf(found[key], partial(_rows, space, by, key), space is not None, about)
            for key in (inside, outside)
            if key in sound
        }
        for metric in plan.metrics:
            own = read(metric, shelves[inside])
            rest = None
            if outside in shelves and (plan.rests or not metric.needs & whole()):
                rest = read(metric, shelves[outside])
            n_rest = int(found[outside]["moments"].count) if rest else 0
            readings.append(_compared(own, rest, named, n, n_rest, tests=not metric.biased_by_rows))
    return everything, _ordered(_adjusted(readings), plan.metrics)


def _shelf(found: Mapping[str, Any], rows: Callable[[], Space], held: bool, about: Any) -> Statistics:
    shelf = Statistics(rows if held else None, **about)
    vars(shelf).update(found)
    return shelf


def _rows(space: Space | None, by: Any, group: Group) -> Space:
    """The rows of a group, with the names that occur among them."""
    assert space is not None
    kind, name = group
    inside = by.codes == by.names.index(name)
    chosen = space.take((inside if kind == "slice" else ~inside).nonzero().flatten())
    seen = {key: one.seen() if isinstance(one, Labels) else one for key, one in vars(chosen).items()}
    return unchecked(seen)


def _merged_groups(slices: Mapping[Group, dict[str, Any]]) -> dict[Group, dict[str, Any]]:
    """All rows, and those outside each slice, from the statistics of the slices: 3 merges a slice."""
    groups = sorted(slices)
    before: list[dict[str, Any] | None] = [None]
    for group in groups:
        before.append(_both(before[-1], slices[group]))
    found: dict[Group, dict[str, Any]] = {ALL: before[-1] or {}}
    after: dict[str, Any] | None = None
    for place in reversed(range(len(groups))):
        rest = _both(before[place], after)
        if rest is not None:
            found["rest", groups[place][1]] = rest
        after = _both(slices[groups[place]], after)
    return found


def _both(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    return merged(first, second) if first and second else first or second


def _why_not(found: Mapping[str, Any]) -> str | None:
    """Why nothing can be measured of some rows; None where it can."""
    moments = found["moments"]
    if moments.count < 2:
        return "1 vector; at least 2 are needed"
    return None if moments.trace > 0 else "all its vectors are equal"


def _check_memory(n_slices: int, plan: Plan) -> None:
    """Refuse more slices than there is memory for their statistics."""
    each = sum(declared()[name].bytes_held(0, plan.n_dims, 1) for name in plan.statistics["first pass"])
    most = int(_SHARE_OF_MEMORY * physical_bytes() / (3 * each))
    if n_slices > most:
        raise InputError(
            f"has {n_slices:,} values, and there is memory for the statistics of {most:,} slices",
            argument="by",
            hint="join values into fewer, or measure what takes less: metrics='mean_cosine'",
        )


def _compared(
    own: Reading, rest: Reading | None, group: Mapping[str, Any], n: int, n_rest: int, *, tests: bool
) -> SliceReading:
    """The reading of a slice with its difference from the rows outside it, and an unadjusted p-value.

    A metric that is biased by the number of rows would find differences where there are none: no test.
    """
    known = {field.name: getattr(own, field.name) for field in fields(Reading)}
    made = SliceReading(**{**known, "group": group}, n=n)
    if rest is None or rest.value is None or own.value is None:
        return made
    difference = own.value - rest.value
    if own.standard_error is None or rest.standard_error is None:
        return replace(made, difference=difference)
    error = math.hypot(own.standard_error, rest.standard_error)
    if not tests or min(n, n_rest) < TESTED_ROWS or not error > 0:
        return replace(made, difference=difference, difference_error=error)
    p_value = _p_value(difference, (own.standard_error, n), (rest.standard_error, n_rest))
    return replace(made, difference=difference, difference_error=error, p_value=p_value)


def _p_value(difference: float, *samples: tuple[float, int]) -> float:
    """Welch's test: Student's t, its degrees of freedom by Satterthwaite from the two standard errors."""
    from scipy.special import stdtr

    variances = [error**2 for error, _ in samples]
    freedom = sum(variances) ** 2 / sum(v**2 / (n - 1) for v, (_, n) in zip(variances, samples, strict=True))
    return float(2 * stdtr(freedom, -abs(difference) / math.sqrt(sum(variances))))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted so that, over all of them, the chance of one false alarm stays at the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _adjusted(readings: list[SliceReading]) -> list[SliceReading]:
    tested = [place for place, reading in enumerate(readings) if reading.p_value is not None]
    for place, p_value in zip(
        tested, holm([readings[place].p_value or 0.0 for place in tested]), strict=True
    ):
        readings[place] = replace(readings[place], p_value=p_value)
    return readings


def _ordered(readings: list[SliceReading], metrics: Sequence[Metric]) -> list[SliceReading]:
    """Metric by metric, the worst slice first, those without a value last."""
    place = {metric.name: number for number, metric in enumerate(metrics)}
    better = {metric.name: metric.better for metric in metrics}

    def key(reading: SliceReading) -> tuple[Any, ...]:
        if reading.value is None:
            return place[reading.metric], 1, 0.0
        sign = {"high": 1, "low": -1}.get(better[reading.metric] or "")
        worst = -abs(reading.difference or 0.0) if sign is None else sign * reading.value
        return place[reading.metric], 0, worst

    return sorted(readings, key=key)
