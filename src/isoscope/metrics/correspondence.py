"""Similarity of two spaces of the same items: CKA, Procrustes distance, shared neighbours."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, ShapeError, UndefinedError, check_choice, check_seed, check_whole
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.statistics.cross import CrossMoments, centred_pairs, rotated_residual
from isoscope.statistics.directions import has_direction
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.kernel_alignment import KernelAlignment, block_rows
from isoscope.statistics.neighbors import METRICS, Neighbors

_NEAR = 1e-6  # of the squared norms: below it a difference of sums has fewer than ten digits
_COMPARED_AT_ONCE = 2**22  # pairs of neighbours held against each other
_KORNBLITH_2019 = (
    "Kornblith, Norouzi, Lee, Hinton 2019, Similarity of neural network representations revisited"
)


def _cka_error(shelf: Statistics, debias: bool) -> float:
    """Return the standard error of CKA; of many rows, where the bias is small, that of the debiased one."""
    spaces = shelf.vectors, shelf.partners
    alignment = KernelAlignment.of(spaces, debias=debias or len(spaces[0]) > block_rows(2))
    return float(alignment.cka()[1][0, 1])


_metric = family("correspondence", needs=("cross_moments",), invariances=ALL_INVARIANCES, default=False)
_cka = partial(
    _metric,
    high="the spaces are alike",
    error_needs=("vectors", "partners"),
    sentence="linear CKA with the partners is {value:.2f}: 1 for the same space, rotated and scaled",
)


@_cka(
    range=(0.0, 1.0),
    paper=_KORNBLITH_2019,
    error=lambda shelf: _cka_error(shelf, False),
    fair="linear_cka_debiased",
)
def linear_cka(X: Any, Y: Any = None, *, debias: bool = False) -> float:
    """Compute the centred kernel alignment of two spaces with the linear kernel, from d × d products.

        ‖C‖_F² / (‖A‖_F ‖B‖_F),   A, B the scatters of X and Y about their means, C = Σ (x − x̄)(y − ȳ)ᵀ

    Range [0, 1]; 1 where one space is the other rotated, shifted and scaled. High by chance where there are
    few rows for the dimensions; `debias=True` takes the unbiased HSIC of Song et al. 2012 in its place,
    which is about 0 for spaces that have nothing in common, and may be a little below. Paper: Kornblith et
    al. 2019.

    >>> linear_cka([[1.0, 0.0], [0.0, 1.0], [3.0, 2.0]], [[0.0, 2.0], [-2.0, 0.0], [-4.0, 6.0]])
    1.0
    """
    sums = CrossMoments.of(X, Y)
    sums.need_spread("linear_cka_debiased" if debias else "linear_cka", 4 if debias else 2)
    hsic = _unbiased if debias else _plain
    both = hsic(sums.cross, sums.cross_quartic, sums.left, sums.right, sums.count)
    left = hsic(sums.left, sums.left_quartic, sums.left, sums.left, sums.count)
    right = hsic(sums.right, sums.right_quartic, sums.right, sums.right, sums.count)
    if not (left > 0 and right > 0):
        raise UndefinedError(
            f"linear_cka is undefined without bias: {sums.count} rows are too few to tell a spread from noise"
        )
    value = float(both / (left.sqrt() * right.sqrt()))
    return min(value, 1.0)


@_cka(
    range=(-1.0, 1.0),
    paper=f"Song et al. 2012; {_KORNBLITH_2019}; Nguyen, Raghu, Kornblith 2021",
    error=lambda shelf: _cka_error(shelf, True),
)
def linear_cka_debiased(X: Any, Y: Any = None) -> float:
    """Compute linear CKA without its bias for few rows: `linear_cka` with `debias=True`.

    About 0 for spaces that have nothing in common, however few the rows. Range [−1, 1]. Unchanged by
    rotation, translation and scale of either space. Papers: Song et al. 2012; Nguyen et al. 2021.

    >>> import numpy as np
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 30, 100))
    >>> round(linear_cka(X, Y), 1), abs(round(linear_cka_debiased(X, Y), 1))
    (0.8, 0.0)
    """
    return linear_cka(X, Y, debias=True)


def _plain(product: Tensor, _quartic: Tensor, _left: Tensor, _right: Tensor, _n: int) -> Tensor:
    return product.square().sum()


def _unbiased(product: Tensor, quartic: Tensor, left: Tensor, right: Tensor, n: int) -> Tensor:
    """Return the estimate of Song et al. times n(n − 3), for centred rows."""
    return product.square().sum() - n / (n - 2) * quartic + left.trace() * right.trace() / ((n - 1) * (n - 2))


@_metric(
    call=lambda _metric, shelf: procrustes_of(
        shelf.cross_moments, (shelf.vectors, shelf.partners) if shelf.has_rows else None
    ),
    range=(0.0, math.sqrt(2)),
    high="the spaces differ",
    paper="Schönemann 1966, A generalized solution of the orthogonal Procrustes problem",
    sentence="Procrustes distance to the partners {value:.2f}: 0 for the same space, 1.41 for unrelated ones",
    biased_by_rows=True,
)
def procrustes_distance(X: Any, Y: Any = None, *, scale: bool = True) -> float:
    """Compute the distance between two spaces after the best translation, rotation and reflection.

        min_Q ‖X₀ − Y₀ Q‖_F,   Q orthogonal;  X₀, Y₀ centred and, with `scale`, of Frobenius norm 1

    A space of fewer dimensions is filled up with zeros. Range [0, √2] with `scale`, else [0, ∞); 0 where
    one is the other moved rigidly (and scaled). Points that are all equal have no norm to scale by. Of spaces
    that are nearly the same, the distance is taken from the rows themselves; CrossMoments alone resolve
    distances down to about 1e-8 of the norms. Reference: Schönemann 1966.

    >>> X, Y = [[1.0, 0.0], [0.0, 1.0], [3.0, 2.0]], [[0.0, 2.0], [-2.0, 0.0], [-4.0, 6.0]]
    >>> round(procrustes_distance(X, Y), 6)
    0.0
    """
    return procrustes_of(CrossMoments.of(X, Y), None if isinstance(X, CrossMoments) else (X, Y), scale=scale)


def procrustes_of(sums: CrossMoments, rows: tuple[Any, Any] | None, *, scale: bool = True) -> float:
    """Return `procrustes_distance` from sums over rows, and from the rows where the distance is small."""
    units = torch.ones(2, dtype=torch.float64)
    if scale:
        sums.need_spread("procrustes_distance")
        units = torch.stack([sums.left.trace(), sums.right.trace()]).sqrt()
    else:
        sums.need_rows("procrustes_distance")
    left, right = sums.left.trace() / units[0] ** 2, sums.right.trace() / units[1] ** 2
    squared = left + right - 2 * sums.nuclear_norm / (units[0] * units[1])
    if rows is not None and bool(squared < _NEAR * (left + right)):
        x, y = as_matrix(rows[0]).detach(), as_matrix(rows[1], name="Y").detach().to(sums.cross.device)
        pairs = centred_pairs(x, y, sums.left_mean, sums.right_mean)
        squared = rotated_residual(((u / units[0], v / units[1]) for u, v in pairs), sums.cross)
    return float(squared.clamp(min=0).sqrt())


@_metric(
    needs=("vectors", "partners"),
    range=(0.0, 1.0),
    high="the same neighbours in both spaces",
    invariances=("rotation", "scale"),
    paper="Huh, Cheung, Wang, Isola 2024, The Platonic representation hypothesis",
    sentence="{value:.0%} of the 10 nearest neighbours are the same in both spaces",
    biased_by_rows=True,
)
def neighbor_overlap(
    X: Any, Y: Any, *, k: int = 10, metric: str = "cosine", sample: int | None = None, seed: int = 0
) -> float:
    """Compute the mean share of a point's k nearest neighbours in X that are among its k nearest in Y.

        1/n Σ_i |N_X(i) ∩ N_Y(i)| / k

    Range [0, 1]; high means a search finds the same items in both. About k/(n − 1) by chance. Unchanged by
    rotation and scale of either space, and by a shift where the metric is "euclidean". A zero vector has no
    cosine and is no neighbour. A row that is zero in one space alone has a share of 0, and is a neighbour in
    the other space; a row that is zero in both is left out.

    Args:
        X, Y: (n, d) and (n, e) vectors of the same items; or Neighbors of the same items.
        k: how many neighbours.
        metric: "cosine" or "euclidean".
        sample: ask for so many points only, drawn by `seed`, each among all the others.
        seed: of the sample.

    >>> neighbor_overlap([[0.0], [1.0], [3.0]], [[0.0], [3.0], [4.0]], k=1, metric="euclidean")
    0.6666666666666666
    """
    shares, _ = neighbor_overlap_samples(X, Y, k=k, metric=metric, sample=sample, seed=seed)
    return float(shares.mean())


def neighbor_overlap_samples(
    X: Any, Y: Any, *, k: int = 10, metric: str = "cosine", sample: int | None = None, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Return the share of neighbours common to both spaces, (m,) float64, and the rows, (m,) int64."""
    check_seed(seed)
    k = check_whole("k", k)
    check_choice("metric", metric, METRICS)
    if sample is not None:
        sample = check_whole("sample", sample)
    if isinstance(X, Neighbors) and isinstance(Y, Neighbors):
        neighbors = X.nearest(k).indices, Y.nearest(k).indices
        if len(neighbors[0]) != len(neighbors[1]):
            raise ShapeError(f"X has neighbours of {len(neighbors[0])} points and Y of {len(neighbors[1])}")
        return shared_counts(*neighbors) / k, torch.arange(len(neighbors[0]))
    x, y = as_matrix(X).detach(), as_matrix(Y, name="Y").detach()
    if len(x) != len(y):
        raise ShapeError(
            f"has {len(y)} rows, and X has {len(x)}", argument="Y", wanted="the same items in the same order"
        )
    in_x, in_y = (rows_with_neighbors(space, metric) for space in (x, y))
    both = in_x & in_y
    searched, rows = both.nonzero().flatten(), (in_x | in_y).nonzero().flatten()
    if k >= len(searched) < len(x):
        raise UndefinedError(
            f"neighbor_overlap is undefined: {len(searched)} of {len(x)} rows are not zero in either space; "
            f"wanted more than k = {k}"
        )
    is_sampled = sample is not None and sample < len(rows)
    if is_sampled:
        generator = torch.Generator().manual_seed(seed)
        rows = rows[torch.randperm(len(rows), generator=generator)[:sample].sort().values]
    first, second = (
        _nearest(space, inside, rows[both[rows]], k, metric, is_sampled=is_sampled)
        for space, inside in ((x, in_x), (y, in_y))
    )
    shares = torch.zeros(len(rows), dtype=torch.float64)
    shares[both[rows]] = shared_counts(first, second.to(first.device)) / k
    return shares, rows


def rows_with_neighbors(X: Tensor, metric: str) -> Tensor:
    """Return (n,) bool, which rows have neighbours: by cosine, all but zero vectors."""
    return has_direction(X).cpu() if metric == "cosine" else torch.ones(len(X), dtype=torch.bool)


def _nearest(space: Tensor, inside: Tensor, rows: Tensor, k: int, metric: str, *, is_sampled: bool) -> Tensor:
    """Return the k nearest neighbours of some rows among the rows that have neighbours in this space."""
    numbers = inside.nonzero().flatten()
    is_all = len(numbers) == len(space)
    points = space if is_all else space[numbers.to(space.device)]
    places = rows if is_all else (inside.cumsum(0) - 1)[rows]
    if is_sampled:
        nearest = _among_others(points, places, k, metric)
    else:
        nearest = Neighbors.of(points, k=k, metric=metric).indices
        nearest = nearest if len(places) == len(nearest) else nearest[places.to(nearest.device)]
    return nearest if is_all else numbers.to(nearest.device)[nearest]


def _among_others(space: Tensor, rows: Tensor, k: int, metric: str) -> Tensor:
    """Return the k nearest neighbours of some rows among all others."""
    if not 1 <= k < len(space):
        raise InputError(
            argument="k", got=k, wanted=f"a whole number from 1 to {len(space) - 1}, the other points"
        )
    if not len(rows):
        return rows.new_empty(0, k)
    rows = rows.to(space.device)
    nearest = Neighbors.between(space[rows], space, k=k + 1, metric=metric).indices
    is_own = nearest == rows[:, None].to(nearest.device)
    # a point may miss among its nearest where k others are equal to it: then the farthest goes
    is_own[:, -1] |= ~is_own.any(dim=1)
    return nearest[~is_own].reshape(len(rows), k)


def shared_counts(first: Tensor, second: Tensor) -> Tensor:
    """Return (m,) float64, the number of neighbours that two rows share; −1 stands for none."""
    k = first.shape[1]
    step = max(1, _COMPARED_AT_ONCE // (k * k))
    parts = [
        ((a[:, :, None] == b[:, None, :]) & (a[:, :, None] >= 0)).sum(dim=(1, 2))
        for a, b in zip(first.split(step), second.split(step), strict=True)
    ]
    return torch.cat(parts).double().cpu()
