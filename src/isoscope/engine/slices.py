"""`by=`: a measurement cut by the values of a column, each slice beside the rows outside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from torch import Tensor

from isoscope.engine.on_device import devices_of
from isoscope.engine.passes import ALL, Group
from isoscope.engine.plan import Plan
from isoscope.engine.readings import Reading
from isoscope.engine.run import Work
from isoscope.engine.slice_names import slices_of
from isoscope.engine.sliced_measurement import SliceReading, tests_of
from isoscope.engine.source import Source
from isoscope.errors import InputError
from isoscope.io.raw_rows import physical_bytes
from isoscope.labels import Labels
from isoscope.metrics.registry import KNOWN, Metric
from isoscope.space import Space, unchecked
from isoscope.statistics.declared import declared, streamed, whole
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.tree import merged

TESTED_ROWS = 20  # a standard error of fewer rows is too rough to test a difference by
_ROWS_A_SLICE = 10  # with fewer on average, `by` may hold measured values
_FEW_SLICES = 20  # whatever the number of rows
_SHARE_OF_MEMORY = 0.25  # for the statistics of all slices, and of the rows outside each
Read = Callable[..., Reading]  # a metric's reading on a shelf of statistics
Tested = TypeVar("Tested", bound=Any)  # a dataclass with a p-value


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
    devices = devices_of(source)
    if plan.where != "streamed":
        space = source.load()
        by = by if isinstance(by, Labels) else slices_of(source, by or ())
        # sorted for the passes alone, so that a block has few slices: some metrics depend on the rows' order
        order = by.codes.argsort(stable=True)
        source, by_pass = space.take(order), Labels(by.codes[order], by.names)
    about = {"covariance": covariance, "seed": plan.seed, "progress": None, "devices": devices}
    work = Work(
        source,
        plan.needs & streamed(),
        by=by_pass,
        scale=plan.scale if plan.in_parts else None,
        seed=plan.seed,
        progress=progress,
    )
    with work:
        statistics = work.first()
        _check_memory(len(statistics), plan)
        statistics |= _merged_groups(statistics)
        everything = Statistics(space, **about)
        vars(everything).update(statistics[ALL])
        check(everything)
        sound = {group: of for group, of in statistics.items() if _why_not(of) is None}
        second = work.second(sound)
        everything.notes += work.notes()
    for group in sound:
        statistics[group] = {**statistics[group], **second.get(group, {})}
    vars(everything).update(statistics[ALL])
    readings: list[SliceReading] = []
    n_slices, n_rows = sum(kind == "slice" for kind, _ in statistics), int(statistics[ALL]["moments"].count)
    if n_slices > _FEW_SLICES and n_slices * _ROWS_A_SLICE > n_rows:
        everything.notes.append(
            f"`by` makes {n_slices:,} slices of {n_rows:,} vectors: if they are measured values or times, "
            "join them into ranges first, with pandas.cut"
        )
    for name in sorted({name for kind, name in statistics if kind == "slice"}):
        inside, outside = ("slice", name), ("rest", name)
        n, why_not = int(statistics[inside]["moments"].count), _why_not(statistics[inside])
        named = {"slice": name}
        if why_not is not None:
            shelf = _shelf(statistics[inside], partial(_rows, space, by, inside), False, about)
            readings += [_sliced(_of_few(one, shelf, read, why_not), named, n) for one in plan.metrics]
            continue
        shelves = {
            key: _shelf(statistics[key], partial(_rows, space, by, key), space is not None, about)
            for key in (inside, outside)
            if key in sound
        }
        for metric in plan.metrics:
            reading = read(metric, shelves[inside])
            rest = None
            if outside in shelves and (plan.also_outside or not metric.needs & whole()):
                rest = read(metric, shelves[outside])
            n_rest = int(statistics[outside]["moments"].count) if rest else 0
            readings.append(_compared(reading, rest, named, n, n_rest, tests=not metric.biased_by_rows))
    return everything, _ordered(adjusted(readings, tests_of(readings)), plan.metrics)


def read_rows(space: Space, metrics: Sequence[Metric], *, read: Read, seed: int) -> list[Reading]:
    """Return the readings of a slice that is in memory, without standard errors."""
    shelf = Statistics(space, seed=seed)
    why_not = _why_not({"moments": shelf.moments})
    if why_not is None:
        return [read(metric, shelf, errors=False) for metric in metrics]
    return [_of_few(metric, shelf, read, why_not) for metric in metrics]


def _of_few(metric: Metric, shelf: Statistics, read: Read, why_not: str) -> Reading:
    """Return the reading of a slice of one vector or of equal ones, where the metric is defined on it."""
    first_pass = {name for name, one in declared().items() if one.merges and not one.builds_on}
    if metric.needs <= first_pass | set(KNOWN):
        reading = read(metric, shelf, errors=False)
        if reading.value is not None:
            return reading
    return Reading(metric.name, None, meaning=why_not)


def _sliced(reading: Reading, group: Mapping[str, Any], n: int) -> SliceReading:
    common = {field.name: getattr(reading, field.name) for field in fields(Reading)}
    return SliceReading(**{**common, "group": group}, n=n)


def _shelf(
    statistics: Mapping[str, Any], rows: Callable[[], Space], in_memory: bool, about: Any
) -> Statistics:
    shelf = Statistics(rows if in_memory else None, **about)
    vars(shelf).update(statistics)
    return shelf


def _rows(space: Space | None, by: Any, group: Group) -> Space:
    assert space is not None
    kind, name = group
    inside = by.codes == by.names.index(name)
    return rows_of_slice(space, inside if kind == "slice" else ~inside)


def rows_of_slice(space: Space, inside: Tensor) -> Space:
    """Return the rows of a mask, with the names of labels that occur."""
    chosen = space.take(inside.nonzero().flatten())
    present = {
        key: value.seen() if isinstance(value, Labels) else value for key, value in vars(chosen).items()
    }
    return unchecked(present)


def _merged_groups(slices: Mapping[Group, dict[str, Any]]) -> dict[Group, dict[str, Any]]:
    """Return the statistics of all rows and of the rows outside each slice, by 3 merges a slice."""
    groups = sorted(slices)
    before: list[dict[str, Any] | None] = [None]
    for group in groups:
        before.append(_both(before[-1], slices[group]))
    statistics: dict[Group, dict[str, Any]] = {ALL: before[-1] or {}}
    after: dict[str, Any] | None = None
    for place in reversed(range(len(groups))):
        rest = _both(before[place], after)
        if rest is not None:
            statistics["rest", groups[place][1]] = rest
        after = _both(slices[groups[place]], after)
    return statistics


def _both(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    return merged(first, second) if first and second else first or second


def _why_not(statistics: Mapping[str, Any]) -> str | None:
    """Return why little can be measured of some rows; None where nothing is amiss."""
    moments = statistics["moments"]
    if moments.count < 2:
        return "1 vector; at least 2 are needed"
    return None if moments.trace > 0 else "all its vectors are equal"


def _check_memory(n_slices: int, plan: Plan) -> None:
    """Refuse more slices than there is memory for their statistics."""
    each = sum(declared()[name].bytes_held(0, plan.n_dims, 1) for name in plan.statistics["first pass"])
    most = int(_SHARE_OF_MEMORY * physical_bytes() / (3 * each))
    if n_slices > most:
        is_unique = n_slices == plan.n_rows
        values = f"another value in every row, {n_slices:,} in all" if is_unique else f"{n_slices:,} values"
        raise InputError(
            f"has {values}, and there is memory for the statistics of {most:,} slices",
            argument="by",
            hint="choose a column whose values repeat" if is_unique else "join values into fewer",
        )


def _compared(
    inside: Reading, rest: Reading | None, group: Mapping[str, Any], n: int, n_rest: int, *, tests: bool
) -> SliceReading:
    """Return the reading of a slice, its difference from the rows outside it, and an unadjusted p-value.

    A metric that is biased by the number of rows would find differences where there are none: no test.
    """
    made = _sliced(inside, group, n)
    if rest is None or rest.value is None or inside.value is None:
        return made
    difference = inside.value - rest.value
    if inside.standard_error is None or rest.standard_error is None:
        return replace(made, difference=difference)
    error = math.hypot(inside.standard_error, rest.standard_error)
    made = replace(made, difference=difference, difference_error=error)
    if not error > 0:
        return made
    half, p_value = _welch(difference, (inside.standard_error, n), (rest.standard_error, n_rest))
    tested = tests and min(n, n_rest) >= TESTED_ROWS
    return replace(made, difference_half_width=half, p_value=p_value if tested else None)


def _welch(difference: float, *samples: tuple[float, int]) -> tuple[float, float]:
    """Return half the width of the 95 % interval and the p-value of a difference by Welch's test.

    Student's t has degrees of freedom by Satterthwaite, from both standard errors and numbers of rows.
    """
    from scipy.special import stdtr, stdtrit

    variances = [error**2 for error, _ in samples]
    freedom = sum(variances) ** 2 / sum(v**2 / (n - 1) for v, (_, n) in zip(variances, samples, strict=True))
    error = math.sqrt(sum(variances))
    return float(stdtrit(freedom, 0.975)) * error, float(2 * stdtr(freedom, -abs(difference) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that the chance of one false alarm over all of them stays at the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def adjusted(readings: Sequence[Tested], tests: Sequence[Hashable]) -> list[Tested]:
    """Return readings with p-values adjusted by Holm; those of one test count once, with the largest of them.

    Args:
        readings: dataclasses with a `p_value`, which may be None.
        tests: the test of each reading.
    """
    p_values: dict[Hashable, float] = {}
    for reading, test in zip(readings, tests, strict=True):
        if reading.p_value is not None:
            p_values[test] = max(reading.p_value, p_values.get(test, 0.0))
    by_test = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return [
        reading if reading.p_value is None else replace(reading, p_value=by_test[test])
        for reading, test in zip(readings, tests, strict=True)
    ]


def _ordered(readings: list[SliceReading], metrics: Sequence[Metric]) -> list[SliceReading]:
    """Return the readings metric by metric, the worst slice first, those without a value last."""
    places = {metric.name: (number, metric) for number, metric in enumerate(metrics)}

    def key(reading: SliceReading) -> tuple[Any, ...]:
        place, metric = places[reading.metric]
        return place, *worst_first(metric, reading.value, reading.difference)

    return sorted(readings, key=key)


def worst_first(metric: Metric, value: float | None, difference: float | None) -> tuple[int, float]:
    """Return a key that sorts slices: the worst value first, or the largest difference; no value is last."""
    if value is None:
        return 1, 0.0
    sign = {"high": 1, "low": -1}.get(metric.better or "")
    return 0, -abs(difference or 0.0) if sign is None else sign * value
