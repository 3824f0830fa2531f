"""`Relevance`: which documents are relevant to which query, in compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError
from isoscope.labels import as_labels


@dataclass(frozen=True, eq=False)
class Relevance:
    """Lists of documents, and which list each query has: queries of one label share a list.

    Attributes:
        lists: (m,) int64, the list of each query; −1 for a query without any relevant document.
        starts: (l + 1,) int64, where each list begins in `rows`.
        rows: int64, the documents' rows, ascending within a list.
        gains: float64, how relevant each of them is, above 0; 1 where the caller does not say.
        n_documents: how many documents there are.

    >>> Relevance.of_labels(["a", "b", "c"], ["b", "a", "b"]).of_query(1).tolist()
    [0, 2]
    """

    lists: Tensor
    starts: Tensor
    rows: Tensor
    gains: Tensor
    n_documents: int

    def __len__(self) -> int:
        return len(self.lists)

    @classmethod
    def of_labels(cls, queries: Sequence[Any], documents: Sequence[Any]) -> Relevance:
        """Return the relevance where a document is relevant to the queries that have its label.

        Identifiers are labels too: a query that names one document has its identifier as the label.

        Args:
            queries, documents: the label of each query and of each document.
        """
        n = len(documents)
        codes = as_labels([*documents, *queries], name="relevance").codes.cpu()
        of_documents, of_queries = codes[:n], codes[n:]
        sizes = torch.bincount(of_documents, minlength=int(codes.max()) + 1)
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        rows = of_documents.argsort(stable=True)
        lists = torch.where(sizes[of_queries] > 0, of_queries, -1)
        return cls(lists, starts, rows, torch.ones(n, dtype=torch.float64), n)._checked("no label in common")

    @classmethod
    def of_pairs(cls, pairs: Any, *, n_queries: int, n_documents: int) -> Relevance:
        """Return the relevance of (query row, document row) pairs, or triples with a gain; 0 is not relevant.

        >>> Relevance.of_pairs([(0, 2), (0, 1), (1, 0)], n_queries=2, n_documents=3).of_query(0).tolist()
        [1, 2]
        """
        try:
            table = np.asarray(pairs, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                argument="relevance",
                got=pairs,
                wanted="(query row, document row) pairs of numbers, counted from 0",
                hint="name rows by identifiers with Relevance.of_ids",
            ) from None
        if table.ndim != 2 or table.shape[1] not in (2, 3):
            raise ShapeError(
                argument="relevance",
                got=table.shape,
                wanted="of shape (p, 2) or (p, 3): the row of a query, the row of a document, and a gain",
            )
        for column, (what, n) in enumerate((("query", n_queries), ("document", n_documents))):
            rows = table[:, column]
            bad = ~((rows == np.floor(rows)) & (rows >= 0) & (rows < n))
            if bad.any():
                at = int(bad.argmax())
                raise InputError(
                    f"names the {what} {rows[at]:g} in pair {at}",
                    argument="relevance",
                    wanted=f"a row from 0 to {n - 1:,}",
                )
        gains = table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
        if not np.isfinite(gains).all() or (gains < 0).any():
            raise InputError("has a gain that is negative or not finite", argument="relevance")
        keys = (table[:, 0] * n_documents + table[:, 1]).astype(np.int64)[gains > 0]
        keys, first = np.unique(keys, return_index=True)
        sizes = torch.from_numpy(np.bincount(keys // n_documents, minlength=n_queries))
        lists = torch.where(sizes > 0, torch.arange(n_queries), -1)
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        relevant, kept = torch.from_numpy(keys % n_documents), torch.from_numpy(gains[gains > 0][first])
        return cls(lists, starts, relevant, kept, n_documents)._checked("no pair with a gain above 0")

    @classmethod
    def of_ids(
        cls,
        queries: Sequence[Any],
        documents: Sequence[Any],
        *,
        query_ids: Sequence[Any],
        document_ids: Sequence[Any],
        gains: Sequence[float] | None = None,
    ) -> Relevance:
        """Return the relevance of pairs of identifiers; those that name no row are left out.

        Args:
            queries, documents: the identifiers of each pair.
            query_ids, document_ids: the identifier of each row.
            gains: of each pair.
        """
        of_query, of_document = (
            {str(name): row for row, name in enumerate(names)} for names in (query_ids, document_ids)
        )
        values = [1.0] * len(queries) if gains is None else gains
        pairs = [
            (of_query[str(a)], of_document[str(b)], gain)
            for a, b, gain in zip(queries, documents, values, strict=True)
            if str(a) in of_query and str(b) in of_document
        ]
        if not pairs:
            raise InputError(
                f"names no query and document of these: its first pair is {queries[0]!s:.40} and "
                f"{documents[0]!s:.40}",
                argument="relevance",
                wanted=f"identifiers such as {query_ids[0]!s:.40} and {document_ids[0]!s:.40}",
            )
        return cls.of_pairs(pairs, n_queries=len(query_ids), n_documents=len(document_ids))

    def of_query(self, query: int) -> Tensor:
        """Return the rows of the documents that are relevant to a query."""
        place = int(self.lists[query])
        return self.rows[self._span(place)] if place >= 0 else self.rows[:0]

    def some(self, queries: Tensor) -> Relevance:
        """Return the relevance of some of the queries, by their rows."""
        return replace(self, lists=self.lists[queries])

    def among(self, rows: Tensor) -> Relevance:
        """Return the relevance where only these documents are searched, in this order.

        >>> Relevance.of_labels(["a", "b"], ["b", "a", "b"]).among(torch.tensor([2, 1])).of_query(1).tolist()
        [0]
        """
        place = torch.full((self.n_documents,), -1, dtype=torch.int64)
        place[rows] = torch.arange(len(rows))
        of_list = torch.repeat_interleave(torch.arange(len(self.starts) - 1), self.starts.diff())
        kept = (place[self.rows] >= 0).nonzero().flatten()
        kept = kept[(of_list[kept] * len(rows) + place[self.rows[kept]]).argsort()]
        sizes = torch.bincount(of_list[kept], minlength=len(self.starts) - 1)
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        lists = torch.where((self.lists >= 0) & (sizes[self.lists] > 0), self.lists, -1)
        return Relevance(lists, starts, place[self.rows[kept]], self.gains[kept], len(rows))

    @property
    def n_relevant(self) -> Tensor:
        """(m,) how many documents are relevant to each query."""
        sizes = torch.cat([self.starts.diff(), self.starts.new_zeros(1)])
        return sizes[self.lists]

    def padded(self) -> tuple[Tensor, Tensor]:
        """(m, r) the relevant documents of each query, then −1; and their gains, then 0."""
        sizes = self.n_relevant
        places = torch.arange(int(sizes.max()) if len(sizes) else 0)
        used = places < sizes[:, None]
        at = torch.where(used, self.starts[self.lists.clamp(min=0)][:, None] + places, 0)
        return torch.where(used, self.rows[at], -1), torch.where(used, self.gains[at], 0.0)

    def _span(self, place: int) -> slice:
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    def _checked(self, missing: str) -> Relevance:
        if not bool((self.lists >= 0).any()):
            raise InputError(
                f"has {missing}", argument="relevance", wanted="a relevant document for at least one query"
            )
        return self
