"""Which items moved: neighbours lost, distance after the best rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.changes import MovedLabel, MovedRow
from isoscope.comparison.resampling import N_GROUPS, dealt, half_width, jackknife_error
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.correspondence import neighbor_overlap_samples, shared_counts
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.directions import has_direction
from isoscope.statistics.neighbors import Neighbors

MAX_QUERIES = 5000  # points whose neighbours are looked up, among all
_MIN_LABEL = 5  # rows of a label, for a mean worth naming


@dataclass(frozen=True)
class Moved:
    """Overlap of neighbours with its interval, the rows and labels that kept least, and notes.

    `reason` says why there is no overlap where there is none; `zero` has the rows of either space that have
    no direction, and so no cosine.
    """

    overlap: float | None
    interval: tuple[float, float] | None
    rows: tuple[MovedRow, ...]
    labels: tuple[MovedLabel, ...]
    notes: tuple[str, ...]
    k: int
    zero: tuple[Tensor, Tensor]
    reason: str = ""


def find_moved(
    first: Space,
    second: Space,
    sums: CrossMoments,
    *,
    k: int,
    metric: str,
    n_moved: int,
    seed: int,
    errors: bool = True,
) -> Moved:
    """The rows whose neighbours changed most; among equals, those farthest off after the best rotation."""
    if n_moved < 0:
        raise InputError(f"n_moved is {n_moved}; wanted 0 or more")
    zero = _zero_rows(first.vectors, metric), _zero_rows(second.vectors, metric)
    n = len(first)
    sample = MAX_QUERIES if n > MAX_QUERIES else None
    try:
        shares, rows = neighbor_overlap_samples(
            first.vectors, second.vectors, k=k, metric=metric, sample=sample, seed=seed
        )
    except UndefinedError as undefined:
        return Moved(None, None, (), (), (), k, zero, str(undefined))
    overlap = float(shares.mean())
    X, Y = (_without(space.vectors, torch.cat(zero)) for space in (first, second))
    error = overlap_error(X, Y, k=k, metric=metric, seed=seed) if errors else None
    if error is not None and sample:
        error = math.hypot(error, float(shares.std()) / math.sqrt(sample))  # of what was not looked up
    notes = (f"neighbours of a random {len(rows):,} of the {n:,} rows, among all (seed {seed})",)
    moves = displacements(first.vectors, second.vectors, sums, rows=rows)
    return Moved(
        overlap,
        _interval(overlap, error),
        _moved_rows(first, shares, moves, rows, n_moved),
        _moved_labels(first, shares, rows, n_moved),
        notes if sample else (),
        k,
        zero,
    )


def _zero_rows(vectors: Tensor, metric: str) -> Tensor:
    """Return the rows that have no neighbours by this metric."""
    if metric != "cosine":
        return torch.arange(0)
    return (~has_direction(vectors)).nonzero().flatten().cpu()


def _without(vectors: Tensor, rows: Tensor) -> Tensor:
    if not len(rows):
        return vectors
    stays = torch.ones(len(vectors), dtype=torch.bool)
    stays[rows] = False
    return vectors[stays.to(vectors.device)]


def overlap_error(X: Tensor, Y: Tensor, *, k: int, metric: str, seed: int) -> float | None:
    """The standard error of the overlap, groups of rows left out of both spaces; None with too few rows.

    Rows that are neighbours of many count many times, so the spread of the rows' own shares is too small.
    More neighbours than k are found once: those left when a group goes are the first k that stay.
    """
    rows, group = dealt(len(X), seed=seed)
    wide = 2 * k + N_GROUPS
    if len(rows) <= wide:
        return None
    found = [Neighbors.of(Z[rows.to(Z.device)], k=wide, metric=metric).indices.cpu() for Z in (X, Y)]
    values: list[float | None] = []
    for g in range(N_GROUPS):
        stays = group != g
        first, second = (_first(indices[stays], stays, k) for indices in found)
        values.append(float(shared_counts(first, second).mean()) / k)
    return jackknife_error(values, math.sqrt(len(rows) / len(X)))


def _first(indices: Tensor, stays: Tensor, k: int) -> Tensor:
    """The first k of each row's neighbours that stay."""
    order = (~stays[indices]).byte().argsort(dim=1, stable=True)[:, :k]
    return indices.gather(1, order)


def _interval(overlap: float, error: float | None) -> tuple[float, float] | None:
    if error is None:
        return None
    half = half_width(error, N_GROUPS)
    return max(overlap - half, 0.0), min(overlap + half, 1.0)


def displacements(X: Tensor, Y: Tensor, sums: CrossMoments, *, rows: Tensor) -> Tensor:
    """(m,) how far some rows are from their partners under the best rotation of all, centred and scaled.

        √(n/2) ‖x − Q y‖,   Σ‖x‖² = Σ‖y‖² = 1

    The root mean square over all rows is 1 for spaces that have nothing in common, and the Procrustes
    distance over √2 in general.

    Args:
        X, Y: (n, d) and (n, e) vectors.
        sums: theirs.
        rows: (m,) which rows.
    """
    try:
        sums.need_spread("displacement")
    except UndefinedError:
        return torch.zeros(len(rows), dtype=torch.float64)
    x = _scaled(X[rows.to(X.device)], sums.left_mean, sums.left)
    y = _scaled(Y[rows.to(Y.device)], sums.right_mean, sums.right)
    U, _, Vt = torch.linalg.svd(sums.cross.cpu(), full_matrices=False)
    # ‖x − y Q‖² = ‖x‖² + ‖y‖² − 2 x·(y V Uᵀ): the zeros that fill up the smaller space never show
    products = ((x @ U) * (y @ Vt.T)).sum(dim=1)
    squares = x.square().sum(dim=1) + y.square().sum(dim=1) - 2 * products
    return (squares.clamp(min=0) * sums.count / 2).sqrt()


def _scaled(rows: Tensor, mean: Tensor, scatter: Tensor) -> Tensor:
    """Rows in float64, centred, by the scale at which the squares of all rows sum to 1."""
    return (rows.cpu().double() - mean.cpu()) / scatter.trace().cpu().sqrt()


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
