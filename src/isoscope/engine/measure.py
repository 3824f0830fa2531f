"""`measure`: which statistics a set of metrics needs, each pass run once, and the readings."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from isoscope.engine.inputs import Input, as_input
from isoscope.engine.kept import Kept, shelf_of
from isoscope.engine.plan import Plan, plan
from isoscope.engine.readings import Reading, Readings, value_or_reason
from isoscope.engine.run import run
from isoscope.engine.sliced_measurement import SlicedMeasurement
from isoscope.engine.slices import measure_slices
from isoscope.errors import InputError, LabelError, ShapeError, UndefinedError, check_seed
from isoscope.labels import Labels, label_notes
from isoscope.measurement import Measurement
from isoscope.metrics.frontier import between_share, isotropy_ceiling
from isoscope.metrics.isotropy import few_notes
from isoscope.metrics.registry import Metric, registered
from isoscope.printable import counted, printable
from isoscope.progress import Bar
from isoscope.statistics.decomposed import decomposing
from isoscope.statistics.gathered import Statistics
from isoscope.unchecked import known_finite

_OF_COSINES = {"cosine", "dimensions", "contextual"}  # families of metrics that are made from cosines


def measure(
    X: Any,
    labels: Any = None,
    *,
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
    vectors: str | None = None,
    device: Any = None,
) -> Measurement:
    """Measure a space: every metric asked for, each pass over the data run once.

    Args:
        X: (n, d) vectors in any array; the path of a file of vectors, of a folder, or a pattern of files;
            a data frame (pandas, polars, pyarrow) or Hugging Face dataset with a column of vectors, or with a
            column for each dimension; a Space; a Measurement, whose statistics are used again while you hold
            its vectors; or an opened file, of vectors (`isoscope.open_vectors`), which is read in blocks when
            every metric asked for can stream, or of texts (`isoscope.models.open_texts`), which are
            encoded. A dask array is measured chunk by chunk.
        labels: one label a row, or the name of a column of X or of a file; adds the cluster metrics and
            IsoScore's ceiling. `token_types`, `sentences`, `partners`, `weights` and `by` may be names too.
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
        by: slice the measurement by a column: its name, several names, one value a row, or such values by
            name. Each slice is measured in the same passes and compared with all other rows.
        vectors: the column of a table that holds the vectors, where it has several.
        device: where to compute, such as "cuda", or several devices, such as "cuda:0,cuda:1" or a list of
            them, which share the blocks of a file and the pairs of rows; by default where the vectors are.

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
    arguments = {
        "labels": labels,
        "token_types": token_types,
        "sentences": sentences,
        "partners": partners,
        "weights": weights,
    }
    columns = {name: value for name, value in arguments.items() if value is not None}
    statistics = X if isinstance(X, Statistics) else None
    if isinstance(X, Measurement):
        statistics = shelf_of(X, seed=seed, vectors=vectors, device=device, **columns)
    if statistics is not None:
        opened = Input(statistics.space, by)
    else:
        opened = as_input(X, columns, by=by, vectors=vectors, device=device, skip_bad=skip_bad)
    source, by = opened.source, opened.by
    decided = plan(
        metrics, source, by=by, budget=memory, errors=errors, covariance=covariance, scheduler=scheduler,
        checkpoint=checkpoint, skip_bad=skip_bad, seed=seed,
    )  # fmt: skip
    first = decided.first
    name = first.name and printable(first.name)
    with Bar(show=progress) as bar:
        bar.step("reading")
        slices: dict[str, Any] = {}
        if by is not None:
            shelf, rows = measure_slices(
                decided, source, read=partial(read, errors=decided.errors, space=name), check=check,
                covariance=covariance, progress=bar.share,
            )  # fmt: skip
            slices = {"by": decided.columns_by, "slices": tuple(rows)}
        else:
            shelf = statistics or run(decided, source, covariance=covariance, progress=bar.share, check=check)
        shelf.covariance, shelf.progress = covariance, bar.share
        check(shelf)
        with known_finite(shelf.checked):
            readings = _readings(decided, shelf, name, bar)
        shelf.progress = None
    about = _notes(shelf, first.labels, decided.metrics)
    notes = [*opened.notes, *source.notes, *shelf.notes, *about, *decided.left_out]
    return (SlicedMeasurement if slices else Measurement)(
        readings=Readings(readings),
        name=name,
        n=shelf.moments.count,
        d=first.n_dims,
        n_labels=shelf.n_labels,
        dtype=str(first.vectors.dtype).removeprefix("torch."),
        device=str(first.device),
        notes=tuple(map(printable, notes)),
        seed=seed,
        seconds=time.perf_counter() - began,
        _kept=Kept(shelf, X, source, opened.how),
        **slices,
    )


def _readings(decided: Plan, shelf: Statistics, space: str | None, bar: Bar) -> list[Reading]:
    """Return every metric's reading, in order; on CUDA the spectra are made while the others are read."""
    metrics = decided.metrics
    of_spectrum = [metric.family == "spectrum" or "log_partition" in metric.needs for metric in metrics]
    readings: dict[str, Reading] = {}
    with decomposing(
        shelf.moments,
        eigenvalues=any(metric.family == "spectrum" for metric in metrics),
        principal=any("log_partition" in metric.needs for metric in metrics),
    ):
        on_cuda = shelf.moments.mean.is_cuda
        order = sorted(range(len(metrics)), key=of_spectrum.__getitem__) if on_cuda else range(len(metrics))
        for metric in (metrics[place] for place in order):
            bar.step(metric.name)
            readings[metric.name] = read(metric, shelf, errors=decided.errors, space=space)
    return [readings[metric.name] for metric in metrics]


def check(shelf: Statistics) -> None:
    """Refuse spaces nothing can be said of, and labels that describe no clusters."""
    n = shelf.moments.count
    if n < 2:
        raise ShapeError(f"has {n:g} vector; a space needs at least 2", argument="X")
    if not shelf.moments.spread > 0:
        raise InputError(f"has {n} points that are all equal; a space needs points that differ", argument="X")
    _ = shelf.n_labels


def read(metric: Metric, shelf: Statistics, *, errors: bool, space: str | None = None) -> Reading:
    """Return a metric's value on a shelf, with its standard error and ceiling, or why it has none."""
    value, reason = value_or_reason(metric.compute, shelf)
    if value is None:
        return Reading(metric.name, None, meaning=reason, range=metric.range, space=space)
    return Reading(
        metric.name,
        value,
        standard_error=_error(metric, shelf) if errors else None,
        ceiling=_ceiling(shelf) if metric.name == "isoscore" else None,
        meaning=metric.meaning(value, shelf),
        range=metric.range,
        space=space,
    )


def values(shelf: Statistics, names: Iterable[str]) -> dict[str, float | None]:
    """Return the values of metrics on a shelf, by name; None where one is undefined."""
    return {name: value_or_reason(registered()[name].compute, shelf)[0] for name in names}


def _error(metric: Metric, shelf: Statistics) -> float | None:
    if metric.error is None:
        return None
    try:
        error = metric.error(shelf)
    except (UndefinedError, InputError):
        return None  # the value stands; only its error has none
    return error if math.isfinite(error) else None


def _ceiling(shelf: Statistics) -> float | None:
    """Return the largest IsoScore that these labels allow, given the share of the variance between them."""
    try:
        n_labels = shelf.n_labels
    except LabelError:
        return None  # a slice of one label
    if n_labels is None:
        return None
    return isotropy_ceiling(n_labels, shelf.moments.n_dims, between=between_share(shelf.label_moments))


def zero_notes(n_zero: float, metrics: Iterable[Metric]) -> list[str]:
    """Return a note on the zero vectors that some of the metrics leave out."""
    if not n_zero:
        return []
    metrics = list(metrics)
    of_cosines = any(one.family in _OF_COSINES or one.name == "silhouette_cosine" for one in metrics)
    of_neighbors = any("distinct_neighbors" in one.needs for one in metrics)
    which = " and ".join(["cosines"] * of_cosines + ["neighbours"] * of_neighbors)
    if not which:
        return []
    return [f"{which} leave out {counted(n_zero, 'zero vector')}, because a zero vector has no direction"]


def _notes(shelf: Statistics, labels: Labels | None, metrics: Iterable[Metric]) -> list[str]:
    """Return notes on the space that matter for reading the numbers of these metrics."""
    notes = [] if labels is None else label_notes(labels, n=int(shelf.moments.count))
    n, d = shelf.moments.count, shelf.moments.n_dims
    return [*notes, *few_notes(n, d), *zero_notes(shelf.directions.n_zero, metrics)]
