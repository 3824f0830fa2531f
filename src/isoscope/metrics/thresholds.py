"""The thresholds of findings, and what a value means in words: `look`, `measure` and `report` share both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoscope.printable import counted
from isoscope.tables import percent

Severity = Literal["serious", "moderate", "unclear", "healthy"]
SEVERITIES: tuple[Severity, ...] = ("serious", "moderate", "unclear", "healthy")  # the worst first
NEAR_ONE = 0.9  # IsoScore from which on a space is close to isotropic
_MOST = 0.5  # IsoScore from which on most dimensions carry variance
_SAME_LENGTH = 1e-3  # variation of lengths that is rounding, or nearly
_CLUSTERS = (  # by the silhouette, above
    (0.5, "form clear clusters"),
    (0.1, "form clusters that overlap"),
    (-0.05, "hardly form clusters"),
)


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

    def severity(self, value: float) -> Severity:
        """Return how severe a value is.

        >>> Threshold(0.1, 0.5, "", "").severity(0.3)
        'moderate'
        """
        return severity_of(self.excess(value))

    def value(self, excess: float) -> float:
        """Return the value that lies so far beyond the thresholds."""
        return self.moderate + excess * (self.serious - self.moderate)


def severity_of(excess: float) -> Severity:
    """Return how severe a value is that lies so far beyond its thresholds."""
    return "serious" if excess >= 1 else "moderate" if excess >= 0 else "healthy"


THRESHOLDS: dict[str, Threshold] = {
    "common_direction": Threshold(
        0.1,
        0.5,
        "mean cosine of two random rows",
        "From 0.1 on, a fixed similarity threshold has to be higher, since unrelated rows have such a cosine "
        "too; from 0.5 on, unrelated rows look more alike than different.",
    ),
    "dimensions_used": Threshold(
        0.05,
        0.01,
        "IsoScore, debiased",
        "IsoScore is about the share of the dimensions that carry the variance. Below 0.05 "
        "nineteen of twenty dimensions carry little variance; below 0.01 a handful of directions decides "
        "every distance.",
    ),
    "dominating_dimension": Threshold(
        1.0,
        5.0,
        "share of the strongest dimension in the mean cosine, divided by the share above which "
        "`rogue_dimensions` lists a dimension",
        "That share is ten times an even one, at least 5 % and at most 75 %. The finding is healthy where "
        "the mean cosine is below 0.1, because a share of nearly nothing says little.",
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
        "purity of the 10 nearest neighbours, rescaled: 0 is chance, 1 is the highest that these labels "
        "allow",
        "Below 0.5 the purity is nearer to chance than to the highest that these labels allow; below 0.1 it "
        "is almost that of chance.",
    ),
}
AUDIT_THRESHOLDS: dict[str, Threshold] = {
    "not_finite": Threshold(
        1e-12,
        0.001,
        "share of rows with NaN or infinity",
        "A single one stops most programs, and an index returns it for any query or for none.",
    ),
    "zero_vectors": Threshold(
        1e-12, 0.001, "share of zero vectors", "A zero vector has no cosine; most are texts that were empty."
    ),
    "odd_lengths": Threshold(
        1e-12,
        0.001,
        "share of rows whose length is far from all others",
        "By inner product a row that is too long comes up for every query, and one too short for none.",
    ),
    "padded_rows": Threshold(
        1e-12,
        0.01,
        "share of rows that end in zeros where others do not",
        "They are from a model of fewer dimensions or were truncated; cosines across the two mean nothing.",
    ),
    "mixture": Threshold(
        1e-12,
        0.05,
        "share of the rows of the other kind, where the rows are of two kinds that never meet",
        "A search never crosses: rows of one kind are not found for queries of the other.",
    ),
    "constant_dimensions": Threshold(
        1e-12, 0.05, "share of the dimensions with one value", "They take memory and tell no rows apart."
    ),
    "duplicates": Threshold(
        0.001,
        0.05,
        "share of rows that equal another row",
        "One row in a thousand is worth removing; one in twenty fills results and leaks into test sets.",
    ),
    "near_duplicates": Threshold(
        0.02,
        0.1,
        "share of rows that nearly equal another row",
        "From one row in fifty on, results repeat themselves; at one in ten they hide others.",
    ),
    "outliers": Threshold(
        0.001,
        0.01,
        "share of rows whose direction has parts that others do not have",
        "A few are odd texts; one row in a hundred is a fault of the pipeline.",
    ),
    "hubs": Threshold(
        0.05,
        0.2,
        "share of all results that hubs take",
        "At one result in twenty the same rows are seen again and again; at one in five others are missing.",
    ),
    "never_retrieved": Threshold(
        0.1,
        0.3,
        "share of rows that nobody retrieves, beyond those that chance alone would leave",
        "Every tenth row is stored and not found; text encoders leave a few in a hundred.",
    ),
    "inner_product": Threshold(
        0.05,
        0.2,
        "share of the results that differ between cosine and inner product",
        "At one result in twenty a change of the similarity is seen; at one in five it is another search.",
    ),
    "ann_recall": Threshold(
        0.95,
        0.85,
        "share of the exact neighbours that the index returns",
        "0.95 is the usual aim; below 0.85 one neighbour in seven is missing.",
    ),
}


def threshold_of(name: str) -> Threshold:
    """Return the threshold of a finding of a first look or of an audit."""
    return THRESHOLDS[name] if name in THRESHOLDS else AUDIT_THRESHOLDS[name]


def common_direction(mean_cosine: float) -> str:
    """Return in words how alike the directions of vectors are."""
    return {
        "serious": "all vectors point in a similar direction",
        "moderate": "the vectors share a common direction",
        "healthy": "the vectors share no common direction",
    }[THRESHOLDS["common_direction"].severity(mean_cosine)]


def variance(isoscore: float) -> str:
    """Return in words how the variance is spread."""
    if isoscore >= NEAR_ONE:
        return "the variance is spread almost evenly"
    if isoscore >= _MOST:
        return "the variance is spread over most dimensions, but not evenly"
    if isoscore >= THRESHOLDS["dimensions_used"].moderate:
        return "the variance is spread unevenly over many directions"
    return "the variance lies in few directions"


def lengths(norm_variation: float) -> str:
    """Return in words how much the lengths of vectors vary."""
    if norm_variation < _SAME_LENGTH:
        return "all vectors have the same length"
    if norm_variation < THRESHOLDS["lengths"].moderate:
        return f"all vectors have nearly the same length: it varies by {percent(norm_variation)}"
    return f"the lengths vary by {percent(norm_variation)} of their mean"


def hubs(hubness: float) -> str:
    """Return in words how unequally rows serve as neighbours."""
    return {
        "serious": "a few rows are among the nearest neighbours of very many others",
        "moderate": "some rows are among the nearest neighbours of many others",
        "healthy": "no row is a neighbour of unusually many others",
    }[THRESHOLDS["hubness"].severity(hubness)]


def local_directions(dimension: float) -> str:
    """Return in words how many dimensions the vectors have locally."""
    if dimension < 1:
        return "around each row the vectors vary in less than 1 independent direction"
    return f"around each row the vectors vary in about {counted(round(dimension), 'independent direction')}"


def clusters(silhouette: float) -> str:
    """Return in words how far labels form clusters, to follow "the labels"."""
    for limit, words in _CLUSTERS:
        if silhouette > limit:
            return words
    return "form no clusters: many rows are closer to another label than to their own"
