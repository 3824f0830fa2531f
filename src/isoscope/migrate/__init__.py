"""From one model to another: map the old vectors, or embed again?

migrate(OLD, NEW)     how much of the neighbours in NEW a map of the old vectors keeps on rows that it has not
                      seen, which items are lost, and the thresholds of both models -> Migration
"""

from __future__ import annotations

from isoscope.migrate.migrate import migrate
from isoscope.migrate.result import LostRow, Migration, Threshold, Trial

__all__ = ["LostRow", "Migration", "Threshold", "Trial", "migrate"]
