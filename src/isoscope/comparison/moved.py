"""Which items moved: neighbours lost, distance after the best rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.result import MovedLabel, MovedRow
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.correspondence import neighbor_overlap_samples
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments

MAX_QUERIES = 5000  # points whose neighbours are looked up, among all
_MIN_LABEL = 5  # rows of a label, for a mean worth naming
_Z95 = 1.959964


@dataclass(frozen=True)
class Moved:
    """Overlap of neighbours with its interval, the rows and labels that kept least, and notes.

    `reason` says why there is no overlap where there is none.
    """

    overlap: float | None
    interval: tuple[float, float] | None
    rows: tuple[MovedRow, ...]
    labels: tuple[MovedLabel, ...]
    notes: tuple[str, ...]
    k: int
    reason: str = ""


def find_moved(first: Space, second: Space, *, k: int, metric: str, n_moved: int, seed: int) -> Moved:
    """The rows whose neighbours changed most; among equals, those farthest off after the best rotation."""
    if n_moved < 0:
        raise InputError(f"n_moved is {n_moved}; wanted 0 or more")
    n = len(first)
    sample = MAX_QUERIES if n > MAX_QUERIES else None
    try:
        shares, rows = neighbor_overlap_samples(
            first.vectors, second.vectors, k=k, metric=metric, sample=sample, seed=seed
        )
    except UndefinedError as error:
        return Moved(None, None, (), (), (), k, str(error))
    overlap = float(shares.mean())
    half = _Z95 * float(shares.std()) / math.sqrt(len(shares))
    notes = (f"neighbours of a random {len(rows):,} of the {n:,} rows, among all (seed {seed})",)
    moves = displacements(first.vectors, second.vectors)[rows]
    return Moved(
        overlap,
        (max(overlap - half, 0.0), min(overlap + half, 1.0)),
        _moved_rows(first, shares, moves, rows, n_moved),
        _moved_labels(first, shares, rows, n_moved),
        notes if sample else (),
        k,
    )


def displacements(X: Tensor, Y: Tensor) -> Tensor:
    """(n,) how far each row is from its partner under the best rotation, both spaces centred and scaled.

        √(n/2) ‖x − Q y‖,   Σ‖x‖² = Σ‖y‖² = 1

    The root mean square over rows is 1 for spaces that have nothing in common, and the Procrustes distance
    over √2 in general.
    """
    sums = CrossMoments.of(X, Y)
    try:
        sums.need_spread("displacement")
    except UndefinedError:
        return torch.zeros(len(X), dtype=torch.float64)
    x, y = ((Z.double() - Z.double().mean(dim=0)).cpu() for Z in (X, Y))
    x, y = x / x.norm(), y / y.norm()
    U, _, Vt = torch.linalg.svd(sums.cross.cpu(), full_matrices=False)
    # ‖x − y Q‖² = ‖x‖² + ‖y‖² − 2 x·(y V Uᵀ): the zeros that fill up the smaller space never show
    products = ((x @ U) * (y @ Vt.T)).sum(dim=1)
    squares = x.square().sum(dim=1) + y.square().sum(dim=1) - 2 * products
    return (squares.clamp(min=0) * len(x) / 2).sqrt()


def _moved_rows(
    space: Space, shares: Tensor, moves: Tensor, rows: Tensor, n_moved: int
) -> tuple[MovedRow, ...]:
    by_move = (-moves).argsort(stable=True)
    order = by_move[shares[by_move].argsort(stable=True)][:n_moved]
    return tuple(
        MovedRow(
            int(rows[i]),
            float(shares[i]),
            float(moves[i]),
            _label(space, int(rows[i])),
            None if space.texts is None else space.texts[int(rows[i])],
        )
        for i in order.tolist()
    )


def _label(space: Space, row: int) -> Any:
    return None if space.labels is None else space.labels.names[int(space.labels.codes[row])]


def _moved_labels(space: Space, shares: Tensor, rows: Tensor, n_moved: int) -> tuple[MovedLabel, ...]:
    if space.labels is None:
        return ()
    codes = space.labels.codes.cpu()[rows]
    counts = torch.bincount(codes, minlength=space.labels.n_labels)
    sums = torch.bincount(codes, weights=shares, minlength=space.labels.n_labels)
    found = [
        MovedLabel(name, int(count), float(total / count))
        for name, count, total in zip(space.labels.names, counts, sums, strict=True)
        if count >= _MIN_LABEL
    ]
    return tuple(sorted(found, key=lambda one: one.overlap)[:n_moved])
