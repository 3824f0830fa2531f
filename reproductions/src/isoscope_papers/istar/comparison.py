"""Runs of a sweep beside each other: by strength over seeds, in pairs by seed, along the strengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit
from scipy.stats import rankdata

from isoscope_papers.istar.setups import NONE, TASKS, Settings
from isoscope_papers.istar.sweep import SweepRun
from isoscope_papers.words import signed

_DRAWS, _PERMUTATIONS = 2000, 10_000
_DIGITS = 12  # means that differ by rounding only are equal
_SIDE = 0.025  # outside each end of a 95 % interval


class Difference(NamedTuple):
    """The mean difference in pairs by seed, its 95 % interval by Student's t, and the number of pairs."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def words(self) -> str:
        """Return the difference with its interval."""
        return f"{signed(self.mean, 4)} [{signed(self.low, 4)}, {signed(self.high, 4)}]"


def difference(
    first: Mapping[int, float], second: Mapping[int, float], *, n_choices: int = 1, step: float = 0.0
) -> Difference | None:
    """Return first less second; None where fewer than two seeds have both.

    Args:
        first, second: scores by seed.
        n_choices: among how many such differences this one was chosen for its size: the interval is widened
            (Bonferroni), since the best of many looks good by chance.
        step: of the scores. Few seeds can agree to the step by chance; the standard deviation is no less.

    >>> difference({0: 1.0, 1: 2.0}, {0: 0.0, 1: 1.0})
    Difference(mean=1.0, low=1.0, high=1.0, n=2)
    """
    values = np.array([first[seed] - second[seed] for seed in sorted(set(first) & set(second))])
    n = len(values)
    if n < 2:
        return None
    half = float(stdtrit(n - 1, 1 - _SIDE / n_choices) * max(values.std(ddof=1), step) / n**0.5)
    mean = float(values.mean())
    return Difference(mean, mean - half, mean + half, n)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of one task that were trained alike; `subject` names them among all."""

    task: str
    settings: Settings
    runs: tuple[SweepRun, ...]
    subject: str = ""

    @property
    def metric(self) -> str:
        """Return what the score is, in words."""
        return "Matthews' correlation" if self.runs[0].metric == "matthews" else self.runs[0].metric

    @property
    def step(self) -> float:
        """Return what one text of the dev set counts in the score."""
        return 1 / int(self.runs[0].about["n_test"])

    @property
    def layers(self) -> list[int]:
        """Return the layers whose states were measured."""
        rows = next((run.geometry for run in self.runs if run.geometry), ())
        return [row["layer"] for row in rows if row["layer"] != "all"]

    def strengths(self, regularizer: str) -> list[float]:
        """Return those that were run, rising; λ = 0 is everyone's."""
        return sorted({run.strength for run in self.runs if run.regularizer in (regularizer, NONE)})

    def by_seed(
        self, regularizer: str, strength: float, name: str = "score", layer: int | str = "all"
    ) -> dict[int, float]:
        """Return a quantity of every seed that has it."""
        wanted = (NONE if strength == 0 else regularizer, strength)
        values = {
            run.seed: run.value(name, layer) for run in self.runs if (run.regularizer, run.strength) == wanted
        }
        return {seed: value for seed, value in sorted(values.items()) if value is not None}

    def gain(self, regularizer: str, strength: float, name: str = "score") -> Difference | None:
        """Return a quantity less that of λ = 0, in pairs by seed."""
        values, none = (self.by_seed(regularizer, at, name) for at in (strength, 0.0))
        return difference(values, none, step=self.step if name == "score" else 0.0)

    def curve(self, regularizer: str, *names: str) -> dict[float, np.ndarray]:
        """Return (quantities, seeds) by strength, of the seeds that have all; empty ones are left out."""
        curves = {}
        for strength in self.strengths(regularizer):
            columns = [self.by_seed(regularizer, strength, name) for name in names]
            if shared := sorted(set.intersection(*map(set, columns))):
                curves[strength] = np.array([[column[seed] for seed in shared] for column in columns])
        return curves


def sweeps_of(runs: Iterable[object]) -> list[Sweep]:
    """Return the runs of the same task and settings together, in the order of the tasks."""
    groups: dict[tuple[str, Settings], list[SweepRun]] = {}
    for run in runs:
        if isinstance(run, SweepRun):
            groups.setdefault((run.task, run.settings), []).append(run)
    order = list(TASKS)
    keys = sorted(groups, key=lambda key: (key[1].title, order.index(key[0]), str(key[1])))
    return [Sweep(*key, tuple(groups[key]), _subject(*key, keys)) for key in keys]


def _subject(task: str, s: Settings, keys: Sequence[tuple[str, Settings]]) -> str:
    """Return the task's name; with the model, or the settings, where there are several."""
    words = TASKS[task].title
    if len({settings.title for _, settings in keys}) > 1:
        words += f", {s.title}"
    if sum((name, settings.title) == (task, s.title) for name, settings in keys) > 1:
        size = s.max_train or "all"
        words += f" ({s.epochs} epochs of {size}, lr {s.learning_rate:g}, batch {s.batch_size})"
    return words


class Trend(NamedTuple):
    """Spearman's ρ of two means over strengths; its 95 % interval over seeds; p by permuting strengths."""

    rho: float
    low: float
    high: float
    p: float
    n: int


def trend(*tasks: Sequence[np.ndarray], seed: int = 0) -> Trend | None:
    """Return the trend of (2, seeds) at each strength; of several tasks, the mean of their ρ, without p.

    Equal means share the average of their ranks. The interval draws the seeds of every strength anew, 2,000
    times; p is the share of 10,000 orders of the strengths with a |ρ| at least as large. None for fewer than
    four strengths, or where a mean does not vary.
    """
    if min(map(len, tasks)) < 4:
        return None
    means = [np.array([one.mean(axis=1) for one in curves]) for curves in tasks]
    rho = float(np.mean([_rho(one) for one in means]))
    if not np.isfinite(rho):
        return None
    source = np.random.default_rng([seed, *b"trend"])
    drawn = [_rho(np.stack([_redrawn(one, source) for one in curves], axis=1)) for curves in tasks]
    low, high = np.nanquantile(np.mean(drawn, axis=0), [_SIDE, 1 - _SIDE])
    p = _chance(means[0], source) if len(tasks) == 1 else np.nan
    return Trend(rho, float(low), float(high), p, len(tasks[0]))


def _chance(means: np.ndarray, source: np.random.Generator) -> float:
    x, y = (rankdata(column) - (len(means) + 1) / 2 for column in np.round(means.T, _DIGITS))
    orders = source.permuted(np.tile(y, (_PERMUTATIONS, 1)), axis=1)
    return float(((np.abs(orders @ x) >= abs(x @ y) - 1e-9).sum() + 1) / (_PERMUTATIONS + 1))


def _redrawn(values: np.ndarray, source: np.random.Generator) -> np.ndarray:
    """Return (draws, 2) means over as many seeds, drawn with replacement, of (2, seeds)."""
    n = values.shape[1]
    return np.asarray(values[:, source.integers(n, size=(_DRAWS, n))].mean(axis=2).T)


def _rho(means: np.ndarray) -> np.ndarray:
    """Return Spearman's ρ of the two columns of (…, strengths, 2); NaN where one does not vary."""
    ranked = rankdata(np.round(means, _DIGITS), axis=-2)
    x, y = np.moveaxis(ranked - ranked.mean(axis=-2, keepdims=True), -1, 0)
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return np.divide((x * y).sum(axis=-1), scale, out=np.full(scale.shape, np.nan), where=scale > 0)
