"""`Trial`: which rows are searched for, which are fitted on, and the search among all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.compression.methods import Codec
from isoscope.compression.search import Block, Candidates
from isoscope.engine.sample import sample_rows
from isoscope.engine.source import Source
from isoscope.errors import InputError
from isoscope.progress import Bar
from isoscope.queries.opened import Queries
from isoscope.queries.relevance import Relevance

MAX_QUERIES, MAX_FIT = 1000, 20_000
_ROWS_A_QUERY = 4  # that a source has at least, where queries are drawn from it
_BLOCK_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Trial:
    """Queries and rows to fit on, which have no row in common.

    Attributes:
        n: the rows of the source.
        queries: the vectors to search for.
        drawn: the rows of the source that are queries, which are not searched; none for the caller's queries.
        fit: (m, d) the rows to fit on.
        codes: (n,) the label of each row of the source, and the labels of the queries; or None.
        relevance: which rows of the source are relevant to which query, or None.
        metric: "cosine" or "euclidean".
        seed: the seed of random orders.
        notes: what the reader should know.
    """

    n: int
    queries: Block
    drawn: Tensor
    fit: Tensor
    codes: tuple[Tensor, Tensor] | None
    relevance: Relevance | None
    metric: str
    seed: int
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        source: Source,
        queries: Queries | None,
        *,
        k: int,
        metric: str,
        max_queries: int,
        max_fit: int,
        seed: int,
    ) -> Trial:
        """Draw the queries, unless they are given, and the rows to fit on."""
        n = source.n_rows if source.n_rows is not None else sum(map(len, source.blocks()))
        generator = torch.Generator().manual_seed(seed)
        if queries is None:
            if n < _ROWS_A_QUERY:
                raise InputError(argument="X", got=f"{n} rows", wanted=f"at least {_ROWS_A_QUERY} rows")
            n_queries = min(max_queries, n // _ROWS_A_QUERY)
            sample = sample_rows(source, n_queries + max_fit, seed=seed)
            order = torch.randperm(len(sample.rows), generator=generator)
            chosen, others = order[:n_queries].sort().values, order[n_queries:].sort().values
            asked, drawn = sample.space.vectors[chosen], sample.rows[chosen]
        else:
            sample = sample_rows(source, max_fit, seed=seed)
            chosen = torch.randperm(len(queries), generator=generator)[:max_queries].sort().values
            others, drawn = torch.arange(len(sample.rows)), torch.empty(0, dtype=torch.int64)
            asked = queries.vectors[chosen].to(sample.space.device)
        if n - len(drawn) <= k:
            raise InputError(
                argument="k",
                got=k,
                wanted=f"below {n - len(drawn)}, the rows that are searched",
                hint="add rows",
            )
        block = Block.of(asked, torch.arange(len(asked), device=asked.device), metric=metric)
        there = block.numbers.cpu()
        if not len(there):
            raise InputError("All queries are zero vectors, which have no direction", hint="remove them")
        fit = sample.space.vectors[others]
        notes = []
        if len(fit) < n - len(drawn):
            notes.append(f"methods were fitted on {len(fit):,} rows drawn at random")
        if queries is not None and len(chosen) < len(queries):
            notes.append(f"{len(chosen):,} of {len(queries):,} queries were drawn at random")
        if len(there) < len(asked):
            notes.append(f"queries that are zero vectors were left out: {len(asked) - len(there):,}")
        codes = source.labels.codes.cpu() if queries is None and source.labels is not None else None
        known = None if queries is None else queries.relevance
        return cls(
            n=n,
            queries=block,
            drawn=drawn,
            fit=fit,
            codes=None if codes is None else (codes, codes[drawn[there]]),
            relevance=None if known is None else known.some(chosen[there]),
            metric=metric,
            seed=seed,
            notes=tuple(notes),
        )

    def blocks(self, source: Source, wanted: Tensor, bar: Bar) -> Iterator[tuple[Block, Tensor]]:
        """Yield the rows to search in random order, and the vectors of the `wanted` rows among them."""
        generator = torch.Generator().manual_seed(self.seed)
        start = 0
        for space in source.blocks(_BLOCK_ROWS):
            rows = space.vectors
            numbers = torch.arange(start, start + len(rows))
            some = rows[torch.isin(numbers, wanted).nonzero().flatten().to(rows.device)]
            kept = (~torch.isin(numbers, self.drawn)).nonzero().flatten()
            block = Block.of(rows[kept.to(rows.device)], numbers[kept].to(rows.device), metric=self.metric)
            if len(block.rows):
                yield block.shuffled(generator), some
            start += len(rows)
            bar.share(start / self.n)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        exact: the k exact neighbours of each query.
        candidates: what a search in the codes of each method returned.
        wanted: the vectors of the rows that were asked for.
    """

    exact: Candidates
    candidates: Mapping[str, Candidates]
    wanted: Tensor

    @property
    def reach(self) -> Tensor:
        """(m,) the squared distance of the k-th exact neighbour."""
        return self.exact.squares.amax(dim=1)


def search(
    source: Source, trial: Trial, codecs: Mapping[str, Codec], *, k: int, c: int, wanted: Tensor, bar: Bar
) -> Found:
    """Search for the queries among all other rows, exactly and in the codes of each method."""
    queries = trial.queries
    # of each method its own, so that its recall does not depend on which others are tried
    generators = {name: torch.Generator().manual_seed(trial.seed) for name in ("", *codecs)}
    asked = {name: codec.queries(queries.rows) for name, codec in codecs.items()}
    best: dict[str, Candidates] = {}
    vectors = []
    for block, some in trial.blocks(source, wanted, bar):
        vectors.append(some)
        here = {"": block.neighbors(queries, k)} | {
            name: block.candidates(codec, asked[name], queries, c) for name, codec in codecs.items()
        }
        best = {
            name: best[name].merge(one, generators[name]) if name in best else one
            for name, one in here.items()
        }
    in_order = {name: one.merge(one.first(0), generators[name]) for name, one in best.items()}
    return Found(in_order.pop(""), in_order, torch.cat(vectors))
