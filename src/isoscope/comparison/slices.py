"""`by=`: the changes of each slice of the rows, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isoscope.comparison.changes import SliceChange
from isoscope.comparison.resampling import MAX_ROWS, MIN_ROWS, Groups, difference_errors
from isoscope.engine.measure import read
from isoscope.engine.slices import adjusted, read_rows, rows_of_slice, worst_first
from isoscope.kernels.tiles import Progress
from isoscope.labels import Labels
from isoscope.metrics.registry import registered
from isoscope.space import Space

_ROWS_A_SLICE = 500  # of the jackknife, however many slices there are


def slice_changes(
    first: Space,
    second: Space,
    slices: Labels,
    names: Sequence[str],
    *,
    errors: bool,
    seed: int,
    progress: Progress | None = None,
) -> list[SliceChange]:
    """Return the change of every metric on every slice, metric by metric, the worst slice of each first.

    Args:
        first, second: both spaces, with the same rows.
        slices: the slice of every row.
        names: the metrics.
        errors: also compute intervals and p-values, where a slice has rows enough.
        seed: the seed of everything that is sampled.
        progress: is called with the share of the work that is done.
    """
    metrics = [registered()[name] for name in names]
    codes = slices.codes.cpu()
    changes: list[SliceChange] = []
    for code, name in enumerate(slices.names):
        a, b = (rows_of_slice(space, codes == code) for space in (first, second))
        before, after = (read_rows(space, metrics, read=read, seed=seed) for space in (a, b))
        made = [
            SliceChange(
                old.name, old.value, new.value, None, (old if old.value is None else new).meaning,
                slice=str(name), n=len(a),
            )
            for old, new in zip(before, after, strict=True)
        ]  # fmt: skip
        if errors and len(a) >= MIN_ROWS:
            made = _with_errors(made, a, b, names, max(_ROWS_A_SLICE, MAX_ROWS // slices.n_labels), seed)
        changes += made
        if progress:
            progress((code + 1) / slices.n_labels)
    changes = adjusted(changes, [(change.name, change.slice) for change in changes])
    places = {metric.name: (number, metric) for number, metric in enumerate(metrics)}

    def key(change: SliceChange) -> tuple[float, ...]:
        place, metric = places[change.name]
        return place, *worst_first(metric, change.difference, change.difference)

    return sorted(changes, key=key)


def _with_errors(
    changes: list[SliceChange], a: Space, b: Space, names: Sequence[str], max_rows: int, seed: int
) -> list[SliceChange]:
    """Return the changes of one slice with intervals and p-values that are not adjusted yet."""
    strata = None if a.labels is None else a.labels.codes
    groups = Groups.dealt(len(a), strata, max_rows=max_rows, seed=seed)
    standard_errors = difference_errors(a, b, groups, names, seed=seed)
    made = []
    for change in changes:
        error, difference = standard_errors.get(change.name), change.difference
        if error is not None and difference is not None:
            half = groups.half_width(error)
            interval = difference - half, difference + half
            change = replace(change, interval=interval, p_value=groups.p_value(difference, error))
        made.append(change)
    return made
