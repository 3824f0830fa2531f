"""What a search finds in both spaces: the results that they share, and how good each side's results are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from isoscope.comparison.changes import Change, Correspondence, Interval
from isoscope.engine.inputs import as_input
from isoscope.errors import InputError, ShapeError
from isoscope.metrics.correspondence import shared_counts
from isoscope.queries import Queries
from isoscope.queries.nearest import nearest
from isoscope.queries.retrieval import Retrieval, retrieval_of
from isoscope.space import Space
from isoscope.statistics.directions import has_direction
from isoscope.statistics.neighbors import Neighbors

SEARCH_OVERLAP = "search_overlap"
_LEVEL = 0.95


def both_sides(queries: Any) -> tuple[Any, Any]:
    """Return the queries of A and those of B, which are the same unless a pair is given."""
    if not isinstance(queries, tuple):
        return queries, queries
    if len(queries) != 2:
        raise InputError(
            f"has {len(queries)} entries", argument="queries", hint="pass queries, or a pair for A and B"
        )
    return queries


def queries_of_b(queries: Any, of_a: Queries, documents: Space) -> Queries:
    """Return the queries of B: the same as those of A, in the space of B."""
    rows = queries.vectors if isinstance(queries, Queries) else as_input(queries).source.load().vectors
    for found, wanted, what in (
        (rows.shape[1], documents.n_dims, "dimensions, as B has"),
        (len(rows), len(of_a), "rows, as the queries of A have"),
    ):
        if found != wanted:
            raise ShapeError(
                f"has {found:,} instead of {wanted:,} {what}",
                argument="queries",
                hint="pass a pair: the queries as each model encodes them",
            )
    return Queries(rows.detach(), of_a.relevance, of_a.texts)


def search_overlap(
    documents: tuple[Space, Space], queries: tuple[Queries, Queries], *, k: int, metric: str
) -> Correspondence:
    """Return the mean share of a query's k nearest documents that are the same in both spaces.

    By cosine, zero vectors are not found, and queries that are zero in either space are left out. Where both
    spaces have fewer than k documents to find, it is the share of those.
    """
    rows = [asked.vectors for asked in queries]
    if metric == "cosine":
        there = has_direction(rows[0]).cpu() & has_direction(rows[1]).cpu()
        if not there.any():
            raise InputError(
                "are all zero vectors, in A or in B", argument="queries", wanted="queries with a direction"
            )
        a, b = (
            nearest(space, some[there.to(some.device)], k).indices
            for space, some in zip(documents, rows, strict=True)
        )
    else:
        a, b = (
            Neighbors.between(some, space.vectors, k=k, metric=metric).indices
            for space, some in zip(documents, rows, strict=True)
        )
    n_found = max(int((found >= 0).sum(dim=1).max()) for found in (a, b))
    shares = shared_counts(a, b.to(a)) / n_found
    mean, interval = _mean(shares)
    return Correspondence(
        SEARCH_OVERLAP, mean, interval, f"share of the {k} nearest documents of a query that are the same"
    )


def retrieval_changes(
    documents: tuple[Space, Space], queries: tuple[Queries, Queries], *, k: int, metric: str
) -> Iterator[Change]:
    """Yield the change of each figure of retrieval, with its interval over queries."""
    if queries[0].relevance is None:
        return
    if metric != "cosine":
        raise InputError(argument="metric", got=metric, wanted="cosine, which ranks relevant documents")
    a, b = (retrieval_of(space, asked, k=k) for space, asked in zip(documents, queries, strict=True))
    for name in a.scores:
        yield _change(name, a, b)


def _change(name: str, a: Retrieval, b: Retrieval) -> Change:
    differences = b.scores[name] - a.scores[name]
    _, interval = _mean(differences[~differences.isnan()])
    (reading,) = b.readings.where(metric=name)
    return Change(name, a[name], b[name], interval, reading.meaning)


def _mean(values: Tensor) -> tuple[float | None, Interval | None]:
    """Return the mean over queries and its 95 % interval by Student's t."""
    from scipy.stats import t

    n = len(values)
    if n == 0:
        return None, None
    mean = float(values.double().mean())
    if n == 1:
        return mean, None
    half = float(t.ppf((1 + _LEVEL) / 2, n - 1)) * float(values.double().std()) / math.sqrt(n)
    return mean, (mean - half, mean + half)
