"""What it costs to choose a layer, a checkpoint or a correction by a metric: the regret against the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from isoscope_papers.predicts.associations import (
    ALL,
    ALL_GROUPS,
    DIRECTIONS,
    TASKS,
    adjusted,
    bootstrap,
    by_lineage,
    spearman,
    t_interval,
)
from isoscope_papers.predicts.setups import CORRECTIONS
from isoscope_papers.predicts.wide import CORRECTED, Wide, lineage, own_pooling

LAYER, CHECKPOINT, CORRECTION = "layer", "checkpoint", "correction"
CHOICES = (LAYER, CHECKPOINT, CORRECTION)
DEFAULT = {LAYER: "last layer", CHECKPOINT: "last checkpoint", CORRECTION: "no correction"}
RANDOM, MIDDLE, OTHER_TASKS = "at random", "middle", "best on the other tasks"
AS_SAID, LEARNT = "as said", "learnt"  # where the direction of a metric is from


@dataclass(frozen=True, eq=False)
class Candidates:
    """The spaces among which one is chosen, in order of depth, step or strength.

    Attributes:
        model: whose they are.
        spaces: their places.
        default: the place of what is used without choosing.
    """

    model: str
    spaces: np.ndarray
    default: int


def candidates(wide: Wide, choice: str) -> list[Candidates]:
    """Return every set of spaces that differ in one thing only."""
    about = wide.about.assign(place=range(len(wide.about)))
    plain = about[about["correction"] == "none"]
    found = []
    for name, own in plain.groupby("model", sort=False) if choice != CORRECTION else ():
        model = str(name)
        if choice == LAYER:
            last = own[own["step"] == own["step"].max()]
            lines = [line.sort_values("layer") for _, line in last.groupby("pooling", sort=False)]
        else:
            is_last = (own["layer"] == own["layer"].max()) & (own["pooling"] == own_pooling(model, own))
            lines = [own[is_last].sort_values("step")]
        found += [Candidates(model, line["place"].to_numpy(), len(line) - 1) for line in lines]
    for model, spaces in wide.of_view(CORRECTED).items() if choice == CORRECTION else ():
        is_plain = (about["family"] != CORRECTIONS).to_numpy()[spaces]
        found.append(Candidates(model, spaces, int(np.flatnonzero(is_plain)[0])))
    return [one for one in found if len(one.spaces) > 2]


class Regrets:
    """The regrets of every rule for one choice.

    Attributes:
        sets: what is chosen among.
    """

    def __init__(self, wide: Wide, choice: str, metrics: Sequence[str]) -> None:
        self.wide, self.choice, self.metrics = wide, choice, tuple(metrics)
        self.sets = candidates(wide, choice)

    @cached_property
    def scores(self) -> list[np.ndarray]:
        """(tasks, spaces) of each set, in points of 100."""
        return [100 * np.stack([self.wide.score(task, one.spaces) for task in TASKS]) for one in self.sets]

    def rules(self) -> dict[str, list[np.ndarray]]:
        """Return for each rule the expected score of its choice, (tasks,) for each set."""
        found = {
            DEFAULT[self.choice]: [scores[:, one.default] for one, scores in self._pairs()],
            RANDOM: [scores.mean(axis=1) for scores in self.scores],
        }
        if self.choice != CORRECTION:
            found[MIDDLE] = [scores[:, scores.shape[1] // 2] for scores in self.scores]
        found[OTHER_TASKS] = [_by_others(scores) for scores in self.scores]
        for metric in self.metrics:
            values = [self._values(metric, one) for one in self.sets]
            found[f"{metric}, {AS_SAID}"] = [
                _chosen(DIRECTIONS[metric] * own, scores, one.default)
                for own, (one, scores) in zip(values, self._pairs(), strict=True)
            ]
            if len({lineage(one.model) for one in self.sets}) < 2:
                continue  # there is no other model to learn from
            signs = self._signs(values)
            found[f"{metric}, {LEARNT}"] = [
                _chosen(signs[lineage(one.model)][:, None] * own, scores, one.default)
                for own, (one, scores) in zip(values, self._pairs(), strict=True)
            ]
        return found

    def _pairs(self) -> Iterator[tuple[Candidates, np.ndarray]]:
        return zip(self.sets, self.scores, strict=True)

    def _values(self, metric: str, one: Candidates) -> np.ndarray:
        """(tasks, spaces) a metric on the texts of each task."""
        return np.stack([self.wide.metric(metric, corpus, one.spaces) for corpus, _ in TASKS])

    def _signs(self, values: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Return by lineage the sign of a metric for each task, from the other lineages alone."""
        rhos: dict[str, list[np.ndarray]] = {}
        for own, (one, scores) in zip(values, self._pairs(), strict=True):
            each = [spearman(x, y) for x, y in zip(own, scores, strict=True)]
            rhos.setdefault(lineage(one.model), []).append(np.nan_to_num(np.array(each)))
        means = {name: np.mean(lines, axis=0) for name, lines in rhos.items()}
        signs = {}
        for name in means:
            others = [each for other, each in means.items() if other != name]
            signs[name] = np.where(np.sum(others, axis=0) < 0, -1.0, 1.0)
        return signs

    def regrets(self, chosen: list[np.ndarray], tasks: Sequence[tuple[str, str]] = TASKS) -> dict[str, float]:
        """Return the mean regret of a rule by lineage, over tasks and then over sets."""
        places = [TASKS.index(task) for task in tasks]
        values: dict[str, list[float]] = {}
        for own, (one, scores) in zip(chosen, self._pairs(), strict=True):
            values.setdefault(one.model, []).append(float((scores.max(axis=1) - own)[places].mean()))
        return by_lineage({model: float(np.mean(each)) for model, each in values.items()})


def _chosen(values: np.ndarray, scores: np.ndarray, default: int) -> np.ndarray:
    """Return the score, for each task, of the space with the largest value; ties share, and the default is
    taken where no space has a value."""
    found = np.empty(len(values))
    for task, (own, score) in enumerate(zip(values, scores, strict=True)):
        known = np.isfinite(own)
        if not known.any():
            found[task] = score[default]
            continue
        best = np.nanmax(own)
        found[task] = score[known & (own >= best)].mean()
    return found


def _by_others(scores: np.ndarray) -> np.ndarray:
    """Return the score, for each task, of the space whose scores are best in tasks of other corpora."""
    corpora = np.array([corpus for corpus, _ in TASKS])
    spread = scores.std(axis=1, keepdims=True)
    standard = (scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
    return np.array(
        [
            score[standard[corpora != corpus].mean(axis=0).argmax()]
            for corpus, score in zip(corpora, scores, strict=True)
        ]
    )


def all_regrets(wide: Wide, metrics: Sequence[str]) -> pd.DataFrame:
    """Return one row for each choice, rule and group of tasks, with its gain over not choosing.

    The gain is the regret of the default minus that of the rule; p-values are corrected for all rules and
    choices, over all tasks together.
    """
    rows = []
    for choice in CHOICES:
        regrets = Regrets(wide, choice, metrics)
        if not regrets.sets:
            continue
        rules = regrets.rules()
        for group, tasks in ALL_GROUPS.items():
            default = regrets.regrets(rules[DEFAULT[choice]], tasks)
            for rule, chosen in rules.items():
                own = regrets.regrets(chosen, tasks)
                regret, low, high, _ = t_interval(list(own.values()))
                gain, gain_low, gain_high, p = t_interval([default[name] - own[name] for name in own])
                low_drawn, high_drawn = bootstrap(list(own.values()))
                rows.append({
                    "choice": choice, "rule": rule, "group": group, "regret": regret, "low": low,
                    "high": high, "low_drawn": low_drawn, "high_drawn": high_drawn, "gain": gain,
                    "gain_low": gain_low, "gain_high": gain_high, "p": p, "n_sets": len(regrets.sets),
                    "n_lineages": len(own), "by_lineage": own,
                })  # fmt: skip
    found = pd.DataFrame(rows)
    found["p_adjusted"] = np.nan
    if len(found):
        is_tested = (found["group"] == ALL) & found["rule"].str.contains(",")
        found.loc[is_tested, "p_adjusted"] = adjusted(found.loc[is_tested, "p"].to_numpy(dtype=float))
    return found
