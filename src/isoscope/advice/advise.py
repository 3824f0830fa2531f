"""`advise`: corrections tried on the caller's own tasks, on items held out from their fitting."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.advice.candidates import NONE, chosen_corrections
from isoscope.advice.pairs import Pairs, as_pairs
from isoscope.advice.result import Advice, Outcome, TaskAdvice, recommended
from isoscope.advice.tasks import LABEL_TASKS, PAIR_TASK, SCORES, LabelFold, chosen_tasks, similarity
from isoscope.advice.validation import gain, holm, splits
from isoscope.errors import InputError, IsoscopeError, LabelError, UndefinedError, check_seed
from isoscope.labels import Labels, as_labels
from isoscope.measure import Source
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.spectrum import effective_rank
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.space import Space

MAX_ROWS, MAX_PAIRS = 2000, 3000
_MAX_FIT = 5000  # rows a correction is fitted on for scored pairs
Scores = dict[str, dict[str, list[float] | str]]  # by task and correction; a reason in words where none


def advise(
    X: Any,
    *,
    labels: Any = None,
    pairs: Any = None,
    corrections: Iterable[str] | Mapping[str, Any] | None = None,
    tasks: Iterable[str] | None = None,
    folds: int = 5,
    repeats: int = 3,
    max_rows: int = MAX_ROWS,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
    progress: bool | None = None,
) -> Advice:
    """Should these vectors be centred, whitened, …? Tried on your own task, on held-out items.

    Each correction is fitted on the training folds alone, never sees a label or a score, and is applied to
    what is held out. A task says what it gains over none, over folds and repeats, with an interval that
    allows for folds sharing rows (Nadeau and Bengio 2003). A correction helps where its gain is significant
    at 5 % after Holm's adjustment for all corrections tried on the task; where none does, the advice is to
    leave it alone. No advice is given by a metric of the space alone.

    Args:
        X: (n, d) vectors in any array, a Space, or an opened file.
        labels: one a row: tries a linear probe, nearest neighbours, clustering and retrieval.
        pairs: (row, row, score) triples: tries how well cosines rank the pairs.
        corrections: names of those to try, or your own transformers by name; all by default.
        tasks: names of tasks; by default all that labels and pairs allow.
        folds, repeats: of the cross-validation.
        max_rows, max_pairs: taken at most, drawn at random.
        seed: of draws, folds, k-means.
        progress: show a bar; None shows it on a terminal when work takes over a second.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = np.c_[y + 0.3 * rng.normal(size=300), 9 * rng.normal(size=300)]  # what matters is small
    >>> found = advise(X, labels=y, tasks=["knn"], corrections=["normalize", "whiten"])
    >>> found["knn"].best.correction, found["knn"].outcomes[0].verdict
    ('whiten', 'no difference seen')
    """
    began = time.perf_counter()
    space = X if isinstance(X, Space) else X.load() if isinstance(X, Source) else Space(X)
    if space.weights is not None:
        raise InputError("X has weights; wanted rows that count once each: leave the weights out")
    labels = labels if labels is not None else space.labels
    vectors = space.vectors.detach().cpu()
    _check(folds, repeats, max_rows, max_pairs, seed)
    coded = None if labels is None else as_labels(labels, n=len(vectors))
    scored = None if pairs is None else as_pairs(pairs, n=len(vectors))
    wanted = chosen_tasks(
        None if tasks is None else [tasks] if isinstance(tasks, str) else list(tasks),
        has_labels=coded is not None,
        has_pairs=scored is not None,
    )
    tried = chosen_corrections(corrections, min(len(vectors), max_rows), vectors.shape[1])
    notes: list[str] = []
    with Bar(show=progress) as bar:
        found: list[TaskAdvice] = []
        options: dict[str, Any] = {"folds": folds, "repeats": repeats, "seed": seed, "bar": bar}
        if coded is not None and set(wanted) & set(LABEL_TASKS):
            rows, codes, said = _some_rows(coded, max_rows, folds, seed)
            notes += said
            label_tasks = [name for name in wanted if name in LABEL_TASKS]
            scores = try_corrections(vectors[rows], codes, corrections=tried, tasks=label_tasks, **options)
            found += [_judged(task, scores[task], len(rows), folds) for task in label_tasks]
        if scored is not None and PAIR_TASK in wanted:
            some = _drawn(len(scored), max_pairs, seed)
            notes += [f"a random {max_pairs:,} of {len(scored):,} pairs"] if len(some) < len(scored) else []
            scores, said = _try_pairs(vectors, scored.some(some), tried, **options)
            notes += said
            found.append(_judged(PAIR_TASK, scores[PAIR_TASK], len(some), folds))
        bar.step("geometry")
        some = _drawn(len(vectors), max(max_rows, 10 * vectors.shape[1]), seed)
        geometry, fitted = _geometry(vectors[some], tried, recommended(found))
    notes.append(
        f"{folds} folds × {repeats} repeats (seed {seed}); each correction fitted on training folds only, "
        "without labels; verdicts at 5 % after Holm's adjustment over the corrections of a task, intervals "
        "each by itself"
    )
    return Advice(
        name=space.name and printable(space.name),
        n=len(vectors),
        d=int(vectors.shape[1]),
        tasks=tuple(found),
        geometry=geometry,
        folds=folds,
        repeats=repeats,
        notes=tuple(notes),
        seed=seed,
        seconds=time.perf_counter() - began,
        fitted=fitted,
    )


def _check(folds: int, repeats: int, max_rows: int, max_pairs: int, seed: int) -> None:
    check_seed(seed)
    least = {
        "folds": (folds, 2),
        "repeats": (repeats, 1),
        "max_rows": (max_rows, 50),
        "max_pairs": (max_pairs, 20),
    }
    for name, (value, low) in least.items():
        if not isinstance(value, int) or value < low:
            raise InputError(f"{name} is {value!r}; wanted a whole number from {low} on")


def _drawn(n: int, most: int, seed: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:most].sort().values


def _some_rows(labels: Labels, most: int, folds: int, seed: int) -> tuple[Tensor, Tensor, list[str]]:
    """Rows to try on and their codes, without labels too rare to be in every fold."""
    labels = labels.to(torch.device("cpu"))
    rows = _drawn(len(labels), most, seed)
    notes = [f"a random {most:,} of {len(labels):,} rows"] if len(rows) < len(labels) else []
    counts = torch.bincount(labels.codes[rows], minlength=labels.n_labels)
    kept = counts[labels.codes[rows]] >= folds
    n_rare = int(((counts > 0) & (counts < folds)).sum())
    if n_rare:
        notes.append(f"{n_rare} labels with fewer than {folds} rows are left out ({int((~kept).sum())} rows)")
    rows = rows[kept]
    names, codes = labels.codes[rows].unique(return_inverse=True)
    if len(names) < 2:
        raise LabelError(f"labels: fewer than two have {folds} rows each; wanted more rows, or fewer folds")
    return rows, codes, notes


def try_corrections(
    vectors: Tensor,
    codes: Tensor,
    *,
    corrections: Mapping[str, Any],
    tasks: Iterable[str],
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    bar: Bar | None = None,
) -> Scores:
    """The score of every correction, and of none, on each label task: one a fold and repeat."""
    tasks, n_labels = list(tasks), int(codes.max()) + 1
    ways = {NONE: None, **corrections}
    scores: Scores = {task: {name: [] for name in ways} for task in tasks}
    parts = list(splits(len(vectors), folds=folds, repeats=repeats, seed=seed, strata=codes))
    for number, split in enumerate(parts):
        for place, (name, correction) in enumerate(ways.items()):
            if bar:
                bar.step(f"{name}, fold {number + 1} of {len(parts)}")
                bar.share((number + place / len(ways)) / len(parts))
            found = _corrected(correction, vectors[split.train], [vectors[split.train], vectors[split.test]])
            if isinstance(found, str):
                _fail(scores, name, found)
                continue
            train, test = found
            fold = LabelFold(train, test, codes[split.train], codes[split.test], n_labels, split.seed)
            for task in tasks:
                kept = scores[task][name]
                if isinstance(kept, list):
                    kept.append(LABEL_TASKS[task](fold))
    return scores


def _try_pairs(
    vectors: Tensor,
    pairs: Pairs,
    corrections: Mapping[str, Any],
    *,
    folds: int,
    repeats: int,
    seed: int,
    bar: Bar | None = None,
) -> tuple[Scores, list[str]]:
    """Spearman's ρ of held-out pairs; a correction sees only rows that no held-out pair has, where it can."""
    ways = {NONE: None, **corrections}
    scores: Scores = {PAIR_TASK: {name: [] for name in ways}}
    shared = False
    parts = list(splits(len(pairs), folds=folds, repeats=repeats, seed=seed))
    for number, split in enumerate(parts):
        held = pairs.some(split.test)
        rows, is_shared = _rows_to_fit(len(vectors), pairs.some(split.train), held, split.seed)
        shared |= is_shared
        for place, (name, correction) in enumerate(ways.items()):
            if bar:
                bar.step(f"{name}, pairs, fold {number + 1} of {len(parts)}")
                bar.share((number + place / len(ways)) / len(parts))
            found = _corrected(correction, vectors[rows], [vectors[held.firsts], vectors[held.seconds]])
            kept = scores[PAIR_TASK][name]
            if isinstance(found, str):
                _fail(scores, name, found)
            elif isinstance(kept, list):
                kept.append(similarity(found[0], found[1], held.scores))
    said = "pairs share many rows: corrections saw vectors, never scores, of rows they were tested on"
    return scores, [said] if shared else []


def _rows_to_fit(n: int, train: Pairs, held: Pairs, seed: int) -> tuple[Tensor, bool]:
    """Rows in no held-out pair; where pairs share most rows, those of the training pairs, and True."""
    is_held = torch.zeros(n, dtype=torch.bool)
    is_held[held.rows] = True
    apart = (~is_held).nonzero().flatten()
    is_shared = 2 * len(apart) < n
    rows = train.rows if is_shared else apart
    return rows[_drawn(len(rows), _MAX_FIT, seed)], is_shared


def _corrected(correction: Any, fit_on: Tensor, rows: list[Tensor]) -> list[Tensor] | str:
    """Rows as a fresh copy of the correction, fitted on `fit_on`, makes them; why not, where it cannot."""
    if correction is None:
        return [part.float() for part in rows]
    from sklearn.base import clone

    own = clone(correction)
    try:
        own.fit(_array(fit_on))
        return [torch.as_tensor(np.asarray(own.transform(_array(part)))).float() for part in rows]
    except IsoscopeError as error:
        return str(error)


def _array(rows: Tensor) -> np.ndarray:
    return rows.float().numpy() if rows.dtype != torch.float64 else rows.numpy()


def _fail(scores: Scores, name: str, reason: str) -> None:
    for by_correction in scores.values():
        by_correction[name] = reason


def _judged(task: str, scores: Mapping[str, list[float] | str], n_items: int, folds: int) -> TaskAdvice:
    """Gains over none, paired, and their p-values adjusted together."""
    base = scores[NONE]
    assert isinstance(base, list)
    gains = {
        name: gain([a - b for a, b in zip(found, base, strict=True)], test_share=1 / (folds - 1))
        for name, found in scores.items()
        if name != NONE and isinstance(found, list)
    }
    adjusted = dict(zip(gains, holm([one.p_value for one in gains.values()]), strict=True))
    outcomes = []
    for name, found in scores.items():
        if name == NONE:
            continue
        if isinstance(found, str):
            outcomes.append(Outcome(name, None, None, None, None, reason=found))
            continue
        one = gains[name]
        mean = math.fsum(found) / len(found)
        outcomes.append(Outcome(name, mean, one.mean, one.interval, adjusted[name], tuple(found)))
    return TaskAdvice(task, SCORES[task], n_items, math.fsum(base) / len(base), tuple(outcomes))


_FIGURES: dict[str, Callable[[Any], Any]] = {
    "isoscore": isoscore,
    "mean_cosine": mean_cosine,
    "effective_rank": effective_rank,
}


def _geometry(
    vectors: Tensor, corrections: Mapping[str, Any], chosen: str | None
) -> tuple[dict[str, dict[str, float | None]], Any]:
    """Figures of the space under each correction, fitted on all of it; and the chosen one, fitted."""
    from sklearn.base import clone

    geometry, fitted = {NONE: _figures(vectors)}, None
    for name, correction in corrections.items():
        own = clone(correction)
        try:
            own.fit(_array(vectors))
            geometry[name] = _figures(torch.as_tensor(np.asarray(own.transform(_array(vectors)))))
        except IsoscopeError:
            geometry[name] = dict.fromkeys(_FIGURES)
        fitted = own if name == chosen else fitted
    return geometry, fitted


def _figures(vectors: Tensor) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, formula in _FIGURES.items():
        try:
            found[name] = float(formula(vectors))
        except UndefinedError:
            found[name] = None
    return found
