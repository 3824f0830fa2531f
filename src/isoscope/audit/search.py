"""Neighbours for an audit: of all rows, of some of them among all, or of queries; by blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.kernels.tiles import Progress
from isoscope.queries.nearest import nearest
from isoscope.statistics.directions import has_direction
from isoscope.statistics.neighbors import Neighbors


@dataclass(frozen=True, eq=False)
class Found:
    """The k nearest rows of some rows or queries, by cosine.

    Attributes:
        asked: (q,) the rows of the source that were asked for; empty for queries from elsewhere.
        neighbors: of each, as rows of the source, which zero vectors are not among.
        n_candidates: how many rows can be a neighbour.
        n_population: how many rows or queries those asked for stand for.
    """

    asked: Tensor
    neighbors: Neighbors
    n_candidates: int
    n_population: int

    def __len__(self) -> int:
        return len(self.neighbors.indices)

    @property
    def is_sampled(self) -> bool:
        """Whether those asked for are a part of the rows they stand for."""
        return len(self) < self.n_population

    @property
    def cosines(self) -> Tensor:
        """(q, k) the cosines, descending."""
        return 1 - self.neighbors.distances


def search_all(source: Source, k: int, progress: Progress | None = None) -> Found:
    """Search the neighbours of every row among all others; zero vectors are left out."""
    vectors = source.load().vectors.detach()
    rows = has_direction(vectors).nonzero().flatten()
    whole = vectors if len(rows) == len(vectors) else vectors[rows]
    found = Neighbors.of(whole, k=k, metric="cosine", progress=progress)
    neighbors = Neighbors(found.distances, rows[found.indices], "cosine")
    return Found(rows, neighbors, len(rows), len(rows))


def search_rows(
    source: Source, rows: Tensor, vectors: Tensor, k: int, n_candidates: int, progress: Progress | None = None
) -> Found:
    """Search the neighbours of some rows among all others; the vectors are theirs, none of them zero."""
    found = nearest(source, vectors, k + 1, progress=progress).without(rows)
    return Found(rows, found, n_candidates, n_candidates)


def search_queries(
    source: Source, vectors: Tensor, k: int, n_candidates: int, progress: Progress | None = None
) -> Found:
    """Search the neighbours of queries among all rows; queries that are zero are left out."""
    asked = vectors[has_direction(vectors)]
    found = nearest(source, asked, k, progress=progress)
    return Found(torch.empty(0, dtype=torch.int64), found, n_candidates, len(found.indices))
