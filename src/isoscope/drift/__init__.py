"""Drift: whether, how far and where vectors of new items differ from those before.

drift(A, B)       the share of the rows that differs, with interval, against a tolerated share; the clusters
                  and texts that came and went -> Drift
drift_over_time   the same for each window of time of one file -> DriftOverTime
Snapshot          what drift needs of one sample: it is measured once, kept, and merged with others
"""

from __future__ import annotations

from isoscope.drift.clusters import ClusterChange
from isoscope.drift.drift import drift
from isoscope.drift.over_time import DriftOverTime, drift_over_time
from isoscope.drift.result import Drift, StrangeRow
from isoscope.drift.snapshot import Snapshot

__all__ = [
    "ClusterChange",
    "Drift",
    "DriftOverTime",
    "Snapshot",
    "StrangeRow",
    "drift",
    "drift_over_time",
]
