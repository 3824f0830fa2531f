"""The silhouette: per point, per cluster, on average, with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, like
from isoscope.errors import InputError
from isoscope.metrics.registry import ALL_INVARIANCES, Metric
from isoscope.space import known_rows
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.pairs import ClusterDistances, Separation

_ROUSSEEUW_1987 = "Rousseeuw 1987, Silhouettes"
_METRICS = ("euclidean", "sqeuclidean", "cosine")
_INFLUENCE_POINTS = 1000  # sampled for a standard error: itself known to about 1/√2000


def silhouette_samples(X: Any, labels: Any = None, *, metric: str = "euclidean") -> Any:
    """The silhouette of every point: is it nearer to its own cluster than to the next one?

        s = (b − a)/max(a, b)

    with a the mean distance to the other points of its cluster and b the smallest mean distance to
    another cluster. Range [−1, 1]; high is well clustered. Singletons score 0. Exact, never n × n.
    Invariant to rotation, translation and scale (euclidean). Paper: Rousseeuw 1987.

    Args:
        X: (n, d) vectors in any array.
        labels: one label a row, or sets of labels (each distinct set is a cluster).
        metric: "euclidean"; "sqeuclidean" or "cosine" in closed form, O(nKd). A zero vector has no
            cosine: it is left out of the clusters and reads NaN here.

    >>> silhouette_samples([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], labels=[0, 0, 1, 1])
    array([0.753..., 0.753..., 0.753..., 0.753...])
    """
    separation = _separation(X, labels, metric)
    scores = silhouettes(separation)
    if separation.kept is not None:
        scores = scores.new_full((len(separation.kept),), torch.nan).masked_scatter(separation.kept, scores)
    return like(scores, X)


def silhouette_score(
    X: Any,
    labels: Any = None,
    *,
    metric: str = "euclidean",
    average: str = "micro",
    tolerance: float | None = None,
    seed: int = 0,
) -> Any:
    """Mean silhouette: over points ("micro", as scikit-learn) or over clusters ("macro").

    See `silhouette_samples` for the formula, range and arguments. With a `tolerance`, an estimate in
    linear time whose 95 % interval is no wider than ± tolerance: a `SilhouetteEstimate`
    (see `estimate_silhouette`); Euclidean and "micro" only.

    >>> silhouette_score([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], labels=[0, 0, 1, 1])
    0.753...
    """
    if average not in ("micro", "macro"):
        raise InputError(f"average is {average!r}; wanted 'micro' (over points) or 'macro' (over clusters)")
    if tolerance is not None:
        if metric != "euclidean" or average != "micro":
            raise InputError("tolerance goes with metric='euclidean' and average='micro'; leave one out")
        from isoscope.metrics.silhouette_estimate import estimate_silhouette

        return estimate_silhouette(X, labels, tolerance=tolerance, seed=seed)
    separation = _separation(X, labels, metric)
    scores = silhouettes(separation) if average == "micro" else _per_cluster(separation)
    return float(scores.mean())


def silhouette_by_cluster(X: Any, labels: Any = None, *, metric: str = "euclidean") -> dict[Any, float]:
    """Mean silhouette of each cluster, by its label.

    >>> silhouette_by_cluster([[0.0], [1.0], [4.0], [4.0]], labels=["a", "a", "b", "b"])
    {'a': 0.708..., 'b': 1.0}
    """
    separation = _separation(X, labels, metric)
    return dict(zip(separation.labels.names, _per_cluster(separation).tolist(), strict=True))


def silhouette_error(X: Any, separation: Separation, *, seed: int = 0) -> float:
    """Standard error of the mean silhouette, from the influence of each point, the clusters held fixed.

    A point moves the mean by its own silhouette and by what its distances do to the means a and b of
    the others; ignoring the second part would be wrong by a factor. Points beyond 1,000 are sampled.
    """
    matrix = as_matrix(X)
    n = matrix.shape[0]
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(n, generator=generator)[:_INFLUENCE_POINTS].to(matrix.device)
    influence = silhouettes(separation)[chosen] + _influence_on_others(matrix, separation, chosen)
    return float(influence.std() / math.sqrt(n))


@dataclass(frozen=True)
class _Slopes:
    """How the silhouette of each point moves with its own a and b: (n,) each."""

    cohesion: Tensor
    separation: Tensor


def _slopes(separation: Separation) -> _Slopes:
    a, b = separation.cohesion, separation.separation
    near = a < b
    larger = torch.maximum(a, b).clamp(min=torch.finfo(torch.float64).tiny)
    counted = (separation.labels.counts[separation.labels.codes] > 1).double()
    return _Slopes(
        counted * torch.where(near, -1 / larger, -b / larger**2),
        counted * torch.where(near, a / larger**2, 1 / larger),
    )


def _influence_on_others(matrix: Tensor, separation: Separation, chosen: Tensor) -> Tensor:
    """Σ_i w_i (d_ij − m_i)/n_k for each chosen j of cluster k: over its own cluster with (∂s/∂a, a), and
    over the points whose nearest other cluster is k with (∂s/∂b, b)."""
    labels, slopes = separation.labels, _slopes(separation)
    own = labels.codes[chosen]
    effect = torch.zeros(len(chosen), dtype=torch.float64, device=matrix.device)
    for rows, distances in AnchorRows.of(matrix, labels).distances(chosen):
        a, b = separation.cohesion[rows, None], separation.separation[rows, None]
        inside = (labels.codes[rows, None] == own) * slopes.cohesion[rows, None]
        nearest = (separation.nearest[rows, None] == own) * slopes.separation[rows, None]
        effect += (inside * (distances - a) + nearest * (distances - b)).sum(dim=0)
    return effect / labels.counts.double()[own]


def _separation(X: Any, labels: Any, metric: str) -> Separation:
    if metric not in _METRICS:
        raise InputError(f"metric is {metric!r}; wanted one of {', '.join(_METRICS)}")
    if isinstance(X, Separation):
        return X
    if isinstance(X, ClusterDistances):
        return Separation.from_sums(X)
    return Separation.of(X, known_rows(X, labels, "labels"), metric=metric)


def silhouettes(separation: Separation, *, counted: bool = True) -> Tensor:
    """(n,) silhouettes; singletons, and points at no distance from anything, score 0.

    `counted=False`: the labels are those of some points only, so who is alone cannot be told here.
    """
    a, b = separation.cohesion, separation.separation
    larger = torch.maximum(a, b)
    scores = torch.where(larger > 0, (b - a) / larger, 0.0)
    if not counted:
        return scores
    return torch.where(separation.labels.counts[separation.labels.codes] > 1, scores, 0.0)


def _per_cluster(separation: Separation) -> Tensor:
    labels = separation.labels
    sums = torch.zeros_like(labels.counts, dtype=torch.float64)
    return sums.index_add(0, labels.codes, silhouettes(separation)) / labels.counts


def _silhouette_sentence(value: float) -> str:
    if value > 0.5:
        return "labels form clear clusters"
    if value > 0.1:
        return "labels form clusters that overlap"
    if value > -0.05:
        return "labels are hardly visible as clusters"
    return "many points lie nearer to another label than to their own"


def _silhouette_error(shelf: Statistics) -> float:
    return silhouette_error(shelf.vectors, shelf.separation, seed=shelf.seed)


METRICS = (
    Metric(
        name="silhouette",
        family="clusters",
        compute=lambda shelf: silhouette_score(shelf.separation),
        needs=frozenset({"labels", "separation"}),
        range=(-1.0, 1.0),
        high="well clustered",
        invariances=ALL_INVARIANCES,
        differentiable=False,
        paper=_ROUSSEEUW_1987,
        sentence=_silhouette_sentence,
        error=_silhouette_error,
        error_needs=frozenset({"vectors"}),
    ),
    Metric(
        name="silhouette_macro",
        family="clusters",
        compute=lambda shelf: silhouette_score(shelf.separation, average="macro"),
        needs=frozenset({"labels", "separation"}),
        range=(-1.0, 1.0),
        high="well clustered",
        invariances=ALL_INVARIANCES,
        differentiable=False,
        paper=_ROUSSEEUW_1987,
        sentence=lambda value: _silhouette_sentence(value) + ", every label counted alike",
    ),
    Metric(
        name="silhouette_cosine",
        family="clusters",
        compute=lambda shelf: silhouette_score(shelf.vectors, shelf.labels, metric="cosine"),
        needs=frozenset({"labels", "vectors"}),
        range=(-1.0, 1.0),
        high="well clustered by direction",
        invariances=frozenset({"rotation", "scale"}),
        differentiable=False,
        paper=_ROUSSEEUW_1987,
        sentence=lambda value: _silhouette_sentence(value) + ", by direction alone",
    ),
    Metric(
        name="silhouette_squared",
        family="clusters",
        compute=lambda shelf: silhouette_score(shelf.vectors, shelf.labels, metric="sqeuclidean"),
        needs=frozenset({"labels", "vectors"}),
        range=(-1.0, 1.0),
        high="well clustered",
        invariances=ALL_INVARIANCES,
        differentiable=False,
        paper=_ROUSSEEUW_1987,
        sentence=lambda value: _silhouette_sentence(value) + ", by squared distance",
        default=False,
    ),
)
