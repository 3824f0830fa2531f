"""What Cai et al. 2021 measure of one layer: cosines, clusters, dimension, and what its main axes follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.clustering import choose_clusters
from isoscope.errors import UndefinedError
from isoscope.labels import Labels
from isoscope.metrics.cluster_adjusted import cluster_adjusted_similarities
from isoscope.metrics.contextual import draw_rows, s_inter, s_intra
from isoscope.metrics.manifold import lid
from isoscope.statistics.groups import GroupDirections
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope_papers.manifolds.setups import (
    LID_NEIGHBORS,
    MAX_CLUSTERS,
    MAX_INSTANCES,
    MIN_SILHOUETTE,
    SILHOUETTE_SAMPLE,
)

N_AXES = 3
LID_POINTS = 20_000  # whose neighbours are searched among all: the mean is known to about 0.3 %
_FOLLOWERS = 20  # neighbours on the main axes whose position or frequency foretells a token's own
_FOLLOWED = 20_000  # tokens that is tried on


@dataclass(frozen=True)
class Cosines:
    """S_inter and S_intra, exact, and by the paper's draws."""

    s_inter: float | None
    s_intra: float | None
    s_inter_sampled: float | None
    s_intra_sampled: float | None


@dataclass(frozen=True)
class Followed:
    """How well the first three principal components tell something of a token, as shares of its variance.

    Attributes:
        linear: by a linear fit: R².
        nearby: by the mean over the 20 tokens nearest on those axes: R² of a curved relation too.
    """

    linear: float
    nearby: float


@dataclass(frozen=True)
class SmallestCluster:
    """What the smallest of a layer's clusters is made of.

    Attributes:
        share: of all tokens.
        sinks: share of its tokens that are attention sinks.
        token: its most frequent token type.
        of_token: share of its tokens that are of this type.
    """

    share: float
    sinks: float
    token: str
    of_token: float

    @classmethod
    def of(cls, clusters: Tensor, types: Labels, is_sink: Tensor) -> SmallestCluster | None:
        """From each token's cluster, type and whether it is a sink; None where there is one cluster."""
        codes = clusters.cpu()
        sizes = torch.bincount(codes)
        present = sizes.nonzero().flatten()
        if len(present) < 2:
            return None
        inside = codes == present[sizes[present].argmin()]
        counts = torch.bincount(types.codes[inside], minlength=types.n_labels)
        n = int(inside.sum())
        top = int(counts.argmax())
        return cls(
            n / len(codes), int(is_sink[inside].sum()) / n, str(types.names[top]), int(counts[top]) / n
        )


@dataclass(frozen=True)
class LayerFigures:
    """One layer in one view of the tokens.

    Attributes:
        n_tokens: rows.
        cosines: as the layer is.
        n_clusters, silhouette: chosen by the silhouette; 1 where the best is under 0.1.
        silhouettes: by number of clusters.
        adjusted: the cosines with each cluster centred on its mean.
        n_skipped: clusters in which these have no value.
        lid: mean local intrinsic dimension, Euclidean distances.
        lid_squared: from squared distances, as the paper's code takes them: half of it.
        lid_cosine: from 1 − cos, as in the paper's table 3: half of what unit vectors have.
        smallest: what the smallest cluster is made of; None of one cluster.
        top_variance: share of the variance on the first three principal components.
        position, log_frequency: how well these components tell them; frequency by one token of each type.
    """

    n_tokens: int
    cosines: Cosines
    n_clusters: int
    silhouette: float | None
    silhouettes: Mapping[str, float]
    adjusted: Cosines
    n_skipped: int
    lid: float | None
    lid_squared: float | None
    lid_cosine: float | None
    top_variance: float
    position: Followed | None
    log_frequency: Followed | None
    smallest: SmallestCluster | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> LayerFigures:
        """What `to_dict` wrote."""
        parts = dict(found)
        parts["cosines"], parts["adjusted"] = Cosines(**found["cosines"]), Cosines(**found["adjusted"])
        for name in ("position", "log_frequency"):
            parts[name] = None if found[name] is None else Followed(**found[name])
        smallest = found.get("smallest")
        parts["smallest"] = None if smallest is None else SmallestCluster(**smallest)
        return cls(**parts)


@dataclass(frozen=True, eq=False)
class MeasuredLayer:
    """The figures, and where each token lies: (n, 3) on the main axes, and its cluster (n,)."""

    figures: LayerFigures
    axes: Tensor
    clusters: Tensor


def measure_layer(
    X: Tensor,
    types: Labels,
    *,
    positions: Tensor | None = None,
    log_frequencies: Tensor | None = None,
    seed: int = 0,
) -> MeasuredLayer:
    """Everything of one layer, on the device its (n, d) states lie on."""
    directions = GroupDirections.of(X, types)
    chosen = choose_clusters(
        X,
        max_clusters=MAX_CLUSTERS,
        sample=SILHOUETTE_SAMPLE,
        min_silhouette=MIN_SILHOUETTE,
        seed=seed,
    )
    adjusted, n_skipped = _adjusted(X, types, chosen.labels, seed)
    euclidean, cosine = mean_lid(X, seed=seed), mean_lid(directions_of(X), seed=seed)
    axes, top_variance = main_axes(X)
    figures = LayerFigures(
        n_tokens=len(X),
        cosines=Cosines(
            _or_none(s_inter, directions),
            _or_none(s_intra, directions),
            _or_none(s_inter, X, token_types=types, sampled=True, seed=seed),
            _or_none(s_intra, X, token_types=types, max_instances=MAX_INSTANCES, seed=seed),
        ),
        n_clusters=chosen.n_clusters,
        silhouette=chosen.silhouette,
        silhouettes={str(K): value for K, value in chosen.silhouettes.items()},
        adjusted=adjusted,
        n_skipped=n_skipped,
        lid=euclidean,
        lid_squared=None if euclidean is None else euclidean / 2,
        lid_cosine=None if cosine is None else cosine / 2,
        top_variance=top_variance,
        position=None if positions is None else followed(axes, positions, seed=seed),
        log_frequency=None if log_frequencies is None else _by_type(axes, types, log_frequencies, seed),
    )
    return MeasuredLayer(figures, axes, chosen.labels.codes)


def mean_lid(X: Tensor, *, n_points: int = LID_POINTS, seed: int = 0) -> float | None:
    """Mean local intrinsic dimension at random points, by their neighbours among all points.

    None where there are too few points, or all have equally distant neighbours.
    """
    if len(X) <= LID_NEIGHBORS:
        return None
    some = _drawn(len(X), n_points, seed).to(X.device)
    # one more than wanted: each point finds itself, at distance 0, which the estimate leaves out
    found = Neighbors.between(X[some], X, k=LID_NEIGHBORS + 1)
    return _or_none(lid, found, k=LID_NEIGHBORS + 1)


def main_axes(X: Tensor) -> tuple[Tensor, float]:
    """(n, 3) centred rows on the first principal components, and the share of variance those have.

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
    """How well places on the axes tell a target, on at most 20,000 tokens; None where it does not vary."""
    some = _drawn(len(axes), _FOLLOWED, seed)
    points, wanted = axes[some.to(axes.device)].double(), target[some.to(target.device)].double()
    wanted = wanted.to(points.device) - wanted.mean().to(points.device)
    total = float(wanted @ wanted)
    if total == 0 or len(points) <= _FOLLOWERS:
        return None
    with_constant = torch.cat([points - points.mean(dim=0), torch.ones_like(points[:, :1])], dim=1)
    scaled = with_constant / with_constant.norm(dim=0).clamp(min=1e-300)
    fit = torch.linalg.pinv(scaled) @ wanted
    near = wanted[Neighbors.of(points, k=_FOLLOWERS).indices].mean(dim=1)
    return Followed(
        linear=1 - float((wanted - scaled @ fit).square().sum()) / total,
        nearby=1 - float((wanted - near).square().sum()) / total,
    )


def _by_type(axes: Tensor, types: Labels, target: Tensor, seed: int) -> Followed | None:
    """The same with one token of each type: others of a type lie near, and have its frequency anyway."""
    generator = torch.Generator().manual_seed(seed)
    one_each = draw_rows(types.to(torch.device("cpu")), at_most=1, generator=generator)
    return followed(axes[one_each.to(axes.device)], target[one_each.to(target.device)], seed=seed)


def _adjusted(X: Tensor, types: Labels, clusters: Labels, seed: int) -> tuple[Cosines, int]:
    """The cosines inside clusters, and how many clusters have none."""
    try:
        exact = cluster_adjusted_similarities(X, token_types=types, clusters=clusters)
        drawn = cluster_adjusted_similarities(
            X,
            token_types=types,
            clusters=clusters,
            sampled=True,
            max_instances=MAX_INSTANCES,
            seed=seed,
        )
    except UndefinedError:
        return Cosines(None, None, None, None), clusters.n_labels
    return Cosines(exact.s_inter, exact.s_intra, drawn.s_inter, drawn.s_intra), exact.n_skipped


def directions_of(X: Tensor) -> Tensor:
    """Rows of length 1, without those that have no direction."""
    lengths = X.norm(dim=1, keepdim=True)
    kept = lengths[:, 0] > 0
    return X[kept] / lengths[kept]


def _drawn(n: int, at_most: int, seed: int) -> Tensor:
    if n <= at_most:
        return torch.arange(n)
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:at_most].sort().values


def _or_none(metric: Any, *arguments: Any, **options: Any) -> float | None:
    try:
        return float(metric(*arguments, **options))
    except UndefinedError:
        return None
