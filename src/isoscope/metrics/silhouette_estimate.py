"""The mean silhouette within a tolerance, in linear time: anchors with a control variate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, check_seed
from isoscope.labels import Labels, as_clusters
from isoscope.metrics.silhouette import silhouettes
from isoscope.space import known_rows
from isoscope.statistics.anchors import AnchorRows, Proxies
from isoscope.statistics.pairs import Separation

_STRATA = 20  # ranges of the proxy that anchors come from in turn
_PILOT = 120  # anchors before the first look at the interval
_MIN_SHARE_TO_EXACT = 0.25  # anchors beyond this share of the points cost as much as all of them
_SMALL = 1000  # up to here all points are cheap


@dataclass(frozen=True)
class SilhouetteEstimate:
    """An estimate of the mean silhouette, or its exact value where the estimate would cost as much.

    Attributes:
        value: the mean silhouette.
        standard_error: of the estimate about the exact value; 0 where it is exact.
        interval: 95 % interval for the exact value.
        n_anchors: points whose silhouette was computed exactly.
        method: "control variate", "anchors" or "exact".
        seed: of the anchors.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    n_anchors: int
    method: str
    seed: int

    def __float__(self) -> float:
        return self.value


def estimate_silhouette(
    X: Any, labels: Any = None, *, tolerance: float = 1e-4, seed: int = 0
) -> SilhouetteEstimate:
    """The mean silhouette with a 95 % interval no wider than ± tolerance, from exact rows of a few anchors.

    Every point has a proxy silhouette in closed form (root mean square distances in the place of mean
    distances). The anchors' exact silhouettes are regressed on their proxies, and the mean proxy of all
    points corrects the anchors' mean:

        estimate = mean(exact) + β·(mean(all proxies) − mean(anchors' proxies))

    with a standard error from the residuals. Anchors are added until the interval is narrow enough;
    where the proxies do not help, plain anchors are used, and where even they would be a quarter of the
    points, the exact silhouette. Time is linear in n.

    Args:
        X: (n, d) vectors in any array.
        labels: one label a row.
        tolerance: half the width of the 95 % interval to reach.
        seed: of the choice of anchors.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(4000, 8))
    >>> found = estimate_silhouette(X, X[:, 0] > 0, tolerance=1e-3)
    >>> found.method, found.interval[0] < found.value < found.interval[1]
    ('control variate', True)
    """
    if not tolerance > 0:
        raise InputError(f"tolerance is {tolerance}; wanted a positive half-width")
    check_seed(seed)
    matrix = as_matrix(X).detach()
    n = matrix.shape[0]
    clusters = as_clusters(known_rows(X, labels, "labels"), n=n).to(matrix.device)
    if n <= _SMALL:
        return _exact(matrix, clusters, seed)
    rows = AnchorRows.of(matrix, clusters)
    features = _features(rows.proxies(), clusters)
    order = _drawn(features[:, 1], seed)
    values = _anchor_values(rows, order[:_PILOT])
    while True:
        fit = _best(values, features, order[: len(values)])
        half = _t95(fit.freedom) * fit.error
        if half <= tolerance:
            low, high = fit.value - half, fit.value + half
            return SilhouetteEstimate(fit.value, fit.error, (low, high), len(values), fit.method, seed)
        wanted = math.ceil(1.1 * len(values) * min((half / tolerance) ** 2, 16.0)) + 8
        if wanted > _MIN_SHARE_TO_EXACT * n:
            return _exact(matrix, clusters, seed)
        values = torch.cat([values, _anchor_values(rows, order[len(values) : wanted])])


def _drawn(proxy: Tensor, seed: int) -> Tensor:
    """All points in the order they become anchors: at random, from every range of the proxy alike.

    Any beginning of the order holds about as many points of each of the proxy's quantiles, so no kind of
    point goes unseen; the error is reckoned as if it were drawn at random, and is a little too large.
    """
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(proxy), generator=generator).to(proxy.device)
    size = len(proxy) // _STRATA
    even, odd = shuffled[: _STRATA * size], shuffled[_STRATA * size :]  # a few at random come last
    by_proxy = even[torch.argsort(proxy[even])].view(_STRATA, size)
    lottery = torch.rand(_STRATA, size, generator=generator).argsort(dim=1).to(proxy.device)
    return torch.cat([by_proxy.gather(1, lottery).T.flatten(), odd])


@dataclass(frozen=True)
class _Fit:
    value: float
    error: float
    freedom: int
    method: str


def _best(values: Tensor, features: Tensor, chosen: Tensor) -> _Fit:
    """The narrower of the regression estimate and the plain mean of the anchors."""
    regression = _regression(values, features, chosen)
    plain = _regression(values, features[:, :1], chosen)
    if regression.error < plain.error:
        return regression
    return _Fit(plain.value, plain.error, plain.freedom, "anchors")


def _regression(values: Tensor, features: Tensor, chosen: Tensor) -> _Fit:
    """The mean over all points of the values' regression on the features, and its standard error.

    The estimate is a weighted sum Σ w_i y_i of the anchors' values; its error is that of Σ w_i e_i/(1 − h_i)
    over the residuals e, with leverages h (a jackknife to first order), and the share of points not seen.
    """
    F = features[chosen]
    m, n = len(values), len(features)
    target = features.mean(dim=0)
    inverse = torch.linalg.pinv(F.T @ F)
    beta = inverse @ (F.T @ values)
    weights = F @ (inverse @ target)
    leverage = ((F @ inverse) * F).sum(dim=1).clamp(max=1 - 1e-6)
    residuals = (values - F @ beta) / (1 - leverage)
    error = math.sqrt((1 - m / n) * float((weights * residuals).square().sum()))
    return _Fit(float(target @ beta), error, max(m - F.shape[1], 1), "control variate")


def _features(proxies: Proxies, clusters: Labels) -> Tensor:
    """(n, p) what an anchor's silhouette is regressed on: 1, the proxy silhouette, and its ingredients."""
    a, b = proxies.cohesion, proxies.separation
    larger = torch.maximum(a, b).clamp(min=torch.finfo(torch.float64).tiny)
    alone = clusters.counts[clusters.codes] == 1
    proxy = torch.where(alone, 0.0, (b - a) / larger)
    scale = b.mean().clamp(min=torch.finfo(torch.float64).tiny)
    ones = torch.ones_like(proxy)
    return torch.stack([ones, proxy, a / scale, b / scale, proxy.square(), alone.double()], dim=1)


def _anchor_values(rows: AnchorRows, anchors: Tensor) -> Tensor:
    separation = rows.exact(anchors)
    counted = rows.labels.counts[separation.labels.codes] > 1
    return torch.where(counted, silhouettes(separation, counted=False), 0.0)


def _exact(matrix: Tensor, clusters: Labels, seed: int) -> SilhouetteEstimate:
    value = float(silhouettes(Separation.of(matrix, clusters)).mean())
    return SilhouetteEstimate(value, 0.0, (value, value), matrix.shape[0], "exact", seed)


def _t95(freedom: int) -> float:
    """Two-sided 95 % point of Student's t, by its expansion in 1/freedom (3e-4 off at 10)."""
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
