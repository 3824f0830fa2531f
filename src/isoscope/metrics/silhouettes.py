"""The silhouette of points, of clusters and on average, with its standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isoscope.arguments import as_mebibytes, renamed
from isoscope.arrays import as_matrix, as_spaces, like
from isoscope.errors import InputError, ShapeError, check_choice
from isoscope.kernels.at_hand import at_hand
from isoscope.kernels.recorded import replayed
from isoscope.labels import Labels, as_labels
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.metrics.thresholds import clusters
from isoscope.space import known_rows
from isoscope.statistics import few_points
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.fused import can_launch
from isoscope.statistics.pairs import ClusterDistances, Separation
from isoscope.statistics.rows import FileRows, HeldRows, Rows
from isoscope.statistics.scored import learn_range, quick_score

_METRICS = ("euclidean", "sqeuclidean", "cosine")
_INFLUENCE_POINTS = 1000  # sampled for a standard error: itself known to about 1/√2000
_FEW_CLUSTERS = 64  # up to so many, a product with a column for each is faster than weights for each pair


def _sentence(value: float) -> str:
    return f"the labels {clusters(value)}"


def _of_squares(value: float) -> str:
    """Return the sentence of a silhouette by squared distances: in words as the one by distances would be."""
    by_distances = 1 - math.sqrt(max(0.0, 1 - value))  # 1 − a/b, where this one is 1 − (a/b)²
    return f"{_sentence(by_distances)}: {value:.2f} is like {by_distances:z.2f} by distances"


_metric = family(
    "clusters",
    needs=("separation",),
    range=(-1.0, 1.0),
    high="well clustered",
    better="high",
    invariances=ALL_INVARIANCES,
    paper="Rousseeuw 1987, Silhouettes",
    place=-1,  # before all other metrics of labels
    biased_by_rows=True,  # the smallest of mean distances that few rows estimate is biased low
)


@renamed(as_mebibytes, memory_mb="memory")
def silhouette_samples(
    X: Any,
    labels: Any = None,
    *,
    metric: str = "euclidean",
    deterministic: bool = False,
    memory: str | float | None = None,
) -> Any:
    """Compute the silhouette of every point: whether it is nearer to its own cluster than to the next.

        s = (b − a)/max(a, b)

    with a the mean distance to the other points of its cluster and b the smallest mean distance to
    another cluster. Range [−1, 1]; high is well clustered. Singletons score 0. Exact, never n × n.
    Invariant to rotation, translation and scale (euclidean). Distances under 1e-155 of the largest
    coordinate lose digits, as their squares leave the range of float64. Paper: Rousseeuw 1987.

    Args:
        X: (n, d) vectors in any array; or (B, n, d), B spaces with the same labels at once, for (B, n)
            silhouettes.
        labels: one label a row, or sets of labels (each distinct set is a cluster).
        metric: "euclidean"; "sqeuclidean" or "cosine" in closed form, O(nKd). A zero vector has no
            cosine: it is left out of the clusters and reads NaN here. Parallel rows have distance 0: a
            mean of 1 − cos under 2e-31 is rounding. Rows at small angles keep their digits where all rows
            lie in one narrow cone; otherwise the error is about 5e-16 over the angle (5e-6 at 1e-10).
        deterministic: the same bits every time on CUDA too, at twice the work or more. The CPU always
            gives the same.
        memory: the most memory to take beyond X, such as "500MB", euclidean and on the CPU only.
            By default 256 beyond a sorted copy of X. Less means smaller tiles, and from some point on
            every pair twice.

    >>> silhouette_samples([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], labels=[0, 0, 1, 1])
    array([0.753..., 0.753..., 0.753..., 0.753...])
    """
    options: dict[str, Any] = {"metric": metric, "deterministic": deterministic, "memory": memory}
    if _is_stack(X) and metric != "euclidean":
        return _stacked(silhouette_samples, X, labels, options)
    separation = _separation(X, labels, **options)
    scores = silhouettes(separation)
    if separation.kept is not None:
        scores = scores.new_full((len(separation.kept),), torch.nan).masked_scatter(separation.kept, scores)
    return like(scores, X)


@_metric(
    name="silhouette",  # the function has scikit-learn's name
    sentence=_sentence,
    error=lambda shelf: silhouette_error(shelf.rows, shelf.separation, seed=shelf.seed),
    error_needs=("vectors",),
)
@renamed(as_mebibytes, memory_mb="memory")
def silhouette_score(
    X: Any,
    labels: Any = None,
    *,
    metric: str = "euclidean",
    average: str = "micro",
    deterministic: bool = False,
    memory: str | float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> Any:
    """Compute the mean silhouette over points ("micro", as scikit-learn) or over clusters ("macro").

    See `silhouette_samples` for the formula, range and arguments; B spaces at once give (B,) scores.
    With a `tolerance`, an estimate in linear time whose 95 % interval is no wider than ± tolerance: a
    `SilhouetteEstimate` (see `estimate_silhouette`), Euclidean only; X may then be an opened file.

    >>> silhouette_score([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], labels=[0, 0, 1, 1])
    0.753...
    >>> silhouette_score(torch.tensor([[[0.0], [1.0], [4.0]], [[0.0], [4.0], [1.0]]]), labels=[0, 0, 1])
    tensor([ 0.4722, -0.3333], dtype=torch.float64)
    """
    check_choice("average", average, ("micro", "macro"))
    if tolerance is not None:
        _check_estimate(metric, deterministic, memory)
        from isoscope.metrics.silhouette_estimate import estimate_silhouette

        return estimate_silhouette(X, labels, tolerance=tolerance, average=average, seed=seed)
    options: dict[str, Any] = {"metric": metric, "deterministic": deterministic, "memory": memory}
    if _is_stack(X) and metric != "euclidean":
        return _stacked(silhouette_score, X, labels, {**options, "average": average})
    is_plain = can_launch(X) and (metric, average, deterministic, memory) == (
        "euclidean",
        "micro",
        False,
        None,
    )
    if is_plain and not isinstance(labels, Tensor):
        labels = as_labels(known_rows(X, labels, "labels")).to(X.device)
    if is_plain and (score := quick_score(X, labels)) is not None:
        return score
    separation = _separation(X, labels, **options)
    if is_plain:
        learn_range(X, labels, separation.labels)
    scores = silhouettes(separation)
    if average == "macro":
        scores = cluster_means(scores, separation.labels)
    return like(scores.mean(dim=-1), X) if _is_stack(X) else float(at_hand(scores)[0].mean())


@_metric(sentence=lambda value: f"{_sentence(value)}, every label counted alike")
def silhouette_macro(X: Any, labels: Any = None, **options: Any) -> Any:
    """Compute the mean silhouette over clusters: `silhouette_score(X, labels, average="macro")`.

    >>> silhouette_macro([[0.0], [1.0], [4.0], [4.0]], labels=["a", "a", "b", "b"])
    0.854...
    """
    return silhouette_score(X, labels, average="macro", **options)


@_metric(
    needs=("vectors", "labels"),
    call=lambda metric, shelf: metric(shelf.vectors, shelf.labels),
    high="well clustered by direction",
    better="high",
    invariances=("rotation", "scale"),
    sentence=lambda value: f"by direction alone, {_of_squares(value)}",
)
def silhouette_cosine(X: Any, labels: Any = None, **options: Any) -> Any:
    """Compute the mean silhouette by 1 − cosine: `silhouette_score(X, labels, metric="cosine")`.

    >>> silhouette_cosine([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]], labels=[0, 0, 1, 1])
    1.0
    """
    return silhouette_score(X, labels, metric="cosine", **options)


@_metric(
    needs=("vectors", "labels"),
    call=lambda metric, shelf: metric(shelf.vectors, shelf.labels),
    sentence=lambda value: f"by squared distances, {_of_squares(value)}",
    default=False,
)
def silhouette_squared(X: Any, labels: Any = None, **options: Any) -> Any:
    """Compute the mean silhouette by squared distances: `silhouette_score(X, labels, metric="sqeuclidean")`.

    >>> silhouette_squared([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
    0.608...
    """
    return silhouette_score(X, labels, metric="sqeuclidean", **options)


@renamed(as_mebibytes, memory_mb="memory")
def silhouette_by_cluster(
    X: Any,
    labels: Any = None,
    *,
    metric: str = "euclidean",
    deterministic: bool = False,
    memory: str | float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> dict[Any, Any]:
    """Compute the mean silhouette of each cluster, by label; the arguments are those of `silhouette_samples`.

    With a `tolerance`, an estimate for each cluster in linear time, with a 95 % interval of its own no
    wider than ± tolerance: a `SilhouetteEstimate`; Euclidean only; X may then be an opened file.

    >>> silhouette_by_cluster([[0.0], [1.0], [4.0], [4.0]], labels=["a", "a", "b", "b"])
    {'a': 0.708..., 'b': 1.0}
    """
    if _is_stack(X):
        raise ShapeError(f"has shape {tuple(X.shape)}", argument="X", wanted="one space, (n, d)")
    if tolerance is not None:
        _check_estimate(metric, deterministic, memory)
        from isoscope.metrics.silhouette_estimate import estimate_silhouette_by_cluster

        return estimate_silhouette_by_cluster(X, labels, tolerance=tolerance, seed=seed)
    separation = _separation(X, labels, metric, deterministic, memory)
    means = cluster_means(silhouettes(separation), separation.labels)
    return dict(zip(separation.labels.names, means.tolist(), strict=True))


def _check_estimate(metric: str, deterministic: bool, memory: str | float | None) -> None:
    if metric != "euclidean":
        raise InputError(
            f"tolerance goes with metric='euclidean'; {metric!r} is exact in linear time: leave tolerance out"
        )
    if deterministic or memory is not None:
        raise InputError("tolerance asks for an estimate; deterministic and memory go without it")


def _is_stack(X: Any) -> bool:
    """Return whether X is an array of three axes: B spaces."""
    return getattr(X, "ndim", None) == 3


def _stacked(function: Callable[..., Any], X: Any, labels: Any, options: dict[str, Any]) -> Any:
    """Return the separations of B spaces, one by one, as closed forms share only the labels."""
    spaces, coded = as_spaces(X), as_labels(known_rows(X, labels, "labels"))
    return like(torch.stack([torch.as_tensor(function(space, coded, **options)) for space in spaces]), X)


def silhouette_error(X: Any, separation: Separation, *, seed: int = 0) -> float:
    """Return the standard error of the mean silhouette from the influence of each point, with fixed clusters.

    A point moves the mean by its own silhouette and by what its distances do to the means a and b of
    the others; ignoring the second part would be wrong by a factor. Points beyond 1,000 are sampled.
    """
    rows = X if isinstance(X, HeldRows | FileRows) else HeldRows(as_matrix(X).detach())
    n = len(separation.labels)
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(n, generator=generator)[:_INFLUENCE_POINTS].to(separation.cohesion.device)
    influence = silhouettes(separation)[chosen] + _influence_on_others(rows, separation, chosen)
    return float(influence.std() / math.sqrt(n))


def _influence_on_others(points: Rows, separation: Separation, chosen: Tensor) -> Tensor:
    """Σ_i w_i (d_ij − m_i)/n_k for each chosen j of cluster k: over its own cluster with (∂s/∂a, a), and
    over the points whose nearest other cluster is k with (∂s/∂b, b)."""
    labels, nearest, codes = separation.labels, separation.nearest, separation.labels.codes
    known = separation.cohesion, separation.separation, codes, nearest, labels.counts
    if points.whole is not None and few_points.takes(points.whole):
        return replayed(_influence_at_once, points.whole, chosen, *known)[0]
    slopes = _slopes(separation.cohesion, separation.separation, codes, labels.counts)
    effect = torch.zeros(len(chosen), dtype=torch.float64, device=chosen.device)
    for rows, distances in AnchorRows.of(points, labels).distances(chosen):
        slope_a, slope_b = (slope[rows] for slope in slopes)
        near = nearest[rows]
        effect += _effect(distances, slope_a, slope_b, codes[rows], near, codes[chosen], labels.n_labels)
    return _less_means(effect, slopes, chosen, *known)


def _influence_at_once(X: Tensor, chosen: Tensor, *known: Tensor) -> tuple[Tensor]:
    """Return what `_influence_on_others` does; nothing waits for the device."""
    a, b, codes, nearest, counts = known
    slopes = _slopes(a, b, codes, counts)
    distances = few_points.distances_to(X, chosen)
    effect = _effect(distances, *slopes, codes, nearest, codes[chosen], len(counts))
    return (_less_means(effect, slopes, chosen, *known),)


def _slopes(a: Tensor, b: Tensor, codes: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return ∂s/∂a and ∂s/∂b of every point."""
    larger = torch.maximum(a, b).clamp(min=torch.finfo(torch.float64).tiny)
    counted = (counts[codes] > 1).double()
    slope_a = counted * torch.where(a < b, -1 / larger, -b / larger**2)
    return slope_a, counted * torch.where(a < b, a / larger**2, 1 / larger)


def _effect(
    distances: Tensor,
    slope_a: Tensor,
    slope_b: Tensor,
    codes: Tensor,
    nearest: Tensor,
    own: Tensor,
    n_labels: int,
) -> Tensor:
    """Return Σ_i w_i d_ij over some points i, for the chosen j of the clusters `own`."""
    if n_labels <= _FEW_CLUSTERS:
        weights = distances.new_zeros(len(distances), n_labels)  # w by cluster
        weights.scatter_(1, codes[:, None], slope_a[:, None])
        weights.scatter_(1, nearest[:, None], slope_b[:, None])
        return (weights.T @ distances).gather(0, own[None])[0]
    of_nearest = torch.where(nearest[:, None] == own, slope_b[:, None], 0.0)
    return torch.where(codes[:, None] == own, slope_a[:, None], of_nearest).mul_(distances).sum(dim=0)


def _less_means(
    effect: Tensor,
    slopes: tuple[Tensor, Tensor],
    chosen: Tensor,
    a: Tensor,
    b: Tensor,
    codes: Tensor,
    nearest: Tensor,
    counts: Tensor,
) -> Tensor:
    """Return the effects less Σ_i w_i m_i, over the points of a cluster."""
    slope_a, slope_b = slopes
    means = torch.zeros(len(counts), dtype=torch.float64, device=codes.device)  # Σ_i w_i m_i by cluster
    means.index_add_(0, codes, slope_a * a).index_add_(0, nearest, slope_b * b)
    own = codes[chosen]
    return (effect - means[own]) / counts.double()[own]


def _separation(
    X: Any, labels: Any, metric: str, deterministic: bool = False, memory: str | float | None = None
) -> Separation:
    check_choice("metric", metric, _METRICS)
    if memory is not None and metric != "euclidean":
        raise InputError("memory goes with metric='euclidean'; closed forms take little: leave it out")
    if isinstance(X, Separation):
        return X
    if isinstance(X, ClusterDistances):
        return Separation.from_sums(X)
    known = known_rows(X, labels, "labels")
    X, labels = as_matrix(X, apart=labels) if isinstance(labels, str) else X, known
    if _is_stack(X):
        return Separation.of_spaces(X, labels, deterministic=deterministic, memory=memory)
    return Separation.of(X, labels, metric=metric, deterministic=deterministic, memory=memory)


def silhouettes(separation: Separation, *, counted: bool = True) -> Tensor:
    """Return (n,) or (B, n) silhouettes; singletons, and points at distance 0 from all others, score 0.

    `counted=False`: the labels are those of some points only, so who is alone cannot be told here.
    """
    scores = separation.scores
    if not counted or min(separation.labels.sizes) > 1:
        return scores
    return torch.where(separation.labels.counts[separation.labels.codes] > 1, scores, 0.0)


def cluster_means(scores: Tensor, labels: Labels) -> Tensor:
    """Return (K,) or (B, K) means of (n,) or (B, n) scores, added on the CPU in a fixed order."""
    sums = scores.new_zeros(*scores.shape[:-1], labels.n_labels, device="cpu")
    return sums.index_add(-1, labels.codes.cpu(), scores.cpu()) / labels.counts.cpu()
