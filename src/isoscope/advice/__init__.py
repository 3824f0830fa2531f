"""Should these vectors be corrected? Every correction tried on the caller's own task, on held-out items.

advise(X, labels=…, pairs=…)    an Advice: per task what each correction gains over none, with intervals
try_corrections(…)              the scores behind it
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
