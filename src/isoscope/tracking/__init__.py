"""Track the geometry of a model or of vectors during training.

GeometryTracker(probe)      measures layers of any model in any training loop
geometry_callback, …        use a tracker in transformers, sentence-transformers and Lightning
Trajectory                  the measurements of a run: curves, correlations, figure, file
"""

from __future__ import annotations

from isoscope.tracking.callbacks import geometry_callback, geometry_evaluator, lightning_callback
from isoscope.tracking.correlation import Correlation
from isoscope.tracking.tracker import GeometryTracker
from isoscope.tracking.trajectory import Trajectory

__all__ = [
    "Correlation",
    "GeometryTracker",
    "Trajectory",
    "geometry_callback",
    "geometry_evaluator",
    "lightning_callback",
]
