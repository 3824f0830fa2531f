"""The findings of an audit: what each is about, in words, with the rows and the next command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from isoscope.audit.evidence import Evidence
from isoscope.audit.shares import Share
from isoscope.engine.readings import Reading
from isoscope.look.finding import Example, Finding, per_cent
from isoscope.look.next_steps import Step
from isoscope.metrics.thresholds import Severity, severity_of, threshold_of
from isoscope.printable import counted
from isoscope.tables import percent

LISTED = 1000  # rows of a kind that a finding lists
_EXAMPLES = 3
_FEWEST = 100  # rows, below which nothing is said of hubs

Texts = Callable[[Sequence[int]], Sequence[str]]  # of rows; empty where there are none


@dataclass(frozen=True)
class Words:
    """How findings are written.

    Attributes:
        steps: makes the next step.
        texts: of rows. query_texts: of queries.
    """

    steps: Callable[..., Step]
    texts: Texts
    query_texts: Texts


def findings_of(e: Evidence, words: Words) -> tuple[Finding, ...]:
    """Return the findings, the worst first."""
    return tuple(sorted(_findings(e, words), key=lambda finding: finding.rank))


def _findings(e: Evidence, w: Words) -> Iterator[Finding]:
    yield _unusable(e, w)
    yield _zeros(e, w)
    yield _odd_lengths(e, w)
    if e.differing is not None:
        yield _inner_product(e, w)
    yield _constant(e, w)
    yield _padded(e, w)
    yield _duplicates(e, w)
    if e.near is not None:
        yield _near(e, w)
    yield _outliers(e, w)
    if e.mixture is not None:
        yield _mixture(e, w)
    if e.hubs is not None:
        yield _hubs(e, w)
        yield _never(e, w)
    if e.recall is not None:
        yield _recall(e, w)


def _finding(
    name: str,
    share: Share,
    headline: str,
    meaning: str,
    step: Step,
    *,
    n: int,
    count: int | None,
    judged: float | None = None,
    examples: Sequence[Example] = (),
    listed: Mapping[str, Sequence[Any]] | None = None,
    unclear: bool = False,
) -> Finding:
    """Make a finding about a share; `judged` is what its thresholds judge, where that is another number."""
    threshold = threshold_of(name)
    excess = threshold.excess(share.value if judged is None else judged)
    severity: Severity = "unclear" if unclear else severity_of(excess)
    reading = Reading(name, share.value, interval=share.interval, range=(0.0, 1.0))
    return Finding(
        name, severity, headline, threshold.quantity, reading, {}, meaning, step, n, per_cent, excess,
        listed or {}, count, tuple(examples),
    )  # fmt: skip


def _rows(
    rows: Tensor, w: Words, detail: Callable[[int], str] | None = None, *, queries: bool = False
) -> list[Example]:
    """Return the first rows as examples, each with what is said of it and its text."""
    few = rows[:_EXAMPLES].tolist()
    texts = (w.query_texts if queries else w.texts)(few)
    return [
        Example((row,), detail(place) if detail else "", tuple(texts[place : place + 1]))
        for place, row in enumerate(few)
    ]


def _groups(groups: Sequence[Sequence[int]], w: Words) -> list[Example]:
    return [Example(tuple(group[:LISTED]), "", tuple(w.texts(group[:2]))) for group in groups[:_EXAMPLES]]


def _n_rows(n: int, verb: str = "") -> str:
    """Return how many rows do something: the verb is in the plural."""
    return f"{counted(n, 'row')} {verb}".strip()


def _first(n: int, found: str, nothing: str) -> str:
    return found if n else nothing


def _unusable(e: Evidence, w: Words) -> Finding:
    n = len(e.bad)
    return _finding(
        "not_finite", Share(n / e.n),
        _first(n, f"{_n_rows(n)} with NaN or infinity.", "Every number is finite."),
        "These rows are left out of everything below. Drop or fill them: most programs stop at them."
        if n else "No row has to be dropped or filled.",
        w.steps("audit"), n=e.n, count=n, examples=_rows(e.bad, w),
        listed={"rows": e.bad[:LISTED].tolist()},
    )  # fmt: skip


def _zeros(e: Evidence, w: Words) -> Finding:
    n = len(e.zeros)
    return _finding(
        "zero_vectors", Share(n / e.n),
        _first(n, f"{counted(n, 'zero vector')}.", "There are no zero vectors."),
        "A zero vector has no cosine: look whether its text was empty." if n else "Every row has a cosine.",
        w.steps("audit"), n=e.n, count=n, examples=_rows(e.zeros, w),
        listed={"rows": e.zeros[:LISTED].tolist()},
    )  # fmt: skip


def _odd_lengths(e: Evidence, w: Words) -> Finding:
    rows = e.facts.odd_lengths()
    n, lengths = len(rows), e.facts.lengths
    middle = float(lengths[e.facts.has_direction].median()) if bool(e.facts.has_direction.any()) else 0.0
    order = rows[(lengths[rows] / middle).log().abs().argsort(descending=True)] if n else rows
    return _finding(
        "odd_lengths", Share(n / e.n),
        _first(n, f"{_n_rows(n)} with a length far from all others (the median is {middle:.3g}).",
               f"No length is far from the others (the median is {middle:.3g})."),
        "By inner product the long ones come up for every query. Normalise the vectors, or use the cosine."
        if n else "No row comes up for its length alone.",
        w.steps("correct", "normalize"), n=e.n, count=n,
        examples=_rows(order, w, lambda place: f"length {float(lengths[order[place]]):.3g}"),
        listed={"rows": order[:LISTED].tolist()},
    )  # fmt: skip


def _inner_product(e: Evidence, w: Words) -> Finding:
    assert e.differing is not None
    k = e.settings.k
    return _finding(
        "inner_product", e.differing,
        f"Cosine and inner product give other results: {percent(e.differing.value, 1)} of the {k} nearest "
        "differ.",
        "An index must use the similarity that the model was trained with. Of normalised vectors both are "
        "the same.",
        w.steps("correct", "normalize"), n=e.n, count=None,
    )  # fmt: skip


def _constant(e: Evidence, w: Words) -> Finding:
    which, dead = e.facts.constant, e.facts.dead
    n = len(which)
    zero = f", of which {len(dead):,} {'is' if len(dead) == 1 else 'are'} always 0" if len(dead) else ""
    named = ", ".join(map(str, which[:_EXAMPLES].tolist())) + (", …" if n > _EXAMPLES else "")
    return _finding(
        "constant_dimensions", Share(n / e.d),
        _first(n, f"{counted(n, 'dimension')} with one value in all rows ({named}){zero}.",
               "Every dimension takes several values."),
        "They take memory and tell no rows apart: remove them, or look how the vectors were made."
        if n else "No dimension is wasted.",
        w.steps("audit"), n=e.n, count=n, listed={"dimensions": which[:LISTED].tolist()},
    )  # fmt: skip


def _padded(e: Evidence, w: Words) -> Finding:
    rows = e.facts.padded
    n, used = len(rows), e.facts.used
    lengths = sorted({int(one) for one in used[rows].unique()})[:_EXAMPLES] if n else []
    return _finding(
        "padded_rows", Share(n / e.n),
        _first(n, f"{_n_rows(n)} that end in zeros: they use {' or '.join(map(str, lengths))} of {e.d:,} "
               "dimensions.", "No row is padded with zeros."),
        "Vectors of several sizes are in one file. Embed these rows again with the model of the others."
        if n else "All rows use as many dimensions.",
        w.steps("audit"), n=e.n, count=n,
        examples=_rows(rows, w, lambda place: f"{int(used[rows[place]]):,} dimensions"),
        listed={"rows": rows[:LISTED].tolist()},
    )  # fmt: skip


def _duplicates(e: Evidence, w: Words) -> Finding:
    n, compared = len(e.equal.copies), e.equal.n_compared
    groups = sorted(e.equal.groups(LISTED), key=lambda group: (-len(group), group[0]))
    n_groups = len(e.equal.originals.unique())
    first = "" if compared == e.n else f" of the first {compared:,}"
    return _finding(
        "duplicates", Share(n / compared),
        _first(n, f"{_n_rows(n)}{first} that equal another row, in {counted(n_groups, 'group')}.",
               f"No row{first} equals another."),
        "Copies fill the results of a search, and leak from training rows to test rows: keep one of each."
        if n else "No result is shown twice.",
        w.steps("audit"), n=compared, count=n, examples=_groups(groups, w),
        listed={"groups": groups, "rows": e.equal.copies[:LISTED].tolist()},
    )  # fmt: skip


def _sampled(e: Evidence) -> str:
    assert e.found is not None
    return f" of {len(e.found):,} rows drawn at random" if e.found.is_sampled else ""


def _near(e: Evidence, w: Words) -> Finding:
    assert e.near is not None
    near = e.near
    return _finding(
        "near_duplicates", near.share,
        _first(near.count, f"{_n_rows(near.count)}{_sampled(e)} that nearly equal another row (cosine "
               f"{near.cosine:.4g} or more).", f"No row{_sampled(e)} nearly equals another (cosine "
               f"{near.cosine:.4g} or more)."),
        "Texts that differ by a word or a space: results repeat themselves. Keep one of each group."
        if near.count else "No result nearly repeats another.",
        w.steps("audit"), n=e.n, count=near.count, examples=_groups(near.groups, w),
        listed={"groups": [group[:LISTED] for group in near.groups[:LISTED]]},
    )  # fmt: skip


def _outliers(e: Evidence, w: Words) -> Finding:
    rows, distances = e.outliers.rows, e.outliers.distances
    n = len(rows)
    return _finding(
        "outliers", Share(n / e.n),
        _first(n, f"{_n_rows(n)} whose direction has parts that others do not have.",
               "There are no outliers."),
        "Look at their texts: another language, markup, or vectors of another source."
        if n else "Every row varies in the directions that others vary in.",
        w.steps("audit"), n=e.n, count=n,
        examples=_rows(rows, w, lambda place: f"{float(distances[place]):.1f} times the median distance"),
        listed={"rows": rows[:LISTED].tolist(), "distances": distances[:LISTED].tolist()},
    )  # fmt: skip


def _mixture(e: Evidence, w: Words) -> Finding:
    assert e.mixture is not None
    rows, sampled = e.mixture.smaller, e.settings.max_rows < e.n
    n = len(rows) if e.mixture.is_mixed else 0
    share = Share.of_counts(n, min(e.n, e.settings.max_rows), exact=not sampled)
    near = percent(e.mixture.crossing, 1)
    return _finding(
        "mixture", share if n else Share(0.0),
        _first(n, f"The rows are of two kinds that never meet: {percent(share.value, 1)} lie on one side, "
               f"and have {near} of the neighbours on the other that chance would give.",
               "The rows are of one kind."),
        "Two models, prefixes or languages are in one file, or two collections with nothing in common: a "
        "search finds only rows of the query's own kind. Embed all with one model."
        if n else "Neighbours are found across the whole space.",
        w.steps("audit"), n=e.n, count=n, examples=_rows(rows, w) if n else (),
        listed={"rows": rows[:LISTED].tolist() if n else []},
    )  # fmt: skip


def _asked(e: Evidence) -> str:
    assert e.hubs is not None
    if e.by_queries:
        return f"of {e.hubs.n_asked:,} queries"
    assert e.found is not None
    return f"of {len(e.found):,} rows drawn at random" if e.found.is_sampled else "of all rows"


def _hubs(e: Evidence, w: Words) -> Finding:
    assert e.hubs is not None
    hubs, k = e.hubs, e.settings.k
    n = len(hubs.rows)
    error = "" if hubs.skewness_error is None else f" ± {1.96 * hubs.skewness_error:.2g}"
    skewness = f"the skewness of how often a row is retrieved is {hubs.skewness:.2g}{error}"
    few = e.n < _FEWEST
    surely = "surely " if e.by_queries or hubs.skewness_error is not None else ""
    return _finding(
        "hubs", hubs.results if n else Share(0.0),
        _first(n, f"{counted(n, 'hub')} take {percent(hubs.results.value, 1)} of the {k} nearest "
               f"{_asked(e)}; {skewness}.",
               f"No row is {surely}a hub among the {k} nearest {_asked(e)}; {skewness}."),
        "The same few rows come up for many queries. Look at their texts; centring and normalising often "
        "helps." if n else "Every row has a fair chance to be found.",
        w.steps("correct", "center,normalize"), n=e.n, count=n,
        examples=_rows(hubs.rows, w, lambda place: f"retrieved {float(hubs.counts[place]):,.0f} times"),
        listed={"rows": hubs.rows[:LISTED].tolist(), "counts": hubs.counts[:LISTED].tolist()},
        unclear=few,
    )  # fmt: skip


def _never(e: Evidence, w: Words) -> Finding:
    assert e.hubs is not None
    n, of = len(e.lonely), max(1, e.n_lonely)
    share = n / of
    judged = (share - e.chance) / max(1 - e.chance, 1e-9)
    sampled = e.found is not None and e.found.is_sampled and not e.by_queries
    among = f" of {of:,} drawn at random and searched among themselves" if sampled else ""
    who = f"{e.hubs.n_asked:,} queries" if e.by_queries else "any other row"
    unavoidable = f" ({percent(e.chance, 1)} by chance)" if e.chance >= 0.0005 else ""
    return _finding(
        "never_retrieved", Share.of_counts(n, of, exact=not sampled),
        f"{_n_rows(n)}{among} that are never among the {e.settings.k} nearest of {who}: "
        f"{percent(share, 1)}{unavoidable}.",
        "They are stored and not found."
        if judged >= threshold_of("never_retrieved").moderate else "Most rows can be found.",
        w.steps("correct", "center,normalize"), n=of, count=n, judged=max(0.0, judged),
        examples=_rows(e.lonely, w), listed={"rows": e.lonely[:LISTED].tolist()}, unclear=e.n < _FEWEST,
    )  # fmt: skip


def _recall(e: Evidence, w: Words) -> Finding:
    assert e.recall is not None
    recall = e.recall
    rows = e.recall_rows[recall.worst]
    scores = recall.scores[recall.worst]
    examples = _rows(rows, w, lambda at: f"recall {float(scores[at]):.2f}", queries=e.by_queries)
    rare, common = recall.deciles[0].value, recall.deciles[-1].value
    more = f"; {recall.n_repeated:,} identifiers are repeated" if recall.n_repeated else ""
    more += f"; {recall.n_unknown:,} are no rows" if recall.n_unknown else ""
    return _finding(
        "ann_recall", recall.recall,
        f"The index returns {percent(recall.recall.value, 1)} of the {recall.k} nearest: "
        f"{percent(rare, 1)} of the tenth that is retrieved most rarely, {percent(common, 1)} of the most "
        f"frequent{more}.",
        "Search more candidates (efSearch, nprobe), or build the index with more links."
        if recall.recall.value < threshold_of("ann_recall").moderate else "The index finds what there is.",
        w.steps("sweep"), n=len(recall.scores), count=len(recall.worst), examples=examples,
        listed={
            "rows": rows[:LISTED].tolist(),
            "by_decile": [one.value for one in recall.deciles],
            "by_decile_low": [None if one.interval is None else one.interval[0] for one in recall.deciles],
            "by_decile_high": [None if one.interval is None else one.interval[1] for one in recall.deciles],
        },
    )  # fmt: skip
