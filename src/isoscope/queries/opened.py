"""`as_queries`: the queries that a caller passes, with what is relevant to each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from isoscope.engine.inputs import as_input
from isoscope.engine.source import Source
from isoscope.errors import FileError, InputError, Setting, ShapeError
from isoscope.io.label_files import split_column
from isoscope.io.pair_files import read_relevant_pairs
from isoscope.measurement import Measurement
from isoscope.printable import listed
from isoscope.queries.relevance import Relevance
from isoscope.space import Space


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries beside documents.

    Attributes:
        vectors: (m, d) vectors.
        relevance: which documents are relevant to which; None where that is not known.
        texts: the text of each query, or None.
        own: (m,) the row of the document that each query is, which a search leaves out; −1 for none, and None
            where no query is a document.
        name: what to call them in messages.
    """

    vectors: Tensor
    relevance: Relevance | None = None
    texts: Sequence[str] | None = None
    own: Tensor | None = None
    name: str = "queries"

    def __len__(self) -> int:
        return len(self.vectors)


def as_queries(
    queries: Any,
    documents: Source,
    *,
    relevance: Any = None,
    ids: str | None = None,
    needed: bool = False,
) -> Queries:
    """Return queries with what is relevant to each; Queries pass through, if they fit the documents.

    Args:
        queries: (m, d) vectors as any source: an array, a path, a data frame, a Space.
        documents: the source that is searched.
        relevance: which documents are relevant. The name of a column that queries and documents have: a
            document is relevant to a query with the same value. "a=b": the value in the column a of the
            queries is that in the column b of the documents. The path of a file of pairs (columns such as
            query and document, and perhaps a score): rows counted from 0, or identifiers with `ids`. (p, 2)
            or (p, 3) rows of queries and documents, and gains. Or a Relevance.
        ids: the column of queries and documents that the pairs in a file name, or "a=b".
        needed: whether the relevance must be known.

    Raises:
        InputError: queries and documents differ in their dimensions, or the relevance in its rows.
    """
    if isinstance(queries, Queries):
        if needed and queries.relevance is None:
            raise _no_relevance()
        _check_dims(int(queries.vectors.shape[1]), documents)
        if queries.relevance is not None:
            _check(queries.relevance, len(queries), documents)
        return queries
    by_name = isinstance(relevance, str | os.PathLike)
    sides = _sides(os.fspath(relevance)) if by_name and not _is_pairs(relevance) else None
    opened = as_input(queries, apart=[side[0] for side in columns_of(relevance, ids)]).source
    space = opened.load()
    _check_dims(space.n_dims, documents)
    if relevance is None and needed:
        raise _no_relevance()
    known: Relevance | None = None
    if isinstance(relevance, Relevance):
        known = relevance
    elif sides is not None:
        known = Relevance.of_labels(_column(opened, sides[0]), _column(documents, sides[1]))
    elif by_name:
        known = _of_file(os.fspath(relevance), opened, documents, ids)
    elif relevance is not None:
        known = Relevance.of_pairs(relevance, n_queries=len(space), n_documents=_count(documents))
    if known is not None:
        _check(known, len(space), documents)
    return Queries(space.vectors.detach(), known, space.texts, name=opened.title)


def queries_beside(
    X: Any,
    queries: Any,
    space: Space,
    *,
    relevance: Any = None,
    ids: str | None = None,
    needed: bool = False,
    vectors: str | None = None,
    apart: Sequence[str] = (),
) -> Queries | None:
    """Return the queries of X, of which the rows are loaded already; None where there are none.

    Args:
        X: what the caller passed as documents; columns that the relevance names are read from it.
        queries, relevance, ids, needed: as `as_queries` takes them.
        space: the rows of X.
        vectors, apart: how X was read.
    """
    if queries is None:
        check_no_relevance(relevance, ids)
        return None
    has_columns = columns_of(relevance, ids) and not isinstance(X, Measurement)
    documents = as_input(X, vectors=vectors, apart=apart).source if has_columns else space
    return as_queries(queries, documents, relevance=relevance, ids=ids, needed=needed)


def check_no_relevance(relevance: Any, ids: str | None) -> None:
    """Raise InputError where a relevance is given and queries are not."""
    for name, value in (("relevance", relevance), ("ids", ids)):
        if value is not None:
            raise InputError("needs queries", argument=name, hint=Setting("queries"))


def columns_of(relevance: Any, ids: str | None) -> list[tuple[str, str]]:
    """Return the columns of queries and documents that the relevance and `ids` name."""
    named = isinstance(relevance, str | os.PathLike) and not _is_pairs(relevance)
    return [_sides(os.fspath(name)) for name in (relevance if named else None, ids) if name]


def _sides(name: str) -> tuple[str, str]:
    """Return the column of the queries and that of the documents.

    >>> _sides("topic"), _sides("answer=id")
    (('topic', 'topic'), ('answer', 'id'))
    """
    first, _, second = name.partition("=")
    return first.strip(), (second or first).strip()


def _is_pairs(relevance: Any) -> bool:
    return isinstance(relevance, Path) or split_column(os.fspath(relevance))[0].is_file()


def _of_file(path: str, queries: Source, documents: Source, ids: str | None) -> Relevance:
    pairs = read_relevant_pairs(path)
    if ids is not None:
        a, b = _sides(ids)
        names = {"query_ids": _column(queries, a), "document_ids": _column(documents, b)}
        return Relevance.of_ids(pairs.firsts, pairs.seconds, gains=pairs.scores, **names)
    if not pairs.are_rows:
        raise FileError(
            f"{path} names {pairs.firsts[0]!s:.40} and {pairs.seconds[0]!s:.40}",
            wanted="rows, counted from 0",
            hint="name the column of identifiers that queries and documents have, with ids",
        )
    rows = list(zip(pairs.firsts, pairs.seconds, pairs.scores, strict=True))
    return Relevance.of_pairs(rows, n_queries=len(queries.load()), n_documents=_count(documents))


def _column(source: Source, name: str) -> Sequence[Any]:
    if name not in source.columns:
        raise InputError(
            f"names {name!r}; the columns of {source.title} are {listed(source.columns) or 'none'}",
            argument="relevance",
            wanted="a column that queries and documents have, or a file of pairs",
            hint='where they are called differently, "a=b": a of the queries, b of the documents',
        )
    return source.column(name)


def _no_relevance() -> InputError:
    return InputError(
        "is missing",
        argument="relevance",
        wanted="a column that queries and documents share, or a file of pairs",
    )


def _count(documents: Source) -> int:
    return sum(map(len, documents.blocks())) if documents.n_rows is None else documents.n_rows


def _check_dims(n_dims: int, documents: Source) -> None:
    if n_dims != documents.n_dims:
        raise ShapeError(
            f"has {n_dims} dimensions",
            argument="queries",
            wanted=f"{documents.n_dims}, as the documents have",
            hint="encode both with the same model",
        )


def _check(relevance: Relevance, n_queries: int, documents: Source) -> None:
    if len(relevance) != n_queries:
        raise ShapeError(
            f"is of {len(relevance):,} queries", argument="relevance", wanted=f"one of {n_queries:,} queries"
        )
    n = _count(documents)
    if relevance.n_documents != n:
        raise ShapeError(
            f"is of {relevance.n_documents:,} documents", argument="relevance", wanted=f"one of {n:,}"
        )


def of_rows(space: Space, rows: Tensor, relevance: Relevance | None = None) -> Queries:
    """Return rows of the documents as queries, each of which leaves itself out."""
    texts = None if space.texts is None else [space.texts[row] for row in rows.tolist()]
    return Queries(space.vectors[rows], relevance, texts, own=rows)
