"""`Candidates`: what a search among stored vectors returns, with the exact distances of what it returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.compression.methods import Codec
from isoscope.kernels.precision import direct_squares, full_precision
from isoscope.kernels.selection import smallest
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.neighbors import Neighbors

_STRIP_BYTES = 2**27  # of scores held at once
_ROUNDING = 1e-9  # share of a squared distance that two ways of computing it differ by


@dataclass(frozen=True, eq=False)
class Candidates:
    """For each query the c rows with the best scores, best first.

    Attributes:
        scores: (m, c) what the search ranks by; small is near.
        squares: (m, c) exact squared distances, float64.
        rows: (m, c) the numbers of the rows; −1 where there are fewer.
    """

    scores: Tensor
    squares: Tensor
    rows: Tensor

    def merge(self, other: Candidates, generator: torch.Generator) -> Candidates:
        """Return the best of both; those with equal scores are taken in random order."""
        c = self.scores.shape[1]
        scores, squares, rows = (
            torch.cat(both, dim=1)
            for both in (
                (self.scores, other.scores),
                (self.squares, other.squares),
                (self.rows, other.rows),
            )
        )
        shuffled = torch.rand(scores.shape, generator=generator).argsort(dim=1).to(scores.device)
        order = shuffled.gather(1, scores.gather(1, shuffled).argsort(dim=1, stable=True))[:, :c]
        return Candidates(scores.gather(1, order), squares.gather(1, order), rows.gather(1, order))

    def first(self, k: int) -> Candidates:
        """Return the k with the best scores."""
        return Candidates(self.scores[:, :k], self.squares[:, :k], self.rows[:, :k])

    def rescored(self) -> Candidates:
        """Return the candidates in the order of their exact distances."""
        order = self.squares.argsort(dim=1, stable=True)
        squares = self.squares.gather(1, order)
        return Candidates(squares, squares, self.rows.gather(1, order))

    def recall(self, reach: Tensor) -> Tensor:
        """Return the share of candidates (m,) that lie within the distance of the k-th exact neighbour.

        A row as near as that neighbour counts, so copies and ties cost nothing.
        """
        within = self.squares <= reach[:, None] * (1 + _ROUNDING) + torch.finfo(torch.float64).tiny
        return within.double().mean(dim=1)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows to search among.

    Attributes:
        rows: (n, d) vectors.
        exact: (n, d) the vectors that exact distances are those of: of length 1 for a search by cosine.
        numbers: (n,) their numbers.
        metric: "cosine" or "euclidean".
    """

    rows: Tensor
    exact: Tensor
    numbers: Tensor
    metric: str

    @classmethod
    def of(cls, rows: Tensor, numbers: Tensor, *, metric: str) -> Block:
        """Return rows ready for a search; by cosine, zero vectors are left out."""
        if metric == "euclidean":
            return cls(rows, rows, numbers, metric)
        units, lengths = unit_rows(rows)
        if not bool(lengths.all()):
            there = lengths > 0
            rows, units, numbers = rows[there], units[there], numbers[there]
        return cls(rows, units, numbers, metric)

    def shuffled(self, generator: torch.Generator) -> Block:
        """Return the rows in random order, so that a search takes any of those with equal scores."""
        order = torch.randperm(len(self.rows), generator=generator).to(self.rows.device)
        return Block(self.rows[order], self.exact[order], self.numbers[order], self.metric)

    def neighbors(self, queries: Block, k: int) -> Candidates:
        """Return the exact neighbours of queries."""
        found = Neighbors.between(queries.rows, self.rows, k=k, metric=self.metric)
        return self._candidates(queries, found.distances, found.indices)

    @full_precision
    def candidates(self, codec: Codec, asked: Tensor, queries: Block, c: int) -> Candidates:
        """Return the c rows that a search in the codes returns for queries, which it compares as `asked`."""
        stored, squares = codec.stored(self.rows)
        n_rows = max(16, _STRIP_BYTES // (4 * len(stored)))
        found = [
            smallest(torch.addmm(squares, part, stored.T, alpha=-2), min(c, len(stored)))
            for part in asked.split(n_rows)
        ]
        scores, places = (torch.cat(parts) for parts in zip(*found, strict=True))
        missing = c - scores.shape[1]
        scores = torch.nn.functional.pad(scores, (0, missing), value=torch.inf)
        places = torch.nn.functional.pad(places, (0, missing), value=-1)
        return self._candidates(queries, scores, places)

    def _candidates(self, queries: Block, scores: Tensor, places: Tensor) -> Candidates:
        i = torch.arange(len(places), device=places.device).repeat_interleave(places.shape[1])
        j = places.flatten().clamp(min=0)
        squares = direct_squares(queries.exact, i, self.exact, j, 1.0).view_as(scores)
        is_row = places >= 0
        return Candidates(
            scores.double(),
            squares.masked_fill(~is_row, torch.inf),
            torch.where(is_row, self.numbers[places.clamp(min=0)], -1),
        )
