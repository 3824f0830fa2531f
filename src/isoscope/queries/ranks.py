"""`Ranks`: where the relevant documents of each query stand among all documents, by blocks of documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.kernels.tiles import Progress
from isoscope.statistics.directions import unit_rows

SIMILARITIES = ("cosine", "dot")
_TIE = 1e-12  # similarities of equal rows differ by less, relative to the product of their lengths
_FEW = 4  # relevant documents of a query, up to which all documents are compared with each of them
_STRIP_NUMBERS = 2**23  # of similarities held at once


@dataclass(frozen=True, eq=False)
class Ranks:
    """For each query and each of its relevant documents, how many documents stand before it and beside it.

    Attributes:
        above: (m, r) float64, the documents with a higher similarity.
        tied: (m, r) float64, those with the same similarity, itself included; 0 where there is no document.
        gains: (m, r) float64, how relevant it is; 0 where there is no document.
        n_documents: how many documents each query was compared with.
    """

    above: Tensor
    tied: Tensor
    gains: Tensor
    n_documents: int

    @classmethod
    def of(
        cls,
        documents: Source,
        queries: Tensor,
        relevant: Tensor,
        gains: Tensor,
        *,
        similarity: str = "cosine",
        own: Tensor | None = None,
        progress: Progress | None = None,
    ) -> Ranks:
        """Return the ranks of (m, r) relevant documents, −1 for none, in two passes over the documents.

        Args:
            documents: what is searched; the first pass takes the similarities of the relevant ones.
            queries: (m, d) vectors.
            relevant, gains: (m, r) rows of documents and how relevant they are.
            similarity: "cosine" or "dot".
            own: (m,) the row of the document that each query is, which is left out; −1 for none.
            progress: is called with the share of the work that is done.
        """
        asked = _placed(queries.to(documents.device), similarity)
        relevant, gains = relevant.to(asked.device), gains.to(asked.device)
        own = relevant.new_full((len(relevant),), -1) if own is None else own.to(asked.device)
        gains = torch.where((relevant == own[:, None]) | (relevant < 0), 0.0, gains)
        scores = torch.full_like(gains, torch.inf)
        above, tied = torch.zeros_like(gains), torch.zeros_like(gains)

        def first(strip: Tensor, start: int) -> None:
            here = (relevant >= start) & (relevant < start + strip.shape[1]) & (gains > 0)
            query, place = here.nonzero(as_tuple=True)
            scores[query, place] = strip[query, relevant[query, place] - start]

        n, longest = _pass(documents, asked, similarity, own, first, progress, 0.0)
        order = scores.argsort(dim=1)  # ascending, those of no document last
        scores, gains = scores.gather(1, order), gains.gather(1, order)
        tie = _TIE * longest * torch.linalg.vector_norm(asked, dim=1, keepdim=True)
        low, high = scores - tie, scores + tie

        def second(strip: Tensor, start: int) -> None:
            del start
            over = _counts_above(strip, high)
            above.add_(over)
            tied.add_(_counts_above(strip, low) - over)

        _pass(documents, asked, similarity, own, second, progress, 0.5)
        return cls(above, torch.where(gains > 0, tied.clamp(min=1), 0.0), gains, n)

    @property
    def has_any(self) -> Tensor:
        """(m,) whether a query has a relevant document."""
        return (self.gains > 0).any(dim=1)


def _pass(
    documents: Source,
    asked: Tensor,
    similarity: str,
    own: Tensor,
    take: Callable[[Tensor, int], None],
    progress: Progress | None,
    done: float,
) -> tuple[int, float]:
    """Call `take` with the (m, b) similarities of each block and its first row.

    Return the number of rows, and the largest length of one.
    """
    start, longest = 0, 0.0
    n_rows = max(1, _STRIP_NUMBERS // max(1, len(asked)))
    for block in documents.blocks():
        for rows in block.vectors.detach().split(n_rows):
            placed = _placed(rows, similarity)
            longest = max(longest, float(torch.linalg.vector_norm(placed, dim=1).max()))
            strip = asked @ placed.T
            here = ((own >= start) & (own < start + len(rows))).nonzero().flatten()
            strip[here, own[here] - start] = -torch.inf
            take(strip, start)
            start += len(rows)
        if progress and documents.n_rows:
            progress(done + 0.5 * start / documents.n_rows)
    return start, longest


def _counts_above(strip: Tensor, limits: Tensor) -> Tensor:
    """(m, r) how many numbers of each row are above each of its limits, which ascend."""
    m, r = limits.shape
    if r <= _FEW:
        return torch.stack([(strip > limit[:, None]).sum(dim=1) for limit in limits.T], dim=1).double()
    places = torch.searchsorted(limits, strip)  # how many limits lie below each number
    places += torch.arange(m, device=strip.device)[:, None] * (r + 1)
    counts = torch.bincount(places.flatten(), minlength=m * (r + 1)).view(m, r + 1)
    return counts.flip(1).cumsum(1).flip(1)[:, 1:].double()


def _placed(rows: Tensor, similarity: str) -> Tensor:
    return unit_rows(rows)[0] if similarity == "cosine" else rows.double()
