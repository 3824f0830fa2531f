"""What is said of a layer: each quantity with its name, how it is shown, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from isoscope.clustering import choose_clusters, kmeans
from isoscope.errors import UndefinedError
from isoscope.labels import Labels
from isoscope.metrics.cluster_adjusted import cluster_adjusted_similarities
from isoscope.metrics.cosine import mean_cosine, norm_statistics
from isoscope.metrics.dimensions import dimensions_for_share, top_dimension_share
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.manifold import lid
from isoscope.metrics.removed_dimensions import informativity_curve
from isoscope.metrics.spectrum import effective_rank
from isoscope.models.layers.sums import LayerStatistics
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.neighbors import Neighbors

INFORMATIVITY_KS = (1, 2, 3, 5, 10)
_INFORMATIVITY_TOKENS = 1000  # as many as the paper takes: all pairs of them, with and without dimensions
_CLUSTER_TOKENS = 1000  # the number of clusters is chosen on so many of those held
_STARTS = 2  # of k-means for each number of clusters
Values = dict[str, float | None]


@dataclass(frozen=True)
class Quantity:
    """One number of a layer.

    Attributes:
        name: in JSON.
        title: at the head of a column; none where only JSON has it.
        digits: decimals to show.
        meaning: what it is, in a line.
    """

    name: str
    title: str
    digits: int
    meaning: str


# by the table they are shown in
QUANTITIES: dict[str, tuple[Quantity, ...]] = {
    "how alike tokens are": (
        Quantity("mean_norm", "norm", 1, "mean length of a token's vector"),
        Quantity("mean_cosine", "aniso-\ntropy", 3, "mean cosine of all pairs of tokens, exact"),
        Quantity(
            "sampled_anisotropy", "", 3,
            "the same by the papers' protocol: one token from each of up to 1,000 texts",
        ),
        Quantity("self_similarity", "self-\nsim.", 3, "mean cosine of a token's occurrences, types alike"),
        Quantity("adjusted_self_similarity", "self,\nadj.", 3, "self-similarity less the anisotropy"),
        Quantity("intra_similarity", "intra-\nsim.", 3, "mean cosine of a token with the mean of its text"),
        Quantity("adjusted_intra_similarity", "intra,\nadj.", 3, "intra-similarity less the anisotropy"),
        Quantity("s_inter", "S\ninter", 3, "mean cosine between different token types, every type alike"),
        Quantity("n_clusters", "K", 0, "clusters by k-means and the silhouette; 1 where it is under 0.1"),
        Quantity("cluster_silhouette", "", 3, "of the best number of clusters"),
        Quantity("cluster_s_inter", "inter,\ncent.", 3, "S inter within clusters, each centred"),
        Quantity("cluster_s_intra", "intra,\ncent.", 3, "S intra within clusters, each centred"),
    ),
    "how the space is filled": (
        Quantity("isoscore", "Iso-\nScore", 4, "evenness of the variance over dimensions, as published"),
        Quantity("isoscore_debiased", "de-\nbiased", 4, "IsoScore without its bias at few tokens"),
        Quantity("effective_rank", "eff.\nrank", 1, "how many dimensions the variance fills, by entropy"),
        Quantity("top_dimension_share", "top\ndim.", 3, "the strongest dimension's part in mean cosine"),
        Quantity("dimensions_for_10", "", 0, "dimensions that make 10 % of the mean cosine"),
        Quantity("dimensions_for_20", "", 0, "dimensions that make 20 % of the mean cosine"),
        Quantity("dimensions_for_50", "50 %", 0, "dimensions that make half of the mean cosine"),
        *(
            Quantity(
                f"informativity_{k}", f"r²\n{k}" if k < 3 else "", 3,
                f"pattern of similarities left without the top {k} dimensions",
            )
            for k in INFORMATIVITY_KS
        ),
        Quantity("lid", "LID", 2, "local intrinsic dimension, by maximum likelihood"),
        Quantity("lid_squared", "", 2, "LID on squared distances, as Cai et al.'s code has it: half"),
        Quantity("lid_cosine", "LID,\ncosine", 2, "LID with 1 − cosine for the distance, as they table it"),
    ),
}  # fmt: skip
ALL_QUANTITIES = tuple(quantity for part in QUANTITIES.values() for quantity in part)


def streamed_values(statistics: LayerStatistics) -> Values:
    """Everything that follows from the sums over all tokens."""
    moments, directions, types = statistics.moments, statistics.directions, statistics.types
    anisotropy = _defined(mean_cosine, directions)
    found: Values = {
        "mean_norm": norm_statistics(directions).mean,
        "mean_cosine": anisotropy,
        "sampled_anisotropy": statistics.sampled_anisotropy,
        "self_similarity": types.self_similarity,
        "intra_similarity": statistics.intra_similarity,
        "s_inter": types.s_inter,
        "isoscore": _defined(isoscore, moments),
        "isoscore_debiased": _defined(isoscore, moments, debias=True),
        "effective_rank": _defined(effective_rank, moments),
        "top_dimension_share": _defined(top_dimension_share, directions),
    }
    for name in ("self_similarity", "intra_similarity"):
        value = found[name]
        found[f"adjusted_{name}"] = None if value is None or anisotropy is None else value - anisotropy
    for percent in (10, 20, 50):
        found[f"dimensions_for_{percent}"] = _defined(dimensions_for_share, directions, share=percent / 100)
    return found


def sampled_values(statistics: LayerStatistics, *, clusters: bool, k: int, seed: int) -> Values:
    """What needs the vectors themselves, on the tokens held."""
    sample = statistics.sample.to(statistics.directions.unit_sum.device)
    found = _informativity(sample)
    if len(sample) > k + 1:
        near = Neighbors.of(sample, k=k, metric="euclidean")
        found |= {"lid": _defined(lid, near, k=k), "lid_squared": _defined(lid, near, k=k, squared=True)}
        units = unit_rows(sample)[0].float()
        found["lid_cosine"] = _defined(lid, units, k=k, squared=True)
    if clusters:
        found |= _clusters(sample, statistics.sample_types.seen(), seed)
    return found


def _informativity(sample: Tensor) -> Values:
    ks = [k for k in INFORMATIVITY_KS if k < sample.shape[1]]
    tokens = sample[:: max(1, len(sample) // _INFORMATIVITY_TOKENS)]
    try:
        return {f"informativity_{k}": value for k, value in informativity_curve(tokens, ks=ks).items()}
    except UndefinedError:
        return {}


def _clusters(sample: Tensor, types: Labels, seed: int) -> Values:
    try:
        few = sample[:: -(-len(sample) // _CLUSTER_TOKENS)]
        chosen = choose_clusters(few, n_init=_STARTS, seed=seed)
        clusters = kmeans(sample, chosen.n_clusters, seed=seed).labels
    except UndefinedError:
        return {}
    found: Values = {"n_clusters": float(chosen.n_clusters), "cluster_silhouette": chosen.silhouette}
    try:
        inside = cluster_adjusted_similarities(sample, token_types=types, clusters=clusters)
    except UndefinedError:
        return found
    return found | {"cluster_s_inter": inside.s_inter, "cluster_s_intra": inside.s_intra}


def _defined(metric: Callable[..., Any], statistic: Any, **options: Any) -> float | None:
    """A metric's value, or None where it has none on this layer."""
    try:
        return float(metric(statistic, **options))
    except UndefinedError:
        return None
