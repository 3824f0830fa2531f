"""What is broken in the vectors of an index: each fault with its share, its rows and their texts.

audit(X, queries=…, texts=…)    hubs, copies, outliers, rows never found, NaN, lengths, … -> Audit
sweep(X, "faiss")               recall and speed of an index over its settings -> Sweep
"""

from __future__ import annotations

from isoscope.audit.audit import audit
from isoscope.audit.result import Audit
from isoscope.audit.sweep import Sweep, sweep

__all__ = ["Audit", "Sweep", "audit", "sweep"]
