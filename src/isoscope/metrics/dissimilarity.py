"""Representational similarity analysis: whether the same items are far apart in two spaces."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import ShapeError, UndefinedError, check_choice, check_seed, check_whole
from isoscope.metrics.registry import family
from isoscope.statistics.directions import has_direction, unit_rows
from isoscope.statistics.leave_one_out import jackknife

METRICS = ("cosine", "euclidean")
CORRELATIONS = ("spearman", "pearson")
_ROWS = 2500  # of more rows, `measure` takes a random sample: distances of all pairs are held
_EPS = 2**-52  # of float64
_MIN_ROWS = 4  # with one left out, three pairs

_metric = family("correspondence", needs=("vectors", "partners"), default=False)


@_metric(
    call=lambda metric, shelf: metric(shelf.vectors, shelf.partners, sample=_ROWS, seed=shelf.seed),
    range=(-1.0, 1.0),
    high="the same items are far apart in both spaces",
    invariances=("rotation", "scale"),
    paper="Kriegeskorte, Mur, Bandettini 2008, Representational similarity analysis",
    sentence="distances between items in the two spaces have a rank correlation of {value:.2f}",
    error=lambda shelf: correlate(
        *paired_dissimilarities(shelf.vectors, shelf.partners, "cosine", "spearman", _ROWS, shelf.seed)
    )[1],
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
    "euclidean". Distances that differ by no more than the rounding of float64 are equal, and share a rank.
    Rows that are zero in either space have no cosine and are left out. Paper: Kriegeskorte et al. 2008.

    Args:
        X, Y: (n, d) and (n, e) vectors of the same items.
        metric: "cosine", 1 − cos, or "euclidean".
        correlation: "spearman", of ranks, or "pearson".
        sample: take so many random items only; the distances of all pairs are held in memory.
        seed: of the sample.

    >>> rsa([[0.0], [1.0], [3.0], [7.0]], [[0.0], [2.0], [6.0], [14.0]], metric="euclidean")
    1.0
    """
    return correlate(*paired_dissimilarities(X, Y, metric, correlation, sample, seed))[0]


def paired_dissimilarities(
    X: Any, Y: Any, metric: str, correlation: str, sample: int | None, seed: int
) -> tuple[Tensor, Tensor]:
    """Return the `dissimilarities` in both spaces of the items that `rsa` compares."""
    check_seed(seed)
    check_choice("metric", metric, METRICS)
    check_choice("correlation", correlation, CORRELATIONS)
    x, y = as_matrix(X).detach(), as_matrix(Y, name="Y").detach()
    if len(x) != len(y):
        raise ShapeError(
            f"has {len(y)} rows, and X has {len(x)}", argument="Y", wanted="the same items in the same order"
        )
    if sample is not None:
        check_whole("sample", sample, least=_MIN_ROWS)
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
    return a, b.to(a.device)


def dissimilarities(rows: Tensor, *, metric: str, correlation: str) -> Tensor:
    """Return (n, n) distances between rows, or their ranks, about the mean over pairs; 0 on the diagonal.

    Products and distances are taken in float64. Those that differ by no more than rounding have one rank.
    """
    check_choice("metric", metric, METRICS)
    check_choice("correlation", correlation, CORRELATIONS)
    (n, d), rows = rows.shape, rows.double()
    upper = torch.triu_indices(n, n, offset=1, device=rows.device)
    if metric == "cosine":
        units = unit_rows(rows)[0]
        values = 1 - (units @ units.T)[upper[0], upper[1]]
        rounding = values.new_tensor((d + 8) * _EPS)  # a product of two unit vectors, twice
    else:
        values = torch.pdist(rows)
        rounding = (d + 6) * _EPS * values.sort().values[1:] + 2 * _EPS * rows.norm(dim=1).max()
    if correlation == "spearman":
        values = _ranks(values, rounding)
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


def _ranks(values: Tensor, rounding: Tensor) -> Tensor:
    """Return ranks from 0 on; values no farther from the next one than rounding have their mean rank."""
    ordered, order = values.sort()
    places = torch.zeros(len(ordered), dtype=torch.int64, device=values.device)
    places[1:] = (ordered.diff() > rounding).cumsum(0)
    counts = torch.bincount(places)
    means = counts.cumsum(0).double() - (counts + 1) / 2
    return torch.empty_like(values).scatter_(0, order, means[places])
