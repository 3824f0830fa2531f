"""The rows and labels that moved: by lost neighbours, and by distance after the best rotation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.comparison.changes import Interval, MovedLabel, MovedRow, SliceOverlap
from isoscope.comparison.resampling import MIN_ROWS, N_GROUPS, Groups
from isoscope.errors import InputError, UndefinedError
from isoscope.labels import Labels
from isoscope.metrics.correspondence import neighbor_overlap_samples, rows_with_neighbors, shared_counts
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.neighbors import Neighbors

MAX_QUERIES = 5000  # rows whose neighbours are searched, among all rows
_MIN_LABEL = 5  # rows of a label that is listed


@dataclass(frozen=True)
class Moved:
    """How the neighbours of rows changed.

    Attributes:
        overlap, interval: the share of nearest neighbours that are the same in both spaces, and its 95 %
            interval.
        rows, labels: the rows and labels that moved most.
        notes: notes for the reader.
        k: the number of nearest neighbours.
        zero: the rows without a cosine: zero vectors in A alone, in B alone, and in both.
        slices: the overlap of each slice, the lowest first.
        reason: why the overlap is undefined, if it is.
    """

    overlap: float | None
    interval: Interval | None
    rows: tuple[MovedRow, ...]
    labels: tuple[MovedLabel, ...]
    notes: tuple[str, ...]
    k: int
    zero: tuple[Tensor, Tensor, Tensor]
    slices: tuple[SliceOverlap, ...] = ()
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
    slices: Labels | None = None,
) -> Moved:
    """Return the rows whose neighbours changed most; ties are ordered by distance after the best rotation."""
    if n_moved < 0:
        raise InputError(argument="n_moved", got=n_moved, wanted="0 or more")
    n = len(first)
    in_a, in_b = (rows_with_neighbors(space.vectors, metric) for space in (first, second))
    only_b, only_a, neither, compared = (
        mask.nonzero().flatten() for mask in (~in_a & in_b, in_a & ~in_b, ~in_a & ~in_b, in_a | in_b)
    )
    zero = only_b, only_a, neither
    codes = torch.zeros(n, dtype=torch.int64) if slices is None else slices.codes.cpu()
    groups = Groups.dealt(len(compared), None if slices is None else codes[compared], seed=seed)
    some = compared[groups.rows]
    searched = (in_a & in_b)[some]
    neighbors = (
        wide_neighbors(first.vectors, second.vectors, some, (in_a[some], in_b[some]), k=k, metric=metric)
        if errors
        else None
    )
    sample = MAX_QUERIES if n > MAX_QUERIES else None
    try:
        if neighbors is not None and len(some) == len(compared):
            shares, rows = torch.zeros(len(compared), dtype=torch.float64), compared
            shares[searched] = neighbor_overlap_samples(*neighbors, k=k)[0]
        else:
            shares, rows = neighbor_overlap_samples(
                first.vectors, second.vectors, k=k, metric=metric, sample=sample, seed=seed
            )
    except UndefinedError as undefined:
        return Moved(None, None, (), (), (), k, zero, reason=undefined.problem)
    left_out = [] if neighbors is None else list(shares_left_out(neighbors, groups, searched, k=k))

    def interval(inside: Tensor, of: Tensor) -> Interval | None:
        """Return the interval of the mean of shares, by the jackknife over the rows `inside`."""
        error = overlap_error(left_out, groups, inside) if left_out else None
        if error is None:
            return None
        if sample:
            error = math.hypot(error, float(of.std()) / math.sqrt(len(of)))  # and the error of the sample
        mean, half = float(of.mean()), groups.half_width(error)
        return max(mean - half, 0.0), min(mean + half, 1.0)

    overlaps = []
    for code, name in enumerate(() if slices is None else slices.names):
        own, inside = shares[codes[rows] == code], codes[some] == code
        within = interval(inside, own) if len(own) and int(inside.sum()) >= MIN_ROWS else None
        mean = float(own.mean()) if len(own) else None
        overlaps.append(SliceOverlap(str(name), int((codes == code).sum()), mean, within))
    overlaps.sort(key=lambda one: math.inf if one.overlap is None else one.overlap)
    notes = (
        f"the overlap is that of a random {len(rows):,} of the {n:,} rows, searched among all (seed {seed})",
    )
    moves = displacements(first.vectors, second.vectors, sums, rows=rows)
    return Moved(
        float(shares.mean()),
        interval(torch.ones_like(searched), shares),
        _moved_rows(first, shares, moves, rows, n_moved, {"A": in_a, "B": in_b}),
        _moved_labels(first, shares, rows, n_moved),
        notes if sample else (),
        k,
        zero,
        tuple(overlaps),
    )


def wide_neighbors(
    X: Tensor, Y: Tensor, rows: Tensor, inside: tuple[Tensor, Tensor], *, k: int, metric: str
) -> tuple[Neighbors, Neighbors] | None:
    """Return more than k neighbours of each row, so that k remain when a group of rows is left out.

    Args:
        X, Y: (n, d) and (n, e) vectors.
        rows: (m,) the numbers of the rows that are searched.
        inside: (m,) which of them have neighbours in X, and in Y. Neighbours are returned of those that have
            them in both, as places in `rows`; None where there are too few.
        k: the number of nearest neighbours.
        metric: "cosine" or "euclidean".
    """
    wide = 2 * k + N_GROUPS
    both = inside[0] & inside[1]
    if int(both.sum()) <= wide:
        return None
    found = []
    for Z, own in zip((X, Y), inside, strict=True):
        places = own.nonzero().flatten()
        points = Z if len(places) == len(Z) else Z[rows[places].to(Z.device)]
        near = Neighbors.of(points, k=wide, metric=metric)
        if not bool(both.all()):
            chosen = both[places].to(near.indices.device)
            indices = places.to(near.indices.device)[near.indices[chosen]]
            near = Neighbors(near.distances[chosen], indices, near.metric)
        found.append(near)
    return found[0], found[1]


def shares_left_out(
    neighbors: tuple[Neighbors, Neighbors], groups: Groups, searched: Tensor, *, k: int
) -> Iterator[Tensor]:
    """Yield without each group, (m,) the share of neighbours that are the same; NaN for its own rows.

    Without a group, the neighbours of a row are the first k of its remaining ones.

    Args:
        neighbors: in both spaces, of the rows that were searched, as places among the rows of the jackknife.
        groups: the rows of the jackknife.
        searched: (m,) which of these rows were searched; the others share no neighbours.
        k: the number of nearest neighbours.
    """
    for group in range(groups.n_groups):
        remains = groups.codes != group
        among = remains[searched]
        first, second = (first_remaining(one.indices.cpu()[among], remains, k) for one in neighbors)
        shares = torch.where(remains, 0.0, math.nan).double()
        shares[remains & searched] = shared_counts(first, second) / k
        yield shares


def overlap_error(left_out: Iterable[Tensor], groups: Groups, inside: Tensor) -> float | None:
    """Return the standard error of the overlap of some rows, by the jackknife.

    A row that is a neighbour of many others affects all of their shares. The standard deviation of the shares
    would therefore give too small an error.

    Args:
        left_out: from `shares_left_out`.
        groups: the rows of the jackknife.
        inside: (m,) the rows that are meant.
    """
    return groups.error([float(shares[inside].nanmean()) for shares in left_out])


def first_remaining(indices: Tensor, remains: Tensor, k: int) -> Tensor:
    """Return the first k remaining neighbours of each row."""
    order = (~remains[indices]).byte().argsort(dim=1, stable=True)[:, :k]
    return indices.gather(1, order)


def displacements(X: Tensor, Y: Tensor, sums: CrossMoments, *, rows: Tensor) -> Tensor:
    """Return the distance of each row between the two spaces, centred and scaled, after the best rotation.

        √(n/2) ‖x − Q y‖,   Σ‖x‖² = Σ‖y‖² = 1

    The root mean square over all rows is the Procrustes distance divided by √2, which is 1 for unrelated
    spaces.

    Args:
        X, Y: (n, d) and (n, e) vectors.
        sums: the moments of both.
        rows: (m,) the numbers of the rows.
    """
    try:
        sums.need_spread("displacement")
    except UndefinedError:
        return torch.zeros(len(rows), dtype=torch.float64)
    # centred, and scaled so that the squares of all rows sum to 1
    x, y = (
        (Z[rows.to(Z.device)].cpu().double() - mean.cpu()) / scatter.trace().cpu().sqrt()
        for Z, mean, scatter in ((X, sums.left_mean, sums.left), (Y, sums.right_mean, sums.right))
    )
    U, _, Vt = torch.linalg.svd(sums.cross.cpu(), full_matrices=False)
    # ‖x − y Q‖² = ‖x‖² + ‖y‖² − 2 x·(y V Uᵀ): zeros that pad the smaller space contribute nothing
    products = ((x @ U) * (y @ Vt.T)).sum(dim=1)
    squares = x.square().sum(dim=1) + y.square().sum(dim=1) - 2 * products
    return (squares.clamp(min=0) * sums.count / 2).sqrt()


def _moved_rows(
    space: Space, shares: Tensor, moves: Tensor, rows: Tensor, n_moved: int, inside: Mapping[str, Tensor]
) -> tuple[MovedRow, ...]:
    by_move = (-moves).argsort(stable=True)
    order = by_move[shares[by_move].argsort(stable=True)][:n_moved]
    labels, texts, moved = space.labels, space.texts, []
    for i in order.tolist():
        row = int(rows[i])
        label = None if labels is None else labels.names[int(labels.codes[row])]
        text = None if texts is None else texts[row]
        zero = next((side for side, own in inside.items() if not own[row]), None)
        moved.append(MovedRow(row, float(shares[i]), float(moves[i]), label, text, zero=zero))
    return tuple(moved)


def _moved_labels(space: Space, shares: Tensor, rows: Tensor, n_moved: int) -> tuple[MovedLabel, ...]:
    if space.labels is None:
        return ()
    codes = space.labels.codes.cpu()[rows]
    counts = torch.bincount(codes, minlength=space.labels.n_labels)
    sums = torch.bincount(codes, weights=shares, minlength=space.labels.n_labels)
    moved = [
        MovedLabel(name, int(count), float(total / count))
        for name, count, total in zip(space.labels.names, counts, sums, strict=True)
        if count >= _MIN_LABEL
    ]
    return tuple(sorted(moved, key=lambda one: one.overlap)[:n_moved])
