"""Two spaces of the same items: what changed, how alike they are, which items moved.

compare(A, B)               a Comparison: metrics of both with intervals of their differences, CKA,
                            Procrustes distance, shared neighbours, rows and labels that moved most
parse_gates(texts)          conditions such as "isoscore>=0.1", and `Comparison.check` holds them to it
"""

from __future__ import annotations

from isoscope.comparison.changes import Change, Correspondence, MovedLabel, MovedRow
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
    "compare",
    "parse_gates",
]
