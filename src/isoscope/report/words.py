"""The headline: what the space is like, in two or three sentences."""

from __future__ import annotations

from isoscope.measurement import Measurement, shown
from isoscope.metrics.frontier import ScatterDecomposition
from isoscope.report.pair_cosines import PairCosines

_COMMON = 0.1  # a mean cosine from which on vectors share a direction
_FEW_PER_DIMENSION = 5  # vectors: below, the plain IsoScore reads low
_ROUNDING = 1e-12  # an IsoScore under it is 0
_ROGUE = 0.1  # a dimension that makes this share of the mean cosine is worth a sentence


def headline(
    measured: Measurement,
    cosines: PairCosines | None,
    split: ScatterDecomposition | None,
    strongest: int | None,
) -> list[str]:
    """Sentences on the shape, the cosines and the labels, from what was measured.

    `strongest` is the dimension that adds most to the mean cosine.
    """
    sentences = [_shape(measured), _cosine(measured, cosines)]
    sentences.append(_labels(measured, split) if split is not None else _dimension(measured, strongest))
    return [sentence for sentence in sentences if sentence]


def _value(measured: Measurement, name: str) -> float | None:
    return measured[name] if name in measured.keys() else None  # noqa: SIM118


def _shape(measured: Measurement) -> str:
    score, rank = _value(measured, "isoscore"), _value(measured, "effective_rank")
    if score is None or rank is None:
        return ""
    if score >= 0.5:
        kind = "is spread over most of them, so the space is close to isotropic"
    elif score >= 0.1:
        kind = "favours some of them clearly"
    else:
        kind = "lies in few directions"
    debiased = _value(measured, "isoscore_debiased")
    few = measured.n < _FEW_PER_DIMENSION * measured.d and debiased is not None
    true = f", {_score(debiased)} once the bias of few vectors is removed" if few else ""
    return (
        f"Of {measured.d:,} dimensions the variance fills about {rank:,.0f} and {kind} "
        f"(IsoScore {_score(score)}{true})."
    )


def _cosine(measured: Measurement, cosines: PairCosines | None) -> str:
    mean = _value(measured, "mean_cosine")
    if mean is None or cosines is None:
        return ""
    cut = cosines.threshold(0.01)
    if mean > 0.5:
        kind = f"The space is a narrow cone: two random vectors have a cosine of {mean:.2f} on average"
    elif mean > _COMMON:
        kind = f"Random vectors share a direction, with a cosine of {mean:.2f} on average"
    else:
        kind = f"Random vectors point nowhere in common, with a cosine of {_signed(mean)} on average"
    return f"{kind}, and one pair in a hundred exceeds {_signed(cut)}."


def _labels(measured: Measurement, split: ScatterDecomposition) -> str:
    score = _value(measured, "silhouette")
    if score is None:
        return ""
    if score > 0.5:
        kind = "form clear clusters"
    elif score > 0.1:
        kind = "form clusters that overlap"
    elif score > -0.05:
        kind = "are hardly visible as clusters"
    else:
        kind = "do not follow the clusters of the space"
    room = (
        "they leave room for full isotropy"
        if split.ceiling >= 0.9995
        else f"labels this far apart allow an IsoScore of {shown(split.ceiling)} at most"
    )
    return (
        f"The {split.n_labels:,} labels hold {split.between_share:.0%} of the variance and {kind} "
        f"(silhouette {_signed(score)}); {room}."
    )


def _dimension(measured: Measurement, strongest: int | None) -> str:
    share, mean = _value(measured, "top_dimension_share"), _value(measured, "mean_cosine")
    if share is None or mean is None or strongest is None or share < _ROGUE or mean < _COMMON:
        return ""
    return f"Dimension {strongest} alone makes {share:.0%} of what the dimensions add to the mean cosine."


def _score(value: float | None) -> str:
    """As tables show it, and 0 where only rounding keeps it from 0."""
    return shown(0.0 if value is not None and abs(value) < _ROUNDING else value)


def _signed(value: float) -> str:
    """Two decimals with a true minus, and no minus before zero."""
    text = f"{abs(value):.2f}"
    return f"−{text}" if value < 0 and float(text) else text
