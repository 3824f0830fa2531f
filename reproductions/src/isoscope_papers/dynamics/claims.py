"""The claims of Xiao et al. 2023 on training dynamics, each with the bound it is tested by, run by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from isoscope_papers.claims import Claim, Holding
from isoscope_papers.contrastive.comparison import word
from isoscope_papers.dynamics.run import Dynamics
from isoscope_papers.dynamics.setups import BASE, BASE_POOLING, CLOSE, FUNCTION_WORDS, MARKS
from isoscope_papers.dynamics.views import ANISOTROPY, INTRA, NORM, SELF, TITLES, View, views

SHARPLY = 0.1  # what adjusted intra-sentence similarity must rise by

ISOTROPY = "training lowers anisotropy (τ = 0.05)"
SHARP = f"intra-sentence similarity rises sharply (adjusted, by > {SHARPLY}; τ = 0.05)"
HIGHER_ANISOTROPY = "the higher τ, the lower the anisotropy (0.025, 0.05, 0.1)"
HIGHER_NORM = "the higher τ, the lower the norm (0.025, 0.05, 0.1)"
LOW_ANISOTROPY = "very low τ (0.001) raises anisotropy above the start"
LOW_NORM = "very low τ (0.001) raises the norm above the start"
LOW_OFFSET = "very low τ (0.001): adjusted similarities fall below the start's"
HOT_SELF = "τ = 0.1 ends with lower adjusted self-similarity than 0.05"
HOT_INTRA = "τ = 0.1 ends with higher adjusted intra-sentence similarity than 0.05"
BATCH = "batch size moves each metric less than τ does (range over 16 … 256 against 0.025 … 0.1)"
SLOWEST = "[CLS] pooling is slowest to isotropy (highest anisotropy over the run)"
BEST = "mean pooling ends with the lowest anisotropy"
EXCESSIVE = "max pooling ends with the highest intra-sentence similarity"
GRAMMAR = "words of grammar and punctuation fall in self-similarity (mean change < 0)"
CONTENT = "words of content rise in self-similarity (mean change > 0)"


def all_claims(runs: Iterable[Dynamics]) -> list[Claim]:
    """Every claim that the runs there are can be put to."""
    return [claim for view in views(runs) for claim in _of_view(view)]


def _of_view(view: View) -> Iterator[Claim]:
    if view.has(BASE):
        yield from _of_base(view)
    close = [f"tau={tau:g}" for tau in CLOSE]
    if view.has(*close):
        for claim, metric in ((HIGHER_ANISOTROPY, ANISOTROPY), (HIGHER_NORM, NORM)):
            ends = [view.end(name, metric) for name in close]
            evidence = f"{_listed(ends)}; all τ: {_all_temperatures(view, metric)}"
            falls = [view.beyond(metric, a - b) for a, b in pairwise(ends)]
            yield Claim(claim, view.title, judged_differences(falls), evidence)
    if view.has("tau=0.001"):
        yield from _too_low(view)
    if view.has("tau=0.05", "tau=0.1"):
        for claim, metric, sign in ((HOT_SELF, SELF, -1), (HOT_INTRA, INTRA, 1)):
            cool, hot = view.end("tau=0.05", metric), view.end("tau=0.1", metric)
            holding = judged_differences([view.beyond(metric, sign * (hot - cool))])
            yield Claim(claim, view.title, holding, f"{shown(hot)} against {shown(cool)}")
    if view.has(*close) and len(view.batches()) > 1:
        yield _batch(view, close)
    if len(view.poolings()) > 2:
        yield from _pooling(view)


def _of_base(view: View) -> Iterator[Claim]:
    for claim, metric, sign, bound in ((ISOTROPY, ANISOTROPY, -1, 0.0), (SHARP, INTRA, 1, SHARPLY)):
        first, last = view.start(metric), view.end(BASE, metric)
        holding = judged_differences([view.beyond(metric, sign * (last - first) - bound)])
        yield Claim(claim, view.title, holding, f"{shown(first)} → {shown(last)}")
    change = view.runs[BASE].change
    if change and view.has_change:
        grammar, content = changes_by_kind(change)
        for claim, values, sign in ((GRAMMAR, grammar, -1), (CONTENT, content, 1)):
            if values:
                n = sum(sign * value > 0 for value in values)
                evidence = f"mean {signed(fmean(values))}; {n} of {len(values)} tokens"
                holding = judged_differences([view.beyond(SELF, sign * fmean(values))])
                yield Claim(claim, view.title, holding, evidence)


def _too_low(view: View) -> Iterator[Claim]:
    for claim, metric in ((LOW_ANISOTROPY, ANISOTROPY), (LOW_NORM, NORM)):
        first, last = view.start(metric), view.end("tau=0.001", metric)
        holding = judged_differences([view.beyond(metric, last - first)])
        yield Claim(claim, view.title, holding, f"{shown(first)} → {shown(last)}")
    pairs = [(view.start(metric), view.end("tau=0.001", metric)) for metric in (SELF, INTRA)]
    evidence = "self {} → {}, intra {} → {}".format(*(shown(value) for pair in pairs for value in pair))
    falls = [view.beyond(SELF, first - last) for first, last in pairs]
    yield Claim(LOW_OFFSET, view.title, judged_differences(falls), evidence)


def _batch(view: View, close: Sequence[str]) -> Claim:
    less, parts = [], []
    for metric, title in TITLES.items():
        ranges = [
            max(ends) - min(ends)
            for ends in (
                [view.end(name, metric) for name in view.batches().values()],
                [view.end(name, metric) for name in close],
            )
        ]
        less.append(view.beyond(metric, ranges[1] - ranges[0]))
        parts.append(f"{title} {shown(ranges[0])} against {shown(ranges[1])}")
    return Claim(BATCH, view.title, judged_differences(less), "; ".join(parts))


def _pooling(view: View) -> Iterator[Claim]:
    runs = view.poolings()
    slow = "cls" if "cls" in runs else "lasttoken"
    over = {how: fmean(view.curve(name, ANISOTROPY)) for how, name in runs.items()}
    ends = {how: view.end(name, ANISOTROPY) for how, name in runs.items()}
    intra = {how: view.end(name, INTRA) for how, name in runs.items()}
    note = "" if slow == "cls" else " (the last token for [CLS])"
    for claim, how, values, sign, more in (
        (SLOWEST, slow, over, 1, note),
        (BEST, BASE_POOLING, ends, -1, ""),
        (EXCESSIVE, "max", intra, 1, ""),
    ):
        if how in values:
            rest = (value for other, value in values.items() if other != how)
            ahead = [view.beyond(INTRA, sign * (values[how] - value)) for value in rest]
            yield Claim(claim, view.title, _judged_extreme(ahead), _named(values) + more)


def judged_differences(signs: Sequence[int]) -> Holding:
    """Held where all differences have the sign claimed, not held where none has and one has the other.

    signs: 1 as claimed, −1 the contrary, 0 too small to count.

    >>> [str(judged_differences(signs)) for signs in ([1, 1], [1, 0], [0, -1], [0])]
    ['held', 'depends', 'did not hold', 'depends']
    """
    if all(sign > 0 for sign in signs):
        return Holding.HELD
    return Holding.NOT_HELD if min(signs) < 0 and max(signs) <= 0 else Holding.DEPENDS


def _judged_extreme(ahead: Sequence[int]) -> Holding:
    """Held where one is ahead of all others, not held where any is ahead of it."""
    if min(ahead) < 0:
        return Holding.NOT_HELD
    return judged_differences(ahead)


def changes_by_kind(change: Mapping[str, Sequence[object]]) -> tuple[list[float], list[float]]:
    """The changes of words of grammar and marks, and those of words of content; numbers are neither."""
    grammar, content = [], []
    for name, value in zip(change["name"], change["change"], strict=True):
        written = word(str(name)).strip().lower()
        if written in FUNCTION_WORDS or (written and set(written) <= MARKS):
            grammar.append(float(str(value)))
        elif written.isalpha() and len(written) > 2:
            content.append(float(str(value)))
    return grammar, content


def tallies(claims: Sequence[Claim]) -> tuple[str, ...]:
    """How each start fared, in words."""
    found = []
    for subject in dict.fromkeys(one.subject for one in claims):
        own = [one.holding for one in claims if one.subject == subject]
        parts = [f"{own.count(kind)} {kind}" for kind in Holding if kind in own]
        found.append(f"{subject}: of {len(own)} claims {', '.join(parts)}")
    return tuple(found)


def shown(value: float) -> str:
    """A figure for reading: three decimals, fewer for large ones."""
    return (f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}").replace("-", "−")


def signed(value: float) -> str:
    """A change for reading."""
    return f"{value:+.3f}".replace("-", "−")


def _listed(values: Iterable[float]) -> str:
    return ", ".join(map(shown, values))


def _named(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in values.items())


def _all_temperatures(view: View, metric: str) -> str:
    ends = {f"{tau:g}": view.end(name, metric) for tau, name in view.temperatures().items()}
    return f"start {shown(view.start(metric))}; {_named(ends)}"
