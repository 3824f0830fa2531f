"""From which value on a finding is moderate or serious, and why: one table, which docs/look.md shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["serious", "moderate", "unclear", "healthy"]
NEAR_ONE = 0.9  # IsoScore above which a space is close to isotropic
SEVERITIES: tuple[Severity, ...] = ("serious", "moderate", "unclear", "healthy")  # the worst first


@dataclass(frozen=True)
class Threshold:
    """The two thresholds of a finding.

    Attributes:
        moderate, serious: the values from which on a finding has this severity. Where `serious` is the
            smaller one, low values are bad.
        quantity: what is compared with the thresholds, in words.
        reason: why the thresholds lie there.
    """

    moderate: float
    serious: float
    quantity: str
    reason: str

    def excess(self, value: float) -> float:
        """Return how far a value lies beyond the thresholds: 0 at moderate, 1 at serious, negative before.

        >>> Threshold(0.1, 0.5, "", "").excess(0.3), Threshold(5, 2, "", "").excess(1)
        (0.5, 1.3333333333333333)
        """
        return (value - self.moderate) / (self.serious - self.moderate)

    def value(self, excess: float) -> float:
        """Return the value that lies so far beyond the thresholds."""
        return self.moderate + excess * (self.serious - self.moderate)


def spread(score: float) -> str:
    """Return in words how the variance is spread, by IsoScore; the report has the same words."""
    if score >= NEAR_ONE:
        return "is spread almost evenly"
    if score >= 0.5:
        return "is spread over most dimensions, but not evenly"
    if score >= THRESHOLDS["dimensions_used"].moderate:
        return "is spread unevenly over many directions"
    return "lies in few directions"


THRESHOLDS: dict[str, Threshold] = {
    "common_direction": Threshold(
        0.1,
        0.5,
        "mean cosine of two random rows",
        "From 0.1 on, a fixed similarity threshold has to allow for the offset; from 0.5 on, unrelated rows "
        "look more alike than different.",
    ),
    "dimensions_used": Threshold(
        0.05,
        0.01,
        "IsoScore, debiased",
        "IsoScore is about the share of the dimensions that carry the variance. Below 0.05 "
        "nineteen of twenty carry little; below 0.01 a handful of directions decides every distance.",
    ),
    "dominating_dimension": Threshold(
        1.0,
        5.0,
        "share of the strongest dimension in the mean cosine, in units of the limit of `rogue_dimensions`",
        "The limit is ten times an even share, at least 5 % and at most 75 %. The finding is healthy where "
        "the mean cosine is below 0.1, because there is little to contribute to.",
    ),
    "lengths": Threshold(
        0.05,
        0.5,
        "standard deviation of the lengths, divided by their mean",
        "At 0.05 cosine and dot product begin to rank close results differently; at 0.5 the length decides "
        "more than the direction in many comparisons.",
    ),
    "rows": Threshold(
        0.001,
        0.05,
        "share of zero vectors, of exact copies, or of constant dimensions, whichever is largest",
        "One row in a thousand is worth removing; one in twenty changes neighbours, clusters and scores.",
    ),
    "hubness": Threshold(
        2.0,
        5.0,
        "skewness of how often a row is among the 10 nearest neighbours of another",
        "Sentence encoders have 1 to 2. Above 2 some rows are neighbours of many others; above 5 a few rows "
        "come up for very many queries.",
    ),
    "intrinsic_dimension": Threshold(
        4.0,
        2.0,
        "intrinsic dimension by TwoNN",
        "The references have 6 to 11. Below 4, neighbours differ in few ways; below 2, the rows lie almost "
        "on a curve.",
    ),
    "labels": Threshold(
        0.5,
        0.1,
        "purity of the 10 nearest neighbours, rescaled: 0 is chance, 1 is the most that the labels can reach",
        "Below 0.5 fewer than half of the neighbours beyond chance share the label; below 0.1 hardly any do.",
    ),
}
