"""`look`: what stands out in a space, asked of the engine in two steps: all rows, then a sample of them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.inputs import as_input
from isoscope.engine.measure import check, read, zero_notes
from isoscope.engine.plan import plan
from isoscope.engine.readings import Reading, Readings
from isoscope.engine.run import run
from isoscope.engine.sample import sample_rows
from isoscope.errors import UndefinedError, check_seed, check_whole
from isoscope.look.faults import faults
from isoscope.look.findings import ROWS, Evidence, findings_of
from isoscope.look.next_steps import NextSteps
from isoscope.look.result import Look
from isoscope.metrics.clusters import PURITY_NEIGHBORS
from isoscope.metrics.dimensions import contributions_of, rogue_limit
from isoscope.metrics.isotropy import is_few, is_too_few
from isoscope.metrics.manifold import HUBNESS_NEIGHBORS, hubs_of, k_occurrence
from isoscope.metrics.registry import registered
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.statistics.gathered import Statistics

MAX_ROWS = 5_000  # rows that neighbours are searched among
ALL_ROWS = ("mean_cosine", "isoscore_debiased", "top_dimension_share", "mean_norm", "norm_variation")
SAMPLED = ("hubness", "twonn")
LABELLED = ("knn_purity", "silhouette")
_CONSTANT = 1e-12  # variance of a dimension over the largest one, up to which it is constant


def look(
    X: Any,
    labels: Any = None,
    *,
    max_rows: int = MAX_ROWS,
    memory: str | float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
    steps: NextSteps | None = None,
) -> Look:
    """Take a first look at vectors: what stands out, what it means, and what to try next.

    Directions, lengths and variances are measured over all rows, in blocks where X is a file. Neighbours are
    searched among at most `max_rows` rows drawn at random, which the result says.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, or an opened file.
        labels: one label for each row, or the name of a column of X or of a file. They add a finding.
        max_rows: how many rows to draw for neighbours.
        memory: the most memory to use for a file, such as "2GB".
        seed: the seed of the sample.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several.
        device: the device to compute on, such as "cuda", or several, as in `measure`; by default that of the
            vectors.
        steps: writes what to try next; by default for X as it was passed.

    Returns:
        A Look: print it, or take `findings`, `to_dict()`, `to_json()`, `to_pandas()`.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 8)) + 2
    >>> found = look(X)
    >>> found.findings[0].name, found.findings[0].severity
    ('common_direction', 'serious')
    """
    began = time.perf_counter()
    check_seed(seed)
    max_rows = check_whole("max_rows", max_rows, least=2)
    opened = as_input(X, {} if labels is None else {"labels": labels}, vectors=vectors, device=device)
    source = opened.source
    decided = plan(ALL_ROWS, source, budget=memory, seed=seed)
    with Bar(show=progress) as bar:
        bar.step("reading all rows")
        shelf = run(decided, source, progress=bar.share, check=check)
        check(shelf)
        readings = _readings(ALL_ROWS, shelf)
        n, d = int(shelf.moments.n_rows), decided.n_dims
        bar.step("neighbours")
        drawn = sample_rows(source, max_rows, seed=seed)
        labels_drawn, n_sampled = drawn.space.labels, len(drawn.space)
        sample = Statistics(drawn.space, seed=seed, progress=bar.share)
        readings |= _readings((*SAMPLED, *(() if labels_drawn is None else LABELLED)), sample)
    n_zero = int(shelf.directions.n_zero)
    readings[ROWS] = Reading(
        ROWS, n_zero / n + len(drawn.equal.copies) / drawn.equal.n_compared, range=(0.0, 1.0)
    )
    evidence = Evidence(
        readings=readings,
        n=n,
        d=d,
        n_sampled=n_sampled,
        strongest=_strongest(shelf),
        rogue_limit=rogue_limit(d),
        n_zero=n_zero,
        constant=_constant(shelf),
        equal=drawn.equal,
        hubs=() if readings["hubness"].value is None else drawn.rows[_hubs(sample)].tolist(),
        few=is_few(n, d),
        too_few=is_too_few(n, d),
        chance=None if labels_drawn is None else _chance(labels_drawn.sizes),
        attainable=1.0 if labels_drawn is None else _attainable(labels_drawn.sizes),
        steps=steps or _steps(X, labels, vectors, has_labels=labels_drawn is not None),
    )
    in_sample = {*SAMPLED, *LABELLED}
    about_zeros = zero_notes(n_zero, (registered()[name] for name in (*ALL_ROWS, *SAMPLED)))
    notes = (*opened.notes, *source.notes, *shelf.notes, *about_zeros, *decided.left_out)
    found = (*findings_of(evidence), *faults(drawn, n, evidence.steps))
    return Look(
        findings=tuple(sorted(found, key=lambda finding: finding.rank)),
        readings=Readings(
            [
                replace(one, space=decided.first.name, group={"rows": n_sampled if name in in_sample else n})
                for name, one in readings.items()
            ]
        ),
        name=decided.first.name and printable(decided.first.name),
        n=n,
        d=d,
        n_labels=shelf.n_labels,
        n_sampled=n_sampled,
        dtype=str(decided.first.vectors.dtype).removeprefix("torch."),
        notes=tuple(map(printable, notes)),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _readings(names: tuple[str, ...], shelf: Statistics) -> dict[str, Reading]:
    return {name: read(registered()[name], shelf, errors=True) for name in names}


def _hubs(sample: Statistics) -> Tensor:
    """Return the hubs of the sample, the greatest first."""
    neighbors = sample.distinct_neighbors
    k = min(HUBNESS_NEIGHBORS, neighbors.k)
    return hubs_of(torch.from_numpy(k_occurrence(neighbors, k=k)), k)


def _strongest(shelf: Statistics) -> int | None:
    try:
        return int(contributions_of(shelf.directions).argmax())
    except UndefinedError:
        return None


def _constant(shelf: Statistics) -> tuple[int, ...]:
    """Return the dimensions whose variance is zero, but for rounding."""
    variances = shelf.moments.covariance.diagonal()
    return tuple((variances <= _CONSTANT * variances.max()).nonzero().flatten().tolist())


def _chance(sizes: list[int]) -> float:
    """Return the chance that two rows drawn at random have the same label."""
    n = sum(sizes)
    return sum(size * (size - 1) for size in sizes) / (n * (n - 1))


def _attainable(sizes: list[int]) -> float:
    """Return the purity of neighbours where every label lies by itself: small labels have few neighbours."""
    k = min(PURITY_NEIGHBORS, sum(sizes) - 1)
    return sum(size * min(size - 1, k) for size in sizes) / (sum(sizes) * k)


def _steps(X: Any, labels: Any, vectors: str | None, *, has_labels: bool) -> NextSteps:
    """Return commands where X is a path and the labels are a column or a file, else Python."""
    if isinstance(X, str | os.PathLike) and (labels is None or isinstance(labels, str)):
        words = () if vectors is None else ("--vectors", vectors)
        return NextSteps((os.fspath(X), *words), labels=labels, has_labels=has_labels)
    return NextSteps(has_labels=has_labels)
