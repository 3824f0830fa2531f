"""The headline: what the space is like, in two or three sentences."""

from __future__ import annotations

from isoscope.measurement import Measurement
from isoscope.metrics.frontier import ScatterDecomposition, is_by_chance, isotropy_ceiling
from isoscope.metrics.isotropy import is_few, is_too_few
from isoscope.report.pair_cosines import PairCosines
from isoscope.tables import shown

_COMMON = 0.1  # a mean cosine from which on vectors share a direction
_NEAR_ONE = 0.9  # an IsoScore from which on a space is close to isotropic
_ROUNDING = 1e-12  # an IsoScore under it is 0
_ROGUE = 0.1  # a dimension that makes this share of the mean cosine is worth a sentence


def headline(
    measured: Measurement,
    cosines: PairCosines | None,
    split: ScatterDecomposition | None,
    strongest: int | None,
    fair_share: float | None = None,
) -> list[str]:
    """Sentences on the shape, the cosines and the labels, from what was measured.

    `strongest` is the dimension that adds most to the mean cosine, `fair_share` the share of the variance
    between labels without what chance makes of few vectors a label.
    """
    sentences = [_shape(measured), _cosine(measured, cosines)]
    if split is not None:
        sentences.append(_labels(measured, split, fair_share))
    else:
        sentences.append(_dimension(measured, strongest))
    return [sentence for sentence in sentences if sentence]


def _value(measured: Measurement, name: str) -> float | None:
    return measured[name] if name in measured.keys() else None  # noqa: SIM118


def _shape(measured: Measurement) -> str:
    score, rank = _value(measured, "isoscore"), _value(measured, "effective_rank")
    if score is None or rank is None:
        return ""
    n, d = measured.n, measured.d
    if not is_few(n, d):
        kind = _spread(score, _value(measured, "mean_cosine"))
        return (
            f"Of {d:,} dimensions the variance fills about {rank:,.0f} and {kind} (IsoScore {_score(score)})."
        )
    fair = _value(measured, "isoscore_debiased")
    true = "" if fair is None else f", {_score(fair)} once the bias of few vectors is removed"
    if fair is None or is_too_few(n, d):
        said = f"{n:,} vectors are too few to say how the variance is spread over {d:,} dimensions"
    else:
        kind = _spread(fair, _value(measured, "mean_cosine"))
        said = f"{n:,} vectors are few for {d:,} dimensions; as far as they show, the variance {kind}"
    return f"{said} (IsoScore {_score(score)}{true})."


def _spread(score: float, mean_cosine: float | None) -> str:
    """How the variance lies, after IsoScore; which looks past the mean, so words do not when there is one."""
    if score >= _NEAR_ONE:
        about = " about its mean" if mean_cosine is not None and mean_cosine > _COMMON else ""
        return f"is spread over them almost evenly, so the space is close to isotropic{about}"
    if score >= 0.5:
        return "is spread over most of them, but not evenly"
    if score >= 0.1:
        return "favours some of them clearly"
    return "lies in few directions"


def _cosine(measured: Measurement, cosines: PairCosines | None) -> str:
    mean = _value(measured, "mean_cosine")
    if mean is None or cosines is None:
        return ""
    if mean > 0.5:
        kind = f"The space is a narrow cone: two random vectors have a cosine of {mean:.2f} on average"
    elif mean > _COMMON:
        kind = f"Random vectors share a direction, with a cosine of {mean:.2f} on average"
    else:
        kind = f"Random vectors point nowhere in common, with a cosine of {_signed(mean)} on average"
    if not cosines.knows(0.01):
        return f"{kind}."
    return f"{kind}, and one pair in a hundred exceeds {_signed(cosines.threshold(0.01))}."


def _labels(measured: Measurement, split: ScatterDecomposition, fair_share: float | None) -> str:
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
    share, ceiling, chance = split.between_share, split.ceiling, ""
    if fair_share is not None and is_by_chance(share, fair_share):
        chance = f" ({share:.0%} with what few vectors a label add by chance)"
        share = max(0.0, fair_share)
        ceiling = isotropy_ceiling(split.n_labels, split.n_dims, between=share)
    room = (
        "they leave room for full isotropy"
        if ceiling >= 0.9995
        else f"labels this far apart allow an IsoScore of {shown(ceiling)} at most"
    )
    return (
        f"The {split.n_labels:,} labels hold {share:.0%} of the variance{chance} and {kind} "
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
