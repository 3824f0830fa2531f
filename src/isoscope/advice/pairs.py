"""Scored pairs of rows, checked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError
from isoscope.io.pair_files import FilePairs, read_scored_pairs

MIN_PAIRS = 20


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scored pairs: (m,) first row, second row, and float64 score of each."""

    firsts: Tensor
    seconds: Tensor
    scores: Tensor

    def __len__(self) -> int:
        return len(self.scores)

    def some(self, which: Tensor) -> Pairs:
        """Return some of the pairs, by their places."""
        return Pairs(self.firsts[which], self.seconds[which], self.scores[which])

    @property
    def rows(self) -> Tensor:
        """The distinct rows of the pairs, sorted."""
        return torch.cat([self.firsts, self.seconds]).unique()


def as_pairs(pairs: Any, *, n: int) -> Pairs:
    """Return pairs from (row, row, score) triples: an (m, 3) array, or a sequence of triples.

    >>> as_pairs([(0, 1, 4.5), (2, 1, 0.5)] * 10, n=3).firsts[:2]
    tensor([0, 2])
    """
    if isinstance(pairs, Pairs):
        return pairs
    try:
        table = np.asarray(pairs.to_numpy() if hasattr(pairs, "to_numpy") else pairs, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "must be (row, row, score) triples of numbers, with rows counted from 0", argument="pairs"
        ) from None
    if table.ndim != 2 or table.shape[1] != 3:
        raise ShapeError(
            argument="pairs", got=table.shape, wanted="of shape (m, 3): a row, another row, and a score"
        )
    rows, scores = table[:, :2], table[:, 2]
    if not np.isfinite(table).all():
        raise InputError(
            f"has NaN or Inf in row {int(np.argmin(np.isfinite(table).all(1)))}",
            argument="pairs",
            hint="leave this pair out",
        )
    bad = (rows != np.floor(rows)) | (rows < 0) | (rows >= n)
    if bad.any():
        at = int(bad.any(1).argmax())
        raise InputError(
            f"pairs[{at}] must have rows from 0 to {n - 1}, got {rows[at, 0]:g} and {rows[at, 1]:g}"
        )
    if len(table) < MIN_PAIRS:
        raise InputError(argument="pairs", got=len(table), wanted=f"at least {MIN_PAIRS} pairs")
    n_different = int((rows[:, 0] != rows[:, 1]).sum())
    if n_different < MIN_PAIRS:
        raise InputError(
            f"must have at least {MIN_PAIRS} pairs of different rows, got {n_different}; the other "
            f"{len(table) - n_different} pair a row with itself",
            argument="pairs",
        )
    if np.ptp(scores) == 0:
        raise InputError(f"must have different scores, got {scores[0]:g} for all", argument="pairs")
    first, second = (torch.from_numpy(rows[:, column].astype(np.int64)) for column in (0, 1))
    return Pairs(first, second, torch.from_numpy(scores))


def as_rows(pairs: Any, texts: Sequence[str] | None) -> Any:
    """Return pairs as they are given, or those of a file: its texts are looked up among those of the rows."""
    if not isinstance(pairs, str | os.PathLike | FilePairs):
        return pairs
    scored = pairs if isinstance(pairs, FilePairs) else read_scored_pairs(pairs)
    firsts, seconds = scored.firsts, scored.seconds
    if not scored.are_rows:
        if texts is None:
            raise InputError(
                "has texts, and X has only vectors",
                argument="pairs",
                hint="name rows by their numbers, from 0",
            )
        places = {text: row for row, text in enumerate(texts)}
        if absent := [text for text in scored.texts if text not in places]:
            raise InputError(
                f"has {len(absent)} texts that X does not have, the first is {absent[0]!r:.60}",
                argument="pairs",
            )
        firsts, seconds = ([places[text] for text in side] for side in (firsts, seconds))
    return list(zip(firsts, seconds, scored.scores, strict=True))
