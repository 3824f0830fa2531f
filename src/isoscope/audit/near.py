"""Near duplicates: rows whose nearest neighbours are almost the same, in groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from isoscope.audit.search import Found
from isoscope.audit.shares import Share

_EQUAL = 1e-12  # 1 − cosine of equal directions, but for rounding


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Rows that are nearly, but not exactly, another row.

    Attributes:
        groups: rows that are near each other, or linked by such rows; the largest group first.
        share: of rows that have a near duplicate.
        count: how many of those asked for have one.
        cosine: from which on two rows are near duplicates.
    """

    groups: list[list[int]]
    share: Share
    count: int
    cosine: float

    @classmethod
    def of(
        cls, found: Found, originals: dict[int, int], *, near: float, mean_cosine: float
    ) -> NearDuplicates:
        """Return the near duplicates.

        Two rows are near duplicates from the cosine 1 − (1 − near)(1 − c) on, c the mean cosine of two random
        rows: where random rows have the cosine 0, this is `near`.

        Args:
            found: neighbours of all rows, or of a sample.
            originals: for each row with an exact copy, the first of its copies: those are not near.
            near, mean_cosine: as above.
        """
        least = 1 - (1 - near) * (1 - max(0.0, mean_cosine))
        query, place = (found.cosines >= least - _EQUAL).nonzero(as_tuple=True)
        first = found.asked.to(query.device)[query].cpu().numpy()
        second = found.neighbors.indices[query, place].cpu().numpy()
        roots = np.array(
            [
                (originals.get(a, a), originals.get(b, b))
                for a, b in zip(first.tolist(), second.tolist(), strict=True)
            ]
        )
        pairs = roots.reshape(-1, 2)
        differ = pairs[:, 0] != pairs[:, 1]
        count = len(np.unique(first[differ]))
        share = Share.of_counts(count, len(found), exact=not found.is_sampled)
        return cls(_groups(pairs[differ]), share, count, least)


def _groups(pairs: np.ndarray) -> list[list[int]]:
    """Return the connected groups of pairs of rows, the largest first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(pairs):
        return []
    rows, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(pairs.shape)
    links = coo_array((np.ones(len(pairs)), (places[:, 0], places[:, 1])), shape=(len(rows), len(rows)))
    _, group = connected_components(links, directed=False)
    members = torch.from_numpy(rows[np.argsort(group, kind="stable")]).split(np.bincount(group).tolist())
    return sorted((one.tolist() for one in members), key=lambda one: (-len(one), one[0]))
