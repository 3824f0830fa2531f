"""What Cai et al. 2021 measure of one layer: cosines, clusters, dimension, and what its main axes follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import isoscope as iso
from isoscope import Labels, Moments, UndefinedError
from isoscope.statistics import GroupDirections, Neighbors
from isoscope_papers.manifolds import setups

N_AXES = 3
_FOLLOWERS = 20  # neighbours on the main axes whose position or frequency foretells a token's own
_FOLLOWED = 20_000  # tokens that is tried on
_PARTS_SAMPLE = 2000  # tokens that the silhouettes and the probe of a layer's parts are taken on


@dataclass(frozen=True)
class Cosines:
    """S_inter and S_intra, exact, and by the paper's draws."""

    s_inter: float | None
    s_intra: float | None
    s_inter_sampled: float | None
    s_intra_sampled: float | None


@dataclass(frozen=True)
class Followed:
    """How well the first three principal components tell something of a token: R²."""

    linear: float  # by a linear fit
    nearby: float  # by the mean over the 20 tokens nearest on those axes: of a curved relation too


@dataclass(frozen=True)
class SmallestCluster:
    """What the smallest of a layer's clusters is made of."""

    share: float  # of all tokens
    sinks: float  # share of its tokens that are attention sinks
    token: str  # its most frequent token type
    of_token: float  # share of its tokens that are of this type

    @classmethod
    def of(cls, clusters: Tensor, types: Labels, is_sink: Tensor) -> SmallestCluster | None:
        """Describe it by each token's cluster, type and whether it is a sink; None of one cluster."""
        present, sizes = clusters.cpu().unique(return_counts=True)
        if len(present) < 2:
            return None
        inside = clusters.cpu() == present[sizes.argmin()]
        counts = torch.bincount(types.codes[inside], minlength=types.n_labels)
        n, top = int(inside.sum()), int(counts.argmax())
        of_sinks = int(is_sink[inside].sum()) / n
        return cls(n / len(clusters), of_sinks, str(types.names[top]), int(counts[top]) / n)


@dataclass(frozen=True)
class LayerFigures:
    """One layer in one view of the tokens."""

    n_tokens: int
    cosines: Cosines
    n_clusters: int  # the number with the highest silhouette; 1 where that is under 0.1
    silhouette: float | None
    silhouettes: Mapping[str, float]  # by number of clusters
    adjusted: Cosines  # with each cluster centred on its mean
    n_skipped: int  # clusters in which these have no value
    lid: float | None  # mean local intrinsic dimension, Euclidean distances
    lid_squared: float | None  # from squared distances, as the paper's code takes them: half of it
    lid_cosine: float | None  # from 1 − cos, as in the paper's table 3: half of what unit vectors have
    top_variance: float  # share of the variance on the first three principal components
    position: Followed | None
    log_frequency: Followed | None  # by one token of each type
    smallest: SmallestCluster | None = None  # None of one cluster


@dataclass(frozen=True)
class LayerParts:
    """What the anisotropy of a layer is made of, and whether symbols lie apart from words."""

    isoscore: float
    isoscore_within: float  # with each k-means cluster centred on its mean
    s_inter: float | None
    s_inter_centred: float | None  # with the mean of all tokens taken off
    s_inter_within: float | None  # with each cluster centred on its mean
    n_clusters: int
    symbols: float  # share of the tokens that have no letter and no digit
    silhouette: float  # of symbols and words as two clusters
    probe: float  # balanced accuracy of a linear classifier of the two, on token types it never saw


@dataclass(frozen=True, eq=False)
class MeasuredLayer:
    """The figures, and where each token lies: (n, 3) on the main axes, and its cluster (n,)."""

    figures: LayerFigures
    axes: Tensor
    clusters: Tensor


def figure_of(one: Any, path: str) -> Any:
    """Return a figure by the names that lead to it, such as "cosines.s_inter"; None where one is None."""
    for name in path.split("."):
        one = None if one is None else getattr(one, name)
    return one


def measure_layer(
    X: Tensor, types: Labels, *, positions: Tensor, log_frequencies: Tensor, is_sink: Tensor, seed: int = 0
) -> MeasuredLayer:
    """Measure everything of one layer, on the device its (n, d) states lie on."""
    directions, chosen = GroupDirections.of(X, types), _clusters(X, setups.SILHOUETTE_SAMPLE, 10, seed)
    cosines = Cosines(
        _or_none(iso.metrics.s_inter, directions),
        _or_none(iso.metrics.s_intra, directions),
        _or_none(iso.metrics.s_inter, X, token_types=types, sampled=True, seed=seed),
        _or_none(iso.metrics.s_intra, X, token_types=types, max_instances=setups.MAX_INSTANCES, seed=seed),
    )
    adjusted, n_skipped = _adjusted(X, types, chosen.labels, seed)
    lid, lid_squared, lid_cosine = mean_lids(X, seed=seed)
    axes, top_variance = main_axes(X)
    # one token of each type: others of a type lie near, and have its frequency anyway
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed)).numpy()
    first = np.unique(types.codes.cpu().numpy()[order], return_index=True)[1]
    one_each = torch.from_numpy(np.sort(order[first]))
    figures = LayerFigures(
        n_tokens=len(X), cosines=cosines, n_clusters=chosen.n_clusters, silhouette=chosen.silhouette,
        silhouettes={str(K): value for K, value in chosen.silhouettes.items()}, adjusted=adjusted,
        n_skipped=n_skipped, lid=lid, lid_squared=lid_squared, lid_cosine=lid_cosine,
        top_variance=top_variance, position=followed(axes, positions, seed=seed),
        log_frequency=followed(axes[one_each.to(axes.device)], log_frequencies[one_each], seed=seed),
        smallest=SmallestCluster.of(chosen.labels.codes, types, is_sink),
    )  # fmt: skip
    return MeasuredLayer(figures, axes, chosen.labels.codes)


def measure_parts(X: Tensor, types: Labels, *, seed: int = 0) -> LayerParts:
    """Measure what the anisotropy of (n, d) states is made of, and where symbols lie."""
    chosen = _clusters(X, _PARTS_SAMPLE, 2, seed)
    means = torch.stack([X[chosen.labels.codes == code].mean(dim=0) for code in range(chosen.n_clusters)])
    within = X - means[chosen.labels.codes]
    is_symbol = torch.tensor([is_symbols(str(name)) for name in types.names])[types.codes]
    some = drawn(len(X), _PARTS_SAMPLE, seed)
    return LayerParts(
        float(iso.isoscore(X)),
        float(iso.isoscore(within)),
        _or_none(iso.metrics.s_inter, X, token_types=types),
        _or_none(iso.metrics.s_inter, X - X.mean(dim=0), token_types=types),
        _adjusted(X, types, chosen.labels, seed)[0].s_inter,
        chosen.n_clusters,
        float(is_symbol.float().mean()),
        float(iso.silhouette_score(X[some], is_symbol[some])),
        symbol_probe(X, is_symbol, types, seed=seed),
    )


def is_symbols(token: str) -> bool:
    """Return whether a token has no letter and no digit, its mark of a space before it left out.

    >>> is_symbols("Ġ,"), is_symbols("Ġa"), is_symbols("##,")
    (True, False, True)
    """
    return not any(map(str.isalnum, token.lstrip("Ġ▁")))


def symbol_probe(X: Tensor, is_symbol: Tensor, types: Labels, *, seed: int = 0) -> float:
    """Return the balanced accuracy of a linear classifier of symbols and words on types it never saw."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # standardised, since a few dimensions of a language model are many times larger than the others
    classifier = RidgeClassifierCV(alphas=np.geomspace(1, 1e5, 11), class_weight="balanced")
    scores = cross_val_score(
        make_pipeline(StandardScaler(), classifier), X.cpu().double().numpy(), is_symbol.numpy(),
        groups=types.codes.cpu().numpy(), cv=StratifiedGroupKFold(5, shuffle=True, random_state=seed),
        scoring="balanced_accuracy",
    )  # fmt: skip
    return float(scores.mean())


def _clusters(X: Tensor, sample: int, n_init: int, seed: int) -> iso.clustering.ChosenClusters:
    return iso.clustering.choose_clusters(
        X, max_clusters=setups.MAX_CLUSTERS, sample=sample, min_silhouette=setups.MIN_SILHOUETTE,
        n_init=n_init, seed=seed,
    )  # fmt: skip


def mean_lids(
    X: Tensor, *, n_points: int = setups.LID_POINTS, seed: int = 0
) -> tuple[float | None, float | None, float | None]:
    """Return the mean local intrinsic dimension: Euclidean, from squared distances, and from 1 − cos.

    It is taken at random points, by their neighbours among all points; None where there are too few points,
    or all have equally distant neighbours.
    """
    lengths = X.norm(dim=1, keepdim=True)
    euclidean, cosine = (_mean_lid(rows, n_points, seed) for rows in (X, (X / lengths)[lengths[:, 0] > 0]))
    return euclidean, euclidean and euclidean / 2, cosine and cosine / 2


def _mean_lid(X: Tensor, n_points: int, seed: int) -> float | None:
    k = setups.LID_NEIGHBORS + 1  # each point finds itself, at distance 0, which the estimate leaves out
    if len(X) < k:
        return None
    some = drawn(len(X), n_points, seed).to(X.device)
    return _or_none(iso.lid, Neighbors.between(X[some], X, k=k), k=k)


def main_axes(X: Tensor) -> tuple[Tensor, float]:
    """Return (n, 3) centred rows on the first principal components, and the share of variance those have.

    A component's sign is such that its largest entry is positive.
    """
    moments = Moments.of(X)
    values, vectors = torch.linalg.eigh(moments.scatter)
    top = vectors[:, -N_AXES:].flip(1)
    top = top * top.gather(0, top.abs().argmax(dim=0, keepdim=True)).sign()
    projected = (X - moments.mean.to(X.dtype)) @ top.to(X.dtype)
    total = float(values.clamp(min=0).sum())
    return projected, float(values[-N_AXES:].sum()) / total if total > 0 else 0.0


def followed(axes: Tensor, target: Tensor, *, seed: int = 0) -> Followed | None:
    """Return how well places on the axes tell a target, on at most 20,000 tokens; None if it is constant."""
    some = drawn(len(axes), _FOLLOWED, seed)
    points = axes[some.to(axes.device)].double()
    wanted = target[some.to(target.device)].double().to(points.device)
    wanted = wanted - wanted.mean()
    total = float(wanted @ wanted)
    if total == 0 or len(points) <= _FOLLOWERS:
        return None
    with_constant = torch.cat([points - points.mean(dim=0), torch.ones_like(points[:, :1])], dim=1)
    scaled = with_constant / with_constant.norm(dim=0).clamp(min=1e-300)
    near = wanted[Neighbors.of(points, k=_FOLLOWERS).indices].mean(dim=1)
    fit = scaled @ (torch.linalg.pinv(scaled) @ wanted)
    return Followed(*(1 - float((wanted - told).square().sum()) / total for told in (fit, near)))


def drawn(n: int, at_most: int, seed: int) -> Tensor:
    """Draw places among n, in order."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:at_most].sort().values


def _adjusted(X: Tensor, types: Labels, clusters: Labels, seed: int) -> tuple[Cosines, int]:
    """Return the cosines inside clusters, and how many clusters have none."""
    given: dict[str, Any] = {"token_types": types, "clusters": clusters}
    try:
        exact = iso.metrics.cluster_adjusted_similarities(X, **given)
        sampled = iso.metrics.cluster_adjusted_similarities(
            X, **given, sampled=True, max_instances=setups.MAX_INSTANCES, seed=seed
        )
    except UndefinedError:
        return Cosines(None, None, None, None), clusters.n_labels
    return Cosines(exact.s_inter, exact.s_intra, sampled.s_inter, sampled.s_intra), exact.n_skipped


def _or_none(metric: Any, *arguments: Any, **options: Any) -> float | None:
    try:
        return float(metric(*arguments, **options))
    except UndefinedError:
        return None
