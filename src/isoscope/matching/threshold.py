"""`threshold`: from which cosine on two vectors count as a match."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoscope.advice.pairs import as_rows
from isoscope.engine.inputs import as_input
from isoscope.engine.source import Source
from isoscope.errors import InputError, ShapeError, check_seed, check_share, check_whole
from isoscope.io.pair_files import FilePairs
from isoscope.matching.guarantees import Guarantee, check_pairs
from isoscope.matching.pair_cosines import PairCosines
from isoscope.matching.result import CosineOfRate, MatchThreshold, RateOfCosine
from isoscope.matching.rows import rows_at
from isoscope.matching.search_pairs import SearchPairs
from isoscope.matching.tail import MOST_PAIRS, Tail
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.queries.opened import as_queries, check_no_relevance, columns_of
from isoscope.statistics.directions import unit_rows

RATES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_COSINES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_FEWEST_PAIRS = 20
PROMISES = ("precision", "false_match_rate")
_Pairs = tuple[NDArray[Any], ...]  # cosines, matches, and one or two rows of the source
_SHARED = 1.5  # pairs a row, from which a note says that pairs are not independent


def threshold(
    X: Any,
    *,
    queries: Any = None,
    relevance: Any = None,
    ids: str | None = None,
    labels: Any = None,
    pairs: Any = None,
    to: Any = None,
    by: Any = None,
    rates: Sequence[float] = RATES,
    precision: float = 0.95,
    false_match_rate: float = 0.01,
    confidence: float = 0.95,
    max_pairs: int = MOST_PAIRS,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> MatchThreshold:
    """Say from which cosine on two vectors count as a match, and what a threshold promises.

    Without labels: the share of random pairs with at least each cosine, which are false matches where hardly
    any two rows belong together. All pairs are counted, or those of rows drawn at random where there are too
    many. With labelled pairs: the lowest threshold whose precision is at least `precision`, and the lowest
    that at most `false_match_rate` of the other pairs reach, each promised with `confidence` for pairs like
    these, whatever their distribution (`precision_threshold`, `false_match_threshold`). With queries and
    what is relevant to them, random pairs are those that are not relevant, the share of the relevant rows
    above each cosine is given, and a promised precision is that of the row nearest to a query.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, or an opened file.
        queries: vectors that are compared with the rows of X: then random pairs are of a query and a row.
        relevance: which rows are relevant to a query, as `isoscope.queries.as_queries` takes it.
        ids: the column of X and of the queries that the pairs of the relevance name.
        labels: one label for each row, or the name of a column; rows with the same label match. Pairs are
            drawn so that no row is in two of them.
        pairs: (row, row, match) triples, or a file of them, where match is 1 or 0; with queries, the first
            row is that of a query.
        to: other vectors of the same rows, such as those of a new model: each cosine is translated into the
            one there that as many random pairs reach.
        by: a column, or values, that cut the rows: the guarantees are also given for pairs within each slice.
        rates: the false-match rates to give cosines for.
        precision, false_match_rate: what the thresholds promise.
        confidence: how often the promise holds, over draws of the pairs.
        max_pairs: the most random pairs to count.
        seed: the seed of everything drawn.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several.
        device: the device to compute on, such as "cuda"; by default that of the vectors.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 64))
    >>> found = threshold(X, rates=[0.01])
    >>> round(found.cosine(0.01), 2)
    0.29
    """
    began = time.perf_counter()
    check_seed(seed)
    check_whole("max_pairs", max_pairs)
    if not isinstance(rates, Iterable):
        raise InputError(argument="rates", got=rates, wanted="a list of false-match rates")
    shares = {"precision": precision, "false_match_rate": false_match_rate, "confidence": confidence}
    for name, value in [*shares.items(), *(("rates", rate) for rate in rates)]:
        check_share(name, value)
        if not 0 < value < 1:
            raise InputError(argument=name, got=value, wanted="between 0 and 1")
    if labels is not None and pairs is not None:
        raise InputError("cannot be combined with `labels`", argument="pairs", hint="leave one of them out")
    if queries is None:
        check_no_relevance(relevance, ids)
    elif relevance is not None and pairs is not None:
        raise InputError(
            "cannot be combined with `relevance`", argument="pairs", hint="leave one of them out"
        )
    apart = [side[1] for side in columns_of(relevance, ids)]
    opened = as_input(X, {"labels": labels}, by=by, vectors=vectors, device=device, apart=apart)
    source = opened.source
    asked = None if queries is None else as_queries(queries, source, relevance=relevance, ids=ids)
    relevant = None if asked is None or pairs is not None else asked.relevance
    given = source.labels if pairs is None else None
    if by is not None and pairs is None and given is None and relevant is None:
        raise InputError("needs labels, pairs or a relevance, which are missing", argument="by")
    notes: list[str] = []
    with Bar(show=progress) as bar:
        bar.step("random pairs")
        asking = None if asked is None else asked.vectors
        tail = Tail.of(source, asking, relevance=relevant, max_pairs=max_pairs, seed=seed, bar=bar)
        other = None
        if to is not None:
            bar.step("random pairs of the other vectors")
            other = _translated(to, source, asked is not None, max_pairs=max_pairs, seed=seed, bar=bar)
        bar.step("labelled pairs")
        searched = None
        known_pairs: dict[str, _Pairs] = {}
        if relevant is not None and asked is not None:
            searched = SearchPairs.of(source, asked, n_rows=relevant.n_documents, seed=seed)
            notes += _search_notes(searched)
            known_pairs = {kind: searched.labelled(kind) for kind in PROMISES}
        elif (chosen := _labelled(source, asking, pairs, given, seed, notes)) is not None:
            known_pairs = dict.fromkeys(PROMISES, chosen)
        targets = {"precision": precision, "false_match_rate": false_match_rate}
        guarantees = _guarantees(
            known_pairs, targets, opened.by, source, notes, confidence=confidence, seed=seed
        )
        best = None
        if given is not None and asked is None:
            best = PairCosines.of(source.load(), given, seed=seed).best()
    if not tail.is_population and asked is None:
        notes.append(
            f"random pairs are those of {tail.share:.3g} of the rows, drawn at random, with all others"
        )
    known = [rate for rate in sorted(rates, reverse=True) if tail.knows(rate)]
    if few := [rate for rate in rates if not tail.knows(rate)]:
        notes.append(f"{tail.n_pairs:,} random pairs are too few for rates of {min(few):g}")
    return MatchThreshold(
        name=source.name and printable(source.name),
        n=source.n_rows or 0,
        d=source.n_dims,
        n_queries=None if asked is None else len(asked),
        n_random_pairs=tail.n_pairs,
        by_rate=tuple(CosineOfRate.of(tail, rate, other, searched) for rate in known),
        by_cosine=tuple(
            RateOfCosine.of(tail, cosine, searched) for cosine in _COSINES if tail.rate(cosine).value > 0
        ),
        guarantees=tuple(guarantees),
        best=best,
        notes=tuple(notes),
        seed=seed,
        seconds=time.perf_counter() - began,
        _tail=tail,
        _other=other,
    )


def _search_notes(searched: SearchPairs) -> list[str]:
    """Return what the pairs of a search are."""
    notes = [
        "random pairs are a query and a row that is not relevant to it; the precision is that of the row "
        "nearest to a query, the false-match rate that of a random row that is not relevant"
    ]
    if searched.n_left_out:
        notes.append(f"left out, for want of a relevant row: {searched.n_left_out:,} of the queries")
    return notes


def _guarantees(
    pairs: Mapping[str, _Pairs],
    targets: Mapping[str, float],
    by: Any,
    source: Source,
    notes: list[str],
    *,
    confidence: float,
    seed: int,
) -> list[Guarantee]:
    """Return the thresholds that keep each promise, for all pairs and for those within each slice.

    Args:
        pairs: of each promise, the cosines, matches and rows; a pair of rows is in a slice if both are.
        targets: of each promise.
        by: what cuts the rows, or None.
        source: the rows.
        notes: receives the slices that are left out.
        confidence, seed: of the guarantees.
    """
    if not pairs:
        return []
    values = None if by is None else _values(by, source)
    slices = [None] if values is None else [None, *np.unique(values).tolist()]
    found = []
    for of in slices:
        for promise, (cosines, matches, *sides) in pairs.items():
            inside = np.ones(len(cosines), dtype=bool)
            if values is not None and of is not None:
                for rows in sides:
                    inside &= values[rows] == of
            some = matches[inside]
            if of is not None and (some.all() or not some.any()):
                notes.append(f"{printable(of)}: {len(some)} pairs, all of one kind, are left out")
                break
            found.append(
                Guarantee.of(
                    promise, cosines[inside], some, target=targets[promise], confidence=confidence,
                    seed=seed, slice=of,
                )
            )  # fmt: skip
    return found


def _translated(to: Any, source: Source, has_queries: bool, *, max_pairs: int, seed: int, bar: Bar) -> Tail:
    """Return the tail of other vectors of the same rows."""
    if has_queries:
        raise InputError("cannot be combined with queries", argument="to", hint="leave one of them out")
    other = as_input(to, device=source.device).source
    if other.n_rows is not None and source.n_rows is not None and other.n_rows != source.n_rows:
        raise ShapeError(
            f"has {other.n_rows:,} rows",
            argument="to",
            wanted=f"{source.n_rows:,}, those of X in their order",
        )
    return Tail.of(other, max_pairs=max_pairs, seed=seed, bar=bar)


def _labelled(
    source: Source, queries: Tensor | None, pairs: Any, labels: Any, seed: int, notes: list[str]
) -> _Pairs | None:
    """Return the cosines and matches of labelled pairs, and their rows of the source; None without labels."""
    if pairs is not None:
        texts = source.load().texts if isinstance(pairs, str | os.PathLike | FilePairs) else None
        triples = as_rows(pairs, texts)
        try:
            table = np.asarray(triples, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "must be (row, row, match) triples of numbers, with rows counted from 0", argument="pairs"
            ) from None
        firsts, seconds, matches = _checked(table, source.n_rows, queries)
        rows = np.concatenate([firsts, seconds]) if queries is None else seconds
        if len(rows) > _SHARED * len(np.unique(rows)):
            notes.append("pairs share rows: the guarantees hold for pairs that are independent draws")
    elif labels is not None and queries is None:
        codes = labels.codes.cpu().numpy()
        order = np.random.default_rng(seed).permutation(len(codes))
        firsts, seconds = order[: len(order) // 2], order[len(order) // 2 : 2 * (len(order) // 2)]
        matches = codes[firsts] == codes[seconds]
    else:
        return None
    check_pairs(matches, "labels" if pairs is None else "pairs")
    first = rows_at(source, firsts) if queries is None else queries[torch.from_numpy(firsts)].cpu()
    cosines = (unit_rows(first)[0] * unit_rows(rows_at(source, seconds))[0]).sum(dim=1)
    return cosines.numpy(), matches, *((firsts, seconds) if queries is None else (seconds,))


def _checked(
    table: NDArray[Any], n: int | None, queries: Tensor | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    if table.ndim != 2 or table.shape[1] != 3:
        raise ShapeError(
            argument="pairs", got=table.shape, wanted="of shape (m, 3): a row, another row, and 1 or 0"
        )
    if len(table) < _FEWEST_PAIRS:
        raise InputError(argument="pairs", got=len(table), wanted=f"at least {_FEWEST_PAIRS} pairs")
    limits = (n if queries is None else len(queries), n)
    for column, limit in enumerate(limits):
        rows = table[:, column]
        bad = (rows != np.floor(rows)) | (rows < 0) | (rows >= (math.inf if limit is None else limit))
        if bad.any():
            at = int(bad.argmax())
            raise InputError(
                f"names row {rows[at]:g} in pair {at}",
                argument="pairs",
                wanted=f"rows from 0 to {(limit or 0) - 1:,}",
            )
    if not np.isin(table[:, 2], (0, 1)).all():
        raise InputError(
            f"has the score {table[~np.isin(table[:, 2], (0, 1)), 2][0]:g}",
            argument="pairs",
            wanted="1 for a pair that matches, 0 for one that does not",
        )
    return table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2] == 1


def _values(by: Any, source: Source) -> NDArray[Any]:
    """Return the slice of each row, as text."""
    if isinstance(by, str):
        return np.asarray([str(value) for value in source.column(by)])
    values = np.asarray([str(value) for value in by])
    if source.n_rows is not None and len(values) != source.n_rows:
        raise ShapeError(f"has {len(values)} entries", argument="by", wanted=f"{source.n_rows}, one a row")
    return values
