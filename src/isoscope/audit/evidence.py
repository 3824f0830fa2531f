"""`Evidence`: everything that the findings of an audit are made from, asked of a source in few passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.audit.finite import Finite
from isoscope.audit.hubs import Hubs, never_retrieved
from isoscope.audit.mixture import Mixture
from isoscope.audit.near import NearDuplicates
from isoscope.audit.recall import IndexRecall, index_recall, read_neighbors
from isoscope.audit.rows import Outliers, RowFacts
from isoscope.audit.search import Found, search_all, search_queries, search_rows
from isoscope.audit.shares import Share
from isoscope.engine.sample import EqualRows, sample_rows
from isoscope.errors import UndefinedError
from isoscope.progress import Bar
from isoscope.queries import Queries, Retrieval
from isoscope.queries.nearest import nearest
from isoscope.queries.retrieval import retrieval_of
from isoscope.statistics.directions import has_direction, unit_rows
from isoscope.statistics.neighbors import Neighbors

_SAMPLED = 4  # of the rows drawn, one in so many is searched for among all rows
_PRODUCTS = 1000  # rows or queries whose neighbours by inner product are searched
_ONE_LENGTH = 1e-6  # relative difference of lengths, up to which cosine and inner product are one order


@dataclass(frozen=True, eq=False)
class Settings:
    """What an audit is asked for: see `audit`."""

    k: int
    max_rows: int
    near: float
    seed: int
    neighbors: object = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an audit has seen.

    Attributes:
        n, d: rows and dimensions.
        bad: the rows that are not finite.
        facts: of one pass. equal: zero vectors and exact copies. outliers: of a second pass.
        found: neighbours of all rows or of a sample of them; None where there are too few rows.
        hubs, lonely: of those, or of the queries; `lonely` are the rows nobody retrieves among
            `n_lonely` rows, and `chance` the share that chance alone would leave.
        near: near duplicates. mixture: two kinds of rows.
        differing: the share of results that differ between cosine and inner product; None where all lengths
            are equal or there are too few rows.
        retrieval: how well the queries find what is relevant; None without relevance.
        recall: of the caller's index.
        by_queries: whether hubs and rows never retrieved are those of queries.
    """

    n: int
    d: int
    bad: Tensor
    facts: RowFacts
    equal: EqualRows
    outliers: Outliers
    found: Found | None
    hubs: Hubs | None
    lonely: Tensor
    n_lonely: int
    chance: float
    near: NearDuplicates | None
    mixture: Mixture | None
    differing: Share | None
    retrieval: Retrieval | None
    recall: IndexRecall | None
    recall_rows: Tensor
    by_queries: bool
    settings: Settings

    @property
    def zeros(self) -> Tensor:
        """The zero vectors, without the rows that are not finite."""
        zeros = (self.facts.lengths == 0).nonzero().flatten()
        return zeros[~torch.isin(zeros, self.bad)]


def gather(source: Finite, queries: Queries | None, settings: Settings, bar: Bar) -> Evidence:
    """Look at all rows, and search neighbours among them."""
    bar.step("reading all rows")
    facts = RowFacts.of(source, bar.share)
    n, d = len(facts), source.n_dims
    if (
        settings.neighbors is not None
    ):  # what is wrong with them is said before the search, which takes longest
        given = read_neighbors(settings.neighbors, n_asked=n if queries is None else len(queries))
        settings = replace(settings, neighbors=given)
    bar.step("equal rows")
    drawn = sample_rows(source, settings.max_rows, seed=settings.seed)
    bar.step("outliers")
    outliers = Outliers.of(source, facts, bar.share)
    eligible = facts.has_direction
    n_candidates = int(eligible.sum())
    common: dict[str, Any] = {
        "n": n, "d": d, "bad": source.bad, "facts": facts, "equal": drawn.equal, "outliers": outliers,
        "settings": settings, "by_queries": queries is not None,
    }  # fmt: skip
    k = min(settings.k, n_candidates - 1)
    if k < 1:
        return _without_neighbors(common, settings)
    sample, kept = drawn.space.vectors.detach(), has_direction(drawn.space.vectors)
    rows, vectors = drawn.rows[kept.cpu()], sample[kept]
    bar.step("neighbours")
    if n <= settings.max_rows:
        found = inside = search_all(source, k, bar.share)
        retrieved = found
    else:
        inside = _inside(vectors, rows, min(k, len(rows) - 1))
        few = torch.from_numpy(_few(len(rows), settings))
        found = search_rows(source, rows[few], vectors[few], k, n_candidates, bar.share)
        retrieved = inside
    hubs_from, lonely_eligible = found, eligible
    if queries is not None:
        bar.step("neighbours of queries")
        hubs_from = retrieved = search_queries(source, queries.vectors, k, n_candidates, bar.share)
    elif retrieved is not found:
        lonely_eligible = torch.zeros_like(eligible)
        lonely_eligible[rows] = True
    lonely, chance = never_retrieved(retrieved, n, lonely_eligible)
    originals = dict(zip(drawn.equal.copies.tolist(), drawn.equal.originals.tolist(), strict=True))
    bar.step("inner products")
    recall, recall_rows = _recall(source, settings, queries, hubs_from, n, rows, vectors)
    return Evidence(
        **common,
        found=found,
        hubs=Hubs.of(hubs_from, n, by_queries=queries is not None),
        lonely=lonely,
        n_lonely=int(lonely_eligible.sum()),
        chance=chance,
        near=NearDuplicates.of(found, originals, near=settings.near, mean_cosine=facts.mean_cosine),
        mixture=_mixture(vectors, inside, rows),
        differing=_differing(source, facts, queries, hubs_from, vectors, rows, bar),
        retrieval=_retrieval(source, queries, settings),
        recall=recall,
        recall_rows=recall_rows,
    )


def _without_neighbors(common: dict[str, Any], settings: Settings) -> Evidence:
    if settings.neighbors is not None:
        raise UndefinedError("neighbors cannot be judged: fewer than two rows are not zero")
    nothing = torch.empty(0, dtype=torch.int64)
    return Evidence(
        **common, found=None, hubs=None, lonely=nothing, n_lonely=0, chance=0.0, near=None, mixture=None,
        differing=None, retrieval=None, recall=None, recall_rows=nothing,
    )  # fmt: skip


def _few(n: int, settings: Settings) -> object:
    """Return the positions of the rows drawn that are searched for among all rows."""
    import numpy as np

    return np.sort(np.random.default_rng(settings.seed + 1).permutation(n)[: max(2, n // _SAMPLED)])


def _inside(vectors: Tensor, rows: Tensor, k: int) -> Found:
    """Return the neighbours of the rows drawn among themselves."""
    among = Neighbors.of(vectors, k=k, metric="cosine")
    placed = Neighbors(among.distances, rows.to(among.indices.device)[among.indices], "cosine")
    return Found(rows, placed, len(rows), len(rows))


def _mixture(vectors: Tensor, inside: Found, rows: Tensor) -> Mixture:
    """Test the rows drawn; the smaller side is given as rows of the source."""
    order = torch.full((int(rows.max()) + 1,), -1)
    order[rows] = torch.arange(len(rows))
    local = Neighbors(inside.neighbors.distances, order[inside.neighbors.indices.cpu()], "cosine")
    found = Mixture.of(unit_rows(vectors)[0], local)
    return Mixture(found.is_mixed, found.dip, found.crossing, rows[found.smaller])


def _differing(
    source: Finite,
    facts: RowFacts,
    queries: Queries | None,
    found: Found,
    vectors: Tensor,
    rows: Tensor,
    bar: Bar,
) -> Share | None:
    """Return the share of the results that differ between cosine and inner product."""
    lengths = facts.lengths[facts.has_direction]
    longest = float(lengths.max())
    if longest - float(lengths.min()) <= _ONE_LENGTH * longest:
        return None
    k, q = found.neighbors.k, min(len(found), _PRODUCTS)
    if queries is not None:
        asked = queries.vectors[has_direction(queries.vectors)][:q]
        products = nearest(source, asked, k, lift=longest, progress=bar.share)
    else:
        places = torch.linspace(0, len(found) - 1, q).long()
        some = found.asked.cpu()[places]
        order = torch.searchsorted(rows, some)
        asked = vectors[order.to(vectors.device)]
        products = nearest(source, asked, k + 1, lift=longest, progress=bar.share).without(some)
    cosines = found.neighbors.indices[:q] if queries is not None else found.neighbors.indices[places]
    both = (products.indices[:, :, None] == cosines[:, None, :].to(products.indices.device)).any(dim=2)
    total = len(found) if queries is not None else found.n_population
    return Share.of_sum(1 - both.double().mean(dim=1).cpu(), exact=q == total)


def _retrieval(source: Finite, queries: Queries | None, settings: Settings) -> Retrieval | None:
    if queries is None or queries.relevance is None:
        return None
    return retrieval_of(source, queries, k=settings.k)


def _recall(
    source: Finite,
    settings: Settings,
    queries: Queries | None,
    found: Found,
    n: int,
    rows: Tensor,
    vectors: Tensor,
) -> tuple[IndexRecall | None, Tensor]:
    """Return the recall of the caller's index, and which row or query each score is of."""
    if settings.neighbors is None:
        return None, torch.empty(0, dtype=torch.int64)
    given = torch.as_tensor(settings.neighbors)
    if queries is not None:
        kept = has_direction(queries.vectors)
        asked, of = queries.vectors[kept], kept.nonzero().flatten()
    else:
        of = found.asked.cpu()
        asked = vectors[torch.searchsorted(rows, of).to(vectors.device)]
    counts = torch.bincount(found.neighbors.indices.flatten().cpu(), minlength=n)
    return index_recall(source, given[of], found, asked, counts=counts), of
