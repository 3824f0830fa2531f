"""The claims of Xiao et al. 2023 on training dynamics, each with the bound it is tested by, run by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from isoscope.papers.claims import Claim, Holding, judged
from isoscope.papers.contrastive_comparison import word
from isoscope.papers.dynamics import Dynamics
from isoscope.papers.dynamics_setups import BASE, BASE_POOLING, BATCHES, CLOSE, FUNCTION_WORDS, MARKS
from isoscope.training.tracker import SINK_SHARE, WITHOUT_SINKS

ANISOTROPY, NORM = "mean_cosine", "mean_norm"
SELF, INTRA = "adjusted_self_similarity", "adjusted_intra_similarity"
TITLES = {
    ANISOTROPY: "anisotropy",
    NORM: "mean norm",
    SELF: "adjusted self-similarity",
    INTRA: "adjusted intra-sentence",
}
SHARPLY = 0.1  # what adjusted intra-sentence similarity must rise by
LOWEST = 0.001  # the temperature of appendix A that is too low

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


@dataclass(frozen=True)
class View:
    """The runs from one start by name, with all tokens or without attention sinks.

    has_change: whether the change by token, which is taken without sinks, belongs to this view.
    """

    title: str
    runs: Mapping[str, Dynamics]
    suffix: str
    has_change: bool

    def curve(self, variant: str, metric: str) -> list[float]:
        """A metric along a run, where it has a value."""
        values = self.runs[variant].rows[f"{metric}{self.suffix}"]
        return [value for value in values if value is not None]

    def start(self, metric: str) -> float:
        """Before training: of the base run, or of any."""
        return self.curve(BASE if BASE in self.runs else next(iter(self.runs)), metric)[0]

    def end(self, variant: str, metric: str) -> float:
        """After training."""
        return self.curve(variant, metric)[-1]

    def has(self, *variants: str) -> bool:
        """Whether these runs are there."""
        return all(variant in self.runs for variant in variants)

    def poolings(self) -> dict[str, str]:
        """The runs of each pooling; the base run is that of the mean."""
        found = {BASE_POOLING: BASE} if BASE in self.runs else {}
        others = (name for name in self.runs if name.startswith("pooling="))
        return found | {name.partition("=")[2]: name for name in others}

    def batches(self) -> dict[int, str]:
        """The runs of each batch size; the base run is that of 64."""
        named = {n: BASE if n == self.base_batch else f"batch={n}" for n in BATCHES}
        return {n: name for n, name in named.items() if name in self.runs}

    @property
    def base_batch(self) -> int:
        """The batch size of the base run."""
        return self.runs[BASE].batch_size if BASE in self.runs else 0

    def temperatures(self) -> dict[float, str]:
        """The runs of each temperature, the lowest first."""
        own = [(run.temperature, name) for name, run in self.runs.items() if name.startswith("tau=")]
        return dict(sorted(own))


def averaged(runs: Iterable[Dynamics]) -> list[Dynamics]:
    """One run a setup: where there are several seeds, the mean of their curves and scores."""
    groups: dict[tuple[str, str], list[Dynamics]] = {}
    for run in runs:
        groups.setdefault((run.start, run.variant), []).append(run)
    found = []
    for own in groups.values():
        first = own[0]
        rows = {name: [_mean(values) for values in zip(*(r.rows[name] for r in own), strict=True)]
                for name in first.rows}  # fmt: skip
        task = {name: fmean(run.task[name] for run in own) for name in first.task}
        found.append(replace(first, rows=rows, task=task))
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def views(runs: Iterable[Dynamics]) -> list[View]:
    """Start by start: all tokens, then without attention sinks where there are any at the start."""
    starts: dict[str, dict[str, Dynamics]] = {}
    for run in averaged(runs):
        starts.setdefault(run.start, {})[run.variant] = run
    found = []
    for own in starts.values():
        first = next(iter(own.values()))
        has_sinks = bool(first.rows[SINK_SHARE][0])
        found.append(View(first.title, own, "", not has_sinks))
        if has_sinks:
            found.append(View(f"{first.title}, no sinks", own, WITHOUT_SINKS, has_sinks))
    return found


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
            yield Claim(claim, view.title, judged([b < a for a, b in pairwise(ends)]), evidence)
    if view.has("tau=0.001"):
        yield from _too_low(view)
    if view.has("tau=0.05", "tau=0.1"):
        for claim, metric, sign in ((HOT_SELF, SELF, -1), (HOT_INTRA, INTRA, 1)):
            cool, hot = view.end("tau=0.05", metric), view.end("tau=0.1", metric)
            yield Claim(
                claim, view.title, judged([sign * (hot - cool) > 0]), f"{shown(hot)} against {shown(cool)}"
            )
    if view.has(*close) and len(view.batches()) > 1:
        yield _batch(view, close)
    if len(view.poolings()) > 2:
        yield from _pooling(view)


def _of_base(view: View) -> Iterator[Claim]:
    for claim, metric, sign, least in ((ISOTROPY, ANISOTROPY, -1, 0.0), (SHARP, INTRA, 1, SHARPLY)):
        first, last = view.start(metric), view.end(BASE, metric)
        held = sign * (last - first) > least
        yield Claim(claim, view.title, judged([held]), f"{shown(first)} → {shown(last)}")
    change = view.runs[BASE].change
    if change and view.has_change:
        grammar, content = changes_by_kind(change)
        for claim, values, sign in ((GRAMMAR, grammar, -1), (CONTENT, content, 1)):
            if values:
                n = sum(sign * value > 0 for value in values)
                evidence = f"mean {signed(fmean(values))}; {n} of {len(values)} tokens"
                yield Claim(claim, view.title, judged([sign * fmean(values) > 0]), evidence)


def _too_low(view: View) -> Iterator[Claim]:
    for claim, metric in ((LOW_ANISOTROPY, ANISOTROPY), (LOW_NORM, NORM)):
        first, last = view.start(metric), view.end("tau=0.001", metric)
        yield Claim(claim, view.title, judged([last > first]), f"{shown(first)} → {shown(last)}")
    pairs = [(view.start(metric), view.end("tau=0.001", metric)) for metric in (SELF, INTRA)]
    evidence = "self {} → {}, intra {} → {}".format(*(shown(value) for pair in pairs for value in pair))
    yield Claim(LOW_OFFSET, view.title, judged([last < first for first, last in pairs]), evidence)


def _batch(view: View, close: Sequence[str]) -> Claim:
    held, parts = [], []
    for metric, title in TITLES.items():
        ranges = [
            max(ends) - min(ends)
            for ends in (
                [view.end(name, metric) for name in view.batches().values()],
                [view.end(name, metric) for name in close],
            )
        ]
        held.append(ranges[0] < ranges[1])
        parts.append(f"{title} {shown(ranges[0])} against {shown(ranges[1])}")
    return Claim(BATCH, view.title, judged(held), "; ".join(parts))


def _pooling(view: View) -> Iterator[Claim]:
    runs = view.poolings()
    slow = "cls" if "cls" in runs else "lasttoken"
    over = {how: fmean(view.curve(name, ANISOTROPY)) for how, name in runs.items()}
    ends = {how: view.end(name, ANISOTROPY) for how, name in runs.items()}
    intra = {how: view.end(name, INTRA) for how, name in runs.items()}
    note = "" if slow == "cls" else " (the last token for [CLS])"
    if slow in runs:
        yield Claim(SLOWEST, view.title, judged([max(over, key=lambda how: over[how]) == slow]),
                    _named(over) + note)  # fmt: skip
    yield Claim(BEST, view.title, judged([min(ends, key=lambda how: ends[how]) == "mean"]), _named(ends))
    if "max" in runs:
        yield Claim(
            EXCESSIVE, view.title, judged([max(intra, key=lambda how: intra[how]) == "max"]), _named(intra)
        )


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
        parts = [f"{own.count(kind)} {_words(kind)}" for kind in Holding if kind in own]
        found.append(f"{subject}: of {len(own)} claims {', '.join(parts)}")
    return tuple(found)


def _words(kind: Holding) -> str:
    return "held in part" if kind is Holding.DEPENDS else str(kind)


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
