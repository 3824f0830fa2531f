"""Advice on corrections: each one is tried on the caller's own tasks, on held-out items.

advise(X, labels=…, pairs=…)    the gain of each correction on each task, with intervals -> Advice
try_corrections(…)              the scores of all folds
"""

from __future__ import annotations

from isoscope.advice.advise import advise
from isoscope.advice.candidates import DESCRIPTIONS
from isoscope.advice.outcomes import Outcome, TaskAdvice
from isoscope.advice.result import Advice
from isoscope.advice.trials import try_corrections
from isoscope.advice.validation import Gain, gain
from isoscope.engine.slices import holm

__all__ = [
    "DESCRIPTIONS",
    "Advice",
    "Gain",
    "Outcome",
    "TaskAdvice",
    "advise",
    "gain",
    "holm",
    "try_corrections",
]
