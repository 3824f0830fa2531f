"""Runs of a sweep set beside each other: by strength over seeds, in pairs by seed, along the strengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isoscope.training.correlation import ranks
from isoscope_papers.istar.setups import NONE, SETUPS, Settings
from isoscope_papers.istar.sweep import SweepRun

_DRAWS, _PERMUTATIONS = 2000, 10_000
_SIDE = 0.025  # outside each end of a 95 % interval

# what is told of a run beside its score, by name
QUANTITIES = ("isoscore_star", "isoscore_debiased", "mean_cosine", "twonn", "sentence_twonn")


def value(run: SweepRun, name: str) -> float | None:
    """The score, the sentences' TwoNN, or a quantity of all layers' states."""
    return getattr(run, name) if name in ("score", "sentence_twonn") else run.whole(name)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of one task that were trained alike."""

    task: str
    settings: Settings
    runs: tuple[SweepRun, ...]

    @property
    def title(self) -> str:
        """The task's name."""
        return SETUPS[self.task].title if self.task in SETUPS else self.task

    @property
    def metric(self) -> str:
        """What the score is."""
        return self.runs[0].metric

    @property
    def step(self) -> float:
        """What one text of the dev set counts in the score."""
        return 1 / int(self.runs[0].about["n_test"])

    def strengths(self, regularizer: str) -> list[float]:
        """Those that were run, rising; λ = 0 is everyone's."""
        return sorted({r.point.strength for r in self.runs if r.point.regularizer in (regularizer, NONE)})

    def by_seed(self, regularizer: str, strength: float, name: str = "score") -> dict[int, float]:
        """A quantity of every seed that has it."""
        wanted = (NONE if strength == 0 else regularizer, strength)
        found = {
            run.point.seed: value(run, name)
            for run in self.runs
            if (run.point.regularizer, run.point.strength) == wanted
        }
        return {seed: one for seed, one in sorted(found.items()) if one is not None}

    def curve(self, regularizer: str, *names: str) -> dict[float, np.ndarray]:
        """(quantities, seeds) by strength, of the seeds that have all; strengths with none are left out."""
        found = {}
        for strength in self.strengths(regularizer):
            columns = [self.by_seed(regularizer, strength, name) for name in names]
            shared = sorted(set.intersection(*(set(column) for column in columns)))
            if shared:
                found[strength] = np.array([[column[seed] for seed in shared] for column in columns])
        return found

    @property
    def failed(self) -> list[SweepRun]:
        """Runs whose loss turned NaN."""
        return [run for run in self.runs if run.failed]


def sweeps_of(runs: Iterable[SweepRun]) -> list[Sweep]:
    """Runs of the same task and settings together, in the order of the setups."""
    groups: dict[tuple[str, Settings], list[SweepRun]] = {}
    for run in runs:
        groups.setdefault((run.point.task, run.settings), []).append(run)
    order = list(SETUPS)
    found = [Sweep(task, settings, tuple(own)) for (task, settings), own in groups.items()]
    return sorted(
        found,
        key=lambda one: (
            one.settings.title,
            order.index(one.task) if one.task in order else len(order),
            str(one.settings),
        ),
    )


class Difference(NamedTuple):
    """Of scores in pairs by seed: the mean, a 95 % interval by Student's t, and the number of pairs."""

    mean: float
    low: float
    high: float
    n: int


def difference(
    first: Mapping[int, float], second: Mapping[int, float], *, n_choices: int = 1, step: float = 0.0
) -> Difference | None:
    """First less second; None where fewer than two seeds have both.

    n_choices: among how many such differences this one was chosen for its size: the interval is widened
    (Bonferroni), since the best of many looks good by chance.
    step: of the scores. Few seeds can agree to the step by chance; the standard deviation is no less.

    >>> difference({0: 1.0, 1: 2.0}, {0: 0.0, 1: 1.0})
    Difference(mean=1.0, low=1.0, high=1.0, n=2)
    """
    from scipy.special import stdtrit

    shared = sorted(set(first) & set(second))
    n = len(shared)
    if n < 2:
        return None
    values = np.array([first[seed] - second[seed] for seed in shared])
    deviation = max(values.std(ddof=1), step)
    half = float(stdtrit(n - 1, 1 - _SIDE / n_choices) * deviation / n**0.5)
    mean = float(values.mean())
    return Difference(mean, mean - half, mean + half, n)


class Trend(NamedTuple):
    """Spearman's ρ of two means over strengths; its 95 % interval over seeds; p by permuting strengths."""

    rho: float
    low: float
    high: float
    p: float
    n: int


def trend(curves: Sequence[np.ndarray], *, seed: int = 0) -> Trend | None:
    """From (2, seeds) at each strength; None for fewer than four strengths, or where one does not vary.

    The interval draws the seeds of every strength anew, 2,000 times; p is the share of 10,000 orders of
    the strengths with a |ρ| at least as large.
    """
    if len(curves) < 4:
        return None
    means = np.array([one.mean(axis=1) for one in curves])
    rho = float(_rho(means))
    if not np.isfinite(rho):
        return None
    source = np.random.default_rng([seed, *b"trend"])
    drawn = [_redrawn(one, source) for one in curves]
    low, high = np.nanquantile(_rho(np.stack(drawn, axis=1)), [_SIDE, 1 - _SIDE])
    x, y = (ranks(column) for column in means.T)
    x, y = x - x.mean(), y - y.mean()
    orders = source.permuted(np.tile(y, (_PERMUTATIONS, 1)), axis=1)
    others = np.abs(orders @ x) >= abs(x @ y) - 1e-9
    p = float((others.sum() + 1) / (_PERMUTATIONS + 1))
    return Trend(rho, float(low), float(high), p, len(curves))


def _redrawn(values: np.ndarray, source: np.random.Generator) -> np.ndarray:
    """(draws, 2) means over as many seeds, drawn with replacement, of (2, seeds)."""
    n = values.shape[1]
    return np.asarray(values[:, source.integers(n, size=(_DRAWS, n))].mean(axis=2).T)


def _rho(means: np.ndarray) -> np.ndarray:
    """Spearman's ρ of the two columns of (…, strengths, 2); NaN where one does not vary."""
    from scipy.stats import rankdata

    ranked = rankdata(means, axis=-2)
    x, y = np.moveaxis(ranked - ranked.mean(axis=-2, keepdims=True), -1, 0)
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    rho = np.divide((x * y).sum(axis=-1), scale, out=np.full(scale.shape, np.nan), where=scale > 0)
    return np.asarray(rho)
