"""k-means on any device, and how many clusters a space has by the silhouette."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isoscope.arguments import renamed
from isoscope.arrays import as_matrix, working
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed
from isoscope.kernels.many_kmeans import n_candidates
from isoscope.kernels.products import sum_of_squares
from isoscope.kernels.workers import in_order
from isoscope.labels import Labels
from isoscope.metrics.silhouettes import silhouette_score
from isoscope.results import Result
from isoscope.tables import shown

__all__ = ["ChosenClusters", "Clustering", "choose_clusters", "kmeans"]

_BLOCK_NUMBERS = 2**20  # on the CPU: a block, its scores and its share of the sums stay in a core's cache
_WHOLE_NUMBERS = 2**22  # on the CPU: up to here one block on all cores beats blocks on one core each
FIRST_ROUNDS = 15  # that every start gets before the best is chosen
MAX_ITER, TOLERANCE = 300, 1e-4
_CUDA_NUMBERS = 2**28  # on CUDA: as large as memory allows with ease


@dataclass(frozen=True, eq=False, repr=False)
class Clustering(Result):
    """Points grouped about centres.

    Attributes:
        labels: the cluster of each point, 0 … K−1.
        centers: (K, d) the mean of each cluster, where X lies.
        inertia: Σ ‖x − centre‖² over all points: what k-means makes small.
        n_steps: rounds of assigning points and moving centres.
    """

    labels: Labels
    centers: Tensor
    inertia: float
    n_steps: int

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.labels.n_labels

    @property
    def title(self) -> str:
        """How many points and clusters there are."""
        return f"{len(self.labels):,} points in {self.n_clusters:,} clusters, inertia {shown(self.inertia)}"

    def _columns(self) -> dict[str, list[Any]]:
        return {"cluster": list(range(self.n_clusters)), "n": self.labels.counts.tolist()}


@dataclass(frozen=True, eq=False, repr=False)
class ChosenClusters(Result):
    """As many clusters as the silhouette speaks for.

    Attributes:
        n_clusters: the number chosen; 1 where no number of clusters has a silhouette worth the name.
        labels: the cluster of each point.
        silhouette: of the best number of clusters, chosen or not.
        silhouettes: by number of clusters.
    """

    n_clusters: int
    labels: Labels
    silhouette: float
    silhouettes: Mapping[int, float]

    @property
    def title(self) -> str:
        """The number of clusters chosen."""
        return f"{self.n_clusters:,} clusters chosen by the silhouette"

    def _columns(self) -> dict[str, list[Any]]:
        return {"n_clusters": list(self.silhouettes), "silhouette": list(self.silhouettes.values())}


@renamed(max_steps="max_iter")
def kmeans(
    X: Any,
    n_clusters: int,
    *,
    seed: int = 0,
    n_init: int = 1,
    init: Any = None,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
) -> Clustering:
    """Points grouped about K centres, each centre the mean of the points nearest to it.

        minimise  Σ ‖x − centre(x)‖²

    by Lloyd's rounds from k-means++ (Arthur and Vassilvitskii 2007), greedy as scikit-learn draws it; a
    cluster left empty takes the point farthest from its centre. Runs where X lies, CPU or CUDA, in blocks,
    with the same draws on both. A local minimum: another seed may find another.

    Args:
        X: (n, d) vectors in any array.
        n_clusters: K, from 1 to n.
        seed: of the start.
        n_init: how many starts, all at once; the one with the least inertia after a few rounds is carried on.
        init: (K, d) centres to start from instead.
        max_iter: rounds at most.
        tol: the centres stand still when together they move by less than this share of a dimension's
            mean variance (squared lengths).

    >>> kmeans([[0.0], [1.0], [9.0], [10.0]], 2).labels.codes.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """
    points = _Points.of(X)
    _check(points, n_clusters, seed, n_init, max_iter)
    if init is None:
        centers = _best_start(points, n_clusters, n_init, torch.Generator().manual_seed(seed))
        return points.clustering(centers, max_iter, tol)
    centers, shape = as_matrix(init, name="init").detach(), (n_clusters, points.rows.shape[1])
    if centers.shape != shape:
        raise ShapeError(
            f"has shape {tuple(centers.shape)}; wanted one centre a cluster, {shape}", argument="init"
        )
    centred = centers.to(points.rows.device).double() - points.mean.double()
    return points.clustering(centred.to(points.rows.dtype), max_iter, tol)


def choose_clusters(
    X: Any,
    *,
    max_clusters: int = 15,
    sample: int | None = 20_000,
    min_silhouette: float = 0.1,
    n_init: int = 10,
    tolerance: float | None = None,
    seed: int = 0,
) -> ChosenClusters:
    """How many clusters k-means should make: the number with the highest silhouette, or 1.

    For K = 2 … max_clusters: k-means on a random sample from several starts, the best of them carried on
    over all points, then the silhouette on the sample. The best K is taken if its silhouette reaches
    `min_silhouette`; else the space is one cluster. The draw of the sample is the same for every K.
    Paper: Cai et al. 2021.

    Args:
        X: (n, d) vectors in any array.
        max_clusters: the largest K to try.
        sample: points the starts are tried and the silhouette is taken on; None for all.
        min_silhouette: below it the space counts as one cluster.
        n_init: starts of each k-means; one alone may end in a poor minimum.
        tolerance: estimate silhouettes to ± this instead of exactly: linear in the sample's size.
        seed: of starts, sample and estimates.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4)) + 20 * np.eye(4)[rng.integers(0, 3, 300)]
    >>> choose_clusters(X, max_clusters=6).n_clusters
    3
    """
    if not isinstance(max_clusters, int) or max_clusters < 2:
        raise InputError(argument="max_clusters", got=max_clusters, wanted="a whole number from 2 on")
    points = _Points.of(X)
    _check(points, 1, seed, n_init, 1)
    n = len(points.rows)
    some = _drawn(n, sample, seed).to(points.rows.device)
    few = _Points.of(points.rows[some])
    tried: dict[int, tuple[float, Labels]] = {}
    for K in range(2, min(max_clusters, len(some) - 1) + 1):
        start = _best_start(few, K, n_init, torch.Generator().manual_seed(seed))
        labels = points.clustering(start + few.mean, MAX_ITER, TOLERANCE).labels
        on_sample = Labels(labels.codes[some], labels.names).seen()
        if 2 <= on_sample.n_labels < len(some):
            score = silhouette_score(points.rows[some], on_sample, tolerance=tolerance, seed=seed)
            tried[K] = float(score), labels
    if not tried:
        raise UndefinedError(
            f"no number of clusters can be compared: {n} points, a sample of {len(some)} and at most "
            f"{max_clusters} clusters; wanted at least 3 different points"
        )
    return best_number(tried, min_silhouette)


def best_number(tried: Mapping[int, tuple[float, Labels]], min_silhouette: float = 0.1) -> ChosenClusters:
    """Choose among clusterings by their silhouettes; 1 where the best is below `min_silhouette`."""
    best = max(tried, key=lambda K: tried[K][0])
    score, labels = tried[best]
    if score < min_silhouette:
        best, labels = 1, Labels(torch.zeros_like(labels.codes), (0,))
    return ChosenClusters(best, labels, score, {K: value for K, (value, _) in tried.items()})


@dataclass(frozen=True, eq=False)
class _Points:
    """Centred rows, so that products in float32 lose nothing to an offset, and what was taken off.

    rows: (n, d) in the working type; squared_norms: (n,); mean: (d,); variance: mean of the dimensions'.
    """

    rows: Tensor
    squared_norms: Tensor
    mean: Tensor
    variance: float

    @classmethod
    def of(cls, X: Any) -> _Points:
        matrix = working(as_matrix(X).detach())
        mean = matrix.mean(dim=0)  # rounded or not: what is taken off is put back
        rows = matrix - mean
        squared_norms = sum_of_squares(rows)
        variance = float(squared_norms.sum(dtype=torch.float64)) / rows.numel()
        return cls(rows, squared_norms, mean, variance)

    def clustering(self, centers: Tensor, max_iter: int, tol: float) -> Clustering:
        """Lloyd's rounds from these (centred) centres."""
        K, codes, n_steps, settled = len(centers), None, 0, False
        while n_steps < max_iter:
            n_steps += 1
            nearest, sums, counts = self._round(centers)
            if settled := codes is not None and bool((nearest == codes).all()):
                break
            codes, before = nearest, centers
            centers = self._moved(centers, codes, sums, counts)
            if float((centers - before).square().sum(dtype=torch.float64)) <= tol * self.variance:
                break
        if not settled:  # the centres moved after points were last assigned
            codes = self._round(centers)[0]
        assert codes is not None
        inertia = float(self._squared_distances(centers, codes).sum(dtype=torch.float64))
        return Clustering(Labels(codes, tuple(range(K))), centers + self.mean, inertia, n_steps)

    def _round(self, centers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Each point's nearest centre (n,), and the sums (K, d) and counts (K,) of the points so assigned."""
        half_squares = sum_of_squares(centers) / 2
        tasks = (partial(_assigned, block, centers, half_squares) for block in self.blocks())
        codes, sums = [], centers.new_zeros(centers.shape, dtype=torch.float64)
        counts = torch.zeros(len(centers), dtype=torch.int64, device=centers.device)
        for nearest, part, n in self.in_order(tasks):
            codes.append(nearest)
            sums += part
            counts += n
        return torch.cat(codes), sums, counts

    def _moved(self, centers: Tensor, codes: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
        """Return the mean of each cluster; an empty cluster gets a point far from its own centre."""
        means = (sums / counts.clamp(min=1)[:, None]).to(centers.dtype)
        empty = (counts == 0).nonzero().flatten()
        if len(empty):
            far = self._squared_distances(centers, codes).topk(len(empty)).indices
            means[empty] = self.rows[far]
        return means

    def _squared_distances(self, centers: Tensor, codes: Tensor) -> Tensor:
        """(n,) to each point's own centre, from differences: nothing cancels."""
        parts = zip(self.blocks(), codes.split(self.block_rows), strict=True)
        tasks = (partial(_squared_to_own, block, centers, own) for block, own in parts)
        return torch.cat(list(self.in_order(tasks)))

    @property
    def block_rows(self) -> int:
        """How many rows are taken together."""
        if self.rows.is_cuda:
            return max(256, _CUDA_NUMBERS // self.rows.shape[1])
        if self.rows.numel() <= _WHOLE_NUMBERS:
            return len(self.rows)
        return max(256, _BLOCK_NUMBERS // self.rows.shape[1])

    def blocks(self) -> tuple[Tensor, ...]:
        """Yield the rows in blocks."""
        return self.rows.split(self.block_rows)

    def in_order(self, tasks: Iterator[Callable[[], Any]]) -> Iterator[Any]:
        """Their results: on all cores, or one after another on CUDA."""
        alone = self.rows.is_cuda or len(self.rows) <= self.block_rows
        return in_order(tasks, n_workers=1 if alone else torch.get_num_threads())


def _assigned(block: Tensor, centers: Tensor, half_squares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of a block: the nearest centres, and the clusters' sums and counts.

    ‖x − c‖²/2 = ‖x‖²/2 + (‖c‖²/2 − x·c): the part in brackets decides.
    """
    codes = torch.addmm(half_squares, block, centers.T, alpha=-1).min(dim=1).indices
    counts = torch.bincount(codes, minlength=len(centers))
    if not block.is_cuda:
        return codes, torch.zeros_like(centers).index_add_(0, codes, block), counts
    members = torch.nn.functional.one_hot(codes, len(centers)).to(block.dtype)
    return codes, members.T @ block, counts  # additions one by one would contend, in no fixed order


def _squared_to_own(block: Tensor, centers: Tensor, codes: Tensor) -> Tensor:
    return sum_of_squares(block - centers[codes])


def _best_start(points: _Points, K: int, n_init: int, generator: torch.Generator) -> Tensor:
    """(K, d) centres to carry on from: of several starts, the one with the least inertia after a few rounds.

    All starts go through the same products, so that ten cost little more than one.
    """
    starts = _plus_plus(points, K, n_init, generator)
    if n_init == 1:
        return starts[0]
    for _ in range(FIRST_ROUNDS):
        starts, _ = _all_moved(points.rows, starts)
    return starts[int(_all_moved(points.rows, starts)[1].argmin())]


def _all_moved(rows: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """(S, K, d) centres after one of Lloyd's rounds each, and (S,) inertia less Σ‖x‖² before it.

    An empty cluster keeps its centre.
    """
    S, K, d = starts.shape
    flat = starts.reshape(-1, d)
    half_squares = sum_of_squares(flat) / 2
    nearest, codes = torch.addmm(half_squares, rows, flat.T, alpha=-1).view(-1, S, K).min(dim=2)
    members = torch.nn.functional.one_hot(codes, K).view(-1, S * K).to(rows.dtype)
    counts = members.sum(dim=0)
    means = (members.T @ rows) / counts.clamp(min=1)[:, None]
    moved = torch.where(counts[:, None] > 0, means, flat)
    return moved.view(S, K, d), 2 * nearest.sum(dim=0, dtype=torch.float64)


def _plus_plus(points: _Points, K: int, n_init: int, generator: torch.Generator) -> Tensor:
    """(S, K, d) points as centres, drawn with a chance that grows with the squared distance to those before.

    Of a few candidates at each turn the one that leaves the least inertia is taken.
    """
    rows, n = points.rows, len(points.rows)
    C = n_candidates(K)
    drawn = torch.randint(n, (n_init,), generator=generator).to(rows.device)
    chosen = [rows[drawn]]
    closest = _squared_to(points, chosen[0])  # (n, S)
    for _ in range(1, K):
        cumulative = closest.cumsum(0, dtype=torch.float64).T.contiguous()
        wanted = torch.rand(n_init, C, generator=generator, dtype=torch.float64).to(rows.device)
        drawn = torch.searchsorted(cumulative, wanted * cumulative[:, -1:]).clamp(max=n - 1)
        candidates = rows[drawn.flatten()]
        left = _squared_to(points, candidates).view(n, n_init, C)
        left = torch.minimum(left, closest[:, :, None])
        best = left.sum(dim=0, dtype=torch.float64).argmin(dim=1)
        chosen.append(candidates.view(n_init, C, -1)[torch.arange(n_init), best])
        closest = left.gather(2, best.expand(n, -1)[:, :, None])[:, :, 0]
    return torch.stack(chosen, dim=1)


def _squared_to(points: _Points, centers: Tensor) -> Tensor:
    """(n, K) squared distances to centres, never below 0."""
    constants = sum_of_squares(centers)
    tasks = (partial(torch.addmm, constants, block, centers.T, alpha=-2) for block in points.blocks())
    products = torch.cat(list(points.in_order(tasks)))
    return products.add_(points.squared_norms[:, None]).clamp_(min=0)


def _drawn(n: int, sample: int | None, seed: int) -> Tensor:
    if sample is None or sample >= n:
        return torch.arange(n)
    if sample < 3:
        raise InputError(argument="sample", got=sample, wanted="at least 3 points, or None for all")
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:sample].sort().values


def _check(points: _Points, n_clusters: int, seed: int, n_init: int, max_iter: int) -> None:
    check_seed(seed)
    n = len(points.rows)
    if not isinstance(n_clusters, int) or not 1 <= n_clusters <= n:
        raise InputError(
            argument="n_clusters",
            got=n_clusters,
            wanted=f"a whole number from 1 to {n}, the number of points",
        )
    for name, value in (("n_init", n_init), ("max_iter", max_iter)):
        if not isinstance(value, int) or value < 1:
            raise InputError(argument=name, got=value, wanted="a whole number above 0")
