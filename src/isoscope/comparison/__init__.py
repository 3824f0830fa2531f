"""Comparisons of two spaces of the same items.

compare(A, B)               metrics of both spaces with the intervals of their differences, linear CKA,
                            Procrustes distance, shared neighbours, the rows and labels that moved most
                            -> Comparison
parse_gates(texts)          conditions such as "isoscore>=0.1", which `Comparison.check` tests
"""

from __future__ import annotations

from isoscope.comparison.changes import (
    Change,
    Correspondence,
    MovedLabel,
    MovedRow,
    SliceChange,
    SliceOverlap,
)
from isoscope.comparison.compare import compare
from isoscope.comparison.gates import Gate, GateResult, parse_gates
from isoscope.comparison.result import Comparison

__all__ = [
    "Change",
    "Comparison",
    "Correspondence",
    "Gate",
    "GateResult",
    "MovedLabel",
    "MovedRow",
    "SliceChange",
    "SliceOverlap",
    "compare",
    "parse_gates",
]
