"""`plan`: decide what is exact or estimated, streamed or loaded, before any row is read."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from isoscope._version import __version__
from isoscope.arguments import parse_memory
from isoscope.engine.costs import Cost
from isoscope.engine.costs import price as cost_of
from isoscope.engine.dask_arrays import DaskVectors
from isoscope.engine.inputs import slices_by
from isoscope.engine.options import Scale, resident_bytes
from isoscope.engine.passes import LEFT_OUT_ROWS, sample_precision
from isoscope.engine.slice_names import By
from isoscope.engine.source import Source
from isoscope.errors import InputError, Setting, ShapeError
from isoscope.io.raw_rows import physical_bytes
from isoscope.labels import Labels
from isoscope.metrics.registry import KNOWN, Metric, choose, named
from isoscope.results import Result
from isoscope.space import Space
from isoscope.statistics.declared import declared, streamed, weighted, with_prerequisites
from isoscope.tables import Grid

_FIRST_ROWS = 64  # read before the rest, to know what there is
# a space is loaded if _COPIES times its size (vectors, sorted copy, statistics) fits in this share of memory
_SHARE_OF_MEMORY = 0.5
_COPIES = 4
_OUTSIDE_TIMES = 10  # times EXACT_PAIRS that comparing each slice with all other rows may cost
EXACT_PAIRS = 20_000**2  # most pairs computed exactly for a page: one or two seconds on two cores
TOLERANCE = 5e-4  # half the 95 % interval of an estimated mean silhouette
LABEL_TOLERANCE = 5e-3  # the same for a label's mean, which has fewer rows


@dataclass(frozen=True)
class SilhouettePolicy:
    """Whether a silhouette is computed over all pairs of rows or estimated, and how accurately.

    Attributes:
        exact: whether every pair of rows is computed.
        limit: the largest number of rows for which it is exact.
        tolerance: half the width of the 95 % interval of an estimate.
    """

    exact: bool
    limit: int
    tolerance: float

    def __str__(self) -> str:
        if self.exact:
            return f"exact over all pairs (up to {self.limit:,} vectors)"
        return f"estimated to ± {self.tolerance:g} (95 %), exact up to {self.limit:,} vectors"


def silhouette_policy(n_rows: int, *, times: int = 1, by_label: bool = False) -> SilhouettePolicy:
    """Decide between the exact silhouette of n_rows vectors and its estimate, for pages and figures.

    `measure` is always exact. A page must appear quickly, so it estimates large silhouettes. The total work
    is bounded: for several silhouettes the limit is lower, and the tolerance grows with √times, because an
    estimate costs 1 / tolerance².

    Args:
        n_rows: how many vectors are compared.
        times: how many silhouettes of that many vectors are computed.
        by_label: whether the mean of each label is needed, not that of all rows.

    >>> silhouette_policy(10_000).exact, silhouette_policy(10_000, times=7).exact
    (True, False)
    >>> print(silhouette_policy(1_000_000))
    estimated to ± 0.0005 (95 %), exact up to 20,000 vectors
    """
    limit = math.isqrt(EXACT_PAIRS // times)
    tolerance = (LABEL_TOLERANCE if by_label else TOLERANCE) * math.sqrt(times)
    return SilhouettePolicy(n_rows <= limit, limit, tolerance)


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """What will be measured, and how.

    Attributes:
        metrics: the metrics that are measured, in the order of the table.
        statistics: the names of the statistics, keyed by when they are computed: "first pass", "second pass",
            "strips" (every pair of rows, strip by strip) and "whole" (all vectors at once).
        where: "memory" (already there), "loaded" (into memory) or "streamed" (read in blocks).
        in_parts: whether the source is read in parts and never held in memory as a whole.
        estimated: what is not exact, by name, with its limit and tolerance in words.
        left_out: what is not measured, and why.
        by: the slice of each row, or the columns that define the slices; None if rows are not sliced.
        columns_by: the names of those columns, if they have names.
        also_outside: whether metrics that need all vectors also cover the rows outside each slice.
        errors: whether standard errors are computed.
        first: the first rows; they show which columns (labels, texts, …) exist.
        n_rows, n_dims: the size of the source; n_rows is None if it is known only after reading everything.
        scale: the options for large sources: memory, scheduler, checkpoint and skip_bad.
        seed: the seed of everything that is sampled.
    """

    metrics: tuple[Metric, ...]
    statistics: Mapping[str, tuple[str, ...]]
    where: str
    in_parts: bool
    estimated: Mapping[str, str]
    left_out: tuple[str, ...]
    by: By | None
    columns_by: tuple[str, ...]
    also_outside: bool
    errors: bool
    first: Space
    n_rows: int | None
    n_dims: int
    scale: Scale
    seed: int

    @property
    def needs(self) -> frozenset[str]:
        """Every statistic that is computed."""
        return frozenset().union(*self.statistics.values())

    @cached_property
    def cost(self) -> Cost | None:
        """Passes, bytes and operations; None where the number of rows is unknown."""
        if self.n_rows is None:
            return None
        n_labels = 1 if self.first.labels is None else self.first.labels.n_labels
        in_memory = self.where != "streamed"
        cost = cost_of(self.needs, n=self.n_rows, d=self.n_dims, n_labels=n_labels, in_memory=in_memory)
        if self.by is None:
            return cost
        n_slices = self.by.n_labels if isinstance(self.by, Labels) else 1
        # each slice, the rows outside it, and all rows
        return replace(cost, bytes_held=(2 * n_slices + 1) * cost.bytes_held)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-ready values."""
        return {
            "isoscope": __version__,
            "name": self.first.name,
            "n": self.n_rows,
            "d": self.n_dims,
            "device": str(self.first.device),
            "where": self.where,
            "metrics": [metric.name for metric in self.metrics],
            "statistics": {when: list(names) for when, names in self.statistics.items()},
            "errors": self.errors,
            "estimated": dict(self.estimated),
            "by": None if self.by is None else list(self.columns_by),
            "memory": self.scale.memory,
            "scheduler": self.scale.scheduler,
            "checkpoint": None if self.scale.checkpoint is None else str(self.scale.checkpoint),
            "cost": None if self.cost is None else asdict(self.cost),
            "left_out": list(self.left_out),
        }

    def _columns(self) -> dict[str, list[str]]:
        what, how = zip(*self._rows(), strict=True)
        return {"what": list(what), "how": list(how)}

    @property
    def title(self) -> str:
        """What is to be measured, in one line."""
        n = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        return f"{self.first.name or 'space'}: {n} vectors × {self.n_dims:,} dimensions"

    def grids(self) -> list[Grid]:
        """Return one table, a row a decision."""
        return [Grid("", ("plan", ""), self._rows())]

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("metrics", ", ".join(metric.name for metric in self.metrics)),
            ("vectors", _WHERE[self.where]),
        ]
        rows += [(when, ", ".join(names)) for when, names in self.statistics.items() if names]
        if self.by is not None:
            named = ", ".join(self.columns_by) or "the values given"
            rows.append(("slices", f"by {named}, each beside the rows outside it"))
        rows.append(("standard errors", "where a formula is known" if self.errors else "none"))
        pairs = any(declared()[name].of_pairs for name in self.needs)
        rows.append(("exact", "every value" + (", silhouettes over all pairs of rows" if pairs else "")))
        rows += [("estimated", f"{what}: {how}") for what, how in self.estimated.items()]
        if self.cost is not None:
            if self.where != "memory":
                rows.append(("reads", f"{_times(self.cost.passes)}, {_size(self.cost.bytes_read)} in all"))
            rows.append(("operations", f"about {self.cost.operations:.1e}"))
            rows.append(("memory", f"about {_size(self.cost.bytes_held)} beside the blocks"))
        for what, value in (("memory limit", self.scale.memory), ("scheduler", self.scale.scheduler)):
            rows += [] if value is None else [(what, _size(value) if isinstance(value, int) else value)]
        return rows + [("left out", note) for note in self.left_out]


_WHERE = {
    "memory": "in memory",
    "loaded": "loaded, or mapped into memory where the format allows",
    "streamed": "read in blocks, never held at once",
}


def plan(
    metrics: Any,
    source: Source,
    *,
    by: Any = None,
    budget: str | float | None = None,
    errors: bool = True,
    covariance: Any = None,
    scheduler: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    seed: int = 0,
) -> Plan:
    """Decide what is measured of a source and how; the arguments are those of `measure`.

    budget: the most memory to take, `memory` of `measure`.

    Raises:
        InputError: a metric requested by name cannot be measured this way, or no metric is left.

    >>> found = plan("isoscore", Space([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> found.where, found.statistics["first pass"]
    ('memory', ('directions', 'moments'))
    """
    scale = Scale(parse_memory(budget), scheduler, None if checkpoint is None else Path(checkpoint), skip_bad)
    in_parts = _is_in_parts(source, scale)
    first = _first_block(source, in_parts=in_parts, skip_bad=skip_bad)
    if first.n_dims < 2:
        raise ShapeError(
            "has vectors of 1 dimension; a space needs at least 2",
            argument="X",
            hint="is the array transposed?",
        )
    columns = {name for name in KNOWN if name != "covariance" and vars(first)[name] is not None}
    columns |= set() if covariance is None else {"covariance"}
    chosen, left_out = _applicable(metrics, columns)
    if first.weights is not None:
        errors = False
        chosen, left_out = _without(chosen, left_out, metrics, weighted(), "has no weighted form")
        left_out.append("rows count as often as their weights say; standard errors are not known")
    slices, columns_by = (None, ()) if by is None else slices_by(by, source, skip_bad=skip_bad)
    by_strips = (
        frozenset()
        if slices is not None
        else {name for name, statistic in declared().items() if statistic.of_pairs}
    )
    if in_parts:
        why = "needs all vectors in memory at once"
        chosen, left_out = _without(chosen, left_out, metrics, streamed() | by_strips, why)
    needs = _needs(chosen, columns, errors=errors)
    if in_parts:  # an error that looks at the vectors again reads them again
        needs &= streamed() | by_strips
    wanted = with_prerequisites(needs)
    at_once = sorted(wanted - streamed())
    where = "memory" if isinstance(source, Space) else "streamed" if in_parts or not at_once else "loaded"
    statistics = {
        "first pass": tuple(sorted(n for n in wanted & streamed() if not declared()[n].builds_on)),
        "second pass": tuple(sorted(n for n in wanted & streamed() if declared()[n].builds_on)),
        "strips": tuple(at_once) if in_parts else (),
        "whole": () if in_parts else tuple(at_once),
    }
    n = source.n_rows
    n_slices = slices.n_labels if isinstance(slices, Labels) else 1
    return Plan(
        metrics=tuple(chosen),
        statistics=statistics,
        where=where,
        in_parts=in_parts,
        estimated=_estimated(wanted, n, where, scale),
        left_out=tuple(left_out),
        by=slices,
        columns_by=columns_by,
        also_outside=n is not None and n_slices * n * n <= _OUTSIDE_TIMES * EXACT_PAIRS,
        errors=errors,
        first=first,
        n_rows=n,
        n_dims=first.n_dims,
        scale=scale if in_parts else Scale(),
        seed=seed,
    )


def _is_in_parts(source: Source, scale: Scale) -> bool:
    """Return whether a source is read in parts: the caller asked for it, or it does not fit in memory."""
    if isinstance(source, Space):
        if scale.asked:
            raise InputError(
                "memory, scheduler, checkpoint and skip_bad work only with files and dask arrays",
                hint="save X, an array in memory, to a file and pass open_vectors(FILE)",
            )
        return False
    if isinstance(source, DaskVectors) or scale != Scale(memory=scale.memory):
        return True
    # at most `memory` was given: read in parts only if the vectors do not fit
    limit = int(_SHARE_OF_MEMORY * physical_bytes())
    if scale.memory is not None:
        limit = scale.memory - resident_bytes()
    if source.n_bytes is None:
        return scale.memory is not None
    return _COPIES * source.n_bytes > limit


def _first_block(source: Source, *, in_parts: bool, skip_bad: bool) -> Space:
    """Return the first readable rows. Of many files only one is opened, so that not all labels are read."""
    if isinstance(source, Space):
        return source
    parts = source.parts(sys.maxsize) if in_parts else [source]
    for part in parts[:-1] if skip_bad else ():
        with suppress(InputError):
            return next(part.blocks(_FIRST_ROWS))
    return next(parts[-1 if skip_bad else 0].blocks(_FIRST_ROWS))


def _without(
    chosen: list[Metric], left_out: list[str], metrics: Any, available: Collection[str], why: str
) -> tuple[list[Metric], list[str]]:
    """Return the metrics that need only available statistics; raise if one requested by name is dropped."""
    names = [] if metrics is None else named(metrics)
    gone = [metric for metric in chosen if not metric.needs - set(KNOWN) <= set(available)]
    for metric in gone:
        if metric.name in names:
            raise InputError(f"metrics: {metric.name} {why}")
    computable = [metric for metric in chosen if metric not in gone]
    if not computable:
        raise InputError(f"metrics: nothing to measure: {gone[0].name} {why}")
    notes = [f"left out, {why}: {', '.join(metric.name for metric in gone)}"] if gone else []
    return computable, [*left_out, *notes]


def _applicable(metrics: Any, columns: set[str]) -> tuple[list[Metric], list[str]]:
    """Return the metrics whose columns are given, and a note on those left out."""
    names = None if metrics is None else named(metrics)
    chosen: list[Metric] = []
    left_out: dict[str, list[str]] = {}
    absent = set(KNOWN) - columns
    for metric in choose(names):
        if absent.isdisjoint(metric.needs):
            chosen.append(metric)
            continue
        missing = next(name for name in KNOWN if name in metric.needs and name in absent)
        if names and metric.name in names:
            two = ["compare two files by `isoscope compare A B`"] if missing == "partners" else []
            raise InputError(f"{metric.name} needs {missing}", hint=[*two, Setting(missing)])
        if names and not (metric.default and "default" in names):
            left_out.setdefault(missing, []).append(metric.name)
    notes = [f"not computed without {name}: {', '.join(which)}" for name, which in left_out.items()]
    if not chosen:
        raise InputError(f"metrics: nothing to measure: {'; '.join(notes)}")
    return chosen, notes


def _needs(chosen: list[Metric], columns: set[str], *, errors: bool) -> set[str]:
    """Return the statistics to compute: those of the metrics, and those that every measurement reports."""
    needs = {"moments", "directions"}.union(*(metric.needs for metric in chosen))
    if "labels" in columns:
        needs.add("label_moments")
    if errors:
        needs = needs.union(*(metric.error_needs for metric in chosen))
    return needs - set(KNOWN)


def _estimated(wanted: set[str], n: int | None, where: str, scale: Scale) -> dict[str, str]:
    """Return what is estimated: the standard errors, with more rows than are left out one at a time."""
    most = scale.rows_left_out() or LEFT_OUT_ROWS
    if (
        where != "streamed"
        or n is None
        or n <= most
        or not any(declared()[statistic].by_row for statistic in wanted)
    ):
        return {}
    return {
        "standard errors": f"those of isotropy and cosines, from a sample of about {most:,} of {n:,} "
        f"vectors, accurate to ± {sample_precision(most):.2g} % (exact up to {most:,} vectors)"
    }


def _times(passes: int) -> str:
    return "once" if passes == 1 else "twice" if passes == 2 else f"{passes:,} times"


def _size(n_bytes: float) -> str:
    """Return a number of bytes as text.

    >>> _size(1_500), _size(2_340_000_000)
    ('1.5 kB', '2.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n_bytes < 1000 or unit == "TB":
            break
        n_bytes /= 1000
    return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:,.1f} {unit}"
