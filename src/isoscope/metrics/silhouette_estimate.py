"""Estimates of the mean silhouette within a tolerance, in linear time: anchors with a control variate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, check_choice, check_seed
from isoscope.labels import Labels, as_clusters, as_labels
from isoscope.metrics.silhouettes import cluster_means, silhouettes
from isoscope.results import Record
from isoscope.space import known_rows
from isoscope.statistics.anchors import AnchorRows, Anchors, Block, ClusterMeans, sums_by_label
from isoscope.statistics.pairs import Separation
from isoscope.statistics.rows import HeldRows, as_rows, is_streamed
from isoscope.statistics.strata import Estimated, Sample, Strata, wanted_sizes

_PILOT = 120  # anchors before the first look at the interval
_SHORT_DIMS, _SHORT_PILOT = 128, 240  # short vectors make anchors cheap
_PER_STRATUM = 6  # of them in each cluster, for clusters to be strata of the mean over points
_LEAST = 2  # of a cluster, where every cluster is a stratum: fewer tell no variance
_PER_CLUSTER = 60  # of a cluster that gets an interval of its own
_TAKE_ALL = 0.5  # of a cluster's points: from here on all of them are taken
_SHARE_TO_EXACT = 0.25  # anchors beyond this share of the points cost as much as all of them
_SMALL = 1000  # up to here all points are cheap
_N_FEATURES = 2
_FEW_STRATA = 8


@dataclass(frozen=True)
class SilhouetteEstimate(Record):
    """An estimate of a mean silhouette, or its exact value where the estimate would cost as much.

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
    X: Any, labels: Any = None, *, tolerance: float = 1e-4, average: str = "micro", seed: int = 0
) -> SilhouetteEstimate:
    """Estimate the mean silhouette within ± tolerance (95 % interval) from the exact values of a few anchors.

    Every point has a proxy silhouette in closed form (root mean square distances in the place of mean
    distances). The anchors' exact silhouettes are regressed on their proxies, and the mean proxy of all
    points corrects the anchors' mean:

        estimate = mean(exact) + β·(mean(all proxies) − mean(anchors' proxies))

    with a standard error from the residuals. Anchors are added until the interval is narrow enough;
    where the proxies do not help, plain anchors are used, and where even they would be a quarter of the
    points, the exact silhouette. Time is linear in n. An opened file (`isoscope.open_vectors`) is read
    block by block, a few times, and never held whole. The page on the silhouette has the details.

    Args:
        X: (n, d) vectors in any array, or an opened file.
        labels: one label a row.
        tolerance: half the width of the 95 % interval to reach.
        average: "micro" over points, "macro" over clusters (anchors are then drawn from each cluster).
        seed: of the choice of anchors.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(4000, 8))
    >>> found = estimate_silhouette(X, X[:, 0] > 0, tolerance=1e-3)
    >>> found.method, found.interval[0] < found.value < found.interval[1]
    ('control variate', True)
    """
    check_choice("average", average, ("micro", "macro"))
    rows = _rows(X, labels, tolerance, seed)
    n, clusters = len(rows.labels), rows.labels
    if n <= _SMALL:
        return _overall(_all_values(rows), clusters, average, seed)
    n_pilot = _SHORT_PILOT if rows.frame.n_dims <= _SHORT_DIMS else _PILOT
    few = clusters.n_labels * _PER_STRATUM <= n_pilot
    survey = _Survey.of(rows, by_cluster=average == "macro" or few, seed=seed)
    weights = survey.strata.counts.double() / n
    if average == "macro":
        weights = torch.ones_like(weights) / clusters.n_labels
    if not survey.reach(_pilot(weights, survey.strata.counts, n_pilot)):
        return _overall(_all_values(rows), clusters, average, seed)
    while True:
        sample = survey.sample(weights)
        found, method = _best(sample)
        if found.half_width <= tolerance:
            half_width = tolerance if survey.n_rounds > 1 else found.half_width
            return _reported(found, method, half_width, len(sample.values), seed)
        if not survey.reach(wanted_sizes(sample, found, tolerance)):
            return _overall(_all_values(rows), clusters, average, seed)


def estimate_silhouette_by_cluster(
    X: Any, labels: Any = None, *, tolerance: float = 1e-4, seed: int = 0
) -> dict[Any, SilhouetteEstimate]:
    """Estimate the mean silhouette of each cluster, by label, each within ± tolerance (95 % interval).

    Every cluster is estimated as `estimate_silhouette` does a whole space, from anchors of its own. A
    cluster that would need half of its points is taken whole, and is exact.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(4000, 8))
    >>> found = estimate_silhouette_by_cluster(X, X[:, 0] > 0, tolerance=1e-3)
    >>> [(name, one.method) for name, one in found.items()]
    [(False, 'control variate'), (True, 'control variate')]
    """
    rows = _rows(X, labels, tolerance, seed)
    clusters = rows.labels
    if len(clusters) <= _SMALL:
        return _each(_all_values(rows), clusters, seed)
    survey = _Survey.of(rows, by_cluster=True, seed=seed)
    counts = survey.strata.counts
    sizes = torch.full_like(counts, _PER_CLUSTER)
    found: dict[int, SilhouetteEstimate] = {}
    while len(found) < len(counts):
        sizes = torch.where(sizes > _TAKE_ALL * counts, counts, sizes)
        if not survey.reach(sizes):
            return _each(_all_values(rows), clusters, seed)
        for stratum in range(len(counts)):
            if stratum in found:
                continue
            sample = survey.sample_of(stratum)
            estimated, method = _best(sample)
            if estimated.half_width <= tolerance:
                half_width = estimated.half_width if survey.n_rounds == 1 else tolerance
                found[stratum] = _reported(estimated, method, half_width, len(sample.values), seed)
            else:
                sizes[stratum] = wanted_sizes(sample, estimated, tolerance)[0]
    alone = SilhouetteEstimate(0.0, 0.0, (0.0, 0.0), 1, "exact", seed)
    place = {int(code): row for row, code in enumerate(survey.clusters)}
    return {name: found.get(place.get(code, -1), alone) for code, name in enumerate(clusters.names)}


def _pilot(weights: Tensor, counts: Tensor, n_anchors: int) -> Tensor:
    """Return (H,) the first number of anchors of each stratum: by weight, and all of the smallest strata."""
    small = counts <= 2 * _LEAST
    shares = torch.where(small, 0.0, weights)
    sizes = (n_anchors * shares / shares.sum().clamp(min=torch.finfo(torch.float64).tiny)).ceil().long()
    return torch.where(small, counts, torch.minimum(sizes.clamp(min=_LEAST), counts))


class _Survey:
    """Anchors drawn so far, with their silhouettes and features, and every stratum's mean features."""

    def __init__(self, rows: AnchorRows, codes: Tensor, clusters: Tensor, seed: int) -> None:
        self.rows = rows
        self.codes = codes
        self.clusters = clusters
        self.strata = Strata.of(codes, max(len(clusters), 1), generator=torch.Generator().manual_seed(seed))
        self.taken = torch.zeros_like(self.strata.counts)
        self.values = torch.empty(0, dtype=torch.float64, device=codes.device)
        self.features = self.values.new_empty(0, _N_FEATURES)
        self.stratum = codes.new_empty(0)
        self.n_rounds = 0
        self.means: Tensor | None = None
        self._clusters: ClusterMeans | None = None

    @classmethod
    def of(cls, rows: AnchorRows, *, by_cluster: bool, seed: int) -> _Survey:
        """Return a survey with clusters of two points and more as strata, or all such points as one."""
        counts, codes = rows.labels.counts, rows.labels.codes
        clusters = (counts > 1).nonzero().flatten()
        place = torch.full_like(counts, -1)
        place[clusters] = torch.arange(len(clusters), device=codes.device) if by_cluster else 0
        return cls(rows, place[codes], clusters if by_cluster else clusters[:0], seed)

    def reach(self, sizes: Tensor) -> bool:
        """Draw anchors until each stratum has this many; return False if computing all points costs less."""
        sizes = torch.maximum(sizes.to(self.taken.device), self.taken)
        if int(sizes.sum()) > _SHARE_TO_EXACT * len(self.codes):
            return False
        index, stratum = self.strata.draw(self.taken, sizes)
        if self._clusters is None:
            self._clusters, anchors = self.rows.clusters(index)
            if not self._clusters.finite:
                return False  # the exact silhouette says why, or has a way
            separation = self._first_pass(anchors, self._clusters)
        else:
            anchors = self.rows.anchors(index)
            separation, _ = self.rows.meet(anchors, self._clusters)
        features = _features(self._clusters, anchors.block, self.rows.labels.codes[index])
        self.values = torch.cat([self.values, silhouettes(separation, counted=False)])
        self.features = torch.cat([self.features, features])
        self.stratum = torch.cat([self.stratum, stratum])
        self.taken = sizes
        self.n_rounds += 1
        return True

    def _first_pass(self, anchors: Anchors, clusters: ClusterMeans) -> Separation:
        """Compute the anchors against all points, and sum the features of all points by stratum."""
        n_strata = len(self.strata.counts)

        def summed(block: Block) -> Tensor:
            features = _features(clusters, block, self.rows.labels.codes[block.rows])
            where = self.codes[block.rows] % (n_strata + 1)  # the last row is of points alone
            if features.is_cuda and n_strata <= _FEW_STRATA:  # many additions to one place take turns there
                return sums_by_label(features, where, n_strata + 1)
            return features.new_zeros(n_strata + 1, _N_FEATURES).index_add_(0, where, features)

        separation, sums = self.rows.meet(anchors, clusters, summed)
        assert sums is not None
        self.means = sums[:-1] / self.strata.counts.clamp(min=1)[:, None]
        return separation

    def sample(self, weights: Tensor) -> Sample:
        """Return all anchors, for a mean over strata with the given weights; they are few: on the CPU."""
        assert self.means is not None
        columns = (self.values, self.features, self.stratum, self.strata.counts, self.means, weights)
        return Sample(*(column.cpu() for column in columns))

    def sample_of(self, stratum: int) -> Sample:
        """Return the anchors of one stratum, for its mean; on the CPU."""
        assert self.means is not None
        here = self.stratum == stratum
        one = slice(stratum, stratum + 1)
        values, features = self.values[here].cpu(), self.features[here].cpu()
        nought = torch.zeros(len(values), dtype=torch.int64)
        about = self.strata.counts[one].cpu(), self.means[one].cpu()
        return Sample(values, features, nought, *about, values.new_ones(1))


def _features(clusters: ClusterMeans, block: Block, codes: Tensor) -> Tensor:
    """Return (b, 2) float64 features that a silhouette is regressed on: the proxy silhouette p, and p².

    Both are bounded, so no point however far out can tilt the fit; a and b themselves are not, and do.
    """
    a, b = clusters.proxies(block, codes)
    proxy = ((b - a) / torch.maximum(a, b).clamp_(min=torch.finfo(a.dtype).tiny)).double()
    return torch.stack([proxy, proxy.square()], dim=1)


def _best(sample: Sample) -> tuple[Estimated, str]:
    """Return the regression estimate or the plain mean of the anchors, whichever is more precise."""
    plain = sample.plain().estimate()
    if len(sample.values) < 4 * _N_FEATURES:
        return plain, "anchors"
    regression = sample.estimate()
    return (regression, "control variate") if regression.error < plain.error else (plain, "anchors")


def _reported(
    found: Estimated, method: str, half_width: float, n_anchors: int, seed: int
) -> SilhouetteEstimate:
    if found.error == 0:
        half_width, method = 0.0, "exact"
    interval = (found.value - half_width, found.value + half_width)
    return SilhouetteEstimate(found.value, found.error, interval, n_anchors, method, seed)


def _rows(X: Any, labels: Any, tolerance: float, seed: int) -> AnchorRows:
    """Return the points, not yet checked to be finite, and their clusters."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not tolerance > 0:
        raise InputError(argument="tolerance", got=tolerance, wanted="a positive half-width, such as 1e-4")
    check_seed(seed)
    if is_streamed(X):
        known = X.labels if labels is None else labels
        if known is None:
            raise InputError(
                "is missing; name them in open_vectors(…, labels=…) or pass labels=…", argument="labels"
            )
        coded = as_labels(known)
        return AnchorRows.of(as_rows(X, len(coded)), as_clusters(coded, n=len(coded)))
    rows = as_rows(X, 0)
    assert isinstance(rows, HeldRows)
    n, device = len(rows.points), rows.points.device
    return AnchorRows.of(rows, as_clusters(known_rows(X, labels, "labels"), n=n).to(device))


def _all_values(rows: AnchorRows) -> Tensor:
    """Return (n,) all silhouettes; a file is read once for each batch of its points."""
    if rows.rows.whole is not None:
        return silhouettes(Separation.of(as_matrix(rows.rows.whole), rows.labels))
    separation = rows.exact(torch.arange(len(rows.labels)))
    return silhouettes(separation)


def _overall(values: Tensor, clusters: Labels, average: str, seed: int) -> SilhouetteEstimate:
    value = float(values.mean() if average == "micro" else cluster_means(values, clusters).mean())
    return SilhouetteEstimate(value, 0.0, (value, value), len(values), "exact", seed)


def _each(values: Tensor, clusters: Labels, seed: int) -> dict[Any, SilhouetteEstimate]:
    means, counts = cluster_means(values, clusters).tolist(), clusters.counts.tolist()
    return {
        name: SilhouetteEstimate(mean, 0.0, (mean, mean), count, "exact", seed)
        for name, mean, count in zip(clusters.names, means, counts, strict=True)
    }
