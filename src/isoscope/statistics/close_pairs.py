"""`ClosePairs`: how many other points lie within given radii of each point, over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import UndefinedError
from isoscope.kernels.tile_plan import Tile
from isoscope.kernels.tiles import Arranged, Progress
from isoscope.statistics.declared import declare
from isoscope.statistics.neighbors import Neighbors, distinct_rows

CLOSE_NEIGHBORS = 10  # the radii are median distances to this neighbour and to the one of twice this rank
_ROUNDING = 1e-9  # a pair at a radius is not within it, whatever its distance is rounded to


@dataclass(frozen=True, eq=False)
class ClosePairs:
    """For each point, the number of other points that are closer than each radius.

    Attributes:
        radii: (m,) float64, ascending.
        counts: (n, m) int64.

    >>> ClosePairs.of([[0.0], [1.0], [3.0]], [1.5, 2.5]).counts.tolist()
    [[1, 1], [1, 2], [0, 1]]
    """

    radii: Tensor
    counts: Tensor

    @classmethod
    def of(cls, X: Any, radii: Any, *, progress: Progress | None = None) -> ClosePairs:
        """Count over all pairs, in float64 and tile by tile.

        Args:
            X: (n, d) vectors in any array.
            radii: (m,) distances, ascending; a pair at exactly this distance is not counted.
            progress: told the share of the work that is done.
        """
        points = as_matrix(X).detach().double()
        limits = torch.as_tensor(radii, dtype=torch.float64, device=points.device)
        arranged = Arranged.of(points)
        squares = ((limits * (1 - _ROUNDING)) / arranged.unit).square().tolist()
        counts = torch.zeros(len(points), len(squares), dtype=torch.int64, device=points.device)

        def count(rows: Tile, columns: Tile, tile: Tensor) -> tuple[Tensor, Tensor | None]:
            close = [tile < square for square in squares]
            across = torch.stack([one.sum(dim=1) for one in close], dim=1)
            if rows == columns:
                return across - (tile.diagonal()[:, None] < tile.new_tensor(squares)).long(), None
            return across, torch.stack([one.sum(dim=0) for one in close], dim=1)

        for rows, columns, (across, down) in arranged.reduced(count, progress=progress):
            counts[arranged.order[rows.rows]] += across
            if down is not None:
                counts[arranged.order[columns.rows]] += down
        return cls(limits, counts)


def median_radii(neighbors: Neighbors, ranks: Sequence[int]) -> Tensor:
    """Return (m,) the median distances to the neighbours of these ranks, the nearest being 1."""
    if max(ranks) > neighbors.k:
        raise UndefinedError(f"a radius needs {max(ranks)} neighbours; there are {neighbors.k}")
    distances = neighbors.distances[neighbors.has_any]
    ordered = distances[:, [rank - 1 for rank in ranks]].sort(dim=0).values
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


declare(
    "close_pairs",
    ClosePairs,
    lambda space, shelf: ClosePairs.of(
        space.vectors[distinct_rows(space.vectors)],
        median_radii(shelf.distinct_neighbors, (CLOSE_NEIGHBORS, 2 * CLOSE_NEIGHBORS)),
        progress=shelf.progress,
    ),
    builds_on="distinct_neighbors",
    merges=False,
    bytes_held=lambda n, _d, _k: 16 * n,
)
