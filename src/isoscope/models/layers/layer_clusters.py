"""The clusters of all layers at once, on CUDA: thousands of points are fewer than a launch is worth."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from isoscope.arrays import working
from isoscope.clustering import FIRST_ROUNDS, MAX_ITER, TOLERANCE, ChosenClusters, best_number
from isoscope.kernels.many_kmeans import ManySpaces, many_kmeans, many_silhouettes
from isoscope.labels import Labels
from isoscope.metrics.silhouettes import silhouette_score

_MOST_NUMBERS = 2**27  # of distances to the centres of all layers, starts and numbers of clusters: 512 MB


def choose_in_each(
    spaces: Sequence[Tensor], *, max_clusters: int = 15, n_init: int, seed: int
) -> list[ChosenClusters | None]:
    """Return `choose_clusters(space, n_init=n_init, seed=seed)` for each of B spaces of one shape.

    None for a space in which no number of clusters can be compared.
    """
    numbers = list(range(2, min(max_clusters, len(spaces[0]) - 1) + 1))
    if not numbers:
        return [None for _ in spaces]
    chosen: list[ChosenClusters | None] = []
    for some in _groups(spaces, len(numbers) * n_init * numbers[-1]):
        many = ManySpaces.of(torch.stack([working(space) for space in some]))
        codes = _kmeans(many, torch.tensor([numbers] * len(some)), n_init, seed)
        values, trusted = many_silhouettes(many, codes, numbers[-1])
        rows = zip(some, codes, values.tolist(), trusted.tolist(), strict=True)
        for space, own, scores, can_trust in rows:
            tried = {}
            for K, labels, score, sure in zip(numbers, own, scores, can_trust, strict=True):
                if score == score:  # two clusters at least
                    known = Labels(labels, tuple(range(K)))
                    tried[K] = score if sure else float(silhouette_score(space, known.seen())), known
            chosen.append(best_number(tried) if tried else None)
    return chosen


def kmeans_in_each(spaces: Sequence[Tensor], numbers: Sequence[int], *, seed: int) -> list[Labels]:
    """Return the labels of `kmeans(space, n_clusters, seed=seed)` for each of B spaces of one shape."""
    labels: list[Labels] = []
    for some in _groups(spaces, max(numbers)):
        own = torch.tensor(numbers[len(labels) : len(labels) + len(some)])[:, None]
        codes = _kmeans(ManySpaces.of(torch.stack([working(space) for space in some])), own, 1, seed)
        labels += [Labels(codes[b, 0], tuple(range(K))) for b, K in enumerate(own.flatten().tolist())]
    return labels


def _kmeans(many: ManySpaces, numbers: Tensor, n_init: int, seed: int) -> Tensor:
    return many_kmeans(
        many, numbers, n_init=n_init, seed=seed, first_rounds=FIRST_ROUNDS, max_iter=MAX_ITER, tol=TOLERANCE
    )


def _groups(spaces: Sequence[Tensor], n_centers: int) -> list[Sequence[Tensor]]:
    """Return the spaces in groups whose distances to all centres fit in memory."""
    at_once = max(1, _MOST_NUMBERS // (n_centers * len(spaces[0])))
    return [spaces[start : start + at_once] for start in range(0, len(spaces), at_once)]
