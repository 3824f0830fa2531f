"""`retrieval`: how well documents are found for queries, exactly, with ties as the mean over their orders.

Documents of one similarity are in no order. Each figure is its mean over all orders of the tied documents
(McSherry and Najork 2008), so that it depends neither on the order of the file nor on the last digit. With a
relevant document that s documents stand before and t share its similarity, r of them relevant and R before,

    E[precision at its rank] = (1/t) Σ_{i=s+1}^{s+t} (R + 1 + (i − s − 1)(r − 1)/(t − 1))/i
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.inputs import as_input
from isoscope.engine.readings import Reading, Readings, View
from isoscope.engine.source import Source
from isoscope.errors import check_choice, check_whole
from isoscope.progress import Bar
from isoscope.queries.opened import Queries, as_queries
from isoscope.queries.ranks import SIMILARITIES, Ranks

_AT_ONCE = 2**22  # relevant documents of the queries that are ranked together
_QUERIES_AT_ONCE = 4096
_MEANINGS = {
    "map": "mean average precision",
    "ndcg": "discounted gain of the first {k}, over the largest possible",
    "mrr": "mean reciprocal rank of the first relevant document",
    "recall": "share of the relevant documents among the first {k}",
    "hit_rate": "share of the queries with a relevant document among the first {k}",
}


@dataclass(frozen=True, repr=False)
class Retrieval(View):
    """How well documents are found, over all queries that have a relevant one.

    Attributes:
        readings: the mean of each figure over the queries, with its standard error.
        scores: by figure, (m,) the score of each query; NaN where no document is relevant.
        n_queries: how many queries count.
        n_left_out: the queries without a relevant document.
        n_documents: how many documents were searched.
        k: the length of the results that nDCG, recall and hit rate look at.
        similarity: "cosine" or "dot".
    """

    readings: Readings
    scores: Mapping[str, Tensor]
    n_queries: int
    n_left_out: int
    n_documents: int
    k: int
    similarity: str

    def __getitem__(self, name: str) -> float | None:
        return self.readings.where(metric=name)[0].value

    @property
    def title(self) -> str:
        """What was searched, in one line."""
        by = {"cosine": "cosine", "dot": "inner product"}[self.similarity]
        asked = "1 query" if self.n_queries == 1 else f"{self.n_queries:,} queries"
        return f"{asked} among {self.n_documents:,} documents, by {by}"

    def lines(self) -> list[str]:
        """Return what was left out."""
        if not self.n_left_out:
            return []
        return [f"note: {self.n_left_out:,} more have no relevant document and are left out"]

    def to_dict(self) -> dict[str, Any]:
        """Return the readings and what they are from, as JSON-ready values."""
        return {
            "n_queries": self.n_queries,
            "n_left_out": self.n_left_out,
            "n_documents": self.n_documents,
            "similarity": self.similarity,
            "retrieval": {one.metric: one.to_dict() for one in self.readings},
        }

    def _printed(self) -> dict[str, list[Any]]:
        """Return the columns of the table that is printed."""
        columns = self.readings._printed()
        return columns | {"what it is": [one.meaning for one in self.readings]}

    _columns = _printed


def retrieval(
    X: Any,
    queries: Any,
    relevance: Any = None,
    *,
    k: int = 10,
    similarity: str = "cosine",
    progress: bool | None = None,
) -> Retrieval:
    """Measure how well the documents in X are found for queries: MAP, nDCG, MRR, recall and hit rate.

    All documents are ranked for each query, exactly. Of documents with the same similarity the order is
    open: a score is its mean over these orders.

    Args:
        X: (n, d) the documents, as any source of vectors.
        queries: (m, d) the queries, as any source, or Queries.
        relevance: as `as_queries` takes it.
        k: how many results nDCG, recall and hit rate look at.
        similarity: "cosine" or "dot"; a zero vector has the cosine 0.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.

    >>> found = retrieval([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.1]], [(0, 1)])
    >>> found["mrr"]
    0.5
    """
    check_choice("similarity", similarity, SIMILARITIES)
    k = check_whole("k", k, least=1)
    source = as_input(X).source
    asked = as_queries(queries, source, relevance=relevance, needed=True)
    with Bar(show=progress) as bar:
        bar.step("ranking the documents")
        return retrieval_of(source, asked, k=k, similarity=similarity, bar=bar)


def retrieval_of(
    source: Source, queries: Queries, *, k: int = 10, similarity: str = "cosine", bar: Bar | None = None
) -> Retrieval:
    """Return how well the documents of a source are found."""
    assert queries.relevance is not None
    parts, done, n = [], 0, 0
    for some in _chunks(queries):
        relevance = queries.relevance.some(some)
        ranks = Ranks.of(
            source,
            queries.vectors[some],
            *relevance.padded(),
            similarity=similarity,
            own=None if queries.own is None else queries.own[some],
        )
        parts.append(scores_of(ranks, k=k))
        done, n = done + len(some), ranks.n_documents
        if bar is not None:
            bar.share(done / len(queries))
    scores = {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}
    counts = int((~next(iter(scores.values())).isnan()).sum())
    names = {name: name if name in ("map", "mrr") else f"{name}@{k}" for name in scores}
    readings = [_mean(names[name], values, _MEANINGS[name].format(k=k)) for name, values in scores.items()]
    return Retrieval(
        readings=Readings(readings),
        scores={names[name]: values for name, values in scores.items()},
        n_queries=counts,
        n_left_out=len(queries) - counts,
        n_documents=n,
        k=k,
        similarity=similarity,
    )


def _chunks(queries: Queries) -> Iterator[Tensor]:
    """Yield the queries, as many at a time as their relevant documents allow."""
    assert queries.relevance is not None
    most = int(queries.relevance.n_relevant.max())
    yield from torch.arange(len(queries)).split(max(1, min(_QUERIES_AT_ONCE, _AT_ONCE // max(most, 1))))


def _mean(name: str, values: Tensor, meaning: str) -> Reading:
    """Return the mean over the queries that have a relevant document, and its standard error."""
    defined = values[~values.isnan()]
    if not len(defined):
        return Reading(name, None, meaning="no query has a relevant document")
    error = float(defined.std()) / math.sqrt(len(defined)) if len(defined) > 1 else None
    return Reading(name, float(defined.mean()), error, range=(0.0, 1.0), meaning=meaning)


def scores_of(ranks: Ranks, *, k: int) -> dict[str, Tensor]:
    """Return the scores of each query, NaN where it has no relevant document."""
    scores = {
        "map": average_precision(ranks),
        "ndcg": ndcg(ranks, k=k),
        "mrr": reciprocal_rank(ranks),
        "recall": recall(ranks, k=k),
        "hit_rate": hit_rate(ranks, k=k),
    }
    return {name: torch.where(ranks.has_any, values, torch.nan) for name, values in scores.items()}


def average_precision(ranks: Ranks) -> Tensor:
    """(m,) mean precision at the ranks of the relevant documents."""
    used = ranks.tied > 0
    s, t = ranks.above, ranks.tied.clamp(min=1)
    before, r = _relevant_before_and_beside(ranks)
    inverse = torch.where(t == 1, 1 / (s + 1), torch.digamma(s + t + 1) - torch.digamma(s + 1))  # Σ 1/i
    rise = torch.where(t > 1, (r - 1) / (t - 1).clamp(min=1), 0.0)
    precision = ((before + 1) * inverse + rise * (t - (s + 1) * inverse)) / t
    return (precision * used).sum(dim=1) / used.sum(dim=1).clamp(min=1)


def ndcg(ranks: Ranks, *, k: int) -> Tensor:
    """(m,) Σ gain/log₂(1 + rank) over the first k, divided by that of the best order."""
    discounts = 1 / torch.log2(torch.arange(2, k + 2, dtype=torch.float64, device=ranks.gains.device))
    sums = torch.cat([discounts.new_zeros(1), discounts.cumsum(0)])
    first, last = (places.clamp(max=k).long() for places in (ranks.above, ranks.above + ranks.tied))
    gained = (ranks.gains * (sums[last] - sums[first]) / ranks.tied.clamp(min=1)).sum(dim=1)
    best = ranks.gains.sort(dim=1, descending=True).values[:, :k]
    ideal = (best * discounts[: best.shape[1]]).sum(dim=1)
    return gained / ideal.clamp(min=torch.finfo(torch.float64).tiny)


def recall(ranks: Ranks, *, k: int) -> Tensor:
    """(m,) the share of the relevant documents that are among the first k."""
    inside = (k - ranks.above).clamp(min=0).minimum(ranks.tied) / ranks.tied.clamp(min=1)
    return inside.sum(dim=1) / (ranks.tied > 0).sum(dim=1).clamp(min=1)


def reciprocal_rank(ranks: Ranks) -> Tensor:
    """(m,) one over the rank of the first relevant document.

    With t tied documents, r of them relevant, the first is the j-th with chance C(t − j, r − 1)/C(t, r).
    """
    s, t, r = _first(ranks)
    result = 1 / (s + 1)
    for query in ((t > 1) & (r < t)).nonzero().flatten().tolist():
        n, relevant = int(t[query]), int(r[query])
        j = torch.arange(1, n - relevant + 2, dtype=torch.float64)
        chances = (_log_choose(n - j, relevant - 1) - _log_choose(torch.tensor(float(n)), relevant)).exp()
        result[query] = float((chances / (float(s[query]) + j)).sum())
    return result


def hit_rate(ranks: Ranks, *, k: int) -> Tensor:
    """(m,) the chance that a relevant document is among the first k: 0 or 1, but for ties at their end."""
    s, t, r = _first(ranks)
    places = (k - s).clamp(min=0).minimum(t)
    missed = (_log_choose(t - r, places) - _log_choose(t, places)).exp()
    return torch.where(places > t - r, 1.0, 1 - missed)


def _log_choose(n: Tensor, k: Tensor | float) -> Tensor:
    return (
        torch.lgamma(n + 1) - torch.lgamma(torch.as_tensor(k + 1.0)) - torch.lgamma((n - k + 1).clamp(min=1))
    )


def _relevant_before_and_beside(ranks: Ranks) -> tuple[Tensor, Tensor]:
    """(m, r) the relevant documents before each one, and those that share its similarity, itself included.

    The relevant documents of a query ascend by similarity, so that those before stand to the right.
    """
    used = ranks.tied > 0
    keys = torch.where(used, -ranks.above, torch.inf)  # ascending
    left = torch.searchsorted(keys.contiguous(), keys.contiguous())
    right = torch.searchsorted(keys.contiguous(), keys.contiguous(), right=True)
    return (used.sum(dim=1, keepdim=True) - right).double(), (right - left).double()


def _first(ranks: Ranks) -> tuple[Tensor, Tensor, Tensor]:
    """(m,) of the first relevant document: those before it, those tied with it, and the relevant of these."""
    _, beside = _relevant_before_and_beside(ranks)
    place = ((ranks.tied > 0).sum(dim=1) - 1).clamp(min=0)[:, None]
    return tuple(part.gather(1, place).squeeze(1) for part in (ranks.above, ranks.tied.clamp(min=1), beside))  # type: ignore[return-value]
