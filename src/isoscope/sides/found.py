"""How well the rows of one side find their partners on the other side, as they are and centred."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.engine.readings import Reading
from isoscope.queries.ranks import Ranks
from isoscope.queries.relevance import Relevance
from isoscope.queries.retrieval import hit_rate, reciprocal_rank
from isoscope.space import Space
from isoscope.statistics.intervals import Z95, wilson

_MEANINGS = {
    "hit_rate@1": "of the rows have a partner first",
    "hit_rate@10": "of the rows have a partner among the first 10",
    "mrr": "mean reciprocal rank of the nearest partner",
}


@dataclass(frozen=True, eq=False)
class Found:
    """The ranks of the first partner of each row of a side that has one.

    Attributes:
        side: the name of the side whose rows search.
        rows: (m,) their row numbers.
        ranks: (m,) the rank of the nearest partner among all rows of the other side, the mean of tied ones.
        reciprocals, hits_1, hits_10: (m,) 1/rank, and whether it is 1, and at most 10; ties as expectations.
        n_others: rows of the other side.
    """

    side: str
    rows: Tensor
    ranks: Tensor
    reciprocals: Tensor
    hits_1: Tensor
    hits_10: Tensor
    n_others: int

    @classmethod
    def of(cls, side: str, own: Tensor, others: Tensor, relevance: Relevance, rows: Tensor) -> Found:
        """Search all rows of the other side for the partners of some rows of this one, by cosine."""
        ranks = Ranks.of(Space(others), own[rows.to(own.device)], *relevance.some(rows).padded())
        used = ranks.gains > 0
        places = torch.where(used, ranks.above + (ranks.tied + 1) / 2, math.inf).amin(dim=1)
        figures = (places, reciprocal_rank(ranks), hit_rate(ranks, k=1), hit_rate(ranks, k=10))
        first, reciprocals, hits_1, hits_10 = (one.cpu().double() for one in figures)
        return cls(side, rows, first, reciprocals, hits_1, hits_10, ranks.n_documents)

    def readings(self, vectors: str) -> list[Reading]:
        """Return the mean of each figure with its interval, and the median rank with that of its order."""
        group = {"side": self.side, "vectors": vectors}
        rows = [
            _mean(name, values, group)
            for name, values in (
                ("hit_rate@1", self.hits_1), ("hit_rate@10", self.hits_10), ("mrr", self.reciprocals)
            )
        ]  # fmt: skip
        ordered = self.ranks.sort().values
        m = len(ordered)
        half = Z95 * math.sqrt(m) / 2  # of the order statistics about the median
        low, high = (ordered[min(max(int(place), 0), m - 1)] for place in (m / 2 - half, m / 2 + half))
        median = Reading(
            "median_rank", float(ordered.median()), interval=(float(low), float(high)), group=group,
            meaning=f"of the nearest partner, among {self.n_others:,} rows",
        )  # fmt: skip
        return [*rows, median]


def _mean(name: str, values: Tensor, group: dict[str, str]) -> Reading:
    """Return a mean of numbers from 0 to 1; where all are equal, the interval is Wilson's."""
    mean = float(values.mean())
    interval = wilson(mean, len(values), variance=float(values.var(correction=0)))
    return Reading(name, mean, interval=interval, meaning=_MEANINGS[name], group=group)


def difference(
    name: str, first: Tensor, second: Tensor, *, is_paired: bool, group: dict[str, str], meaning: str = ""
) -> Reading:
    """Return the mean of second − first, with its standard error."""
    value = float(second.mean() - first.mean())
    error = None
    if min(len(first), len(second)) > 1:
        parts = (second - first,) if is_paired else (first, second)
        error = math.sqrt(sum(float(part.var()) / len(part) for part in parts))
    return Reading(name, value, error, meaning=meaning, range=(-1.0, 1.0), group=group)


def transposed(relevance: Relevance, n_queries: int) -> Relevance:
    """Return which queries are relevant to each document."""
    pairs = [(row, query) for query in range(n_queries) for row in relevance.of_query(query).tolist()]
    return Relevance.of_pairs(pairs, n_queries=relevance.n_documents, n_documents=n_queries)
