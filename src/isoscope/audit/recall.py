"""Recall of an index: how many of the exact neighbours it returns, with ties, by hubness."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.audit.search import Found
from isoscope.audit.shares import Share
from isoscope.engine.source import Source
from isoscope.errors import ShapeError
from isoscope.io.pair_files import read_row_pairs
from isoscope.statistics.directions import unit_rows

_TIE = 1e-6  # of a cosine: a row of the index as near as the k-th neighbour, but for its rounding, counts
_AT_ONCE = 2**24  # numbers of vectors that are compared at once
DECILES = 10


@dataclass(frozen=True, eq=False)
class IndexRecall:
    """How many of the k nearest rows an index returns.

    Attributes:
        k: how many neighbours were compared.
        recall: the mean over those asked.
        scores: (q,) the recall of each.
        deciles: the recall of the neighbours by how often they are retrieved, the rarest tenth first.
        worst: (w,) the rows or queries with the lowest recall, as positions of those asked.
        n_repeated: how many identifiers were given twice for one query and count once.
        n_unknown: how many are no rows, such as −1.
    """

    k: int
    recall: Share
    scores: Tensor
    deciles: tuple[Share, ...]
    worst: Tensor
    n_repeated: int
    n_unknown: int


def read_neighbors(neighbors: Any, *, n_asked: int) -> Tensor:
    """Return the (n, k) rows that an index returned, from an array or a file; −1 where it returned fewer."""
    if isinstance(neighbors, str | os.PathLike):
        neighbors = read_row_pairs(neighbors)
    try:
        table = np.asarray(neighbors)
    except ValueError:
        raise ShapeError(
            "has lists of different lengths",
            argument="neighbors",
            wanted="lists of one length, with −1 for no row",
        ) from None
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ShapeError(
            argument="neighbors",
            got=f"{table.dtype} of shape {table.shape}",
            wanted="whole numbers of shape (n, k): the rows returned for each row",
        )
    if len(table) != n_asked:
        raise ShapeError(
            f"is of {len(table):,} rows", argument="neighbors", wanted=f"one list for each of {n_asked:,}"
        )
    return torch.from_numpy(table.astype(np.int64))


def index_recall(
    source: Source, given: Tensor, found: Found, asked: Tensor, *, counts: Tensor | None = None
) -> IndexRecall:
    """Compare what an index returned with the exact neighbours.

    A row that is returned counts if it is as near as the k-th exact neighbour: among rows at the same
    distance none is better. Rows count once, and the row asked for not at all.

    Args:
        source: the rows that were searched.
        given: (q, j) rows that the index returned for those asked.
        found: the exact neighbours of those asked, k of them.
        asked: (q, d) their vectors.
        counts: (n,) how often each row is retrieved; by default among the neighbours found.
    """
    exact = found.neighbors.indices.cpu()
    own = found.asked if len(found.asked) else torch.full((len(given),), -1)
    # the row itself is the first result of most indexes, and no neighbour
    has_own = 2 * int((given == own[:, None]).any(dim=1).sum()) > len(given)
    k = min(found.neighbors.k, max(1, given.shape[1] - has_own))
    n_rows = len(source.load()) if source.n_rows is None else source.n_rows
    is_row = (given >= 0) & (given < n_rows)
    n_unknown = int((~is_row).sum())
    given = torch.where(is_row & (given != own[:, None]), given, -1)
    ordered, order = given.sort(dim=1, stable=True)
    twice = torch.zeros_like(is_row)
    twice.scatter_(1, order[:, 1:], (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0))
    given = torch.where(twice, -1, given)
    considered = (given >= 0) & ((given >= 0).cumsum(dim=1) <= k)
    cosines = _cosines(source, asked, given)
    limit = found.cosines[:, k - 1].cpu()[:, None]
    hits = (considered & (cosines >= limit - _TIE)).sum(dim=1)
    scores = hits.clamp(max=k).double() / k
    returned = torch.where(considered, given, -2)
    among = torch.stack([(exact[:, place, None] == returned).any(dim=1) for place in range(k)], dim=1)
    often = torch.bincount(exact.flatten(), minlength=n_rows) if counts is None else counts
    return IndexRecall(
        k,
        Share.of_sum(scores, exact=not found.is_sampled),
        scores,
        _by_decile(often[exact[:, :k]].flatten(), among.flatten(), exact=not found.is_sampled),
        scores.argsort(stable=True)[: int((scores < 1).sum())],
        int(twice.sum()),
        n_unknown,
    )


def _by_decile(often: Tensor, hit: Tensor, *, exact: bool) -> tuple[Share, ...]:
    """Return the share of the exact neighbours that are returned, by how often they are retrieved."""
    parts: Sequence[Tensor] = hit[often.argsort(stable=True)].double().tensor_split(DECILES)
    return tuple(Share.of_sum(part, exact=exact) for part in parts)


def _cosines(source: Source, asked: Tensor, given: Tensor) -> Tensor:
    """(q, j) the cosines of those asked with the rows given, in one pass over the rows; −1 for no row."""
    cosines = torch.full(given.shape, -1.0, dtype=torch.float64)
    units = unit_rows(asked)[0].cpu()
    start = 0
    for block in source.blocks():
        here = (given >= start) & (given < start + len(block))
        query, place = here.nonzero(as_tuple=True)
        vectors = block.vectors.detach().cpu()
        size = max(1, _AT_ONCE // vectors.shape[1])
        for one, at in zip(query.split(size), place.split(size), strict=True):
            rows = unit_rows(vectors[given[one, at] - start])[0]
            cosines[one, at] = (rows * units[one]).sum(dim=1)
        start += len(block)
    return cosines
