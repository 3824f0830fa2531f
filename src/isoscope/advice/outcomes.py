"""The outcomes of trials: one correction on one task, all of them on a task, the one to recommend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isoscope.advice.validation import LEVEL
from isoscope.results import plain
from isoscope.tables import signed, span

HELPS, HURTS, NO_DIFFERENCE = "helps", "hurts", "no difference seen"
LEAVE = "leave it alone"
NEGLIGIBLE = 0.001  # a gain below is none, however sure: rounding of float32 alone makes such


@dataclass(frozen=True)
class Outcome:
    """One correction on one task.

    Attributes:
        correction: its name.
        score: mean over held-out folds; None where it could not be fitted.
        gain: score less that without a correction, and `interval`, its 95 % interval by itself.
        p_value: of no gain, adjusted for all corrections tried on the task (Holm).
        scores: one a fold and repeat.
        reason: why it could not be fitted.
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
        """Helps, hurts, no difference seen; or why there is nothing to say."""
        if self.gain is None or self.p_value is None:
            return self.reason or "not fitted"
        if self.p_value >= LEVEL or abs(self.gain) < NEGLIGIBLE:
            return NO_DIFFERENCE
        return HELPS if self.gain > 0 else HURTS

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**plain(self), "verdict": self.verdict}


@dataclass(frozen=True)
class TaskAdvice:
    """One task: the score without a correction, and what each correction makes of it.

    Attributes:
        task: linear_probe, knn, clustering, retrieval or similarity.
        score_name: what is scored, in words.
        n_items: rows, or pairs, it was tried on.
        baseline: mean score without a correction.
        outcomes: one a correction.
    """

    task: str
    score_name: str
    n_items: int
    baseline: float
    outcomes: tuple[Outcome, ...]

    @property
    def helping(self) -> list[Outcome]:
        """Corrections that help, the most first."""
        return self._with(HELPS)

    @property
    def hurting(self) -> list[Outcome]:
        """Corrections that hurt, the most first."""
        return self._with(HURTS)

    def _with(self, verdict: str) -> list[Outcome]:
        found = [one for one in self.outcomes if one.verdict == verdict]
        return sorted(found, key=lambda one: -abs(one.gain or 0.0))

    @property
    def best(self) -> Outcome | None:
        """The correction that helps most; None where none does."""
        return self.helping[0] if self.helping else None

    @property
    def sentence(self) -> str:
        """The advice for this task, in one line."""
        if self.best is None or self.best.interval is None:
            tried = len([one for one in self.outcomes if one.gain is not None])
            return f"{self.task}: {LEAVE}; none of {tried} corrections is seen to help"
        return (
            f"{self.task}: {self.best.correction} helps, {self.baseline:.3f} → {self.best.score:.3f} "
            f"(gain {signed(self.best.gain)}, 95 % {span(self.best.interval, signed)})"
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
    """Return the correction that helps most tasks and hurts none; of equals, that with the larger gain."""
    hurt = {one.correction for task in tasks for one in task.hurting}
    gains: dict[str, list[float]] = {}
    for task in tasks:
        for one in task.helping:
            if one.correction not in hurt:
                gains.setdefault(one.correction, []).append(one.gain or 0.0)
    if not gains:
        return None
    return max(gains, key=lambda name: (len(gains[name]), math.fsum(gains[name])))
