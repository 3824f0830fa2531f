"""Trials: every correction on every fold, fitted on the rest and scored on what is held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.advice.candidates import NONE
from isoscope.advice.pairs import Pairs
from isoscope.advice.tasks import LABEL_TASKS, PAIR_TASK, LabelFold, similarity
from isoscope.advice.validation import Split, splits
from isoscope.arrays import as_matrix
from isoscope.errors import ShapeError
from isoscope.progress import Bar

MAX_FIT = 5000  # rows a correction is fitted on for scored pairs
Scores = dict[str, dict[str, list[float] | str]]  # by task and correction; a reason in words where none


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
    """Score every correction, and none, on each label task: once a fold and repeat."""
    tasks, n_labels = list(tasks), int(codes.max()) + 1

    def rows(split: Split) -> tuple[Tensor, list[Tensor]]:
        train = vectors[split.train]
        return train, [train, vectors[split.test]]

    def score(split: Split, train: Tensor, test: Tensor) -> dict[str, float]:
        fold = LabelFold(train, test, codes[split.train], codes[split.test], n_labels, split.seed)
        return {task: LABEL_TASKS[task](fold) for task in tasks}

    parts = list(splits(len(vectors), folds=folds, repeats=repeats, seed=seed, strata=codes))
    return _tried(corrections, parts, tasks, rows, score, bar)


def try_pairs(
    vectors: Tensor,
    pairs: Pairs,
    *,
    corrections: Mapping[str, Any],
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    bar: Bar | None = None,
) -> tuple[Scores, bool]:
    """Return Spearman's ρ of held-out pairs, and whether pairs share most rows on some fold.

    A correction sees only rows that no held-out pair has; where pairs share most rows, those of the training
    pairs.
    """
    are_shared: list[bool] = []

    def rows(split: Split) -> tuple[Tensor, list[Tensor]]:
        held = pairs.some(split.test)
        fit_on, is_shared = _rows_to_fit(len(vectors), pairs.some(split.train), held, split.seed)
        are_shared.append(is_shared)
        return vectors[fit_on], [vectors[held.firsts], vectors[held.seconds]]

    def score(split: Split, firsts: Tensor, seconds: Tensor) -> dict[str, float]:
        return {PAIR_TASK: similarity(firsts, seconds, pairs.some(split.test).scores)}

    parts = list(splits(len(pairs), folds=folds, repeats=repeats, seed=seed))
    return _tried(corrections, parts, [PAIR_TASK], rows, score, bar), any(are_shared)


def _tried(
    corrections: Mapping[str, Any],
    parts: Sequence[Split],
    tasks: Iterable[str],
    rows: Callable[[Split], tuple[Tensor, list[Tensor]]],
    score: Callable[..., dict[str, float]],
    bar: Bar | None,
) -> Scores:
    """Score every correction, and none, on every split.

    `rows` are those to fit on and those to correct; `score` takes the split and the corrected ones.
    """
    ways = {NONE: None, **corrections}
    scores: Scores = {task: {name: [] for name in ways} for task in tasks}
    for number, split in enumerate(parts):
        fit_on, given = rows(split)
        for place, (name, correction) in enumerate(ways.items()):
            if bar:
                bar.step(f"{name}, fold {number + 1} of {len(parts)}")
                bar.share((number + place / len(ways)) / len(parts))
            try:
                made = corrected(correction, fit_on, given)
            except ValueError as error:
                for by_correction in scores.values():
                    by_correction[name] = getattr(error, "problem", str(error))
                continue
            for task, value in score(split, *made).items():
                earlier = scores[task][name]
                if isinstance(earlier, list):  # what failed on one fold has no score at all
                    earlier.append(value)
    return scores


def _rows_to_fit(n: int, train: Pairs, held: Pairs, seed: int) -> tuple[Tensor, bool]:
    """Return rows in no held-out pair; where pairs share most rows, those of training pairs, and True."""
    is_held = torch.zeros(n, dtype=torch.bool)
    is_held[held.rows] = True
    apart = (~is_held).nonzero().flatten()
    is_shared = 2 * len(apart) < n
    rows = train.rows if is_shared else apart
    return rows[drawn(len(rows), MAX_FIT, seed)], is_shared


def drawn(n: int, most: int, seed: int) -> Tensor:
    """Draw at most so many of n numbers, in order; a smaller draw is part of a larger one."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:most].sort().values


def corrected(correction: Any, fit_on: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """Return rows as a fresh copy of the correction, fitted on `fit_on`, makes them.

    Raises:
        ValueError: it cannot be fitted, or what it makes is no vectors.
    """
    if correction is None:
        return [part.float() for part in parts]
    fitted = fitted_on(correction, fit_on)
    return [transformed(fitted, part).float() for part in parts]


def fitted_on(correction: Any, vectors: Tensor) -> Any:
    """Fit a copy of the correction: it is shown vectors, never labels."""
    from sklearn.base import clone

    own = clone(correction)
    own.fit(_array(vectors))
    return own


def transformed(fitted: Any, vectors: Tensor) -> Tensor:
    """Return what a fitted correction makes of vectors, checked."""
    found = as_matrix(np.asarray(fitted.transform(_array(vectors))), name="what the correction makes")
    if len(found) != len(vectors):
        raise ShapeError(f"the correction made {len(found)} rows of {len(vectors)}; wanted one for each")
    return found


def _array(vectors: Tensor) -> np.ndarray:
    return (vectors if vectors.dtype == torch.float64 else vectors.float()).numpy()
