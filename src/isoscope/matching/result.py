"""`MatchThreshold`: what `threshold` returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from isoscope._version import __version__
from isoscope.errors import UndefinedError
from isoscope.matching.guarantees import Guarantee
from isoscope.matching.pair_cosines import BestThreshold
from isoscope.matching.search_pairs import SearchPairs
from isoscope.matching.tail import Rate, Tail
from isoscope.results import Result, plain
from isoscope.tables import Cell, Grid, percent, span

_MILLION = 1e6
_NAMES = {"precision": "precision ≥ {:g}", "false_match_rate": "false-match rate ≤ {:g}"}


@dataclass(frozen=True)
class CosineOfRate:
    """The cosine that a share of random pairs reaches.

    Attributes:
        rate: the share.
        cosine: the smallest cosine that at most this share reaches; None where copies alone are more.
        interval: its 95 % interval; None where all pairs were counted.
        translated: the cosine in the other vectors that the same share reaches; None without others.
        translated_interval: its 95 % interval.
        found: the share of the relevant rows with at least this cosine; None without a relevance.
        found_interval: its 95 % interval over queries.
    """

    rate: float
    cosine: float | None
    interval: tuple[float, float] | None
    translated: float | None = None
    translated_interval: tuple[float, float] | None = None
    found: float | None = None
    found_interval: tuple[float, float] | None = None

    @classmethod
    def of(
        cls, tail: Tail, rate: float, other: Tail | None = None, searched: SearchPairs | None = None
    ) -> CosineOfRate:
        """Return the cosine of a rate in one or two tails, and what a search finds from it on."""
        cosine = tail.cosine(rate)
        there = (None, None) if other is None else (other.cosine(rate), other.cosine_interval(rate))
        found = (None, None) if searched is None or cosine is None else searched.found(cosine)
        return cls(rate, cosine, tail.cosine_interval(rate), *there, *found)


@dataclass(frozen=True)
class RateOfCosine:
    """The share of random pairs with at least a cosine, and of the relevant rows where they are known."""

    cosine: float
    rate: Rate
    found: float | None = None
    found_interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, tail: Tail, cosine: float, searched: SearchPairs | None) -> RateOfCosine:
        """Return the rate of a cosine, and what a search finds from it on."""
        return cls(cosine, tail.rate(cosine), *((None, None) if searched is None else searched.found(cosine)))


@dataclass(frozen=True, repr=False)
class MatchThreshold(Result):
    """Which cosines count as a match.

    Attributes:
        name: the name of the space.
        n, d: the number of rows and dimensions.
        n_queries: the queries that rows were compared with; None where rows are compared with each other.
        n_random_pairs: how many random pairs were counted.
        by_rate: the cosines of false-match rates.
        by_cosine: the false-match rates of cosines.
        guarantees: thresholds with a guarantee, from labelled pairs; those of slices after those of all.
        best: the threshold of the best balanced accuracy between labels; None without labels.
        notes: notes for the reader.
        seed: the seed of everything drawn.
        seconds: how long it took.
    """

    name: str | None
    n: int
    d: int
    n_queries: int | None
    n_random_pairs: int
    by_rate: tuple[CosineOfRate, ...]
    by_cosine: tuple[RateOfCosine, ...]
    guarantees: tuple[Guarantee, ...]
    best: BestThreshold | None
    notes: tuple[str, ...]
    seed: int
    seconds: float
    _tail: Tail = field(repr=False, compare=False)
    _other: Tail | None = field(default=None, repr=False, compare=False)

    def rate(self, cosine: float) -> Rate:
        """Return the share of random pairs with at least this cosine: the rate of false matches."""
        return self._tail.rate(cosine)

    def cosine(self, rate: float) -> float:
        """Return the smallest cosine that at most this share of random pairs reaches."""
        found = self._tail.cosine(rate) if self._tail.knows(rate) else None
        if found is None:
            raise UndefinedError(
                f"{self.n_random_pairs:,} random pairs do not tell the cosine of a rate of {rate:g}"
            )
        return found

    def translate(self, cosine: float) -> tuple[float, tuple[float, float] | None]:
        """Return the cosine in the vectors of `to` that as many random pairs reach, and its 95 % interval."""
        if self._other is None:
            raise UndefinedError("There are no other vectors: pass `to=` to threshold")
        here = self._tail.rate(cosine)
        rates = (here.value, *(here.interval or ()))
        found = self._other.cosine(rates[0])
        if found is None or not self._other.knows(rates[0]):
            raise UndefinedError(f"too few random pairs have a cosine of at least {cosine:g}")
        ends = [self._other.cosine_interval(rate) or (self._other.cosine(rate),) * 2 for rate in rates]
        known = [float(end) for both in ends for end in both if end is not None]
        return found, None if max(known) == min(known) else (min(known), max(known))

    @property
    def title(self) -> str:
        """What was compared."""
        what = f"{self.name or 'vectors'}: {self.n:,} × {self.d}"
        asked = "" if self.n_queries is None else f", {self.n_queries:,} queries"
        return f"{what}{asked}, {self.n_random_pairs:,} random pairs"

    def grids(self) -> Iterable[Grid]:
        """Return the tables: cosines of rates, rates of cosines, and thresholds with a guarantee."""
        sampled = not self._tail.is_population
        with_other = self._other is not None
        with_found = any(one.found is not None for one in self.by_rate)
        what = "unrelated pairs" if with_found else "random pairs"
        heads = ["false matches", "in a million", "cosine", *(["95 % interval"] if sampled else [])]
        heads += ["in the other", *(["its interval"] if sampled else [])] if with_other else []
        heads += ["relevant found"] if with_found else []
        rows: list[list[Cell]] = []
        for one in self.by_rate:
            row: list[Cell] = [f"1 in {_ratio(1 / one.rate)}", _many(one.rate), _short(one.cosine)]
            row += [span(one.interval, _short)] if sampled else []
            row += [_short(one.translated)] if with_other else []
            row += [span(one.translated_interval, _short)] if with_other and sampled else []
            row += [_found(one)] if with_found else []
            rows.append(row)
        numbers = ("in a million", "cosine", "in the other", "relevant found")
        yield Grid(f"the cosine that so many {what} reach", heads, rows, numbers)
        heads = ["cosine", f"{what} in a million", *(["95 % interval"] if sampled else [])]
        heads += ["relevant found"] if with_found else []
        rates: list[list[Cell]] = []
        for one_rate in self.by_cosine:
            rate = one_rate.rate
            cells: list[Cell] = [f"{one_rate.cosine:.2f}", _many(rate.value)]
            cells += [span(rate.interval, _many)] if sampled else []
            rates.append([*cells, *([_found(one_rate)] if with_found else [])])
        yield Grid(f"how many {what} reach a cosine", heads, rates, ("cosine", heads[1], "relevant found"))
        if self.guarantees:
            yield self._promises()

    def _promises(self) -> Grid:
        sliced = any(one.slice is not None for one in self.guarantees)
        heads = ["promise", "cosine", "precision", "recall", "pairs above", "pairs"]
        heads = ["slice", *heads] if sliced else heads
        rows: list[list[Cell]] = [
            [
                *([one.slice or "all"] if sliced else []),
                _NAMES[one.promise].format(one.target),
                "none" if one.cosine is None else _short(one.cosine),
                _with_interval(one.precision, one.precision_interval),
                _with_interval(one.recall, one.recall_interval),
                one.n_above,
                one.n_pairs,
            ]
            for one in self.guarantees
        ]
        title = f"thresholds that keep a promise with {percent(self.guarantees[0].confidence)} confidence"
        return Grid(title, heads, rows, ("cosine", "precision", "recall"))

    def lines(self) -> list[str]:
        """Return the threshold between labels, and the notes."""
        lines = []
        if self.best is not None:
            best = self.best
            figures = f"balanced accuracy {best.balanced_accuracy:.3f}, AUC {best.auc:.3f}"
            precision = f"precision {best.precision:.3f}"
            lines.append(f"best threshold between labels: {_short(best.threshold)} ({figures}, {precision})")
        if self._tail.is_population:
            lines.append("all pairs were counted: these rates are exact for these rows")
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values, unrounded."""
        shown = (one.name for one in fields(self) if one.repr)
        return {"isoscope": __version__} | {name: plain(getattr(self, name)) for name in shown}

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.by_rate
        lows, highs = zip(*(one.interval or (None, None) for one in rows), strict=True) if rows else ((), ())
        return {
            "rate": [one.rate for one in rows],
            "cosine": [one.cosine for one in rows],
            "low": list(lows),
            "high": list(highs),
            "translated": [one.translated for one in rows],
        }


def _found(one: CosineOfRate | RateOfCosine) -> str:
    if one.found is None or one.found_interval is None:
        return "–"
    return f"{percent(one.found, 1)} ({span(one.found_interval, lambda end: percent(end, 1))})"


def _ratio(value: float) -> str:
    """Return 1/rate: whole where that is near enough.

    >>> _ratio(2.5), _ratio(1e6), _ratio(100 / 3)
    ('2.5', '1,000,000', '33')
    """
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _short(cosine: float | None) -> str:
    return "–" if cosine is None else f"{cosine:.4f}"


def _many(rate: float) -> str:
    return f"{_MILLION * rate:,.3g}" if rate < 9.995e-4 else f"{_MILLION * rate:,.0f}"


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    return "–" if value is None else f"{value:.3f} ({span(interval, lambda end: f'{end:.3f}')})"
