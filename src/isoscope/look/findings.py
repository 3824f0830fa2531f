"""What a first look finds: words, meaning and next step of each finding, by its severity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isoscope.engine.readings import Reading
from isoscope.engine.sample import EqualRows
from isoscope.look.finding import Finding, Write, decimal, per_cent, tenths
from isoscope.look.next_steps import Step
from isoscope.look.references import values_of
from isoscope.metrics.thresholds import (
    THRESHOLDS,
    Severity,
    common_direction,
    hubs,
    lengths,
    local_directions,
    severity_of,
    variance,
)
from isoscope.printable import capitalized, counted
from isoscope.tables import percent

ROWS = "unusable_rows"  # the share of zero vectors and copies, which no metric measures
_FEWEST_NEIGHBORS = 100  # rows, below which nothing is said of neighbours
_FULL = 0.95  # an attainable purity from which on it is not mentioned
_FEWEST_OWN = 0.1  # of a purity: with less to reach above chance, labels cannot be judged
_LISTED = 1000  # rows or dimensions of a kind that a finding lists
_NAMED = 3  # of them that its sentence names
_CENTERED = 0.02  # a mean cosine below it is that of centred vectors
_UNIT = 1e-3  # lengths that differ from 1 by less are 1
_ABOVE_ONE = " A debiased IsoScore above 1 reads as 1: it is high where these very rows were whitened."
_MORE_ROWS = "More rows are needed to judge this."

Unclear = tuple[str, str] | None  # a headline that says why nothing can be said, and what would help


@dataclass(frozen=True)
class Evidence:
    """What the findings are made from.

    Attributes:
        readings: by metric.
        n, d: rows and dimensions of the space.
        n_sampled: rows of the sample that neighbours were searched in.
        strongest: the dimension that contributes most to the mean cosine; None where none does.
        rogue_limit: the share in the mean cosine from which on a dimension is rogue.
        n_zero: zero vectors among all rows.
        constant: the dimensions that have the same value in all rows.
        equal: the rows that have an exact copy.
        hubs: the rows that are neighbours of unusually many others, the greatest first.
        few, too_few: whether the rows are few for the dimensions, or too few to judge their variance.
        chance: the purity of neighbours that labels reach by chance; None without labels.
        attainable: the purity that they reach where each label lies by itself.
        steps: makes the next step from its kind and details.
    """

    readings: Mapping[str, Reading]
    n: int
    d: int
    n_sampled: int
    strongest: int | None
    rogue_limit: float
    n_zero: int
    constant: tuple[int, ...]
    equal: EqualRows
    hubs: Sequence[int]
    few: bool
    too_few: bool
    chance: float | None
    attainable: float
    steps: Callable[..., Step]

    def value(self, metric: str) -> float | None:
        """Return the value of a metric, or None where it has none."""
        reading = self.readings.get(metric)
        return None if reading is None else reading.value


def findings_of(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, the worst first."""
    return tuple(sorted(_findings(evidence), key=lambda finding: finding.rank))


def _findings(e: Evidence) -> Iterator[Finding]:
    yield _common_direction(e)
    yield _dimensions_used(e)
    yield _dominating_dimension(e)
    yield _lengths(e)
    yield _rows(e)
    yield _hubness(e)
    yield _intrinsic_dimension(e)
    if e.chance is not None:
        yield _labels(e)


def _finding(
    e: Evidence,
    name: str,
    metric: str,
    quantity: str,
    *,
    words: Mapping[str, str],
    meanings: Mapping[str, str],
    steps: Mapping[str, Step],
    excess: float | None = None,
    unclear: Unclear = None,
    sampled: bool = False,
    write: Write = decimal,
    listed: Mapping[str, Sequence[Any]] | None = None,
    compared: bool = True,
) -> Finding:
    """Make a finding; words, meanings and steps are by severity, "bad" stands for serious and moderate.

    Args:
        e: the evidence.
        name, metric, quantity: of the finding.
        words, meanings, steps: the headline, what it means, and what to try next.
        excess: how far the finding lies beyond its thresholds, 0 at moderate and 1 at serious; by default
            that of the metric's value.
        unclear: why nothing can be said, if so, and what would help.
        sampled: whether it was computed from the sample.
        write: how the number is written.
        listed: the rows or dimensions that it is about.
        compared: whether the number is what the finding is about, and is compared with the references.
    """
    reading = e.readings[metric]
    if reading.value is None:
        headline = f"{capitalized(quantity)} could not be computed: {reading.reason}."
        unclear = headline, f"The metric `{metric}` has no value for these vectors."
    excess = THRESHOLDS[name].excess(reading.value or 0.0) if excess is None else excess
    severity: Severity = "unclear" if unclear else severity_of(excess)

    def chosen(texts: Mapping[str, Any]) -> Any:
        bad = texts["healthy"] if severity == "unclear" else texts.get("bad")
        return texts.get(severity, bad)

    return Finding(
        name=name,
        severity=severity,
        headline=unclear[0] if unclear else chosen(words),
        quantity=quantity,
        reading=reading,
        references=values_of(metric) if compared else {},
        meaning=unclear[1] if unclear else chosen(meanings),
        step=chosen(steps),
        n_rows=e.n_sampled if sampled else e.n,
        write=write,
        excess=excess,
        listed=listed or {},
    )


def _any(words: str) -> dict[str, str]:
    """Return words that say by themselves how severe the finding is."""
    return dict.fromkeys(("bad", "healthy"), f"{capitalized(words)}.")


def _common_direction(e: Evidence) -> Finding:
    cosine = e.value("mean_cosine") or 0.0
    pair = f"two random rows have a cosine of {cosine:z.2f} on average"
    return _finding(
        e, "common_direction", "mean_cosine", "mean cosine",
        words=_any(f"{common_direction(cosine)}: {pair}"),
        meanings={
            "bad": "Search: unrelated rows also get a high cosine, so a fixed similarity threshold misleads. "
            "Subtract the mean vector, or use only the order of the results.",
            "healthy": "Search: unrelated rows get a cosine near 0, so a high cosine is informative.",
        },
        steps={"bad": e.steps("correct", "center"), "healthy": e.steps("report")},
    )  # fmt: skip


def _dimensions_used(e: Evidence) -> Finding:
    score = e.value("isoscore_debiased") or 0.0
    used = min(float(e.d), 1 + score * (e.d - 1))
    carried = f"{variance(score)}: about {used:,.0f} of {e.d:,} dimensions carry it"
    shown = f", as far as {e.n:,} rows can show" if e.few else ""
    return _finding(
        e, "dimensions_used", "isoscore_debiased", "debiased IsoScore",
        words=_any(f"{carried}{shown}"),
        meanings={
            "bad": "Search and clustering: a few directions decide most distances. Far fewer dimensions "
            "could be stored, or the directions be weighted more evenly; whether a task gains by that, a "
            "higher IsoScore does not tell.",
            "healthy": "Search and clustering: many directions contribute to every distance."
            + _ABOVE_ONE * (score > 1),
        },
        unclear=(f"{e.n:,} rows are too few to tell how {e.d:,} dimensions are used.", _MORE_ROWS)
        if e.too_few
        else None,
        steps={"bad": e.steps("correct", "whiten", strength=0.5), "healthy": e.steps("measure", "spectrum")},
    )  # fmt: skip


def _dominating_dimension(e: Evidence) -> Finding:
    share, cosine = e.value("top_dimension_share") or 0.0, e.value("mean_cosine") or 0.0
    excess = THRESHOLDS["dominating_dimension"].excess(share / e.rogue_limit)
    is_low = cosine < THRESHOLDS["common_direction"].moderate
    if is_low:
        excess = min(excess, -1.0)
    alone = f"Dimension {e.strongest} alone makes {percent(share)} of the mean cosine"
    return _finding(
        e, "dominating_dimension", "top_dimension_share", "share of the strongest dimension",
        words={"bad": f"{alone}.", "healthy": "No single dimension dominates the similarities."},
        meanings={
            "bad": "Search: one coordinate hides what the others say about the similarity of two rows. "
            "Standardise the dimensions, or remove this one.",
            "healthy": "Search: the mean cosine is near 0, so the share of a dimension in it says little."
            if is_low
            else "Search: a similarity depends on many coordinates, so none has to be removed.",
        },
        excess=excess,
        compared=not is_low,
        steps={"bad": e.steps("correct", "standardize"), "healthy": e.steps("measure", "dimensions")},
        write=per_cent,
    )  # fmt: skip


def _nonzero_lengths(e: Evidence) -> tuple[float, float]:
    """Return the mean length of the vectors that are not zero, and the variation of their lengths."""
    variation, mean = e.value("norm_variation") or 0.0, e.value("mean_norm") or 0.0
    share = 1 - e.n_zero / e.n
    return mean / share if share else 0.0, max(0.0, (variation**2 + 1) * share - 1) ** 0.5


def _is_unit(e: Evidence) -> bool:
    mean, variation = _nonzero_lengths(e)
    return variation < _UNIT and abs(mean - 1) < _UNIT


def _lengths(e: Evidence) -> Finding:
    variation = e.value("norm_variation") or 0.0
    mean, _ = _nonzero_lengths(e)
    is_unit = _is_unit(e)
    zeros = f"; the variation of {percent(variation, 1)} is from {counted(e.n_zero, 'zero vector')}"
    same = f"all vectors have length 1{zeros if e.n_zero else ''}"
    return _finding(
        e, "lengths", "norm_variation", "variation of the lengths",
        words={
            "bad": f"The vectors are not normalised: {lengths(variation)} ({mean:.3g}).",
            "healthy": f"{capitalized(same if is_unit else lengths(variation))}.",
        },
        meanings={
            "bad": "Search: cosine and dot product rank results differently. Normalise the vectors, or use "
            "the similarity that the model was trained with.",
            "healthy": "Search: cosine, dot product and Euclidean distance rank results "
            + ("alike." if is_unit else "almost alike."),
        },
        excess=min(THRESHOLDS["lengths"].excess(variation), -1.0) if is_unit else None,
        steps={"bad": e.steps("correct", "normalize"), "healthy": e.steps("measure", "cosine")},
        write=per_cent,
    )  # fmt: skip


def _named(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_NAMED])) + (", …" if len(numbers) > _NAMED else "")


def _rows(e: Evidence) -> Finding:
    n_copies, n_compared = len(e.equal.copies), e.equal.n_compared
    zeros, groups = e.equal.zeros[:_LISTED].tolist(), e.equal.groups(_LISTED)
    excess = THRESHOLDS["rows"].excess(max(e.n_zero / e.n, n_copies / n_compared, len(e.constant) / e.d))
    parts, harms = [], []
    if e.n_zero:
        excess = max(excess, 0.0)  # a single one has no cosine
        where = f" ({'row' if e.n_zero == 1 else 'rows'} {_named(zeros)})" if zeros else ""
        parts.append(f"{counted(e.n_zero, 'zero vector')}{where}")
        harms.append("a zero vector has no cosine")
    if groups:
        first, second = groups[0][:2]
        where = "" if n_compared == e.n else f" of the first {n_compared:,}"
        parts.append(f"{n_copies:,} rows{where} that equal another row (such as rows {first} and {second})")
        harms.append("copies fill the results, and leak from training rows to test rows")
    if e.constant:
        which = "dimension" if len(e.constant) == 1 else "dimensions"
        parts.append(f"{counted(len(e.constant), 'constant dimension')} ({which} {_named(e.constant)})")
        harms.append("a constant dimension takes memory and tells no rows apart")
    sentence = f"{', '.join(parts)}; numbers count from 0"
    return _finding(
        e, "rows", ROWS, "zero vectors and copies",
        words={
            "bad": f"Some rows or dimensions need cleaning: {sentence}.",
            "healthy": f"Hardly any row or dimension needs cleaning: {sentence}."
            if parts
            else "There are no zero vectors, exact copies or constant dimensions.",
        },
        meanings={
            "bad": f"Search and evaluation: {'; '.join(harms)}.",
            "healthy": "Search and evaluation: rows and dimensions need no cleaning.",
        },
        excess=excess,
        steps={"bad": e.steps("look"), "healthy": e.steps("report")},
        write=per_cent,
        listed={
            "zero_vectors": zeros,
            "copies": e.equal.copies[:_LISTED].tolist(),
            "copy_groups": groups,
            "constant_dimensions": e.constant[:_LISTED],
        },
        compared=not e.constant or bool(e.n_zero or n_copies),
    )  # fmt: skip


def _too_few_neighbors(e: Evidence) -> Unclear:
    if e.n_sampled >= _FEWEST_NEIGHBORS:
        return None
    return f"{counted(e.n_sampled, 'row')} are too few to judge neighbours.", _MORE_ROWS


def _hubness(e: Evidence) -> Finding:
    cosine = e.value("mean_cosine")
    is_centered = cosine is not None and abs(cosine) < _CENTERED
    if is_centered and _is_unit(e):
        step = e.steps("advise") if e.chance is not None else e.steps("measure", "manifold")
        advice = (
            "The vectors are centred and normalised already; `isoscope advise` tests other corrections on "
            "labels or scored pairs."
        )
    else:
        step = e.steps("correct", "center,normalize")
        advice = "Centring and normalising often lowers it: look at the corrected vectors again."
    words = capitalized(hubs(e.value("hubness") or 0.0))
    which = f"; the greatest hubs are rows {_named(e.hubs)} (counted from 0)" if len(e.hubs) > 1 else ""
    return _finding(
        e, "hubness", "hubness", "hubness, by Euclidean distance",
        words={"bad": f"{words}{which}.", "healthy": f"{words}."},
        meanings={
            "bad": "Search: the same few rows come up for many queries, and others are hardly ever found. "
            + advice,
            "healthy": "Search: every row has a fair chance to be found.",
        },
        unclear=_too_few_neighbors(e),
        sampled=True,
        steps={"bad": step, "healthy": e.steps("measure", "manifold")},
        listed={"hubs": e.hubs[:_LISTED]},
    )  # fmt: skip


def _intrinsic_dimension(e: Evidence) -> Finding:
    dimension = e.value("twonn") or 0.0
    return _finding(
        e, "intrinsic_dimension", "twonn", "intrinsic dimension",
        words=_any(local_directions(dimension)),
        meanings={
            "bad": "Clustering and classifiers: the likely cause is that many rows nearly equal another row; "
            "remove such near copies and look again."
            if dimension < 1
            else "Clustering and classifiers: rows differ in so few ways that the vectors hold little "
            "information beyond them.",
            "healthy": f"Clustering and classifiers: rows differ in many ways; {e.d:,} stored dimensions "
            f"describe about {dimension:.0f} local ones.",
        },
        unclear=_too_few_neighbors(e),
        sampled=True,
        steps=dict.fromkeys(("bad", "healthy"), e.steps("measure", "manifold")),
        write=tenths,
    )  # fmt: skip


def _labels_too_small(e: Evidence) -> Unclear:
    if e.attainable - (e.chance or 0.0) >= _FEWEST_OWN:
        return None
    which = f"the {e.n_sampled:,} sampled rows" if e.n_sampled < e.n else f"the {e.n:,} rows"
    return (
        f"The labels have too few rows each among {which} to judge neighbours.",
        "More rows of each label are needed, or labels that are less fine.",
    )


def _labels(e: Evidence) -> Finding:
    purity, chance = e.value("knn_purity") or 0.0, e.chance or 0.0
    silhouette = e.readings["silhouette"]
    also = "" if silhouette.value is None else f"; the silhouette is {silhouette.value:.2f}"
    most = f", {percent(e.attainable)} at most" if e.attainable < _FULL else ""
    share = (
        f"{percent(purity)} of the 10 nearest neighbours have the same label "
        f"({percent(chance)} by chance{most}){also}"
    )
    return _finding(
        e, "labels", "knn_purity", "neighbours with the same label",
        words={
            "serious": f"The labels are hardly visible: {share}.",
            "moderate": f"The labels overlap: {share}.",
            "healthy": f"The labels form neighbourhoods: {share}.",
        },
        meanings={
            "bad": "Classifier: a vote of the nearest neighbours is often wrong; a trained classifier, or a "
            "correction, may still separate the labels.",
            "healthy": "Classifier: a vote of the nearest neighbours finds the label of most rows.",
        },
        excess=THRESHOLDS["labels"].excess((purity - chance) / max(e.attainable - chance, 1e-9)),
        unclear=_too_few_neighbors(e) or _labels_too_small(e),
        sampled=True,
        steps=dict.fromkeys(("bad", "healthy"), e.steps("advise")),
        write=per_cent,
    )  # fmt: skip
