"""`audit`: what is broken in the vectors of an index, with the rows that are."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from isoscope.audit.evidence import Settings, gather
from isoscope.audit.findings import Words, findings_of
from isoscope.audit.finite import Finite
from isoscope.audit.result import Audit
from isoscope.comparison.gates import Gate, parse_condition
from isoscope.engine.inputs import as_input
from isoscope.engine.source import Source
from isoscope.errors import InputError, check_between, check_seed, check_whole
from isoscope.io.sources import row_values
from isoscope.look.next_steps import NextSteps
from isoscope.metrics.thresholds import AUDIT_THRESHOLDS
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.queries import as_queries
from isoscope.queries.opened import check_no_relevance
from isoscope.unchecked import unchecked

MAX_ROWS = 20_000  # rows that are all searched; of more, a quarter of so many
CUDA_MAX_ROWS = 2_000_000
K = 10
NEAR = 0.99


def audit(
    X: Any,
    *,
    queries: Any = None,
    relevance: Any = None,
    ids: str | None = None,
    texts: Any = None,
    neighbors: Any = None,
    k: int = K,
    near: float = NEAR,
    max_rows: int | None = None,
    fail_on: str | Sequence[str] = (),
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
    steps: NextSteps | None = None,
) -> Audit:
    """Audit the vectors of an index: what is broken, how much of it, and which rows.

    Rows that are not finite, zero or padded, odd lengths, constant dimensions, copies and outliers are found
    among all rows. Neighbours are those by cosine: of all rows up to `max_rows`, else of a random sample
    among all rows, with intervals. Rows with NaN are reported and left out of the rest.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, or an opened file.
        queries: (m, d) queries, as any source. Hubs and rows never retrieved are then those of the queries.
        relevance: what is relevant to each query, as `isoscope.queries.as_queries` takes it.
        ids: the column that the pairs of the relevance name.
        texts: the text of each row: a column of X, a file, or the texts. They are shown beside the rows.
        neighbors: (n, j) rows that an index returned for each row (or each query), or a .npy file of them.
        k: how many neighbours.
        near: the cosine from which on rows are near duplicates, in a space whose random rows have cosine 0.
        max_rows: how many rows are all searched; of more, a quarter of so many are searched for. By default
            20,000 on the CPU and 2,000,000 on a CUDA device.
        fail_on: conditions such as "duplicates>1%" that `passed` and the exit code of the command test.
        seed: of the sample.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several.
        device: the device to compute on, such as "cuda"; by default that of the vectors.
        steps: writes what to try next; by default for X as it was passed.

    Returns:
        An Audit: print it, or take `findings`, `rows()`, `to_dict()`, `to_json()`, `to_pandas()`.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 16))
    >>> X[7] = X[3]
    >>> audit(X)["duplicates"].listed["groups"]
    [[3, 7]]
    """
    began = time.perf_counter()
    check_seed(seed)
    check_between("near", near, 0, 1, wanted="a cosine above 0 and at most 1", open_at="low")
    conditions = [_condition(text) for text in ([fail_on] if isinstance(fail_on, str) else fail_on)]
    if queries is None:
        check_no_relevance(relevance, ids)
    apart = [texts] if isinstance(texts, str) else []
    with unchecked():
        opened = as_input(X, vectors=vectors, device=device, apart=apart)
    source = Finite(opened.source)
    if max_rows is None:
        max_rows = CUDA_MAX_ROWS if source.device.type == "cuda" else MAX_ROWS
    settings = Settings(
        k=check_whole("k", k),
        max_rows=check_whole("max_rows", max_rows, least=8),
        near=near,
        seed=seed,
        neighbors=neighbors,
    )
    known = None if texts is None else row_values(opened.source, texts, "texts")
    asked = None if queries is None else as_queries(queries, opened.source, relevance=relevance, ids=ids)
    _check_texts(known, source.n_rows)
    if source.n_rows is not None and k > max(K, source.n_rows - 1):
        raise InputError(argument="k", got=k, wanted=f"below the {source.n_rows:,} rows")
    with Bar(show=progress) as bar:
        evidence = gather(source, asked, settings, bar)
    _check_texts(known, evidence.n)
    words = Words(
        steps or _steps(X, vectors),
        _texts(_own_texts(opened.source) if known is None else known),
        _texts(None if asked is None else asked.texts),
    )
    findings = findings_of(evidence, words)
    values = {finding.name: finding.reading.value for finding in findings}
    n_found = evidence.n if evidence.found is None else len(evidence.found)
    is_sampled = evidence.found is not None and evidence.found.is_sampled
    return Audit(
        findings=findings,
        name=source.name and printable(source.name),
        n=evidence.n,
        d=evidence.d,
        n_sampled=n_found if is_sampled else evidence.n,
        n_queries=None if asked is None else len(asked),
        retrieval=evidence.retrieval,
        gates=tuple(gate.tested(values.get(gate.name)) for gate in conditions),
        dtype=_dtype(source),
        notes=tuple(map(printable, (*opened.notes, *source.notes))),
        seed=seed,
        seconds=time.perf_counter() - began,
        texts_of=words.texts,
    )


def _check_texts(texts: Sequence[str] | None, n_rows: int | None) -> None:
    """Raise InputError unless there is a text for each row, as far as their number is known."""
    if texts is not None and n_rows is not None and len(texts) != n_rows:
        raise InputError(
            f"has {len(texts):,} entries", argument="texts", wanted=f"one for each of {n_rows:,} rows"
        )


def _condition(text: str) -> Gate:
    return parse_condition(text, AUDIT_THRESHOLDS, argument="fail_on", such_as="duplicates>1%")


def _dtype(source: Source) -> str:
    first = next(iter(source.blocks(1)))
    return str(first.vectors.dtype).removeprefix("torch.")


def _own_texts(source: Source) -> Sequence[str] | None:
    return source.column("texts") if "texts" in source.columns else None


def _texts(known: Sequence[str] | None) -> Any:
    """Return a function from rows to their texts."""
    return lambda rows: () if known is None else [str(known[row]) for row in rows]


def _steps(X: Any, vectors: str | None) -> NextSteps:
    """Return commands where X is a path, else Python."""
    if isinstance(X, str | os.PathLike):
        return NextSteps((os.fspath(X), *(() if vectors is None else ("--vectors", vectors))))
    return NextSteps()
