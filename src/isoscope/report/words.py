"""The headline: two to four sentences that describe a space."""

from __future__ import annotations

from typing import Any

from isoscope.engine.sample import EqualRows
from isoscope.matching.pair_cosines import PairCosines
from isoscope.measurement import Measurement
from isoscope.metrics.dimensions import rogue_limit
from isoscope.metrics.frontier import ScatterDecomposition, is_by_chance, isotropy_ceiling
from isoscope.metrics.isotropy import is_few, is_too_few
from isoscope.metrics.thresholds import NEAR_ONE, THRESHOLDS, clusters, common_direction, variance
from isoscope.printable import capitalized, counted
from isoscope.tables import percent, shown

_COMMON = THRESHOLDS["common_direction"].moderate  # mean cosine above which vectors share a direction
_ROUNDING = 1e-12  # an IsoScore below it is 0


def headline(
    measured: Measurement,
    cosines: PairCosines | None,
    equal: EqualRows,
    split: ScatterDecomposition | None,
    strongest: int | None,
    fair_share: float | None = None,
    searched: dict[str, Any] | None = None,
) -> list[str]:
    """Return sentences about rows to clean, the variance, the cosines, and labels or strongest dimension.

    Args:
        measured: the metrics.
        cosines: the cosines of pairs.
        equal: the zero vectors and the equal rows.
        split: the variance within and between labels; None without labels.
        strongest: the dimension that contributes most to the mean cosine.
        fair_share: the share of the variance between labels, corrected for chance.
        searched: the section of the queries; None without queries.
    """
    sentences = [_rows(equal), _shape(measured), _cosine(measured, cosines)]
    if searched is not None:
        sentences.append(_search(searched))
    if split is not None:
        sentences.append(_labels(measured, split, fair_share))
    else:
        sentences.append(_dimension(measured, strongest))
    return [sentence for sentence in sentences if sentence]


def _value(measured: Measurement, name: str) -> float | None:
    return measured[name] if name in measured.keys() else None  # noqa: SIM118


def _rows(equal: EqualRows) -> str:
    n_zero, n_copies = len(equal.zeros), len(equal.copies)
    if not n_zero and THRESHOLDS["rows"].severity(n_copies / equal.n_compared) == "healthy":
        return ""
    parts = [counted(n_zero, "zero vector")] if n_zero else []
    parts += [f"{n_copies:,} rows that equal another row"] if n_copies else []
    return f"Some rows need cleaning: {' and '.join(parts)}; `isoscope look` lists them."


def _shape(measured: Measurement) -> str:
    score, rank = _value(measured, "isoscore"), _value(measured, "effective_rank")
    if score is None or rank is None:
        return ""
    n, d = measured.n, measured.d
    if not is_few(n, d):
        kind = _spread(score, _value(measured, "mean_cosine"))
        used = f"about {min(d, 1 + score * (d - 1)):,.0f} of {d:,} dimensions carry it"
        return f"{capitalized(kind)}: {used} (IsoScore {_score(score)}, effective rank {rank:,.0f})."
    fair = _value(measured, "isoscore_debiased")
    debiased = "" if fair is None else f"; {_score(fair)} without the bias of few vectors"
    if fair is None or is_too_few(n, d):
        sentence = f"{n:,} vectors are too few to tell how the variance is spread over {d:,} dimensions"
    else:
        kind = _spread(fair, _value(measured, "mean_cosine"))
        sentence = f"{n:,} vectors are few for {d:,} dimensions; as far as they show, {kind}"
    return f"{sentence} (IsoScore {_score(score)}{debiased})."


def _spread(score: float, mean_cosine: float | None) -> str:
    """Return how the variance is spread, by IsoScore, which ignores the mean: a large one is mentioned."""
    if score >= NEAR_ONE:
        about = " about its mean" if mean_cosine is not None and mean_cosine > _COMMON else ""
        return f"{variance(score)}, so the space is close to isotropic{about}"
    return variance(score)


def _cosine(measured: Measurement, cosines: PairCosines | None) -> str:
    mean = _value(measured, "mean_cosine")
    if mean is None or cosines is None:
        return ""
    kind = f"{capitalized(common_direction(mean))}: two random vectors have a mean cosine of {_signed(mean)}"
    if not cosines.knows(0.01):
        return f"{kind}."
    return f"{kind}, and 1 % of pairs exceed {_signed(cosines.threshold(0.01))}."


def _search(searched: dict[str, Any]) -> str:
    """Return the threshold of queries beside that of documents, and how many queries find something."""
    unrelated = "an unrelated document" if searched["has_relevance"] else "a document"
    first = next(iter(searched["thresholds"]), None)
    parts = []
    if first is not None:
        parts.append(
            f"{percent(first['rate'])} of the pairs of a query and {unrelated} exceed a cosine of "
            f"{_signed(first['cosine'])}"
        )
        if first["documents"] is not None:
            beside, share = _signed(first["documents"]), percent(first["rate_there"], 1)
            parts.append(f"{share} exceed {beside}, the threshold of two documents")
    hits = next((one for one in searched["figures"] if one["name"].startswith("hit_rate@")), None)
    if hits is not None:
        k = hits["name"].removeprefix("hit_rate@")
        parts.append(f"{percent(hits['value'])} of the queries find a relevant document among the first {k}")
    return f"{capitalized('; '.join(parts))}." if parts else ""


def _labels(measured: Measurement, split: ScatterDecomposition, fair_share: float | None) -> str:
    score = _value(measured, "silhouette")
    if score is None:
        return ""
    share, ceiling, chance = split.between_share, split.ceiling, ""
    if fair_share is not None and is_by_chance(share, fair_share):
        chance = f" ({percent(share)} before a correction for chance)"
        share = max(0.0, fair_share)
        ceiling = isotropy_ceiling(split.n_labels, split.n_dims, between=share)
    room = (
        "they allow full isotropy"
        if ceiling >= 0.9995
        else f"with such labels the IsoScore is at most {shown(ceiling)}"
    )
    return (
        f"The {split.n_labels:,} labels explain {percent(share)} of the variance{chance} and "
        f"{clusters(score)} (silhouette {_signed(score)}); {room}."
    )


def _dimension(measured: Measurement, strongest: int | None) -> str:
    share, mean = _value(measured, "top_dimension_share"), _value(measured, "mean_cosine")
    if share is None or mean is None or strongest is None:
        return ""
    if mean < _COMMON or share < rogue_limit(measured.d):
        return ""
    return f"Dimension {strongest} alone makes {percent(share)} of the mean cosine."


def _score(value: float | None) -> str:
    """Return a score as tables show it; 0 where it differs from 0 by rounding alone."""
    return shown(0.0 if value is not None and abs(value) < _ROUNDING else value)


def _signed(value: float) -> str:
    """Return a number with two decimals and a minus sign, but no minus before zero."""
    text = f"{abs(value):.2f}"
    return f"−{text}" if value < 0 and float(text) else text
