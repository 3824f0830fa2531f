"""Measures of representation quality from self-supervised learning: α-ReQ, LiDAR and CLID."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import UndefinedError, check_between, check_seed, check_whole
from isoscope.metrics.clusters import clustered
from isoscope.metrics.manifold import twonn
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.metrics.spectrum import power_law, spectral_entropy
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.eigenvalue_noise import N_RANKS
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.tables import percent

_LU_2023 = "Lu et al. 2023, Using representation expressiveness and learnability"
_LEAST_ROWS = 2  # for each dimension, for a standard error of α-ReQ
_FLAT = 0.3  # of α: of a flat spectrum, the bias that is seen is about half of α
_DELTA = 1e-4  # Thilak et al. 2024, on the diagonal of the covariance within groups
_EPSILON = 1e-7  # Thilak et al. 2024, added to the shares


_metric = family("quality", range=(0.0, math.inf), default=False)


@_metric(
    needs=("moments",),
    high="anisotropic",
    invariances=ALL_INVARIANCES,
    paper="Agrawal, Mondal, Ghosh, Richards 2022, α-ReQ",
    sentence="the spectrum decays like rank to the power −{value:.2f} (1 is best for transfer)",
    error=lambda shelf: _alpha_error(shelf),
    error_needs=("eigenvalue_noise",),
    biased_by_rows=True,
)
def alpha_req(X: Any, *, first: int | None = None, last: int | None = None) -> float:
    """Compute α-ReQ, the decay α of the spectrum, λ_i ∝ i^−α: the first ranks count most.

        least squares of log λ_i on −log i with the weights 1/i, over the ranks i = first … last

    `power_law_exponent` weights all ranks alike and goes on to rank 500. Range [0, ∞); near 1 the
    representations transfer best, higher ones have collapsed to few directions, lower ones have not
    compressed. Without limits: ranks 11 to 100 (or to the rank of the covariance) where the rank is 60 or
    more, otherwise all; to 100 as in its authors' package. A sample's spectrum is steeper than the
    population's. The standard error, given where n ≥ 2d, includes this bias and holds for rows of any
    distribution; it is withheld where the bias could be all of α. Invariant to rotation, translation and one
    scale. Paper: Agrawal et al. 2022, α-ReQ; weights after Stringer et al. 2019.

    Args:
        X: (n, d) vectors in any array, or Moments.
        first: the first rank to fit, counted from 1.
        last: the last rank to fit.

    >>> X = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5], [0.0, -0.5]])
    >>> round(alpha_req(X), 12)  # λ_2 = λ_1/4 = λ_1·2^−2
    2.0
    """
    return power_law(X, "alpha_req", first, last, most=N_RANKS, by_rank=True)[0]


@_metric(
    needs=("moments", "label_moments"),
    call=lambda metric, shelf: metric(shelf.moments, shelf.label_moments),
    range=(1.0 - 1e-6, math.inf),
    high="groups differ in many directions",
    better="high",
    invariances=("rotation", "translation"),
    paper="Thilak et al. 2024, LiDAR",
    sentence="groups can be told apart along about {value:.1f} directions",
    biased_by_rows=True,
)
def lidar(X: Any, labels: Any = None, *, delta: float = _DELTA) -> float:
    """Compute LiDAR, the effective rank of what tells groups apart: of linear discriminant analysis.

        exp(−Σ p_i log p_i),   p_i = λ_i/Σ λ + 1e-7,   λ the d eigenvalues of Σ_W^−½ Σ_B Σ_W^−½
        Σ_W = Σ_k Σ_{i in k} (x_i − μ_k)(x_i − μ_k)ᵀ/(n − K) + δ·I,   Σ_B the covariance of the K means μ_k

    A group is what should be the same: the augmented views of one image, or the paraphrases of one sentence;
    its number is the label. Range [1, min(K − 1, d)] up to the paper's 1e-7; high means many directions.
    It is biased by the number of groups, which bounds it, and by that of rows in each, which adds 1/n_k to
    every λ: compare spaces of the same groups. Invariant to rotation and translation, and to scale where δ
    is 0. Paper: Thilak et al. 2024, LiDAR.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or Moments.
        labels: the group of each vector, or GroupMoments of the groups.
        delta: δ, added to the variances within groups; the paper's is 1e-4, whatever the scale of X.

    >>> X = [[3.0, 0.1], [3.0, -0.1], [-3.0, 0.1], [-3.0, -0.1], [0.0, 0.1], [0.0, -0.1]]
    >>> round(lidar(X, [0, 0, 1, 1, 2, 2]), 3)  # groups differ along one axis only
    1.0
    """
    delta = check_between("delta", delta, 0, math.inf, wanted="a variance of 0 or more", open_at="high")
    groups = labels if isinstance(labels, GroupMoments) else GroupMoments.of(*clustered(X, labels))
    moments = Moments.of(X)
    groups.check_scale()
    K = int((groups.counts > 0).sum())
    if not moments.count > K:
        raise UndefinedError(f"lidar needs more rows than groups; there are {moments.count:g} rows of {K}")
    if not len(groups.lengths_along):
        raise UndefinedError(f"lidar is undefined: the means of all {K} groups are equal")
    within = (moments.scatter - groups.between).detach() / (moments.count - K)
    values, vectors = torch.linalg.eigh(within)
    values = values.clamp(min=0) + delta
    if not bool((values > len(values) * 2**-52 * values[-1]).all()):
        raise UndefinedError(
            "lidar with delta=0 is undefined: the covariance within groups has no inverse; use a delta"
        )
    whitened = groups.coordinates @ (groups.axes @ vectors / values.sqrt())
    squares = torch.linalg.svdvals(whitened).square()
    shares = torch.nn.functional.pad(squares / squares.sum(), (0, max(0, moments.n_dims - len(squares))))
    return math.exp(float(spectral_entropy(shares[: moments.n_dims] + _EPSILON)))


@_metric(
    needs=("vectors",),
    call=lambda metric, shelf: metric(shelf.vectors, seed=shelf.seed),
    range=(0.0, 1.0),
    high="clusters easy to learn",
    better="high",
    invariances=("rotation", "scale"),
    paper=_LU_2023,
    sentence=lambda value: f"the nearest neighbour has the cluster of {percent(value)} of unseen rows",
    biased_by_rows=True,
)
def cluster_learnability(X: Any, *, n_clusters: int | None = None, seed: int = 0) -> float:
    """Compute the accuracy with which the nearest neighbour predicts the clusters that k-means finds.

        mean over points of [c(x) = c(nearest point of the other half)],   c the clusters of k-means

    on unit vectors, with the points split into two random halves, each predicted from the other. Range
    [0, 1]; high means clusters that are easy to learn. Invariant to rotation and one scale, up to what
    k-means finds. Paper: Lu et al. 2023, who predict one half only; k-means of scikit-learn.

    Args:
        X: (n, d) vectors in any array.
        n_clusters: how many clusters; √n, rounded down, as in the paper.
        seed: of k-means and of the halves.

    >>> import numpy as np
    >>> X = np.eye(4)[np.arange(40) % 4] + 0.01 * np.random.default_rng(0).normal(size=(40, 4))
    >>> cluster_learnability(X, n_clusters=4)
    1.0
    """
    return _learnability(_directions(X, "cluster_learnability"), n_clusters, seed)


@_metric(
    needs=("vectors",),
    call=lambda metric, shelf: metric(shelf.vectors, seed=shelf.seed),
    high="learnable and of high dimension",
    better="high",
    invariances=("rotation", "scale"),
    paper=f"{_LU_2023}; Facco, d'Errico, Rodriguez, Laio 2017, Estimating the intrinsic dimension",
    sentence="learnability of clusters and intrinsic dimension over d add up to {value:.2f}",
    biased_by_rows=True,
)
def clid(X: Any, *, n_clusters: int | None = None, seed: int = 0) -> float:
    """Compute CLID: the learnability of clusters plus the intrinsic dimension, as a share of d.

        cluster_learnability + TwoNN/d,   both of unit vectors

    To rank several spaces, Lu et al. scale both over the spaces before they add them; a single space has no
    such scale, so the intrinsic dimension is divided by d here. For a ranking, take `cluster_learnability`
    and `twonn` of each space. Range [0, ∞); high is better. Invariant to rotation and one scale, up to what
    k-means finds. Paper: Lu et al. 2023; Facco et al. 2017 for the intrinsic dimension.

    Args:
        X: (n, d) vectors in any array.
        n_clusters: how many clusters; √n, rounded down, as in the paper.
        seed: of k-means and of the halves.

    >>> import numpy as np
    >>> bool(clid(np.random.default_rng(0).normal(size=(300, 3))) > 1)
    True
    """
    units = _directions(X, "clid")
    return _learnability(units, n_clusters, seed) + twonn(units) / units.shape[1]


def _alpha_error(shelf: Statistics) -> float:
    """Return the root of the variance of α over samples plus the square of its bias.

    The influence of each row gives the variance. The variances λ of a sample are spread more widely than
    those of the population, by Lawley's first term (1956): log λ_k by Σ_{j≠k} λ_j/(λ_k − λ_j)/n, times
    E z_k² z_j²/(λ_k λ_j). That is 1 for normal rows; where the lengths of rows vary more, it is the ratio of
    E‖u‖⁴ to that of normal rows. Of a flat spectrum this term sees half of the bias, so that a bias of this
    share of α tells no decay from none.
    """
    moments = shelf.moments
    n, d = float(moments.count), moments.n_dims
    if n < _LEAST_ROWS * d:
        raise UndefinedError(
            f"the standard error of alpha_req needs n ≥ {_LEAST_ROWS}d; n is {n:g} and d is {d}"
        )
    alpha, slope, fitted = power_law(moments, "alpha_req", None, None, most=N_RANKS, by_rank=True)
    values = moments.eigenvalues.detach()
    gaps = values[fitted, None] - values
    shifts = torch.where(gaps == 0, 0.0, values / torch.where(gaps == 0, 1.0, gaps)).sum(dim=1) / n
    of_normal = (moments.trace.square() + 2 * moments.squared_frobenius) / n
    bias = float(slope @ shifts * (moments.quartic / of_normal).clamp(min=1))
    if not abs(bias) < _FLAT * alpha:
        raise UndefinedError(
            f"the standard error of alpha_req is withheld: the bias of few rows, {bias:.2g}, hides whether "
            "the spectrum decays; add rows"
        )
    of_all = torch.nn.functional.pad(slope, (fitted.start, 0))
    variance = shelf.eigenvalue_noise.log_variance(of_all, values[: fitted.stop], n)
    return math.sqrt(variance + bias**2)


def _directions(X: Any, name: str) -> Tensor:
    """Return the unit vectors, in float64; a zero vector has none."""
    parts = [unit_rows(rows) for rows in blocks(as_matrix(X).detach())]
    if not all(bool((lengths > 0).all()) for _, lengths in parts):
        raise UndefinedError(f"{name} is undefined: zero vectors have no direction; leave them out")
    return torch.cat([units for units, _ in parts])


def _learnability(units: Tensor, n_clusters: int | None, seed: int) -> float:
    from sklearn.cluster import KMeans
    from sklearn.neighbors import KNeighborsClassifier

    check_seed(seed)
    n = len(units)
    if n < 2:
        raise UndefinedError("cluster_learnability needs at least 2 points; there is 1")
    n_clusters = check_whole("n_clusters", math.isqrt(n) if n_clusters is None else n_clusters, most=n)
    points = units.cpu().numpy()
    clusters = KMeans(n_clusters, n_init=1, random_state=seed).fit_predict(points)
    half = np.random.default_rng(seed).permutation(n) < n // 2
    right = 0
    for train in (half, ~half):
        nearest = KNeighborsClassifier(1).fit(points[train], clusters[train])
        right += int((nearest.predict(points[~train]) == clusters[~train]).sum())
    return right / n
