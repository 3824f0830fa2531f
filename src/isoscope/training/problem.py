"""`Problem`: the vectors to train, the items made of them, and the label of each item."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix, working
from isoscope.errors import InputError, LabelError, ShapeError
from isoscope.labels import Labels, as_clusters, is_indicator
from isoscope.space import Space, known_rows

_WANTED_PAIRS = "shape (m, 2), two row numbers of X for each item"
_SETS = (list, tuple, set, frozenset, np.ndarray)


@dataclass(frozen=True, eq=False)
class Problem:
    """The vectors, items and labels of a run.

    Attributes:
        table: (n, d) the initial vectors, in the type they are trained in.
        pairs: (m, c) row numbers of each item, or None where every row is an item.
        clusters: the label of each item; every distinct set of labels is a label of its own.
        indicator: (m, L) 1 where an item has a label; None where every item has one label.
        label_names: the L labels that the classifier scores.
    """

    table: Tensor
    pairs: Tensor | None
    clusters: Labels
    indicator: Tensor | None
    label_names: tuple[Any, ...]

    @classmethod
    def of(cls, X: Any, y: Any = None, *, pairs: Any = None, name: str = "y") -> Problem:
        """Check vectors, labels (the argument `name`) and pairs, and return the problem."""
        matrix = as_matrix(X).detach()
        if matrix.shape[0] < 2 or matrix.shape[1] < 2:
            raise ShapeError(
                f"has shape {tuple(matrix.shape)}", argument="X", wanted="at least 2 vectors of 2 dimensions"
            )
        table = _recordable(working(matrix))
        rows = None if pairs is None else _as_pairs(pairs, len(table)).to(table.device)
        n_items = len(table) if rows is None else len(rows)
        labels = known_rows(X, y, "labels") if isinstance(X, Space) else y
        if labels is None:
            raise InputError(
                "is missing", argument=name, hint="pass one label, or set of labels, for each item"
            )
        indicator, names = _indicator(labels, name)
        if rows is not None and len(labels) != n_items:
            raise ShapeError(
                f"has {len(labels)} entries for {n_items} pairs",
                argument=name,
                wanted="one label for each pair",
            )
        clusters = as_clusters(labels, n=n_items, name=name)
        if indicator is not None:
            indicator = indicator.to(table)
        clusters = Labels(_recordable(clusters.codes.to(table.device)), clusters.names)
        return cls(table, rows, clusters, indicator, names or clusters.names)

    @property
    def n_items(self) -> int:
        """The number of items m."""
        return len(self.clusters)

    @property
    def n_columns(self) -> int:
        """The number of rows c of an item."""
        return 1 if self.pairs is None else int(self.pairs.shape[1])

    @property
    def n_inputs(self) -> int:
        """The number of inputs c·d of the classifier."""
        return self.n_columns * int(self.table.shape[1])

    def items(self, table: Tensor, chosen: Tensor | None = None) -> Tensor:
        """Return the (…, m, c·d) items of a table (…, n, d), or the chosen ones: its rows, concatenated."""
        if self.pairs is None:
            return table if chosen is None else table.index_select(-2, chosen)
        pairs = self.pairs if chosen is None else self.pairs[chosen]
        gathered = table.index_select(-2, pairs.flatten())
        return gathered.reshape(*table.shape[:-2], len(pairs), self.n_inputs)

    def rows_of(self, chosen: Tensor) -> Tensor:
        """Return the distinct row numbers of the chosen items."""
        return chosen if self.pairs is None else self.pairs[chosen].unique()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the vectors, pairs and labels."""
        digest = hashlib.sha256(repr((tuple(self.table.shape), self.table.dtype)).encode())
        parts = [self.table, self.pairs, self.clusters.codes, self.indicator]
        for part in parts:
            if part is not None:
                digest.update(part.cpu().contiguous().numpy().tobytes())
        digest.update(repr((self.clusters.names, self.label_names)).encode())
        return digest.hexdigest()


def _as_pairs(pairs: Any, n: int) -> Tensor:
    """Return (m, c) int64 row numbers, checked to be in range."""
    try:
        rows = pairs if isinstance(pairs, Tensor) else torch.as_tensor(np.asarray(pairs))
    except (ValueError, TypeError):  # rows of different lengths, or no numbers
        raise ShapeError("is not a table of numbers", argument="pairs", wanted=_WANTED_PAIRS) from None
    if rows.is_floating_point() and bool((rows == rows.round()).all()):
        rows = rows.long()
    if rows.dtype == torch.bool or rows.is_floating_point() or rows.is_complex():
        raise InputError(f"is of {rows.dtype}", argument="pairs", wanted="whole numbers, the rows of X")
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ShapeError(f"has shape {tuple(rows.shape)}", argument="pairs", wanted=_WANTED_PAIRS)
    wrong = ((rows < 0) | (rows >= n)).any(dim=1).nonzero().flatten()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"has {rows[row].tolist()} at row {row} ({len(wrong)} of {len(rows)} pairs are out of range)",
            argument="pairs",
            wanted=f"rows of X, from 0 to {n - 1}",
        )
    return _recordable(rows.long())


def _indicator(labels: Any, name: str) -> tuple[Tensor | None, tuple[Any, ...]]:
    """Return the (m, L) indicator and the L labels where items have sets of labels; else None and ()."""
    if isinstance(labels, Labels):
        return None, ()
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    elif hasattr(labels, "to_numpy"):
        labels = np.asarray(labels)  # pandas, polars, Arrow columns
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        if labels.shape[1] == 1:
            return None, ()
        return torch.from_numpy(labels.astype(np.float64)), tuple(range(labels.shape[1]))
    rows = list(labels) if hasattr(labels, "__iter__") and not isinstance(labels, str) else []
    if not any(isinstance(row, _SETS) for row in rows):
        return None, ()
    missing = [row for row, own in enumerate(rows) if own is None]
    if missing:
        raise LabelError(
            f"is missing for {len(missing)} items, item {missing[0]} first",
            argument=name,
            hint="drop those items",
        )
    if is_indicator(rows):
        return torch.tensor(rows, dtype=torch.float64), tuple(range(len(rows[0])))
    sets = [{str(label) for label in ([row] if isinstance(row, str) else row)} for row in rows]
    names = tuple(sorted(set().union(*sets)))
    if not names:
        raise LabelError("has only empty sets", argument=name, wanted="sets of labels")
    place = {name: column for column, name in enumerate(names)}
    indicator = torch.zeros(len(sets), len(names), dtype=torch.float64)
    for item, own in enumerate(sets):
        indicator[item, [place[name] for name in own]] = 1
    return indicator, names


def _recordable(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy of one made in inference mode, which autograd cannot save."""
    return tensor.clone() if tensor.is_inference() else tensor
