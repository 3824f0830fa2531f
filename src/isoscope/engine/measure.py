"""`measure`: which statistics a set of metrics needs, each pass run once, and the readings."""

from __future__ import annotations

import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoscope.engine.dask_arrays import DaskVectors, is_dask_array
from isoscope.engine.kept import Kept, shelf_of
from isoscope.engine.options import Scale, parse_memory, resident_bytes
from isoscope.engine.readings import Reading, Readings
from isoscope.engine.run import gather
from isoscope.engine.source import Source, is_source
from isoscope.engine.stream import stream
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed
from isoscope.io.uncached import physical_bytes
from isoscope.labels import Labels, label_notes
from isoscope.measurement import Measurement
from isoscope.metrics.frontier import between_share, isotropy_ceiling
from isoscope.metrics.isotropy import is_few
from isoscope.metrics.registry import KNOWN, Metric, choose, named
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.space import Space
from isoscope.statistics.declared import streamed, weighted, whole
from isoscope.statistics.gathered import Statistics

# what a space in memory takes at most, of what is at hand: vectors, a sorted copy, statistics
_FIRST_ROWS = 64  # read before the rest, to know what there is
_SHARE_OF_MEMORY = 0.5
_COPIES = 4


def measure(
    X: Any,
    *,
    labels: Any = None,
    token_types: Any = None,
    sentences: Any = None,
    partners: Any = None,
    weights: Any = None,
    covariance: Any = None,
    metrics: Any = None,
    errors: bool = True,
    seed: int = 0,
    progress: bool | None = None,
    memory: str | float | None = None,
    scheduler: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
) -> Measurement:
    """Measure a space: every metric asked for, each pass over the data run once.

    Args:
        X: (n, d) vectors in any array, a Space, a Measurement (whose statistics are used again, while you
            hold its vectors), or an opened file: of vectors (`isoscope.open_vectors`),
            which is read in blocks when every metric asked for can stream, or of texts
            (`isoscope.open_texts`), which are encoded. A dask array is measured chunk by chunk.
        labels: one label a row; adds the cluster metrics and IsoScore's ceiling.
        token_types: what each row is an occurrence of; adds contextual metrics.
        sentences: where each row occurs; adds contextual metrics.
        partners: (n, d) the vector each row is matched with; adds alignment.
        weights: how often each row counts. What has no weighted form is left out, standard errors too.
        covariance: (d, d) of a larger sample; adds IsoScore*.
        metrics: names or families ("isotropy", "clusters", …), "all", functions that `isoscope.metric` has
            registered, or None for the default set.
        errors: also compute standard errors where they are known (a second pass).
        seed: of everything sampled.
        progress: show a progress bar; None shows it on a terminal when work takes over a second.
        memory: the most memory to take, such as "2GB", for an opened file: what needs all vectors at once
            is then left out, and the exact silhouette is computed strip by strip.
        scheduler: the address of a Dask scheduler whose workers read the files, or "local" to start one.
        checkpoint: a folder for what is finished: a run that was killed goes on from there.
        skip_bad: leave out files of many that cannot be read, with a note.

    Returns:
        A Measurement: print it, index it by name, or `to_dict()`, `to_json()`.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 8))
    >>> m = measure(X, labels=X[:, 0] > 0, metrics=["isoscore", "silhouette"])
    >>> round(m["isoscore"], 2), round(m["silhouette"], 2)
    (0.98, 0.07)
    """
    began = time.perf_counter()
    check_seed(seed)
    told = {
        "labels": labels,
        "token_types": token_types,
        "sentences": sentences,
        "partners": partners,
        "weights": weights,
    }
    given = {name: value for name, value in told.items() if value is not None}
    held = X if isinstance(X, Statistics) else None
    if isinstance(X, Measurement):
        held = shelf_of(X, seed=seed, **given)
    source = _source(X, given) if held is None else held.space
    scale = _scale(source, memory, scheduler, checkpoint, skip_bad)
    first = _first_block(source, scale)
    if first.n_dims < 2:
        raise ShapeError("X has vectors of 1 dimension; a space needs at least 2: is the array transposed?")
    known = {name for name in KNOWN if getattr(first, name, None) is not None}
    if covariance is not None:
        known.add("covariance")
    chosen, left_out = _applicable(metrics, known)
    if first.weights is not None:
        errors = False
        chosen, left_out = _weighted(chosen, left_out, metrics)
    if scale is not None:
        chosen, left_out = _within_memory(chosen, left_out, metrics)
    with Bar(show=progress) as bar:
        bar.step("reading")
        needs = _needs(chosen, known, errors=errors)
        if held is None:
            shelf = _gather(source, needs, scale, covariance=covariance, seed=seed, bar=bar)
        else:
            shelf = held
            shelf.covariance, shelf.progress = covariance, bar.share
        _check(shelf)
        readings = Readings([_read(metric, shelf, bar, errors=errors) for metric in chosen])
        shelf.progress = None
    return Measurement(
        readings=readings,
        name=first.name and printable(first.name),
        n=shelf.moments.count,
        d=first.n_dims,
        n_labels=shelf.n_labels,
        dtype=str(first.vectors.dtype).removeprefix("torch."),
        device=str(first.device),
        notes=tuple(
            map(
                printable,
                (*source.notes, *shelf.notes, *_notes(shelf, first.labels), *left_out),
            )
        ),
        seed=seed,
        seconds=time.perf_counter() - began,
        _kept=Kept(shelf, X, source),
    )


def _source(X: Any, given: dict[str, Any]) -> Source:
    """X as an opened file, or as a Space with what the caller knows of its rows added."""
    if is_dask_array(X):
        return DaskVectors(X, **given)
    if not isinstance(X, Space) and is_source(X):
        if given:
            raise InputError(
                f"{next(iter(given))} cannot be added to an opened file; "
                "name them in open_vectors(…) or open_texts(…)"
            )
        return X
    space = Space(X, **given) if not isinstance(X, Space) else replace(X, **given) if given else X
    # a measurement is numbers: what carries a gradient is left at the door
    return replace(space, vectors=space.vectors.detach()) if space.vectors.requires_grad else space


def _scale(
    source: Source,
    memory: str | float | None,
    scheduler: str | None,
    checkpoint: str | os.PathLike[str] | None,
    skip_bad: bool,
) -> Scale | None:
    """How a source past memory is passed over; None where it is measured as one space or one stream."""
    folder = None if checkpoint is None else Path(checkpoint)
    scale = Scale(parse_memory(memory), scheduler, folder, skip_bad)
    if isinstance(source, Space):
        if scale.asked:
            raise InputError(
                "memory, scheduler, checkpoint and skip_bad go with files or a dask array; X is in "
                "memory: save it, and pass open_vectors(…)"
            )
        return None
    size = source.n_bytes
    if isinstance(source, DaskVectors):
        return scale
    if scale == Scale(memory=scale.memory):  # nothing but memory is a matter, and that may be enough
        limit = int(_SHARE_OF_MEMORY * physical_bytes())
        if scale.memory is not None:
            limit = scale.memory - resident_bytes()
        if (size is None and scale.memory is None) or (size is not None and _COPIES * size <= limit):
            return None
    return scale


def _first_block(source: Source, scale: Scale | None) -> Space:
    """The first rows that can be read; of many files those of one, for all would read all labels first."""
    for part in source.parts(sys.maxsize) if scale is not None else ():
        try:
            return next(part.blocks(_FIRST_ROWS))
        except InputError:
            if scale is None or not scale.skip_bad:
                raise
    return next(iter(source.blocks(_FIRST_ROWS)))


def _without(
    chosen: list[Metric], left_out: list[str], asked: Any, gone: list[Metric], why: str
) -> tuple[list[Metric], list[str]]:
    """The metrics without some of them, which are an error where they were asked for by name."""
    names = [] if asked is None else named(asked)
    for metric in gone:
        if metric.name in names:
            raise InputError(f"metrics: {metric.name} {why}")
    kept = [metric for metric in chosen if metric not in gone]
    if not kept:
        raise InputError(f"metrics: nothing to measure: {gone[0].name} {why}")
    notes = [f"left out, {why}: {', '.join(metric.name for metric in gone)}"] if gone else []
    return kept, [*left_out, *notes]


def _weighted(chosen: list[Metric], left_out: list[str], asked: Any) -> tuple[list[Metric], list[str]]:
    """The metrics that count a row as often as its weight says."""
    gone = [metric for metric in chosen if not metric.needs - set(KNOWN) <= weighted()]
    chosen, left_out = _without(chosen, left_out, asked, gone, "has no weighted form")
    return chosen, [*left_out, "rows count as often as their weights say; standard errors are not known"]


def _within_memory(chosen: list[Metric], left_out: list[str], asked: Any) -> tuple[list[Metric], list[str]]:
    """The metrics that need never hold all vectors."""
    held = streamed() | {"separation"}  # which is taken strip by strip
    gone = [metric for metric in chosen if not metric.needs - set(KNOWN) <= held]
    return _without(chosen, left_out, asked, gone, "needs all vectors in memory at once")


def _applicable(metrics: Any, known: set[str]) -> tuple[list[Metric], list[str]]:
    """The metrics whose knowledge of the rows is at hand, and a note on those left out."""
    asked = None if metrics is None else named(metrics)
    chosen: list[Metric] = []
    left_out: dict[str, list[str]] = {}
    for metric in choose(asked):
        missing = [name for name in KNOWN if name in metric.needs and name not in known]
        if not missing:
            chosen.append(metric)
        elif asked and metric.name in asked:
            raise InputError(f"{metric.name} needs {missing[0]}, which was not given: pass {missing[0]}")
        elif asked and not (metric.default and "default" in asked):
            left_out.setdefault(missing[0], []).append(metric.name)
    notes = [f"left out for want of {name}: {', '.join(which)}" for name, which in left_out.items()]
    if not chosen:
        raise InputError(f"metrics: nothing to measure: {'; '.join(notes)}")
    return chosen, notes


def _needs(chosen: list[Metric], known: set[str], *, errors: bool) -> set[str]:
    """The statistics to compute: what the metrics ask for, and what every measurement reports."""
    needs = {"moments", "directions"}.union(*(metric.needs for metric in chosen))
    if "labels" in known:
        needs.add("label_moments")
    if errors:
        needs = needs.union(*(metric.error_needs for metric in chosen))
    return needs - set(KNOWN)


def _gather(
    source: Source, needs: set[str], scale: Scale | None, *, covariance: Any, seed: int, bar: Bar
) -> Statistics:
    """The shelf: lazy over a space in memory; by passes over a file, where every metric can stream."""
    if scale is not None:
        return gather(
            source, needs, scale=scale, covariance=covariance, seed=seed, progress=bar.share, check=_check
        )
    if isinstance(source, Space) or needs & whole():
        space = source if isinstance(source, Space) else source.load()
        return Statistics(space, covariance=covariance, seed=seed, progress=bar.share)
    return stream(
        source.blocks,
        needs,
        n_rows=source.n_rows,
        covariance=covariance,
        seed=seed,
        progress=bar.share,
        check=_check,
    )


def _check(shelf: Statistics) -> None:
    """Refuse spaces nothing can be said of, and labels that describe no clusters."""
    n = shelf.moments.count
    if n < 2:
        raise ShapeError(f"X has {n:g} vector; a space needs at least 2")
    if not shelf.moments.trace > 0:
        raise InputError(f"X has {n} points that are all equal; a space needs points that differ")
    _ = shelf.n_labels


def _read(metric: Metric, shelf: Statistics, bar: Bar, *, errors: bool) -> Reading:
    bar.step(metric.name)
    try:
        found = metric.compute(shelf)
        value = found if isinstance(found, int) else float(found)  # counts stay whole, and are shown so
    except (UndefinedError, InputError) as reason:  # the space is sound: the metric has no value on it
        return Reading(metric.name, None, None, None, str(reason), metric.range)
    error = _error(metric, shelf) if errors else None
    ceiling = _ceiling(shelf) if metric.name == "isoscore" else None
    return Reading(metric.name, value, error, ceiling, metric.meaning(value, shelf), metric.range)


def _error(metric: Metric, shelf: Statistics) -> float | None:
    if metric.error is None:
        return None
    try:
        error = metric.error(shelf)
    except (UndefinedError, InputError):
        return None  # the value stands; only its error has none
    return error if math.isfinite(error) else None


def _ceiling(shelf: Statistics) -> float | None:
    """The largest IsoScore these labels allow, given how much of the variance lies between them."""
    if shelf.n_labels is None:
        return None
    share = between_share(shelf.label_moments)
    return isotropy_ceiling(shelf.n_labels, shelf.moments.n_dims, between=share)


def _notes(shelf: Statistics, labels: Labels | None) -> list[str]:
    """What the reader should know of the space before reading the numbers."""
    notes = [] if labels is None else label_notes(labels, n=int(shelf.moments.count))
    n, d, n_zero = shelf.moments.count, shelf.moments.n_dims, shelf.directions.n_zero
    if is_few(n, d):
        notes.append(
            f"{n:,} vectors are few for {d:,} dimensions: isoscore reads low, isoscore_debiased does not"
        )
    if n_zero:
        notes.append(f"{n_zero:,} zero vectors have no direction; cosines leave them out")
    return notes
