"""What is decided before any row is read: what is exact and what is estimated, streamed or loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass

EXACT_PAIRS = 20_000**2  # pairs of rows that are met for a page: a second or two on two cores
TOLERANCE = 5e-4  # half the 95 % interval of an estimated mean silhouette
LABEL_TOLERANCE = 5e-3  # likewise of a label's mean, which has fewer rows


@dataclass(frozen=True)
class SilhouettePolicy:
    """Whether a silhouette is taken over all pairs of rows or estimated, and how closely.

    Attributes:
        exact: whether every pair is met.
        limit: the number of rows up to which that is so.
        tolerance: half the width of the 95 % interval of an estimate.
    """

    exact: bool
    limit: int
    tolerance: float

    def __str__(self) -> str:
        if self.exact:
            return f"exact over all pairs (up to {self.limit:,} vectors)"
        return f"estimated to ± {self.tolerance:g} (95 %), exact up to {self.limit:,} vectors"


def silhouette_policy(n_rows: int, *, times: int = 1, by_label: bool = False) -> SilhouettePolicy:
    """Decide between the exact silhouette of n_rows vectors and its estimate, for pages and figures.

    `measure` itself is exact at any size; a page that waits for the number is not. The limit and the
    tolerance follow from one bound on the work: where several silhouettes are taken, fewer pairs are left
    for each, and an estimate, whose work goes with 1 / tolerance², is as much wider.

    Args:
        n_rows: how many vectors are compared.
        times: how many silhouettes of so many vectors are taken.
        by_label: whether the mean of every label is wanted, not that of all rows.

    >>> silhouette_policy(10_000).exact, silhouette_policy(10_000, times=7).exact
    (True, False)
    >>> print(silhouette_policy(1_000_000))
    estimated to ± 0.0005 (95 %), exact up to 20,000 vectors
    """
    limit = math.isqrt(EXACT_PAIRS // times)
    tolerance = (LABEL_TOLERANCE if by_label else TOLERANCE) * math.sqrt(times)
    return SilhouettePolicy(n_rows <= limit, limit, tolerance)
