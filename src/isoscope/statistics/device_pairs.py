"""Sums over all pairs of points, shared out over several devices of one machine.

The rows are cut into as many chunks as leave no device idle for long, and every two chunks meet on one of the
devices: no device holds more than two chunks at a time. Over processes `isoscope.engine.ring` does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import torch
from torch import Tensor

from isoscope.kernels.tiles import Progress
from isoscope.labels import Labels, as_clusters
from isoscope.statistics.nearest_clusters import reduce_sums
from isoscope.statistics.pairs import ClusterDistances, Separation

_MOST_CHUNKS = 12


def separation_across(
    X: Tensor, labels: Labels, devices: Sequence[torch.device], *, progress: Progress | None = None
) -> Separation:
    """Return `Separation.of(X, labels)` from pairs of chunks that met on the devices.

    Sums are added up in the same order whichever device is done first.

    >>> X, labels = torch.eye(6, dtype=torch.float64), as_clusters([0, 0, 0, 1, 1, 1], n=6)
    >>> separation_across(X, labels, [X.device] * 2).cohesion
    tensor([1.4142, 1.4142, 1.4142, 1.4142, 1.4142, 1.4142], dtype=torch.float64)
    """
    clusters = as_clusters(labels, n=len(X)).to(X.device)
    K, cuts = clusters.n_labels, _cuts(len(X), n_chunks(len(devices)))
    meetings = list(combinations(range(len(cuts)), 2))
    sums = torch.zeros(K, len(X), dtype=torch.float64, device=X.device)
    is_inside = [False] * len(cuts)  # whether the pairs within a chunk are counted

    def meet(number: int) -> tuple[Tensor, Tensor]:
        first, second = (cuts[chunk] for chunk in meetings[number])
        rows = torch.cat([X[first], X[second]])
        codes = torch.cat([clusters.codes[first], clusters.codes[second] + K])
        device = devices[number % len(devices)]
        both = Labels(codes.to(device), tuple(range(2 * K)))
        over = ClusterDistances.of(rows.to(device), both).sums.T.to(X.device)
        return over[:K], over[K:]

    with ThreadPoolExecutor(len(devices)) as pool:
        for number, (over_first, over_second) in enumerate(pool.map(meet, range(len(meetings)))):
            first, second = meetings[number]
            m = cuts[first].stop - cuts[first].start
            sums[:, cuts[first]] += over_second[:, :m]
            sums[:, cuts[second]] += over_first[:, m:]
            for chunk, over, rows in ((first, over_first, slice(m)), (second, over_second, slice(m, None))):
                if not is_inside[chunk]:
                    sums[:, cuts[chunk]] += over[:, rows]
                    is_inside[chunk] = True
            if progress:
                progress((number + 1) / len(meetings))
    return Separation(*reduce_sums(sums.T, clusters.codes, clusters.counts.double()), clusters)


def n_chunks(n_devices: int) -> int:
    """Return into how many chunks rows are cut so that all meetings are over soonest.

    A meeting of two of c chunks takes (2/c)² of the time of all pairs, and each device has its share of the
    c(c − 1)/2 meetings.

    >>> [n_chunks(n) for n in (2, 3, 4, 8)]
    [4, 3, 8, 6]
    """
    return min(range(3, _MOST_CHUNKS + 1), key=lambda c: -(-c * (c - 1) // 2 // n_devices) * 4 / c**2)


def _cuts(n: int, n_parts: int) -> list[slice]:
    """Return slices of about equal length; fewer where there are few rows."""
    n_parts = min(n_parts, n)
    edges = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
