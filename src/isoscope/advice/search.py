"""The task search: queries against all documents, both corrected by what was fitted on the documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from isoscope.advice.candidates import NONE
from isoscope.advice.trials import corrected, drawn
from isoscope.errors import InputError
from isoscope.progress import Bar
from isoscope.queries import Queries
from isoscope.queries.retrieval import retrieval_of
from isoscope.space import Space

LEAST_QUERIES = 20


def try_search(
    documents: Tensor,
    queries: Queries,
    *,
    corrections: Mapping[str, Any],
    max_queries: int,
    seed: int = 0,
    bar: Bar | None = None,
) -> dict[str, list[float] | str]:
    """Return the average precision of each query after every correction and none, or why there is none.

    Nothing is held out: a correction is fitted on all documents, as it would be for the index, and neither
    sees the queries nor what is relevant to them. The corrected queries search all corrected documents.
    """
    asked = _some(queries, max_queries, seed)
    candidates = {NONE: None, **corrections}
    scores: dict[str, list[float] | str] = {}
    for place, (name, correction) in enumerate(candidates.items()):
        if bar:
            bar.step(f"{name}, search")
            bar.share(place / len(candidates))
        try:
            index, vectors = corrected(correction, documents, [documents, asked.vectors.cpu()])
        except ValueError as error:
            scores[name] = getattr(error, "problem", str(error))
            continue
        found = retrieval_of(Space(index), Queries(vectors, asked.relevance))
        scores[name] = found.scores["map"].tolist()
    return scores


def _some(queries: Queries, most: int, seed: int) -> Queries:
    """Return at most so many of the queries that have a relevant document."""
    assert queries.relevance is not None
    answered = (queries.relevance.n_relevant > 0).nonzero().flatten()
    if len(answered) < LEAST_QUERIES:
        raise InputError(
            f"has {len(answered)} queries with a relevant document",
            argument="queries",
            wanted=f"at least {LEAST_QUERIES}",
        )
    rows = answered[drawn(len(answered), most, seed)]
    return Queries(queries.vectors[rows], queries.relevance.some(rows))
