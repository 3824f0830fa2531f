"""Trials: every correction is fitted on the training rows of every fold and scored on the held-out rows."""

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

MAX_FIT = 5000  # rows that a correction is fitted on for scored pairs
Scores = dict[str, dict[str, list[float] | str]]  # by task and correction; the reason where there are none


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
    """Return the scores of every correction, and of none, on each label task, by fold and repeat."""
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
    """Return the scores on held-out pairs, and whether pairs share most rows in some fold.

    A correction is fitted on rows that are in no held-out pair. Where these are fewer than half of the rows,
    it is fitted on the rows of the training pairs.
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
    """Return the scores of every correction, and of none, on every split.

    `rows` returns the rows to fit on and the rows to correct; `score` takes the split and the corrected rows.
    """
    candidates = {NONE: None, **corrections}
    scores: Scores = {task: {name: [] for name in candidates} for task in tasks}
    for number, split in enumerate(parts):
        fit_on, parts_to_correct = rows(split)
        for place, (name, correction) in enumerate(candidates.items()):
            if bar:
                bar.step(f"{name}, fold {number + 1} of {len(parts)}")
                bar.share((number + place / len(candidates)) / len(parts))
            try:
                transformed_parts = corrected(correction, fit_on, parts_to_correct)
            except ValueError as error:
                for by_correction in scores.values():
                    by_correction[name] = getattr(error, "problem", str(error))
                continue
            for task, value in score(split, *transformed_parts).items():
                earlier = scores[task][name]
                if isinstance(earlier, list):  # a correction that failed on one fold has no score
                    earlier.append(value)
    return scores


def _rows_to_fit(n: int, train: Pairs, held: Pairs, seed: int) -> tuple[Tensor, bool]:
    """Return the rows to fit on, and whether they may be in held-out pairs."""
    is_held = torch.zeros(n, dtype=torch.bool)
    is_held[held.rows] = True
    free = (~is_held).nonzero().flatten()
    is_shared = 2 * len(free) < n
    rows = train.rows if is_shared else free
    return rows[drawn(len(rows), MAX_FIT, seed)], is_shared


def drawn(n: int, most: int, seed: int) -> Tensor:
    """Return at most `most` of n numbers, random and sorted; a smaller sample is part of a larger one."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:most].sort().values


def corrected(correction: Any, fit_on: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """Return the parts after a copy of the correction, fitted on `fit_on`.

    Raises:
        ValueError: the correction cannot be fitted, or does not return vectors.
    """
    if correction is None:
        return [part.float() for part in parts]
    fitted = fitted_on(correction, fit_on)
    return [transformed(fitted, part).float() for part in parts]


def fitted_on(correction: Any, vectors: Tensor) -> Any:
    """Return a copy of the correction, fitted on vectors without labels."""
    from sklearn.base import clone

    return clone(correction).fit(_array(vectors))


def transformed(fitted: Any, vectors: Tensor) -> Tensor:
    """Return vectors after a fitted correction, checked."""
    corrected = as_matrix(np.asarray(fitted.transform(_array(vectors))), name="the result of the correction")
    if len(corrected) != len(vectors):
        raise ShapeError(f"the correction must return {len(vectors)} rows, got {len(corrected)}")
    return corrected


def _array(vectors: Tensor) -> np.ndarray:
    return (vectors if vectors.dtype == torch.float64 else vectors.float()).numpy()
