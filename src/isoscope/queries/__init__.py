"""Queries beside documents, and what is relevant to each.

as_queries(queries, documents, relevance=…)     vectors of queries and their relevance -> Queries
Relevance.of_labels, of_pairs, of_ids           which documents are relevant to which query
retrieval(X, queries, relevance)                MAP, nDCG, MRR, recall and hit rate -> Retrieval
"""

from __future__ import annotations

from isoscope.queries.opened import Queries, as_queries
from isoscope.queries.relevance import Relevance
from isoscope.queries.retrieval import Retrieval, retrieval

__all__ = ["Queries", "Relevance", "Retrieval", "as_queries", "retrieval"]
