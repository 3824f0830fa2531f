"""Cosines between and within token types after each cluster is centred on its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from isoscope.arrays import as_matrix, working
from isoscope.errors import InputError, UndefinedError
from isoscope.labels import Labels, as_labels
from isoscope.metrics.contextual import s_inter, s_intra
from isoscope.results import Record
from isoscope.space import known_rows
from isoscope.statistics.groups import GroupDirections, GroupMoments


@dataclass(frozen=True)
class ClusterAdjustedSimilarities(Record):
    """Mean cosines between and within token types inside centred clusters.

    Attributes:
        s_inter: mean cosine between occurrences of different types.
        s_intra: mean cosine between occurrences of the same type.
        n_clusters: the number of clusters that both are averaged over.
        n_skipped: the number of clusters without a value: with fewer than two types, or with no type that
            occurs twice.
    """

    s_inter: float
    s_intra: float
    n_clusters: int
    n_skipped: int


def cluster_adjusted_similarities(
    X: Any,
    *,
    token_types: Any = None,
    clusters: Any = None,
    sampled: bool = False,
    max_instances: int = 1000,
    seed: int = 0,
) -> ClusterAdjustedSimilarities:
    """Compute S_inter and S_intra after centring each cluster on its own mean.

        mean over clusters c of  S({x − mean_c : x in c}),   with equal weights

    The paper centres the whole space first; centring each cluster makes that unnecessary. If the only cause
    of the anisotropy was that clusters are far apart, both are near 0. Range [−1, 1] each. Invariant to
    rotation, translation and scale. Paper: Cai et al. 2021.

    Args:
        X: a Space with token types, or (n, d) vectors.
        token_types: the type of each row; by default that of X.
        clusters: the cluster of each row, as from `kmeans` or `choose_clusters`; by default the labels of X.
        sampled: estimate from random occurrences, as the paper does, instead of computing the exact means:
            one occurrence of each type for S_inter, and at most `max_instances` for S_intra.
        max_instances: see `sampled`.
        seed: the seed of the random draws.

    >>> X = [[9.0, 1.0], [9.0, -1.0], [9.0, 2.0], [-9.0, 1.0], [-9.0, -3.0], [-9.0, 2.0]]
    >>> clusters = [0, 0, 0, 1, 1, 1]
    >>> similarities = cluster_adjusted_similarities(X, token_types=list("abaaba"), clusters=clusters)
    >>> round(similarities.s_inter, 3), round(similarities.s_intra, 3), similarities.n_clusters
    (-1.0, 1.0, 2)
    """
    matrix = as_matrix(X)
    types = as_labels(known_rows(X, token_types, "token_types"), n=matrix.shape[0], name="token_types")
    if clusters is None and getattr(X, "labels", None) is None:
        raise InputError(
            "is missing",
            argument="clusters",
            hint=["pass choose_clusters(X).labels", "pass a Space with labels"],
        )
    grouped = as_labels(X.labels if clusters is None else clusters, n=matrix.shape[0], name="clusters").seen()
    means, codes = GroupMoments.of(matrix, grouped).means, grouped.codes.to(matrix.device)
    similarities = []
    for cluster, mean in enumerate(means):
        inside = (codes == cluster).nonzero().flatten()
        rows = working(matrix[inside])
        rows = rows - mean.to(rows.dtype)
        own = Labels(types.codes.cpu()[inside.cpu()], types.names).seen()
        try:
            if sampled:
                inter = s_inter(rows, token_types=own, sampled=True, seed=seed)
                intra = s_intra(rows, token_types=own, max_instances=max_instances, seed=seed)
            else:
                directions = GroupDirections.of(rows, own)
                inter, intra = s_inter(directions), s_intra(directions)
        except UndefinedError:
            continue
        similarities.append((float(inter), float(intra)))
    if not similarities:
        raise UndefinedError(
            f"cluster-adjusted similarities are undefined: none of the {grouped.n_labels} clusters has two "
            "token types, and one that occurs twice"
        )
    inter, intra = torch.tensor(similarities, dtype=torch.float64).mean(dim=0).tolist()
    return ClusterAdjustedSimilarities(inter, intra, len(similarities), grouped.n_labels - len(similarities))
