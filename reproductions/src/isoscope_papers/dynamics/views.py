"""Runs of the paper's training dynamics by start: with all tokens, and without attention sinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from isoscope.errors import InputError
from isoscope_papers.dynamics.run import Columns, Dynamics
from isoscope_papers.dynamics.setups import BASE, BASE_BATCH, BASE_POOLING, BATCHES

ANISOTROPY, NORM = "mean_cosine", "mean_norm"
SELF, INTRA = "adjusted_self_similarity", "adjusted_intra_similarity"
TITLES = {
    ANISOTROPY: "anisotropy",
    NORM: "mean norm",
    SELF: "adjusted self-similarity",
    INTRA: "adjusted intra-sentence",
}
RAW = ("self_similarity", "intra_similarity")
LEAST = 0.01  # a difference of cosines under this, or of norms under this share, counts as none
WITHOUT_SINKS, SINK_SHARE = "_without_sinks", "sink_share"  # what a tracker's columns are called


@dataclass(frozen=True)
class View:
    """The runs from one start by name, with all tokens or without attention sinks.

    is_first: of a start's views, the one with all tokens; has_change: whether the change by token and the
    layers, which are taken without sinks, belong to this view.
    """

    title: str
    runs: Mapping[str, Dynamics]
    suffix: str
    has_change: bool

    @property
    def is_first(self) -> bool:
        """Return whether all tokens count: what is not measured by token is reported once, here."""
        return not self.suffix

    def curve(self, variant: str, metric: str) -> list[float]:
        """Return a metric along a run."""
        return self.runs[variant].rows[f"{metric}{self.suffix}"]  # type: ignore[return-value]

    def start(self, metric: str) -> float:
        """Return a metric before training: of the base run, or of any."""
        return self.curve(BASE if BASE in self.runs else next(iter(self.runs)), metric)[0]

    def end(self, variant: str, metric: str) -> float:
        """Return a metric after training."""
        return self.curve(variant, metric)[-1]

    def moved(self, variant: str, metric: str) -> tuple[float, float]:
        """Return a metric before training and after."""
        return self.start(metric), self.end(variant, metric)

    @property
    def changes(self) -> dict[str, float]:
        """Return the base run's change of self-similarity by token, in the view it belongs to."""
        return self.runs[BASE].changes if self.has_change and self.has(BASE) else {}

    @property
    def has_layers(self) -> bool:
        """Return whether the base run has a value of every metric in every layer of this view."""
        layers = self.runs[BASE].layers if self.has_change and self.has(BASE) else {}
        return bool(layers) and all(_has_values(one, (self.suffix,)) for one in layers.values())

    def layers(self, when: str, metric: str) -> list[float]:
        """Return a metric of every layer of the base run, before or after training."""
        return self.runs[BASE].layers[when][f"{metric}{self.suffix}"]  # type: ignore[return-value]

    def beyond(self, metric: str, difference: float) -> int:
        """Return the sign of a difference; 0 where it is under what one seed can tell, of norms a share."""
        least = LEAST * self.start(NORM) if metric == NORM else LEAST
        return 0 if abs(difference) < least else (1 if difference > 0 else -1)

    def has(self, *variants: str) -> bool:
        """Return whether these runs are there."""
        return all(variant in self.runs for variant in variants)

    def poolings(self) -> dict[str, str]:
        """Return the run of each pooling; the base run is that of the mean."""
        own = {BASE_POOLING: BASE} | {
            name.partition("=")[2]: name for name in self.runs if name.startswith("pooling=")
        }
        return {how: name for how, name in own.items() if name in self.runs}

    def batches(self) -> dict[int, str]:
        """Return the run of each batch size; the base run is that of 64."""
        named = {n: BASE if n == BASE_BATCH else f"batch={n}" for n in BATCHES}
        return {n: name for n, name in named.items() if name in self.runs}

    def temperatures(self) -> dict[float, str]:
        """Return the run of each temperature, the lowest first."""
        own = [(run.temperature, name) for name, run in self.runs.items() if name.startswith("tau=")]
        return dict(sorted(own))


def averaged(runs: Iterable[Dynamics]) -> list[Dynamics]:
    """Return one run a setup: where there are several seeds, the mean of their curves and scores."""
    groups: dict[tuple[str, str], list[Dynamics]] = {}
    for run in runs:
        groups.setdefault((run.start, run.variant), []).append(run)
    found = []
    for (start, variant), own in groups.items():
        if len({tuple(run.rows["step"]) for run in own}) > 1:
            epochs = ", ".join(f"{run.epochs} epochs of seed {run.seed}" for run in own)
            raise InputError(f"{start}:{variant} has {epochs}", wanted="as many for every seed")
        rows = {name: [_mean(values) for values in zip(*(run.rows[name] for run in own), strict=True)]
                for name in own[0].rows}  # fmt: skip
        task = {name: fmean(run.task[name] for run in own) for name in own[0].task}
        found.append(replace(own[0], rows=rows, task=task))
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _suffixes(run: Dynamics) -> tuple[str, ...]:
    return ("", WITHOUT_SINKS) if run.rows[SINK_SHARE][0] else ("",)


def _has_values(columns: Columns, suffixes: Iterable[str]) -> bool:
    names = (f"{metric}{suffix}" for suffix in suffixes for metric in (*TITLES, *RAW))
    return all(None not in columns[name] for name in names)


def is_defined(run: Dynamics) -> bool:
    """Return whether every metric has a value at every measurement; only then a run is in a view."""
    return _has_values(run.rows, _suffixes(run))


def views(runs: Iterable[Dynamics]) -> list[View]:
    """Return start by start: all tokens, then without attention sinks where there are any at the start."""
    starts: dict[str, dict[str, Dynamics]] = {}
    for run in averaged(filter(is_defined, runs)):
        starts.setdefault(run.start, {})[run.variant] = run
    found = []
    for own in starts.values():
        first = next(iter(own.values()))
        for suffix in _suffixes(first):
            title = f"{first.title}, no sinks" if suffix else first.title
            found.append(View(title, own, suffix, has_change=suffix == _suffixes(first)[-1]))
    return found
