"""`drift`: two samples of different items, such as the rows of last week and of this one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.separability import Separability, separability
from isoscope.drift.clusters import cluster_changes
from isoscope.drift.result import Drift, StrangeRow
from isoscope.drift.snapshot import SAMPLE, Snapshot
from isoscope.engine.inputs import one_of_each
from isoscope.engine.readings import Reading
from isoscope.errors import ShapeError, UndefinedError, check_share, check_whole
from isoscope.metrics.two_samples import Estimate, covariance_change, mean_shift, spread_change
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.statistics.moments import Moments

TOLERATE = 0.02
N_PERMUTATIONS = 499
_MEANINGS = {
    "drift": "of the rows of B would have to be replaced to make it a sample like A, at least",
    "separability": "how often a classifier ranks a row of B above one of A: 0.5 by chance, 1 always",
    "mean_shift": "of the variance of both lies between their means",
    "spread_change": "more variance in B than in A",
    "covariance_change": "of the squared covariances is not shared",
}
_RANGES = {"drift": (-1.0, 1.0), "separability": (0.0, 1.0), "mean_shift": (-1.0, 1.0)}


def drift(
    A: Any,
    B: Any,
    *,
    tolerate: float = TOLERATE,
    n_permutations: int = N_PERMUTATIONS,
    n_clusters: int | None = None,
    n_texts: int = 5,
    texts: Any = None,
    sample: int = SAMPLE,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | tuple[str | None, str | None] | None = None,
    device: Any = None,
) -> Drift:
    """Compare two samples of different items: how much of B is new, and what it is.

    The drift is the share of the rows of B that would have to be replaced to make it a sample like A (the
    total variation distance), as far as a classifier that has not seen the rows can tell: a lower bound, with
    its 95 % interval. It is held against a drift that is tolerated, so that no small difference raises an
    alarm because the rows are many. Whether there is any difference at all is what the p-value says.

    Args:
        A, B: (n, d) and (m, d) vectors in any array, paths, data frames, opened files; or Snapshots, or the
            paths of saved ones.
        tolerate: the drift that raises no alarm, a share of the rows.
        n_permutations: permutations for the p-value; 0 for none.
        n_clusters: the number of clusters of both samples together; by default one for every 30 rows, at most
            20.
        n_texts: how many texts of each sample that are least like the other to list.
        texts: the texts of the rows: the name of a column of both, or a pair of columns, files or values.
        sample: of more rows than this, a random sample of so many is taken for everything but the change of
            mean and covariance.
        seed: the seed of everything that is sampled.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several; a pair for A and B.
        device: the device to compute on, such as "cuda"; by default that of the vectors.

    >>> import numpy as np
    >>> A, B = np.random.default_rng(0).normal(size=(2, 1000, 8))
    >>> B[:200] += 3  # a fifth is new
    >>> found = drift(A, B, n_permutations=99)
    >>> round(found.drift, 2), found.alarm, found.p_value
    (0.2, True, 0.01)
    """
    of_a, of_b = (
        {"texts": own, "vectors": column, "sample": sample, "seed": seed, "device": device}
        for own, column in zip(one_of_each(texts, "texts"), one_of_each(vectors, "vectors"), strict=True)
    )
    with Bar(show=progress) as bar:
        bar.step("reading")
        first = Snapshot.of(A, **of_a)
        second = first if B is A and of_a == of_b else Snapshot.of(B, **of_b)
        return compare_snapshots(
            first, second, tolerate=tolerate, n_permutations=n_permutations, n_clusters=n_clusters,
            n_texts=n_texts, seed=seed, bar=bar,
        )  # fmt: skip


def compare_snapshots(
    first: Snapshot,
    second: Snapshot,
    *,
    tolerate: float,
    n_permutations: int,
    n_clusters: int | None,
    n_texts: int,
    seed: int,
    bar: Bar,
) -> Drift:
    """Return the drift of two snapshots; the arguments are those of `drift`."""
    began = time.perf_counter()
    check_share("tolerate", tolerate)
    check_whole("n_texts", n_texts, least=0)
    if n_clusters is not None:
        check_whole("n_clusters", n_clusters)
    if first.n_dims != second.n_dims:
        raise ShapeError(
            f"A has {first.n_dims} dimensions and B {second.n_dims}", wanted="vectors of one model"
        )
    bar.step("separability", at_once=min(first.n, second.n) > SAMPLE // 4 and n_permutations > 0)
    found = separability(
        first.vectors, second.vectors, n_permutations=n_permutations, seed=seed, progress=bar.share
    )
    bar.step("clusters")
    clusters = cluster_changes(
        first.vectors, second.vectors, (first.texts, second.texts), n_clusters=n_clusters, seed=seed
    )
    notes = [
        f"{side}: a random {len(one.vectors):,} of the {one.n:,} rows stand for all, but for mean_shift, "
        "spread_change and covariance_change"
        for side, one in (("A", first), ("B", second))
        if len(one.vectors) < one.n
    ]
    return Drift(
        name_a=first.name or "A",
        name_b=second.name or "B",
        n_a=first.n,
        n_b=second.n,
        d=first.n_dims,
        tolerate=float(tolerate),
        rows=_readings(found, first.moments, second.moments),
        p_value=found.p_value,
        n_permutations=n_permutations,
        clusters=tuple(clusters),
        strange=_strange(found, first, second, n_texts),
        notes=tuple(map(printable, notes)),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _readings(found: Separability, a: Moments, b: Moments) -> tuple[Reading, ...]:
    formulas: dict[str, Callable[[Moments, Moments], Estimate | float]] = {
        "mean_shift": mean_shift,
        "spread_change": spread_change,
        "covariance_change": covariance_change,
    }
    rows = [
        _reading("drift", found.total_variation, interval=found.total_variation_interval),
        _reading("separability", found.auc, interval=found.auc_interval),
    ]
    for name, formula in formulas.items():
        try:
            if formula is covariance_change and min(a.count, b.count) < a.n_dims:
                raise UndefinedError("not shown: with fewer rows than dimensions it is mostly noise")
            value = formula(a, b)
        except UndefinedError as undefined:
            rows.append(Reading(name, None, meaning=undefined.problem))
            continue
        error = value.standard_error if isinstance(value, Estimate) else None
        rows.append(
            _reading(name, value.value if isinstance(value, Estimate) else value, standard_error=error)
        )
    return tuple(rows)


def _reading(name: str, value: float, **about: Any) -> Reading:
    return Reading(
        name, value, meaning=_MEANINGS[name], range=_RANGES.get(name, (-1.0, float("inf"))), **about
    )


def _strange(found: Separability, first: Snapshot, second: Snapshot, n_texts: int) -> tuple[StrangeRow, ...]:
    """Return the rows of B with the highest scores, then those of A with the lowest, each text once."""
    scores = (found.scores - found.scores.mean()) / found.scores.std().clamp(min=1e-300)
    of_a, of_b = -scores[: found.n_x], scores[found.n_x :]
    return (*_highest("B", of_b, second, n_texts), *_highest("A", of_a, first, n_texts))


def _highest(side: str, scores: Tensor, snapshot: Snapshot, n: int) -> list[StrangeRow]:
    if snapshot.texts is None:
        return []
    rows: dict[str, StrangeRow] = {}
    for place in torch.argsort(scores, descending=True).tolist():
        if len(rows) == n:
            break
        text = snapshot.texts[place]
        rows.setdefault(text, StrangeRow(side, text, float(scores[place])))
    return list(rows.values())
