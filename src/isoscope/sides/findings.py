"""What stands out about the sides of a space, in words, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from isoscope.engine.readings import Reading
from isoscope.tables import percent

_NOTHING = 10.0  # a side finds nothing where its hit rate is surely below so many times that of chance
_WORTH = 0.01  # of the hit rate: centring that surely brings more, and a larger asymmetry, are reported
_ALIKE = 0.6  # sides whose separability is surely below look embedded alike
_APART = 0.1  # of the variance: a gap that is surely above is reported
_PREFIX = "if the model wants a prefix for each side (query: and passage:), check that both are set"


def findings_of(readings: Iterable[Reading], sizes: Mapping[str, int], *, n_pairs: int) -> list[str]:
    """Return what stands out; a line of reassurance where nothing does."""
    rows = list(readings)
    lines = [*_identical(rows, n_pairs), *_nothing_found(rows, sizes)]
    lines += [*_asymmetric(rows, list(sizes)), *_centring(rows), *_gaps(rows)]
    return lines or ["nothing stands out: no large gap, and each side finds its partners about as well"]


def _of(rows: Iterable[Reading], metric: str, vectors: str | None = None) -> Iterator[Reading]:
    return (row for row in rows if row.metric == metric and row.group.get("vectors") == vectors)


def _identical(rows: list[Reading], n_pairs: int) -> Iterator[str]:
    for row in _of(rows, "identical_pairs"):
        if row.value:
            yield (
                f"{round(row.value * n_pairs):,} of {n_pairs:,} pairs have one vector: are texts equal, "
                "or was one side embedded as the other?"
            )


def _nothing_found(rows: list[Reading], sizes: Mapping[str, int]) -> Iterator[str]:
    for row in _of(rows, "hit_rate@10", "as they are"):
        side = row.group["side"]
        n_others = sum(n for name, n in sizes.items() if name != side)
        assert row.high is not None
        if row.number == 0 or row.high < min(_NOTHING * 10 / n_others, 0.5):
            share, chance = percent(row.number, 1), percent(min(10 / n_others, 1.0), 1)
            yield (
                f"{side} finds nothing: {share} of its rows have a partner among the first 10 "
                f"({chance} by chance)"
            )


def _asymmetric(rows: list[Reading], names: list[str]) -> Iterator[str]:
    for row in _of(rows, "asymmetry"):
        if row.interval and not row.interval[0] <= 0 <= row.interval[1] and abs(row.number) > _WORTH:
            better, worse = names if row.number > 0 else names[::-1]
            yield (
                f"{better} finds its partners more often than {worse} does: a share of the rows higher by "
                f"{_points(row)} has one among the first 10"
            )


def _centring(rows: list[Reading]) -> Iterator[str]:
    for row in _of(rows, "centring"):
        if row.low is not None and row.high is not None and (row.low > _WORTH or row.high < -_WORTH):
            verb, way = ("helps", "higher") if row.number > 0 else ("harms", "lower")
            yield (
                f"centring each side {verb} {row.group['side']}: a share of the rows {way} by {_points(row)} "
                "has a partner among the first 10"
            )


def _points(row: Reading) -> str:
    return f"{100 * abs(row.number):.1f} points"


def _gaps(rows: list[Reading]) -> Iterator[str]:
    separabilities = {row.group["side"]: row for row in _of(rows, "separability")}
    for row in _of(rows, "gap"):
        side = row.group["side"]
        other = separabilities.get(side)
        if row.low is not None and row.low > _APART:
            yield f"the sides lie apart: {percent(row.number)} of the variance is between the means ({side})"
        elif other is not None and other.high is not None and other.high < _ALIKE:
            yield f"the sides look embedded alike ({side}): a classifier hardly tells them apart; {_PREFIX}"
