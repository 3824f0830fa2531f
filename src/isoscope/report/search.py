"""The queries of a page: the cosines that unrelated documents reach with them, and what they find."""

from __future__ import annotations

from typing import Any

from isoscope.engine.readings import Reading
from isoscope.errors import UndefinedError
from isoscope.matching.pair_cosines import PairCosines
from isoscope.matching.result import CosineOfRate, MatchThreshold
from isoscope.matching.threshold import threshold
from isoscope.metrics.two_samples import mean_shift
from isoscope.queries import Queries
from isoscope.queries.retrieval import retrieval_of
from isoscope.results import plain
from isoscope.space import Space

_RATES = {"one_percent": 0.01, "one_permille": 0.001}


def search(space: Space, queries: Queries, cosines: PairCosines | None, *, seed: int) -> dict[str, Any]:
    """Return the section of the queries.

    Args:
        space: the documents.
        queries: the queries, with what is relevant to each where that is known.
        cosines: of pairs of documents, whose thresholds are shown beside those of queries.
        seed: of everything that is sampled.
    """
    found = threshold(space, queries=queries, rates=list(_RATES.values()), seed=seed, progress=False)
    by_rate = {one.rate: one for one in found.by_rate}
    has_relevance = queries.relevance is not None
    readings = [*retrieval_of(space, queries).readings] if has_relevance else []
    return {
        "n_queries": len(queries),
        "n_documents": len(space),
        "n_pairs": found.n_random_pairs,
        "has_relevance": has_relevance,
        "thresholds": [
            {"name": name, **_threshold(found, by_rate[rate], cosines)}
            for name, rate in _RATES.items()
            if rate in by_rate and by_rate[rate].cosine is not None
        ],
        "figures": [
            {"name": one.metric, "value": one.value, "interval": plain(one.interval), "meaning": one.meaning}
            for one in [*readings, _gap(space, queries)]
            if one.value is not None
        ],
    }


def _threshold(found: MatchThreshold, one: CosineOfRate, cosines: PairCosines | None) -> dict[str, Any]:
    """Return the cosine of a rate with queries, and the rate at the cosine that two documents have at it."""
    documents = None if cosines is None or not cosines.knows(one.rate) else cosines.threshold(one.rate)
    there = None if documents is None else found.rate(documents)
    return {
        "rate": one.rate,
        "cosine": one.cosine,
        "interval": plain(one.interval),
        "found": one.found,
        "found_interval": plain(one.found_interval),
        "documents": documents,
        "rate_there": None if there is None else there.value,
    }


def _gap(space: Space, queries: Queries) -> Reading:
    meaning = "of the variance lies between the mean of the queries and that of the documents"
    try:
        value, error = mean_shift(queries.vectors.to(space.vectors), space.vectors)
    except UndefinedError as undefined:
        return Reading("gap", None, meaning=undefined.problem)
    return Reading("gap", value, error, range=(-1.0, 1.0), meaning=meaning)
