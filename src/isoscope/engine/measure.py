"""`measure`: which statistics a set of metrics needs, each pass run once, and the readings."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from isoscope.engine.dask_arrays import DaskVectors, is_dask_array
from isoscope.engine.kept import Kept, shelf_of
from isoscope.engine.plan import plan
from isoscope.engine.readings import Reading, Readings, taken
from isoscope.engine.run import run
from isoscope.engine.slices import SlicedMeasurement, measure_slices
from isoscope.engine.source import Source, is_source
from isoscope.errors import InputError, LabelError, ShapeError, UndefinedError, check_seed
from isoscope.io.sources import open_vectors
from isoscope.labels import Labels, label_notes
from isoscope.measurement import Measurement
from isoscope.metrics.frontier import between_share, isotropy_ceiling
from isoscope.metrics.isotropy import is_few
from isoscope.metrics.registry import Metric, registered
from isoscope.printable import counted, printable
from isoscope.progress import Bar
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics


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
    by: Any = None,
) -> Measurement:
    """Measure a space: every metric asked for, each pass over the data run once.

    Args:
        X: (n, d) vectors in any array, the path of a file of vectors (`labels`, `weights` and `by` may then
            also name its columns), a Space, a Measurement (whose statistics are used again, while you
            hold its vectors), or an opened file: of vectors (`isoscope.open_vectors`),
            which is read in blocks when every metric asked for can stream, or of texts
            (`isoscope.models.open_texts`), which are encoded. A dask array is measured chunk by chunk.
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
        by: slice the measurement by a column: its name, several names, or one value a row. Each slice is
            measured in the same passes and compared with all other rows.

    Returns:
        A Measurement: print it, index it by name, or `to_dict()`, `to_json()`, `to_pandas()`. With `by` it is
        a SlicedMeasurement, which has the readings of every slice too, the worst slice first.

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
    source = as_source(X, given, by, skip_bad=skip_bad) if held is None else held.space
    decided = plan(
        metrics, source, by=by, budget=memory, errors=errors, covariance=covariance, scheduler=scheduler,
        checkpoint=checkpoint, skip_bad=skip_bad, seed=seed,
    )  # fmt: skip
    first = decided.first
    with Bar(show=progress) as bar:
        bar.step("reading")
        slices: dict[str, Any] = {}
        if by is not None:
            shelf, rows = measure_slices(
                decided, source, read=partial(read, errors=decided.errors), check=check,
                covariance=covariance, progress=bar.share,
            )  # fmt: skip
            slices = {"by": decided.columns_by, "slices": tuple(rows)}
        else:
            shelf = held or run(decided, source, covariance=covariance, progress=bar.share, check=check)
        shelf.covariance, shelf.progress = covariance, bar.share
        check(shelf)
        readings = []
        for metric in decided.metrics:
            bar.step(metric.name)
            readings.append(read(metric, shelf, errors=decided.errors))
        shelf.progress = None
    return (SlicedMeasurement if slices else Measurement)(
        readings=Readings(readings),
        name=first.name and printable(first.name),
        n=shelf.moments.count,
        d=first.n_dims,
        n_labels=shelf.n_labels,
        dtype=str(first.vectors.dtype).removeprefix("torch."),
        device=str(first.device),
        notes=tuple(
            map(printable, (*source.notes, *shelf.notes, *_notes(shelf, first.labels), *decided.left_out))
        ),
        seed=seed,
        seconds=time.perf_counter() - began,
        _kept=None if slices else Kept(shelf, X, source),
        **slices,
    )


def as_source(X: Any, given: dict[str, Any], by: Any = None, *, skip_bad: bool = False) -> Source:
    """Return X as an opened file, or as a Space with what the caller knows of its rows added."""
    if isinstance(X, str | os.PathLike):
        for name in set(given) - {"labels", "weights"}:
            raise InputError("goes with an array in memory; X is a file", argument=name)
        names = (by,) if isinstance(by, str) else by if isinstance(by, tuple) else None
        return open_vectors(X, by=names, skip_bad=skip_bad, **given)
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


def check(shelf: Statistics) -> None:
    """Refuse spaces nothing can be said of, and labels that describe no clusters."""
    n = shelf.moments.count
    if n < 2:
        raise ShapeError(f"X has {n:g} vector; a space needs at least 2")
    if not shelf.moments.trace > 0:
        raise InputError(f"X has {n} points that are all equal; a space needs points that differ")
    _ = shelf.n_labels


def read(metric: Metric, shelf: Statistics, *, errors: bool) -> Reading:
    """Return a metric's value on a shelf, with its standard error and ceiling, or why it has none."""
    reading = taken(metric.name, metric.compute, shelf, range=metric.range)
    if reading.value is None:
        return reading
    error = _error(metric, shelf) if errors else None
    ceiling = _ceiling(shelf) if metric.name == "isoscore" else None
    meaning = metric.meaning(reading.value, shelf)
    return replace(reading, standard_error=error, ceiling=ceiling, meaning=meaning)


def values(shelf: Statistics, names: Iterable[str]) -> dict[str, float | None]:
    """Return the values of metrics on a shelf, by name; None where one is undefined."""
    return {name: read(registered()[name], shelf, errors=False).value for name in names}


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
    try:
        n_labels = shelf.n_labels
    except LabelError:
        return None  # a slice of one label
    if n_labels is None:
        return None
    return isotropy_ceiling(n_labels, shelf.moments.n_dims, between=between_share(shelf.label_moments))


def _notes(shelf: Statistics, labels: Labels | None) -> list[str]:
    """What the reader should know of the space before reading the numbers."""
    notes = [] if labels is None else label_notes(labels, n=int(shelf.moments.count))
    n, d, n_zero = shelf.moments.count, shelf.moments.n_dims, shelf.directions.n_zero
    if is_few(n, d):
        notes.append(
            f"{n:,} vectors are few for {d:,} dimensions: isoscore reads low, isoscore_debiased does not"
        )
    if n_zero:
        notes.append(f"cosines leave out {counted(n_zero, 'zero vector')}, without a direction")
    return notes
