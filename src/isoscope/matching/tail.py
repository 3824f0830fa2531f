"""`Tail`: how many random pairs have at least each cosine, counted over all pairs, block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoscope.engine.sample import sample_rows
from isoscope.engine.source import Source
from isoscope.errors import UndefinedError
from isoscope.kernels.precision import full_precision, pair_dtype
from isoscope.progress import Bar
from isoscope.queries.relevance import Relevance
from isoscope.statistics.directions import unit_rows

STEPS = 20_000  # of the grid of cosines from −1 to 1: a step is 0.0001
MOST_PAIRS = 400_000_000  # counted; of more, those of rows drawn at random
_FEWEST_ROWS = 500  # drawn
_BATCHES = 20  # of rows, whose differences give the standard error
_FEWEST_ABOVE = 10  # pairs above a cosine for its rate to be known
_STRIP_NUMBERS = 2**22  # cosines held at once
_LEFT_OUT = -3.0  # in place of the cosine of a row with itself, or with a relevant one


@dataclass(frozen=True)
class Rate:
    """The share of random pairs with at least some cosine, and its 95 % interval; None where it is exact."""

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Tail:
    """Counts of pairs by cosine.

    Attributes:
        above: (b, STEPS + 1) the pairs of each batch of rows with at least each cosine of the grid.
        pairs: (b,) all pairs of each batch.
        share: the share of all rows (or queries) whose pairs were counted.
        is_population: whether the pairs counted are all that the rate is about.

    >>> from isoscope import Space
    >>> tail = Tail.of(Space([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> round(tail.rate(0.5).value, 4), tail.cosine(0.0)
    (0.6667, 0.7072)
    """

    above: Tensor
    pairs: Tensor
    share: float
    is_population: bool

    @classmethod
    def of(
        cls,
        source: Source,
        queries: Tensor | None = None,
        *,
        relevance: Relevance | None = None,
        max_pairs: int = MOST_PAIRS,
        seed: int = 0,
        bar: Bar | None = None,
    ) -> Tail:
        """Count the pairs of two different rows, or of a query and a row that is not relevant to it.

        Of more than `max_pairs` pairs, those of rows (or queries) drawn at random with all others are
        counted. Zero vectors have no cosine and are left out.
        """
        n = source.n_rows if source.n_rows is not None else sum(map(len, source.blocks()))
        m = n if queries is None else len(queries)
        n_drawn = min(m, max(_FEWEST_ROWS, max_pairs // max(1, n)))
        if queries is None:
            sample = sample_rows(source, n_drawn, seed=seed)
            asked = sample.space.vectors.detach()
            order = torch.randperm(len(asked), generator=torch.Generator().manual_seed(seed))
            rows_drawn = sample.rows[order]
        else:
            order = torch.randperm(m, generator=torch.Generator().manual_seed(seed))[:n_drawn]
            asked, rows_drawn = queries, order
        units, lengths = unit_rows(asked[order.to(asked.device)])
        there = lengths > 0
        units, asking_rows = units[there], rows_drawn[there.cpu()]
        batches = [part for part in torch.arange(len(units)).tensor_split(_BATCHES) if len(part)]
        counts = torch.zeros(len(batches), STEPS, dtype=torch.float64)
        if queries is None:
            left_out = [asking_rows[batch][:, None] for batch in batches]  # each row with itself
        elif relevance is None:
            left_out = [torch.full((len(batch), 1), -1) for batch in batches]
        else:
            left_out = [relevance.some(asking_rows[batch]).padded()[0] for batch in batches]
        start = 0
        for space in source.blocks():
            rows, sizes = unit_rows(space.vectors.detach())
            dtype = pair_dtype(space.vectors)
            numbers = torch.arange(start, start + len(rows))[(sizes > 0).cpu()]
            rows = rows[sizes > 0].to(dtype)
            for place, batch in enumerate(batches):
                asking = units[batch.to(units.device)].to(rows.device, dtype)
                counts[place] += _counted(asking, left_out[place], rows, numbers)
            start += len(space)
            if bar is not None:
                bar.share(start / n)
        pairs = counts.sum(dim=1)
        if not pairs.sum() > 0:
            raise UndefinedError("Cosines need at least 2 vectors that are not zero")
        above = torch.nn.functional.pad(counts.flip(1).cumsum(1).flip(1), (0, 1))
        return cls(above, pairs, n_drawn / m, queries is None and n_drawn == m)

    @property
    def n_pairs(self) -> int:
        """How many pairs were counted; each twice among the rows of one file."""
        return int(self.pairs.sum())

    def knows(self, rate: float) -> bool:
        """Return whether enough pairs were counted for the cosine of a rate to be known."""
        return rate * float(self.pairs.sum()) >= _FEWEST_ABOVE

    def rate(self, cosine: float) -> Rate:
        """Return the share of pairs with at least a cosine."""
        place = min(STEPS, max(0, math.floor((cosine + 1) * STEPS / 2 + 1e-6)))
        values, intervals = self._rates(slice(place, place + 1))
        interval = None if intervals is None else (float(intervals[0, 0]), float(intervals[1, 0]))
        return Rate(float(values[0]), interval)

    def cosine(self, rate: float) -> float | None:
        """Return the smallest cosine of the grid that at most this share of pairs reaches; None for none."""
        return _first(self._rates(slice(None))[0], rate)

    def cosine_interval(self, rate: float) -> tuple[float, float] | None:
        """Return the 95 % interval of the cosine of a rate; None where it is exact."""
        intervals = self._rates(slice(None))[1]
        if intervals is None:
            return None
        low, high = (_first(of, rate) for of in intervals)
        return -1.0 if low is None else low, 1.0 if high is None else high

    def _rates(self, places: slice) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the shares of pairs above some cosines of the grid, and (2, …) their intervals."""
        from scipy.stats import chi2, t

        above = self.above[:, places].numpy()
        total = float(self.pairs.sum())
        values = above.sum(axis=0) / total
        if self.is_population or len(above) < 2:
            return values, None
        shares = above / self.pairs.numpy()[:, None]
        error = shares.std(axis=0, ddof=1) * math.sqrt((1 - self._drawn_share) / len(shares))
        half = float(t.ppf(0.975, len(shares) - 1)) * error
        least = chi2.ppf(0.975, 2 * (above.sum(axis=0) + 1)) / 2 / total  # of independent pairs
        high = np.maximum(values + half, np.where(values > 0, 0.0, least))
        return values, np.stack([np.clip(values - half, 0, 1), np.clip(high, 0, 1)])

    @property
    def _drawn_share(self) -> float:
        """The share of the rows that are known; queries stand for others like them, so they are a sample."""
        return self.share if self.share < 1 else 0.0


@full_precision
def _counted(asking: Tensor, left_out: Tensor, rows: Tensor, numbers: Tensor) -> Tensor:
    """Return the histogram of the cosines of some rows with a block of others.

    Args:
        asking: (q, d) unit vectors.
        left_out: (q, m) the numbers of the rows that are not counted with each of them; −1 for none.
        rows, numbers: unit vectors, and their numbers in ascending order.
    """
    counts = torch.zeros(STEPS, dtype=torch.float64)
    for start in range(0, len(rows), max(1, _STRIP_NUMBERS // len(asking))):
        stop = start + max(1, _STRIP_NUMBERS // len(asking))
        cosines = (asking @ rows[start:stop].T).clamp_(-1, 1)
        if len(here := numbers[start:stop]):
            places = torch.searchsorted(here, left_out)
            same = (places < len(here)) & (here[places.clamp(max=len(here) - 1)] == left_out)
            cosines[same.nonzero()[:, 0].to(cosines.device), places[same].to(cosines.device)] = _LEFT_OUT
        counts += torch.histc(cosines, STEPS, min=-1, max=1).double().cpu()
    return counts


def _first(rates: np.ndarray, rate: float) -> float | None:
    """Return the first cosine of the grid whose rate is small enough; 1 itself is above every cosine."""
    low_enough = np.flatnonzero(rates[:STEPS] <= rate)
    return None if not len(low_enough) else float(low_enough[0] * 2 / STEPS - 1)
