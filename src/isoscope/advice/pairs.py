"""Scored pairs of rows, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError

MIN_PAIRS = 20


@dataclass(frozen=True, eq=False)
class Pairs:
    """(m,) first and second row of each pair, and its score, float64."""

    firsts: Tensor
    seconds: Tensor
    scores: Tensor

    def __len__(self) -> int:
        return len(self.scores)

    def some(self, which: Tensor) -> Pairs:
        """The pairs at these places."""
        return Pairs(self.firsts[which], self.seconds[which], self.scores[which])

    @property
    def rows(self) -> Tensor:
        """The rows that occur, sorted, each once."""
        return torch.cat([self.firsts, self.seconds]).unique()


def as_pairs(pairs: Any, *, n: int) -> Pairs:
    """Pairs from (row, row, score) triples: an (m, 3) array, or a sequence of them.

    >>> as_pairs([(0, 1, 4.5), (2, 1, 0.5)] * 10, n=3).firsts[:2]
    tensor([0, 2])
    """
    if isinstance(pairs, Pairs):
        return pairs
    try:
        table = np.asarray(pairs.to_numpy() if hasattr(pairs, "to_numpy") else pairs, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "holds no numbers; wanted (row, row, score) triples, rows counted from 0", argument="pairs"
        ) from None
    if table.ndim != 2 or table.shape[1] != 3:
        raise ShapeError(
            f"has shape {table.shape}; wanted (m, 3): a row, another row, and their score", argument="pairs"
        )
    rows, scores = table[:, :2], table[:, 2]
    if not np.isfinite(table).all():
        raise InputError(
            f"has NaN or Inf in row {int(np.argmin(np.isfinite(table).all(1)))}; drop it", argument="pairs"
        )
    bad = (rows != np.floor(rows)) | (rows < 0) | (rows >= n)
    if bad.any():
        at = int(bad.any(1).argmax())
        raise InputError(
            f"pairs[{at}] names rows {rows[at, 0]:g} and {rows[at, 1]:g}; "
            f"wanted whole numbers from 0 to {n - 1}"
        )
    if len(table) < MIN_PAIRS:
        raise InputError(f"has {len(table)} pairs; wanted at least {MIN_PAIRS} to rank", argument="pairs")
    n_apart = int((rows[:, 0] != rows[:, 1]).sum())
    if n_apart < MIN_PAIRS:
        raise InputError(
            f"has {n_apart} pairs of two different rows, and {len(table) - n_apart} of a row with "
            f"itself, whose cosine is 1 in any space; wanted at least {MIN_PAIRS} of different rows",
            argument="pairs",
        )
    if np.ptp(scores) == 0:
        raise InputError(f"pairs all have the score {scores[0]:g}; wanted scores that differ")
    first, second = (torch.from_numpy(rows[:, column].astype(np.int64)) for column in (0, 1))
    return Pairs(first, second, torch.from_numpy(scores))
