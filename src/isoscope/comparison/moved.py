"""Which items moved: neighbours lost, distance after the best rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.comparison.changes import Interval, MovedLabel, MovedRow
from isoscope.comparison.resampling import N_GROUPS, Groups
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
    """What became of neighbourhoods.

    Attributes:
        overlap, interval: the share of neighbours that both spaces have, and its 95 % interval.
        rows, labels: those that kept least.
        notes: what the reader should know.
        k: neighbours looked at.
        zero: the rows of either space that have no direction, and so no cosine.
        reason: why there is no overlap where there is none.
    """

    overlap: float | None
    interval: Interval | None
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
    """Find the rows whose neighbours changed most; of equals, those farthest off after the best rotation."""
    if n_moved < 0:
        raise InputError(argument="n_moved", got=n_moved, wanted="0 or more")
    n, zero = len(first), (_zero_rows(first.vectors, metric), _zero_rows(second.vectors, metric))
    stays = torch.ones(n, dtype=torch.bool)
    stays[torch.cat(zero)] = False
    directed = stays.nonzero().flatten()
    groups = Groups.dealt(len(directed), seed=seed)
    some = directed[groups.rows]
    found = wide_neighbors(first.vectors, second.vectors, some, k=k, metric=metric) if errors else None
    sample = MAX_QUERIES if n > MAX_QUERIES else None
    try:
        if found is not None and len(some) == len(directed):
            shares, rows = neighbor_overlap_samples(*found, k=k)[0], directed
        else:
            shares, rows = neighbor_overlap_samples(
                first.vectors, second.vectors, k=k, metric=metric, sample=sample, seed=seed
            )
    except UndefinedError as undefined:
        return Moved(None, None, (), (), (), k, zero, undefined.problem)
    overlap, interval = float(shares.mean()), None
    error = None if found is None else overlap_error(found, groups, k=k)
    if error is not None:
        if sample:
            error = math.hypot(error, float(shares.std()) / math.sqrt(sample))  # of what was not looked up
        half = groups.half_width(error)
        interval = max(overlap - half, 0.0), min(overlap + half, 1.0)
    notes = (f"neighbours of a random {len(rows):,} of the {n:,} rows, among all (seed {seed})",)
    moves = displacements(first.vectors, second.vectors, sums, rows=rows)
    return Moved(
        overlap,
        interval,
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


def wide_neighbors(
    X: Tensor, Y: Tensor, rows: Tensor, *, k: int, metric: str
) -> tuple[Neighbors, Neighbors] | None:
    """Find more neighbours than k of some rows among each other, so that k stay without any group of rows.

    None where rows are too few for that.
    """
    wide = 2 * k + N_GROUPS
    if len(rows) <= wide:
        return None
    every = len(rows) == len(X)
    first, second = (
        Neighbors.of(Z if every else Z[rows.to(Z.device)], k=wide, metric=metric) for Z in (X, Y)
    )
    return first, second


def overlap_error(found: tuple[Neighbors, Neighbors], groups: Groups, *, k: int) -> float | None:
    """Return the standard error of the overlap, groups of rows left out of both spaces.

    Rows that are neighbours of many count many times, so the spread of the rows' own shares is too small. The
    neighbours of a row when a group goes are the first k of its wide neighbours that stay.
    """
    values: list[float | None] = []
    for group in range(groups.n_groups):
        stays = groups.codes != group
        first, second = (_first(one.indices.cpu()[stays], stays, k) for one in found)
        values.append(float(shared_counts(first, second).mean()) / k)
    return groups.error(values)


def _first(indices: Tensor, stays: Tensor, k: int) -> Tensor:
    """Return the first k of each row's neighbours that stay."""
    order = (~stays[indices]).byte().argsort(dim=1, stable=True)[:, :k]
    return indices.gather(1, order)


def displacements(X: Tensor, Y: Tensor, sums: CrossMoments, *, rows: Tensor) -> Tensor:
    """Return how far some rows are from their partners under the best rotation of all, centred and scaled.

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
    # in float64, centred, at the scale at which the squares of all rows sum to 1
    x, y = (
        (Z[rows.to(Z.device)].cpu().double() - mean.cpu()) / scatter.trace().cpu().sqrt()
        for Z, mean, scatter in ((X, sums.left_mean, sums.left), (Y, sums.right_mean, sums.right))
    )
    U, _, Vt = torch.linalg.svd(sums.cross.cpu(), full_matrices=False)
    # ‖x − y Q‖² = ‖x‖² + ‖y‖² − 2 x·(y V Uᵀ): the zeros that fill up the smaller space never show
    products = ((x @ U) * (y @ Vt.T)).sum(dim=1)
    squares = x.square().sum(dim=1) + y.square().sum(dim=1) - 2 * products
    return (squares.clamp(min=0) * sums.count / 2).sqrt()


def _moved_rows(
    space: Space, shares: Tensor, moves: Tensor, rows: Tensor, n_moved: int
) -> tuple[MovedRow, ...]:
    by_move = (-moves).argsort(stable=True)
    order = by_move[shares[by_move].argsort(stable=True)][:n_moved]
    labels, texts, found = space.labels, space.texts, []
    for i in order.tolist():
        row = int(rows[i])
        label = None if labels is None else labels.names[int(labels.codes[row])]
        text = None if texts is None else texts[row]
        found.append(MovedRow(row, float(shares[i]), float(moves[i]), label, text))
    return tuple(found)


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
