"""`compress`: methods of compression tried on the caller's vectors, by what a search still finds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from isoscope.advice.pairs import as_pairs, as_rows
from isoscope.compression.methods import Codec, chosen_methods
from isoscope.compression.recalls import Share, difference
from isoscope.compression.result import Compressed, Compression
from isoscope.compression.search import Candidates
from isoscope.compression.tasks import LabelTask, PairTask, RelevanceTask
from isoscope.compression.trial import MAX_FIT, MAX_QUERIES, Trial, search
from isoscope.corrections import Correction
from isoscope.engine.inputs import as_input
from isoscope.engine.source import Source
from isoscope.errors import InputError, check_choice, check_seed, check_share, check_whole
from isoscope.io.pair_files import FilePairs
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.queries.opened import as_queries
from isoscope.statistics.neighbors import METRICS


def compress(
    X: Any,
    *,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    queries: Any = None,
    relevance: Any = None,
    labels: Any = None,
    pairs: Any = None,
    k: int = 10,
    target: float = 0.95,
    oversample: int = 4,
    metric: str = "cosine",
    max_queries: int = MAX_QUERIES,
    max_fit: int = MAX_FIT,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> Compression:
    """Try methods of compression, and find the fewest bytes a vector that still find its neighbours.

    For each method the recall is the share of the k exact nearest rows that a search in the compressed rows
    returns, as a mean over queries with its 95 % interval, and as what all but 5 % of the queries reach. A
    row as near as the k-th exact neighbour counts as found. The recall with rescoring is that of the best k
    by exact distance among `oversample`·k rows from the search. Quantizers are fitted on other rows than the
    queries, and the queries are not among the rows that are searched. The rows are read in blocks, twice.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, or an opened file.
        methods: names such as "int8", "center+binary" or "pca:128+int8", or corrections by name; by default
            a list that fits d.
        queries: vectors to search for, in any form that X can have; by default rows drawn at random.
        relevance: which rows are relevant to which query, as `as_queries` takes it; then each method also
            has nDCG@k.
        labels: one label for each row, or the name of a column; then each method also has the share of the k
            returned rows with the label of the query.
        pairs: (row, row, score) triples; then each method also has Spearman's correlation of the cosines of
            pairs with the scores.
        k: the number of neighbours.
        target: the recall that a method must hold: the lower end of its interval reaches it.
        oversample: how many times k rows are rescored.
        metric: "cosine" or "euclidean".
        max_queries: the most queries; more are sampled at random.
        max_fit: the most rows to fit quantizers on, drawn at random.
        seed: the seed of samples, rotations and k-means.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several.
        device: the device to compute on, such as "cuda"; by default that of the vectors.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(2000, 16))
    >>> result = compress(X, methods=["int8", "binary"])
    >>> result.chosen.method, result.chosen.n_bytes
    ('int8', 16)
    """
    began = time.perf_counter()
    check_seed(seed)
    check_choice("metric", metric, METRICS)
    check_share("target", target)
    for name, value in {"k": k, "oversample": oversample, "max_queries": max_queries}.items():
        check_whole(name, value)
    check_whole("max_fit", max_fit, least=2)
    tasks = {"labels": labels, "pairs": pairs, "relevance": relevance}
    if len(given := [name for name, value in tasks.items() if value is not None]) > 1:
        raise InputError(f"cannot be combined with `{given[0]}`", argument=given[1], hint="leave one out")
    if labels is not None and queries is not None:
        raise InputError(
            "cannot be combined with `queries`, whose labels are not known",
            argument="labels",
            hint="pass relevance to score what queries find",
        )
    if relevance is not None and queries is None:
        raise InputError("needs queries, which are missing", argument="relevance")
    source = as_input(X, {"labels": labels}, vectors=vectors, device=device).source
    if source.weights is not None:
        raise InputError("has weights, and a search counts every row once", argument="X")
    with Bar(show=progress) as bar:
        bar.step("sampling rows")
        asked = None if queries is None else as_queries(queries, source, relevance=relevance)
        trial = Trial.of(
            source, asked, k=k, metric=metric, max_queries=max_queries, max_fit=max_fit, seed=seed
        )
        scored = None if pairs is None else as_pairs(as_rows(pairs, _texts(source, pairs)), n=trial.n)
        tried = chosen_methods(
            methods, n_dims=source.n_dims, n_fit=len(trial.fit), cosine=metric == "cosine", seed=seed
        )
        fitted, refused = _fitted(tried, trial.fit, bar)
        codecs = {name: Codec.of(chain) for name, chain in fitted.items()}
        bar.step("searching")
        wanted = torch.empty(0, dtype=torch.int64) if scored is None else scored.rows
        found = search(source, trial, codecs, k=k, c=k * oversample, wanted=wanted, bar=bar)
    task: Any = None
    if scored is not None:
        task = PairTask(scored, wanted, found.wanted, fitted)
    elif trial.relevance is not None:
        task = RelevanceTask(trial.relevance, found, k)
    elif trial.codes is not None:
        task = LabelTask(trial, found, k)
    exact_score = task and task.exact()
    rows = [
        _compressed(name, codec, found.candidates[name], found.reach, k, task, exact_score)
        for name, codec in codecs.items()
    ]
    rows.sort(key=lambda row: -(row.n_bytes or 0))
    return Compression(
        name=source.name and printable(source.name),
        n=trial.n,
        d=source.n_dims,
        k=k,
        target=target,
        oversample=oversample,
        metric=metric,
        n_queries=len(trial.queries.rows),
        n_fit=len(trial.fit),
        methods=(*rows, *(Compressed(name, reason=reason) for name, reason in refused.items())),
        score_name=task and task.name,
        exact_score=None if exact_score is None else float(exact_score.mean()),
        notes=tuple(trial.notes),
        seed=seed,
        seconds=time.perf_counter() - began,
        fitted=fitted,
    )


def _texts(source: Source, pairs: Any) -> Sequence[str] | None:
    """Return the texts of the rows, which are read only where pairs are in a file."""
    return source.load().texts if isinstance(pairs, str | os.PathLike | FilePairs) else None


def _fitted(
    tried: Mapping[str, Correction], rows: Tensor, bar: Bar
) -> tuple[dict[str, Correction], dict[str, str]]:
    """Return the corrections that could be fitted, and the reasons of the others; raise if none could."""
    fitted: dict[str, Correction] = {}
    refused: dict[str, str] = {}
    for name, correction in tried.items():
        bar.step(f"fitting {name}")
        try:
            fitted[name] = correction.fit(rows)
        except InputError as error:
            refused[name] = error.problem
            if len(refused) == len(tried):
                raise
    return fitted, refused


def _compressed(
    name: str,
    codec: Codec,
    candidates: Candidates,
    reach: Tensor,
    k: int,
    task: Any,
    exact_score: Tensor | None,
) -> Compressed:
    first = candidates.first(k)
    row = Compressed(
        method=name,
        n_bytes=codec.n_bytes,
        recall=Share.of(first.recall(reach)),
        rescored=Share.of(candidates.rescored().first(k).recall(reach)),
    )
    if task is None or exact_score is None:
        return row
    scores = task.score(name, first)
    return replace(row, score=float(scores.mean()), score_change=difference(scores, exact_score))
