"""The first look at a space: findings in words, the worst first.

look(X)         what stands out in vectors, what it means and what to try next -> Look
THRESHOLDS      from which value on a finding is moderate or serious, and why
references()    the same numbers for known models and corpora, to compare with
"""

from __future__ import annotations

from isoscope.look.finding import Finding
from isoscope.look.first_look import look
from isoscope.look.references import Reference, references
from isoscope.look.result import Look
from isoscope.metrics.thresholds import THRESHOLDS, Threshold

__all__ = ["THRESHOLDS", "Finding", "Look", "Reference", "Threshold", "look", "references"]
