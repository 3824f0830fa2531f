"""Comparisons of two spaces of the same items.

compare(A, B)               metrics of both spaces with the intervals of their differences, linear CKA,
                            Procrustes distance, shared neighbours, the rows and labels that moved most
                            -> Comparison
similarity_matrix(spaces)   how alike any number of spaces are, two at a time -> SimilarityMatrix
separability(X, Y)          how well a classifier tells two samples of different items apart -> Separability
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
from isoscope.comparison.separability import Separability, separability
from isoscope.comparison.similarity import SimilarityMatrix, similarity_matrix

__all__ = [
    "Change",
    "Comparison",
    "Correspondence",
    "Gate",
    "GateResult",
    "MovedLabel",
    "MovedRow",
    "Separability",
    "SimilarityMatrix",
    "SliceChange",
    "SliceOverlap",
    "compare",
    "parse_gates",
    "separability",
    "similarity_matrix",
]
