"""Runs of the paper's training dynamics by start: with all tokens, and without attention sinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from isoscope.training.tracker import SINK_SHARE, WITHOUT_SINKS
from isoscope_papers.dynamics.run import Dynamics
from isoscope_papers.dynamics.setups import BASE, BASE_POOLING, BATCHES

ANISOTROPY, NORM = "mean_cosine", "mean_norm"
SELF, INTRA = "adjusted_self_similarity", "adjusted_intra_similarity"
TITLES = {
    ANISOTROPY: "anisotropy",
    NORM: "mean norm",
    SELF: "adjusted self-similarity",
    INTRA: "adjusted intra-sentence",
}
LEAST = 0.01  # a difference of cosines under this, or of norms under this share, counts as none


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

    def beyond(self, metric: str, difference: float) -> int:
        """The sign of a difference; 0 where it is under what one seed can tell, of norms a share."""
        least = LEAST * self.start(NORM) if metric == NORM else LEAST
        return 0 if abs(difference) < least else (1 if difference > 0 else -1)

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
