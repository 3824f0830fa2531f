"""What compression does to a task: relevant or like-labelled rows returned, or scored pairs ranked."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from isoscope.advice.pairs import Pairs
from isoscope.advice.tasks import similarity
from isoscope.compression.search import Candidates
from isoscope.compression.trial import Found, Trial
from isoscope.corrections import Correction
from isoscope.queries.relevance import Relevance


class LabelTask:
    """The share of the returned rows that have the label of their query; one number a query."""

    name = "returned rows with the query's label"

    def __init__(self, trial: Trial, found: Found, k: int) -> None:
        self._trial, self._found, self._k = trial, found, k

    def exact(self) -> Tensor:
        """Return the score of an exact search."""
        return self.score("", self._found.exact)

    def score(self, method: str, returned: Candidates) -> Tensor:  # noqa: ARG002 - as of other tasks
        """Return the score of what a search in the codes of a method returned."""
        assert self._trial.codes is not None
        codes, own = self._trial.codes
        rows = returned.first(self._k).rows.cpu()
        return ((codes[rows.clamp(min=0)] == own[:, None]) & (rows >= 0)).double().mean(dim=1)


class RelevanceTask:
    """nDCG of the first k returned rows, of the queries that have a relevant row; one number a query."""

    def __init__(self, relevance: Relevance, found: Found, k: int) -> None:
        self.name = f"nDCG@{k}"
        self._found, self._k = found, k
        self._relevant, self._gains = relevance.padded()
        discounts = 1 / torch.arange(2, k + 2, dtype=torch.float64).log2()
        best = self._gains.sort(dim=1, descending=True).values[:, :k]
        self._ideal = best @ discounts[: best.shape[1]]
        self._discounts = discounts

    def exact(self) -> Tensor:
        """Return the score of an exact search."""
        return self.score("", self._found.exact)

    def score(self, method: str, returned: Candidates) -> Tensor:  # noqa: ARG002 - as of other tasks
        """Return the score of what a search in the codes of a method returned."""
        rows = returned.first(self._k).rows.cpu()
        gains = torch.stack(
            [
                torch.where(self._relevant == row[:, None], self._gains, 0.0).amax(dim=1)
                for row in rows.masked_fill(rows < 0, -2).unbind(1)
            ],
            dim=1,
        )
        has_any = self._ideal > 0
        return (gains @ self._discounts)[has_any] / self._ideal[has_any]


class PairTask:
    """Spearman's ρ of the cosines of pairs and their scores, both rows compressed; one number."""

    name = "Spearman's ρ of pairs"

    def __init__(self, pairs: Pairs, rows: Tensor, vectors: Tensor, fitted: Mapping[str, Correction]) -> None:
        self._pairs, self._vectors, self._fitted = pairs, vectors, fitted
        self._firsts, self._seconds = (
            torch.searchsorted(rows, side) for side in (pairs.firsts, pairs.seconds)
        )

    def exact(self) -> Tensor:
        """Return the score of the vectors themselves."""
        return self._ranking(self._vectors)

    def score(self, method: str, returned: Candidates) -> Tensor:  # noqa: ARG002 - as of other tasks
        """Return the score of the vectors that the codes of a method stand for."""
        return self._ranking(self._fitted[method].transform(self._vectors))

    def _ranking(self, vectors: Tensor) -> Tensor:
        vectors = vectors.cpu()
        score = similarity(vectors[self._firsts], vectors[self._seconds], self._pairs.scores)
        return torch.tensor([score], dtype=torch.float64)
