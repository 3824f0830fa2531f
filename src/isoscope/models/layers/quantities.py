"""The quantities reported for each layer, and the statistics of a layer that they are computed from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from isoscope.clustering import ChosenClusters, choose_clusters, kmeans
from isoscope.engine.on_device import statistic_on
from isoscope.engine.readings import Reading, taken
from isoscope.errors import InputError, UndefinedError
from isoscope.labels import Labels
from isoscope.metrics.cluster_adjusted import ClusterAdjustedSimilarities, cluster_adjusted_similarities
from isoscope.metrics.dimensions import dimensions_for_share
from isoscope.metrics.manifold import lid
from isoscope.metrics.registry import KNOWN, named, registered
from isoscope.metrics.removed_dimensions import informativity_curve
from isoscope.models.applicable import applicable
from isoscope.models.layers.layer_clusters import choose_in_each, kmeans_in_each
from isoscope.models.layers.layer_neighbors import neighbors_in_each, unit_neighbors_in_each
from isoscope.space import Space
from isoscope.statistics.directions import pair_cosine, unit_rows
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors

INFORMATIVITY_KS = (1, 2, 3, 5, 10)
_INFORMATIVITY_TOKENS = 1000  # as in the paper
_CLUSTER_TOKENS = 1000  # tokens of the sample on which the number of clusters is chosen
_STARTS = 2  # k-means starts for each number of clusters


class LayerStatistics(Statistics):
    """The statistics of one layer, of all its tokens or of those that are not sinks.

    Moments, directions, type_directions and sentence_directions are of all tokens. All other statistics are
    computed on the sample.

    Args:
        sample: the states of the sample, with their token types.
        baseline: the number of random tokens, one for each text, and the sum of their unit vectors.
        clusters: whether to find clusters.
        k: the number of neighbours for the local dimension.
        seed: the seed of random choices.
        moments: a function that returns the moments of all tokens, which are large; by default of the sample.
        sums: the other statistics of all tokens, by name.
    """

    def __init__(
        self,
        sample: Space,
        *,
        baseline: tuple[int, Tensor],
        clusters: bool,
        k: int,
        seed: int,
        moments: Callable[[], Moments] | None = None,
        **sums: Any,
    ) -> None:
        super().__init__(sample, seed=seed)
        self.k, self.has_clusters, self._baseline, self._moments = k, clusters, baseline, moments
        vars(self).update(sums)

    @cached_property
    def moments(self) -> Moments:  # type: ignore[override]
        """The moments of all tokens."""
        return Moments.of(self.space) if self._moments is None else self._moments()

    @property
    def sampled_anisotropy(self) -> Tensor:
        """The mean cosine of one random token from each of up to 1,000 texts."""
        n, drawn = self._baseline
        if n < 2:
            raise UndefinedError(f"the mean cosine needs two vectors; there are {n}")
        return pair_cosine(n, drawn @ drawn)

    @cached_property
    def nearest(self) -> Neighbors:
        """The k nearest neighbours in the sample, among rows that differ."""
        return Neighbors.of_distinct(self.vectors, k=self.k, metric="euclidean", at_most=True)

    @cached_property
    def nearest_units(self) -> Neighbors:
        """The same among vectors at length 1."""
        units = unit_rows(self.vectors)[0].float()
        return Neighbors.of_distinct(units, k=self.k, metric="euclidean", at_most=True)

    def lid(self, *, squared: bool = False) -> float:
        """Return the local intrinsic dimension with k neighbours."""
        return self._lid(self.nearest, squared)

    @property
    def lid_cosine(self) -> float:
        """The local intrinsic dimension with 1 − cosine as the distance."""
        return self._lid(self.nearest_units, True)

    def _lid(self, nearest: Neighbors, squared: bool) -> float:
        if len(self.space) <= self.k + 1:
            raise UndefinedError(f"{len(self.space):,} tokens are too few for {self.k} neighbours")
        if nearest.k < self.k:
            raise UndefinedError(f"tokens of {nearest.k + 1:,} vectors are too few for {self.k} neighbours")
        return lid(nearest, k=self.k, squared=squared)

    @cached_property
    def informativity(self) -> dict[int, float]:
        """The informativity without the k strongest dimensions, by k."""
        tokens = self.vectors[:: max(1, len(self.space) // _INFORMATIVITY_TOKENS)]
        return informativity_curve(tokens, n_dimensions=[k for k in INFORMATIVITY_KS if k < tokens.shape[1]])

    @cached_property
    def chosen(self) -> ChosenClusters:
        """The number of clusters of the tokens."""
        if not self.has_clusters:
            raise UndefinedError("clusters were not asked for: pass clusters=True")
        return choose_clusters(self.few_vectors, n_init=_STARTS, seed=self.seed)

    @property
    def few_vectors(self) -> Tensor:
        """The vectors on which the number of clusters is chosen."""
        return self.vectors[:: -(-len(self.space) // _CLUSTER_TOKENS)]

    @cached_property
    def clusters(self) -> Labels:
        """The cluster of each token in the sample."""
        return kmeans(self.vectors, self.chosen.n_clusters, seed=self.seed).labels

    @cached_property
    def inside_clusters(self) -> ClusterAdjustedSimilarities:
        """The similarities within clusters after each is centred."""
        return cluster_adjusted_similarities(self.space, clusters=self.clusters)


def take_samples(layers: Sequence[LayerStatistics], names: Collection[str]) -> None:
    """Compute what quantities need of the samples of several layers: of all together, where this is faster.

    The layers hold the same tokens on a CUDA device. What is undefined is left for `take` to say why.
    """
    if CLUSTER_QUANTITIES & set(names):
        find_clusters(layers)
    n, k = len(layers[0].space), layers[0].k
    if LOCAL_DIMENSIONS & set(names) and n > k + 1:
        spaces = [layer.vectors for layer in layers]
        euclidean, cosine = neighbors_in_each(spaces, k), unit_neighbors_in_each(spaces, k)
        for layer, *both in zip(layers, euclidean, cosine, strict=True):
            named = zip(("nearest", "nearest_units"), both, strict=True)
            vars(layer).update({name: one for name, one in named if one is not None})


def take_sample(layer: LayerStatistics, names: Collection[str]) -> None:
    """Compute what quantities need of the sample of one layer that stays on a CUDA device."""
    needed = {"informativity": _INFORMATIVITIES, "inside_clusters": _INSIDE_CLUSTERS}
    for statistic, quantities in needed.items():
        if quantities & set(names):
            with suppress(UndefinedError, InputError):
                getattr(layer, statistic)


def sums_on_host(layer: LayerStatistics) -> None:
    """Move the sums of a layer to the CPU, whose cores take eigenvalues of small matrices side by side."""
    sums = {name: getattr(layer, name) for name in _SUMS if name == "moments" or name in vars(layer)}
    vars(layer).update(statistic_on(sums, torch.device("cpu")))
    n, drawn = layer._baseline
    layer._baseline = n, drawn.cpu()


def find_clusters(layers: Sequence[LayerStatistics]) -> None:
    """Find the clusters of layers that hold the same tokens together, instead of one layer after another."""
    if not layers or not layers[0].has_clusters:
        return
    seed = layers[0].seed
    chosen = choose_in_each([layer.few_vectors for layer in layers], n_init=_STARTS, seed=seed)
    found = [(layer, one) for layer, one in zip(layers, chosen, strict=True) if one is not None]
    if found:
        labels = kmeans_in_each(
            [layer.vectors for layer, _ in found], [one.n_clusters for _, one in found], seed=seed
        )
        for (layer, one), clusters in zip(found, labels, strict=True):
            vars(layer).update(chosen=one, clusters=clusters)


def _informativity(k: int, layer: LayerStatistics) -> float:
    if k not in layer.informativity:
        raise UndefinedError(f"{layer.space.n_dims} dimensions are too few to remove {k}")
    return layer.informativity[k]


@dataclass(frozen=True)
class Quantity:
    """One number of a layer.

    Attributes:
        name: its key in JSON.
        meaning: a description in one line.
        digits: decimals to print.
    """

    name: str
    meaning: str
    digits: int = 3

    @classmethod
    def named(cls, name: str) -> Quantity:
        """Return the quantity of this name: one of `QUANTITIES`, or a metric of the registry."""
        for quantity in ALL_QUANTITIES:
            if quantity.name == name:
                return quantity
        return cls(name, f"a high value means {registered()[name].high}")

    @property
    def title(self) -> str:
        """The name in words, as tables and figures have it."""
        return _TITLES.get(self.name, self.name.replace("_", " "))

    @property
    def head(self) -> str:
        """The title in short lines, for the head of a narrow column."""
        lines = self.title.replace("similarity", "simi-\nlarity").replace("effective", "effec-\ntive")
        return lines.replace(" ", "\n")


_TITLES = {
    "isoscore": "IsoScore",
    "isoscore_debiased": "IsoScore debiased",
    "lid": "LID",
    "lid_cosine": "LID cosine",
    "lid_squared": "LID squared",
    "n_clusters": "clusters",
}
# the two parts of the list in the documentation
QUANTITIES: dict[str, tuple[Quantity, ...]] = {
    "How similar tokens are": (
        Quantity("mean_norm", "mean length of a token's vector", 1),
        Quantity("mean_cosine", "mean cosine of all pairs of tokens (the anisotropy), exact"),
        Quantity("sampled_anisotropy", "mean cosine of one random token from each of up to 1,000 texts"),
        Quantity("self_similarity", "mean cosine between the occurrences of a token type"),
        Quantity("adjusted_self_similarity", "cosine between occurrences of a token type, minus mean cosine"),
        Quantity("intra_similarity", "mean cosine of a token with the mean vector of its text"),
        Quantity(
            "adjusted_intra_similarity", "cosine of a token with its text's mean, minus the mean cosine"
        ),
        Quantity("s_inter", "mean cosine between different token types, every type weighted equally"),
        Quantity("n_clusters", "number of k-means clusters; 1 where the best silhouette is below 0.1", 0),
        Quantity("cluster_silhouette", "silhouette of the best number of clusters"),
        Quantity("cluster_s_inter", "s_inter after each cluster is centred"),
        Quantity("cluster_s_intra", "self-similarity of token types after each cluster is centred"),
    ),
    "How the space is filled": (
        Quantity("isoscore", "how evenly the variance is spread over the dimensions, 0 to 1", 4),
        Quantity("isoscore_debiased", "IsoScore without its bias for few tokens", 4),
        Quantity("effective_rank", "number of dimensions the variance fills (exponential of entropy)", 1),
        Quantity("top_dimension_share", "contribution of the strongest dimension to the mean cosine"),
        Quantity("dimensions_for_10", "number of dimensions that contribute 10 % of the mean cosine", 0),
        Quantity("dimensions_for_20", "number of dimensions that contribute 20 % of the mean cosine", 0),
        Quantity("dimensions_for_50", "number of dimensions that contribute 50 % of the mean cosine", 0),
        *(
            Quantity(
                f"informativity_{k}",
                "r² between the cosines with and without the "
                + ("strongest dimension" if k == 1 else f"{k} strongest dimensions"),
            )
            for k in INFORMATIVITY_KS
        ),
        Quantity("lid", "local intrinsic dimension, by maximum likelihood", 2),
        Quantity("lid_squared", "LID of squared distances, as in Cai et al.'s code: half of LID", 2),
        Quantity("lid_cosine", "LID with 1 − cosine as the distance, as in Cai et al.'s tables", 2),
    ),
}
ALL_QUANTITIES = tuple(quantity for part in QUANTITIES.values() for quantity in part)
# quantities that are not in the registry, or are computed with other options
_OWN: dict[str, Callable[[LayerStatistics], Any]] = {
    "sampled_anisotropy": lambda layer: layer.sampled_anisotropy,
    "n_clusters": lambda layer: layer.chosen.n_clusters,
    "cluster_silhouette": lambda layer: layer.chosen.silhouette,
    "cluster_s_inter": lambda layer: layer.inside_clusters.s_inter,
    "cluster_s_intra": lambda layer: layer.inside_clusters.s_intra,
    "dimensions_for_10": lambda layer: dimensions_for_share(layer.directions, share=0.1),
    "dimensions_for_20": lambda layer: dimensions_for_share(layer.directions, share=0.2),
    "dimensions_for_50": lambda layer: dimensions_for_share(layer.directions, share=0.5),
    **{f"informativity_{k}": partial(_informativity, k) for k in INFORMATIVITY_KS},
    "lid": lambda layer: layer.lid(),
    "lid_squared": lambda layer: layer.lid(squared=True),
    "lid_cosine": lambda layer: layer.lid_cosine,
}
_INFORMATIVITIES = {f"informativity_{k}" for k in INFORMATIVITY_KS}
_INSIDE_CLUSTERS = {"cluster_s_inter", "cluster_s_intra"}
_SUMS = ("moments", "directions", "type_directions", "sentence_directions")
CLUSTER_QUANTITIES = {"n_clusters", "cluster_silhouette", "cluster_s_inter", "cluster_s_intra"}
LOCAL_DIMENSIONS = {"lid", "lid_squared", "lid_cosine"}
PREPARED = frozenset(quantity.name for quantity in ALL_QUANTITIES)  # by `take_samples` and `take_sample`
_WHY = dict.fromkeys(KNOWN, "which the tokens of a text do not have")


def chosen_quantities(metrics: Any = None) -> list[Quantity]:
    """Return the quantities with these names, and the metrics of these families; by default `QUANTITIES`."""
    if metrics is None:
        return list(ALL_QUANTITIES)
    names = named(metrics)
    known = {quantity.name for quantity in ALL_QUANTITIES}
    others = [name for name in names if name not in known]
    chosen = [name for name in names if name in known]
    chosen += (
        [metric.name for metric in applicable(others, {"token_types", "sentences"}, _WHY)] if others else []
    )
    return [Quantity.named(name) for name in dict.fromkeys(chosen)]


def take(quantities: Iterable[Quantity], *, layer: LayerStatistics, **about: Any) -> list[Reading]:
    """Return the readings of a layer; `about` is their space and group."""
    metrics = registered()
    readings = [
        taken(one.name, _OWN.get(one.name) or metrics[one.name].compute, layer, **about) for one in quantities
    ]
    vars(layer).pop("moments", None)  # of one layer on each core: those of all would take several times more
    return readings
