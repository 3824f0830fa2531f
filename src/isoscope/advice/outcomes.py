"""The results of trials: of one correction on one task, of all corrections on a task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isoscope.advice.validation import LEVEL
from isoscope.results import plain
from isoscope.tables import signed, span

HELPS, HURTS, NO_DIFFERENCE = "helps", "hurts", "no difference seen"
UNCERTAIN = "uncertain"  # the interval leaves out 0, but the adjusted p-value is not below the level
LEAVE = "leave it alone"
NEGLIGIBLE = 0.001  # smaller gains do not count: rounding to float32 alone can cause them


@dataclass(frozen=True)
class Outcome:
    """The result of one correction on one task.

    Attributes:
        correction: the name of the correction.
        score: the mean score over held-out folds; None where the correction could not be fitted.
        gain: the score minus the score without a correction.
        interval: the 95 % interval of the gain.
        p_value: the p-value of no gain, adjusted for all corrections of the task (Holm).
        scores: the score of each fold and repeat.
        reason: why the correction could not be fitted, if so.
    """

    correction: str
    score: float | None
    gain: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    scores: tuple[float, ...] = ()
    reason: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words: helps, hurts, uncertain, no difference seen, or why it was not fitted."""
        if self.gain is None or self.p_value is None:
            return self.reason or "not fitted"
        if abs(self.gain) < NEGLIGIBLE:
            return NO_DIFFERENCE
        if self.p_value >= LEVEL:
            return UNCERTAIN if self.interval and self.interval[0] * self.interval[1] > 0 else NO_DIFFERENCE
        return HELPS if self.gain > 0 else HURTS

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**plain(self), "verdict": self.verdict}


@dataclass(frozen=True)
class TaskAdvice:
    """The results of one task: the score without a correction, and with each one.

    Attributes:
        task: linear_probe, knn, clustering, retrieval or similarity.
        score_name: the score, in words.
        n_items: the number of rows or pairs.
        baseline: the mean score without a correction.
        outcomes: the result of each correction.
    """

    task: str
    score_name: str
    n_items: int
    baseline: float
    outcomes: tuple[Outcome, ...]

    @property
    def helping(self) -> list[Outcome]:
        """The corrections that help, by decreasing gain."""
        return self._with(HELPS)

    @property
    def hurting(self) -> list[Outcome]:
        """The corrections that hurt, by decreasing loss."""
        return self._with(HURTS)

    def _with(self, verdict: str) -> list[Outcome]:
        outcomes = [one for one in self.outcomes if one.verdict == verdict]
        return sorted(outcomes, key=lambda one: -abs(one.gain or 0.0))

    @property
    def best(self) -> Outcome | None:
        """The correction that helps most; None where none does."""
        return self.helping[0] if self.helping else None

    @property
    def sentence(self) -> str:
        """The advice for this task, in one line."""
        if self.best is None or self.best.interval is None:
            n_tried = len([one for one in self.outcomes if one.gain is not None])
            return f"{self.task}: {LEAVE}; none of {n_tried} corrections clearly helps"
        return (
            f"{self.task}: {self.best.correction} helps, {self.baseline:.3f} → {self.best.score:.3f} "
            f"(gain {signed(self.best.gain)}, 95 % interval {span(self.best.interval, signed)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "score": self.score_name,
            "n_items": self.n_items,
            "baseline": self.baseline,
            "best": None if self.best is None else self.best.correction,
            "advice": self.sentence,
            "corrections": {one.correction: one.to_dict() for one in self.outcomes},
        }


def recommended(tasks: Sequence[TaskAdvice]) -> str | None:
    """Return the correction that helps the most tasks and hurts none; ties are decided by the gain."""
    hurt = {one.correction for task in tasks for one in task.hurting}
    gains: dict[str, list[float]] = {}
    for task in tasks:
        for one in task.helping:
            if one.correction not in hurt:
                gains.setdefault(one.correction, []).append(one.gain or 0.0)
    if not gains:
        return None
    return max(gains, key=lambda name: (len(gains[name]), math.fsum(gains[name])))
