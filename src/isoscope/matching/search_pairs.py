"""`SearchPairs`: cosines of queries with the rows that are relevant to them, and with others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.errors import InputError
from isoscope.matching.rows import rows_at
from isoscope.queries.nearest import nearest
from isoscope.queries.opened import Queries
from isoscope.queries.relevance import Relevance
from isoscope.statistics.directions import has_direction, unit_rows
from isoscope.statistics.intervals import Z95

_MOST = 100_000  # pairs of queries and relevant rows; of more, as many rows of each query are drawn
_AT_ONCE = 2**24  # numbers of vectors that are multiplied at once
_TRIES = 50  # draws of a row that is not relevant

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchPairs:
    """Pairs of a query and a row, with their cosines, of the queries that have a relevant row.

    Attributes:
        queries: (p,) the query of each relevant pair, ascending.
        relevant: (p,) the cosines of the relevant pairs.
        nearest: (m,) the cosine of each query with its nearest row.
        is_right: (m,) whether that row is relevant.
        nearest_rows: (m,) that row.
        mixed: (2m,) the cosine of each query with one of its relevant rows, then with one of the other rows,
            both drawn at random.
        mixed_rows: (2m,) those rows.
        n_left_out: queries without a relevant row, or zero.
    """

    queries: NDArray[np.int64]
    relevant: Floats
    nearest: Floats
    is_right: NDArray[np.bool_]
    nearest_rows: NDArray[np.int64]
    mixed: Floats
    mixed_rows: NDArray[np.int64]
    n_left_out: int

    @classmethod
    def of(cls, source: Source, asked: Queries, *, n_rows: int, seed: int = 0) -> SearchPairs:
        """Compute the cosines; the nearest rows are exact."""
        assert asked.relevance is not None
        kept = has_direction(asked.vectors).cpu() & (asked.relevance.n_relevant > 0)
        vectors, relevance = asked.vectors[kept.to(asked.vectors.device)], asked.relevance.some(kept)
        if not len(vectors):
            raise InputError("has no query with a relevant row that is not zero", argument="relevance")
        first = nearest(source, vectors, 1)
        rows = first.indices.flatten().cpu()
        rng = np.random.default_rng(seed)
        queries, chosen = _relevant(relevance, rng)
        one = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])  # rows of a query are in random order
        others = _others(relevance, n_rows, rng)
        mixed = np.concatenate([chosen[one], others])
        cosines = _cosines(source, vectors, queries, chosen)
        return cls(
            queries=queries,
            relevant=cosines,
            nearest=(1 - first.distances.flatten()).double().cpu().numpy(),
            is_right=_are_relevant(relevance, rows.numpy()),
            nearest_rows=rows.numpy(),
            mixed=np.concatenate([cosines[one], _cosines(source, vectors, np.arange(len(vectors)), others)]),
            mixed_rows=mixed,
            n_left_out=len(asked) - len(vectors),
        )

    def found(self, cosine: float) -> tuple[float, tuple[float, float]]:
        """Return the share of the relevant rows with at least a cosine, and its 95 % interval over queries.

        It is the mean of the shares of single queries.
        """
        sizes = np.bincount(self.queries)
        shares = np.bincount(self.queries, self.relevant >= cosine) / sizes
        mean, m = float(shares.mean()), len(shares)
        half = Z95 * float(shares.std(ddof=1)) / math.sqrt(m) if m > 1 else 1.0
        return mean, (max(0.0, mean - half), min(1.0, mean + half))

    def labelled(self, promise: str) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
        """Return cosines, matches and rows of the independent pairs that a promise is about.

        A precision is that of nearest rows; a false-match rate is that of rows that are not relevant.
        """
        if promise == "precision":
            return self.nearest, self.is_right, self.nearest_rows
        matches = np.arange(len(self.mixed)) < len(self.nearest)
        return self.mixed, matches, self.mixed_rows


def _relevant(relevance: Relevance, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return relevant pairs: all where there are few, else as many of each query, in random order."""
    m = len(relevance)
    most = max(1, _MOST // m)
    rows = [rng.permutation(relevance.of_query(query).numpy())[:most] for query in range(m)]
    return np.repeat(np.arange(m), [len(some) for some in rows]), np.concatenate(rows)


def _others(relevance: Relevance, n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for each query a row drawn at random from those that are not relevant to it."""
    rows = rng.integers(0, n_rows, len(relevance))
    for _ in range(_TRIES):
        again = np.flatnonzero(_are_relevant(relevance, rows))
        if not len(again):
            return rows
        rows[again] = rng.integers(0, n_rows, len(again))
    raise InputError(
        "leaves a query without a row that is not relevant", argument="relevance", wanted="rows of both kinds"
    )


def _are_relevant(relevance: Relevance, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(m,) whether one row for each query is relevant to it; a list has its rows in ascending order."""
    return np.array(
        [
            place < len(known) and bool(known[place] == row)
            for query, row in enumerate(rows.tolist())
            for known in [relevance.of_query(query)]
            for place in [int(torch.searchsorted(known, row))]
        ]
    )


def _cosines(source: Source, vectors: Tensor, queries: Any, rows: NDArray[np.int64]) -> Floats:
    """Return the cosines of some queries with a row each; a zero vector has none, and reads −1."""
    wanted, places = np.unique(rows, return_inverse=True)
    units, lengths = unit_rows(rows_at(source, wanted))
    asked = unit_rows(vectors)[0].cpu()
    size = max(1, _AT_ONCE // source.n_dims)
    parts = [
        (asked[torch.from_numpy(queries[start : start + size])]
         * units[torch.from_numpy(places[start : start + size])]).sum(dim=1)
        for start in range(0, len(rows), size)
    ]  # fmt: skip
    zero = (lengths == 0).cpu().numpy()[places]
    return np.where(zero, -1.0, torch.cat(parts).double().numpy())
