"""`advise`: whether to correct vectors, tried on the caller's own tasks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from isoscope.advice.candidates import NONE, chosen_corrections
from isoscope.advice.outcomes import Outcome, TaskAdvice, recommended
from isoscope.advice.pairs import as_pairs, as_rows
from isoscope.advice.result import Advice
from isoscope.advice.search import try_search
from isoscope.advice.tasks import LABEL_TASKS, PAIR_TASK, SCORES, SEARCH_TASK, chosen_tasks
from isoscope.advice.trials import drawn, fitted_on, transformed, try_corrections, try_pairs
from isoscope.advice.validation import gain
from isoscope.engine.kept import rows_of, shelf_of
from isoscope.engine.measure import values
from isoscope.engine.slices import holm
from isoscope.errors import InputError, LabelError, check_seed
from isoscope.labels import Labels, as_clusters, as_labels
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.queries.opened import columns_of, queries_beside
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics

MAX_ROWS, MAX_PAIRS = 2000, 3000
GEOMETRY = ("isoscore", "mean_cosine", "effective_rank")  # shown for every correction
_MAX_REPEATS = 1000
_PAIRS_A_FOLD = 4  # the fewest that can be ranked
_HELD_OUT = (
    "retrieval searches held-out rows of a sample for one another; pass queries to test a search of all rows"
)
_SHARED = (
    "many pairs share rows: corrections were fitted on vectors (never scores) of rows that they were tested "
    "on, and the intervals are too narrow"
)


def advise(
    X: Any,
    labels: Any = None,
    *,
    pairs: Any = None,
    queries: Any = None,
    relevance: Any = None,
    ids: str | None = None,
    corrections: Iterable[str] | Mapping[str, Any] | None = None,
    tasks: Iterable[str] | None = None,
    folds: int = 5,
    repeats: int = 3,
    max_rows: int = MAX_ROWS,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> Advice:
    """Try corrections of the vectors on your own tasks, and say which one helps.

    Each correction is fitted on the training folds without labels or scores, and applied to the held-out
    fold. Its gain is the mean difference to the score without a correction, over folds and repeats. The
    interval of the gain accounts for rows that folds share (Nadeau and Bengio 2003). A correction helps where
    its gain is significant at 5 % after Holm's adjustment for all corrections tried on the task. Where none
    helps, the advice is to leave the vectors as they are. Metrics of the space never decide the advice.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, an opened file, or a Measurement.
        labels: one label for each row, or the name of a column of X or of a file; for the tasks linear probe,
            nearest neighbours, clustering and retrieval.
        pairs: (row, row, score) triples, or a file of them; for the task of ranking pairs by cosine.
        queries: (m, d) queries, as any source, for the task of searching all rows of X by cosine. Here each
            correction is fitted on all rows, and the gain is the mean over queries.
        relevance: which rows are relevant to a query: a column that X and the queries have (or "a=b"), a file
            of pairs, or (query row, row) pairs.
        ids: the column of X and of the queries that pairs in a file name; by default they name rows.
        corrections: the names of the corrections to try, or your own transformers by name; all by default.
        tasks: the names of the tasks; by default all that labels, pairs and queries allow.
        folds, repeats: the folds and repeats of the cross-validation.
        max_rows, max_pairs: the most rows (and queries) and pairs to use; more are sampled at random.
        seed: the seed of samples, folds and k-means.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several.
        device: the device to compute on, such as "cuda", or several, as in `measure`; by default that of the
            vectors.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = np.c_[y + 0.3 * rng.normal(size=300), 9 * rng.normal(size=300)]  # the labels are in the small one
    >>> advice = advise(X, labels=y, tasks=["knn"], corrections=["normalize", "whiten"])
    >>> advice["knn"].best.correction, advice["knn"].outcomes[0].verdict
    ('whiten', 'no difference seen')
    """
    began = time.perf_counter()
    check_seed(seed)
    least = {"folds": 2, "repeats": 1, "max_rows": 50, "max_pairs": 20}
    for (name, low), value in zip(least.items(), (folds, repeats, max_rows, max_pairs), strict=True):
        if not isinstance(value, int) or value < low:
            raise InputError(argument=name, got=value, wanted=f"a whole number of at least {low}")
    if repeats > _MAX_REPEATS:
        raise InputError(argument="repeats", got=repeats, wanted=f"at most {_MAX_REPEATS:,}")
    apart = [labels] if isinstance(labels, str) else []
    apart += [side[1] for side in columns_of(relevance, ids)]
    shelf = shelf_of(X, seed=seed, vectors=vectors, device=device, apart=apart)
    if shelf.space.weights is not None:
        raise InputError(
            "has weights, and the tasks count every row once", argument="X", hint="leave the weights out"
        )
    labels = shelf.space.labels if labels is None else rows_of(X, labels, "labels", vectors=vectors)
    matrix = shelf.space.vectors.cpu()
    n, d = matrix.shape
    coded = None if labels is None else as_labels(labels, n=n)
    scored = None if pairs is None else as_pairs(as_rows(pairs, shelf.space.texts), n=n)
    asked = queries_beside(
        X, queries, shelf.space, relevance=relevance, ids=ids, needed=True, vectors=vectors, apart=apart
    )
    wanted = chosen_tasks(
        tasks, has_labels=coded is not None, has_pairs=scored is not None, has_queries=asked is not None
    )
    test_share = 1 / (folds - 1)
    tried = chosen_corrections(corrections, min(n, max_rows), d)
    notes: list[str] = []
    with Bar(show=progress) as bar:
        advised: list[TaskAdvice] = []
        options: dict[str, Any] = {"folds": folds, "repeats": repeats, "seed": seed, "bar": bar}
        if coded is not None and set(wanted) & set(LABEL_TASKS):
            rows, codes = _some_rows(coded, max_rows, folds, seed, notes)
            label_tasks = _open_tasks(wanted, codes, folds, notes)
            scores = try_corrections(matrix[rows], codes, corrections=tried, tasks=label_tasks, **options)
            advised += [_judged(task, scores[task], len(rows), test_share) for task in label_tasks]
            notes += [_HELD_OUT] if "retrieval" in label_tasks and asked is None else []
        if scored is not None and PAIR_TASK in wanted:
            some = drawn(len(scored), max_pairs, seed)
            if len(some) < _PAIRS_A_FOLD * folds:
                raise InputError(
                    f"has {len(some)} pairs, which are too few for {folds} folds",
                    argument="pairs",
                    hint=f"pass at least {_PAIRS_A_FOLD * folds} pairs, or fewer folds",
                )
            notes += (
                [f"tried on a random {max_pairs:,} of {len(scored):,} pairs"]
                if len(some) < len(scored)
                else []
            )
            scores, are_shared = try_pairs(matrix, scored.some(some), corrections=tried, **options)
            notes += [_SHARED] if are_shared else []
            advised.append(_judged(PAIR_TASK, scores[PAIR_TASK], len(some), test_share))
        if asked is not None and SEARCH_TASK in wanted:
            found = try_search(matrix, asked, corrections=tried, max_queries=max_rows, seed=seed, bar=bar)
            advised.append(_judged(SEARCH_TASK, found, len(found[NONE]), test_share=0.0))
        bar.step("geometry")
        some = drawn(n, max(max_rows, 10 * d), seed)
        sample = shelf if len(some) == n else Statistics(Space(matrix[some]), seed=seed)
        geometry, fitted = _geometry(sample, tried, recommended(advised))
    if set(wanted) - {SEARCH_TASK}:
        notes.append(
            f"{folds} folds × {repeats} repeats (seed {seed}); each correction is fitted on the training "
            "folds, without labels"
        )
    if SEARCH_TASK in wanted:
        notes.append("search: each correction is fitted on all documents, and all of them are searched")
    notes.append(
        "verdicts are at the 5 % level after Holm's adjustment for all corrections; each interval holds for "
        "one correction by itself"
    )
    return Advice(
        name=shelf.space.name and printable(shelf.space.name),
        n=n,
        d=d,
        tasks=tuple(advised),
        geometry=geometry,
        folds=folds,
        repeats=repeats,
        notes=tuple(notes),
        seed=seed,
        seconds=time.perf_counter() - began,
        fitted=fitted,
    )


def _open_tasks(wanted: list[str], codes: Tensor, folds: int, notes: list[str]) -> list[str]:
    """Return the label tasks that are possible: retrieval needs two rows of a label in each fold."""
    tasks = [name for name in wanted if name in LABEL_TASKS]
    if "retrieval" in tasks and int(codes.bincount().max()) < 2 * folds:
        tasks.remove("retrieval")
        notes.append(f"retrieval is left out: no label has two rows for each of {folds} folds")
        if not tasks:
            raise LabelError(notes[-1], hint="pass more rows, or fewer folds")
    return tasks


def _some_rows(labels: Labels, most: int, folds: int, seed: int, notes: list[str]) -> tuple[Tensor, Tensor]:
    """Return random rows and the codes of their labels, without labels too rare to be in every fold."""
    labels = as_clusters(labels.to(torch.device("cpu")), n=len(labels))
    rows = drawn(len(labels), most, seed)
    if len(rows) < len(labels):
        notes.append(f"tried on a random {most:,} of {len(labels):,} rows")
    counts = torch.bincount(labels.codes[rows], minlength=labels.n_labels)
    is_frequent = counts[labels.codes[rows]] >= folds
    if n_rare := int(((counts > 0) & (counts < folds)).sum()):
        n_rows = int((~is_frequent).sum())
        notes.append(f"{n_rare} labels with fewer than {folds} rows are left out ({n_rows} rows)")
    rows = rows[is_frequent]
    names, codes = labels.codes[rows].unique(return_inverse=True)
    if len(names) < 2:
        raise LabelError(
            f"must have at least 2 labels with {folds} rows or more, got {len(names)}",
            argument="labels",
            hint="pass more rows, or fewer folds",
        )
    return rows, codes


def _judged(
    task: str, scores: Mapping[str, list[float] | str], n_items: int, test_share: float
) -> TaskAdvice:
    """Return the gains of all corrections on a task, with adjusted p-values."""
    base = scores[NONE]
    assert isinstance(base, list)
    gains = {
        name: gain([a - b for a, b in zip(by_fold, base, strict=True)], test_share=test_share)
        for name, by_fold in scores.items()
        if name != NONE and isinstance(by_fold, list)
    }
    adjusted = dict(zip(gains, holm([one.p_value for one in gains.values()]), strict=True))
    outcomes = []
    for name, by_fold in scores.items():
        if isinstance(by_fold, str):
            outcomes.append(Outcome(name, None, None, None, None, reason=by_fold))
        elif name != NONE:
            mean, one = math.fsum(by_fold) / len(by_fold), gains[name]
            outcomes.append(Outcome(name, mean, one.mean, one.interval, adjusted[name], tuple(by_fold)))
    return TaskAdvice(task, SCORES[task], n_items, math.fsum(base) / len(base), tuple(outcomes))


def _geometry(
    shelf: Statistics, corrections: Mapping[str, Any], chosen: str | None
) -> tuple[dict[str, dict[str, float | None]], Any]:
    """Return the metrics of the space after each correction, and the chosen correction, fitted."""
    vectors = shelf.space.vectors.cpu()
    geometry, chosen_one = {NONE: values(shelf, GEOMETRY)}, None
    for name, correction in corrections.items():
        try:
            fitted = fitted_on(correction, vectors)
            geometry[name] = values(Statistics(Space(transformed(fitted, vectors))), GEOMETRY)
        except ValueError:  # the table of the task has the reason
            geometry[name] = dict.fromkeys(GEOMETRY)
            continue
        chosen_one = fitted if name == chosen else chosen_one
    return geometry, chosen_one
