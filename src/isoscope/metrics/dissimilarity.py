"""Representational similarity analysis: whether the same items are far apart in two spaces."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed
from isoscope.metrics.registry import family
from isoscope.statistics.directions import has_direction, unit_rows
from isoscope.statistics.leave_one_out import jackknife

METRICS = ("cosine", "euclidean")
CORRELATIONS = ("spearman", "pearson")
_ROWS = 2500  # of more rows, `measure` takes a random sample: distances of all pairs are held
_MIN_ROWS = 4  # with one left out, three pairs

_metric = family("correspondence", needs=("vectors", "partners"), default=False)


@_metric(
    call=lambda metric, shelf: metric(shelf.vectors, shelf.partners, sample=_ROWS, seed=shelf.seed),
    range=(-1.0, 1.0),
    high="the same items are far apart in both spaces",
    invariances=("rotation", "scale"),
    paper="Kriegeskorte, Mur, Bandettini 2008, Representational similarity analysis",
    sentence="distances between items in the two spaces have a rank correlation of {value:.2f}",
    error=lambda shelf: rsa_with_error(shelf.vectors, shelf.partners, sample=_ROWS, seed=shelf.seed)[1],
)
def rsa(
    X: Any,
    Y: Any,
    *,
    metric: str = "cosine",
    correlation: str = "spearman",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Compute the correlation between the distances of all pairs of items in X and those in Y.

        corr over i < j of (δ(x_i, x_j), δ(y_i, y_j))

    Range [−1, 1]; high means that the same items are far apart in both, and 0 that the spaces have nothing
    in common. Unchanged by rotation and scale of either space, and by a shift where the metric is
    "euclidean". Rows that are zero in either space have no cosine and are left out. Paper: Kriegeskorte et
    al. 2008.

    Args:
        X, Y: (n, d) and (n, e) vectors of the same items.
        metric: "cosine", 1 − cos, or "euclidean".
        correlation: "spearman", of ranks, or "pearson".
        sample: take so many random items only; the distances of all pairs are held in memory.
        seed: of the sample.

    >>> rsa([[0.0], [1.0], [3.0], [7.0]], [[0.0], [2.0], [6.0], [14.0]], metric="euclidean")
    1.0
    """
    return rsa_with_error(X, Y, metric=metric, correlation=correlation, sample=sample, seed=seed)[0]


def rsa_with_error(
    X: Any,
    Y: Any,
    *,
    metric: str = "cosine",
    correlation: str = "spearman",
    sample: int | None = None,
    seed: int = 0,
) -> tuple[float, float]:
    """Return `rsa` and its standard error, by a jackknife that leaves out each item with all its pairs."""
    check_seed(seed)
    x, y = as_matrix(X).detach(), as_matrix(Y, name="Y").detach()
    if len(x) != len(y):
        raise ShapeError(
            f"has {len(y)} rows, and X has {len(x)}", argument="Y", wanted="the same items in the same order"
        )
    if sample is not None and sample < _MIN_ROWS:
        raise InputError(argument="sample", got=sample, wanted=f"at least {_MIN_ROWS} items")
    rows = torch.arange(len(x))
    if metric == "cosine":
        rows = rows[has_direction(x).cpu() & has_direction(y).cpu()]
    if sample is not None and sample < len(rows):
        chosen = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:sample]
        rows = rows[chosen.sort().values]
    if len(rows) < _MIN_ROWS:
        raise UndefinedError(f"rsa needs at least {_MIN_ROWS} items; there are {len(rows)}")
    a, b = (
        dissimilarities(one[rows.to(one.device)], metric=metric, correlation=correlation) for one in (x, y)
    )
    return correlate(a, b.to(a.device))


def dissimilarities(rows: Tensor, *, metric: str, correlation: str) -> Tensor:
    """Return (n, n) distances between rows, or their ranks, about the mean over pairs; 0 on the diagonal."""
    if metric not in METRICS:
        raise InputError(argument="metric", got=metric, wanted=f"one of {', '.join(map(repr, METRICS))}")
    if correlation not in CORRELATIONS:
        wanted = f"one of {', '.join(map(repr, CORRELATIONS))}"
        raise InputError(argument="correlation", got=correlation, wanted=wanted)
    n = len(rows)
    upper = torch.triu_indices(n, n, offset=1, device=rows.device)
    if metric == "cosine":
        units = unit_rows(rows)[0].double()
        values = 1 - (units @ units.T)[upper[0], upper[1]]
    else:
        values = torch.pdist(rows.double())
    if correlation == "spearman":
        values = _ranks(values)
    square = values.new_zeros(n, n)
    square[upper[0], upper[1]] = values - values.mean()
    return square + square.T


def correlate(a: Tensor, b: Tensor) -> tuple[float, float]:
    """Return the correlation of two square tables over pairs, and its standard error by the jackknife."""
    n = len(a)
    by_row = torch.stack([table.sum(dim=1) for table in (a, b, a * a, b * b, a * b)])  # both orders of a pair
    totals = by_row.sum(dim=1) / 2
    whole = _pearson(totals, n * (n - 1) / 2)
    if not bool(torch.isfinite(whole)):
        raise UndefinedError("rsa is undefined: all pairs are equally far apart in one of the spaces")
    left_out = _pearson(totals[:, None] - by_row, (n - 1) * (n - 2) / 2)
    error = jackknife(whole, left_out, n)[0] if bool(torch.isfinite(left_out).all()) else math.nan
    return min(1.0, max(-1.0, float(whole))), error


def _pearson(sums: Tensor, n_pairs: float) -> Tensor:
    a, b, aa, bb, ab = sums
    variances = (aa - a * a / n_pairs).clamp(min=0) * (bb - b * b / n_pairs).clamp(min=0)
    return (ab - a * b / n_pairs) / variances.sqrt()


def _ranks(values: Tensor) -> Tensor:
    """Return ranks from 0 on; equal values have their mean rank."""
    ordered, order = values.sort()
    _, inverse, counts = torch.unique_consecutive(ordered, return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).double()
    means = ends - (counts + 1) / 2
    return torch.empty_like(values).scatter_(0, order, means[inverse])
